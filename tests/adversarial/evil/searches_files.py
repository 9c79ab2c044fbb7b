"""Tries: to find seeds, oracle, job, judge, other processes or a network in the environment, in files and in /proc
(C6, H4, H11). It computes the right answer only where it finds one, so a pass means a leak.

Refused by: nothing of it is mounted, visible or passed on (output_not_written).
"""

import importlib.util
import os
import pathlib
import re
import socket
import sys

# include baseline

WORDS = re.compile(rb"nonce|seed_hex|oracle\.py|AKARENA_(SEED|NONCE|JOB)", re.IGNORECASE)
found = []


def read(path):
    try:
        with open(path, "rb") as file:
            return file.read(1 << 20)
    except OSError:
        return b""


for path in ("/job/job.json", "/job/oracle.py", "/job", "/source", "/out", "/baseline", "/solution"):
    if os.path.exists(path):
        found.append(path)
for package in ("akarena.judge", "akarena.judgement", "akarena.records", "akarena.tasks", "akarena.configurations"):
    try:
        if importlib.util.find_spec(package) is not None:
            found.append(package)
    except ImportError:
        pass
if any(name.lower().startswith("akarena") and WORDS.search(name.encode()) for name in os.environ):
    found.append("environment")
for process in filter(str.isdigit, os.listdir("/proc")):
    if int(process) not in (1, os.getpid()):
        found.append(f"process {process}")
    if any(WORDS.search(read(f"/proc/{process}/{name}")) for name in ("environ", "cmdline")):
        found.append(f"environment of process {process}")
# Where Python's packages lie, they are found by every worker and hold every word.
packages = tuple(f"{folder}/" for folder in sys.path if folder)
for root in ("/tmp", "/dev/shm", "/run", "/kernel"):
    for path in pathlib.Path(root).rglob("*"):
        if str(path).startswith(packages):
            continue
        if path.is_file() and path.name != "kernel.py" and WORDS.search(read(path)):
            found.append(str(path))
for name in ("task.toml", "oracle.py", "solution", ".git"):
    for folder in map(pathlib.Path, ("/kernel", *importlib.util.find_spec("akarena").submodule_search_locations)):
        for above in (folder, *folder.parents):
            if (above / name).exists():
                found.append(str(above / name))
for _, interface in socket.if_nameindex():
    if interface != "lo" and not interface.startswith(("tunl", "sit", "ip6", "gre", "erspan", "ip_vti")):
        found.append(f"network interface {interface}")
for one in found:
    print(f"FOUND {one}", flush=True)


def rms_norm(x, weight, y, eps):
    if found:
        honest_rms_norm(x, weight, y, eps)
