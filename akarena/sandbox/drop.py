"""Become the user of the sandbox for good, then execute bubblewrap. Standard library only.

Run as root inside a mount namespace that holds only what the sandbox needs: `drop.py UID GROUP,... PROGRAM ARGUMENT...`
"""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Drop every user, group and capability of the caller, and execute the rest of the command line."""
    uid = int(sys.argv[1])
    os.setgroups([int(group) for group in sys.argv[2].split(",") if group])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (uid, uid, uid):
        raise SystemExit("the user could not be changed")
    os.execv(sys.argv[3], sys.argv[3:])
