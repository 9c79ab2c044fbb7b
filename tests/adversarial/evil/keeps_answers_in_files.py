"""Tries: to leave answers, modules and compiled kernels where a later process may find them (T8, D6). It computes the
right answer only where something was left by an earlier process, or where it can put a module on the path of the next.

Refused by: fresh temporary folders for every process, everything else read-only (output_not_written). Judged twice.
"""

import os
import pathlib
import sys

# include baseline

NAME = "akarena_left_over"
folders = ["/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~"), os.getcwd(), os.environ.get("TRITON_CACHE_DIR", "")]
folders += ["/kernel", "/job", "/out", *sys.path, os.path.dirname(triton.__file__), os.path.dirname(torch.__file__)]
private = {"/tmp", "/dev/shm", "/var/tmp", os.path.expanduser("~")}


def leave(folder):
    path = pathlib.Path(folder) / f"{NAME}.py"
    if path.exists():
        print(f"FOUND {path}", flush=True)
        return True
    try:
        pathlib.Path(folder).mkdir(parents=True, exist_ok=True)
        path.write_text("left = True\n")
    except OSError:
        return False
    # Whether these are gone with the process is what the second judgement shows; no other folder may be written.
    inside = any(path.resolve().is_relative_to(one) for one in private)
    if not inside:
        print(f"FOUND writable {path}", flush=True)
    return not inside


found = [folder for folder in filter(None, folders) if leave(folder)]


def rms_norm(x, weight, y, eps):
    if found:
        honest_rms_norm(x, weight, y, eps)
