#!/usr/bin/env python3
"""A private Docker daemon and a base image without a registry, for tests; root on Debian, standard library only.

``daemon.py start FOLDER`` installs docker.io and debootstrap where they are missing, starts dockerd with everything it
keeps below FOLDER, makes the base image, and prints ``DOCKER_HOST=unix://...`` as its last line. ``daemon.py stop
FOLDER`` ends that daemon and removes its containers, images and folders.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

PACKAGES = {"dockerd": "docker.io", "docker": "docker.io", "iptables": "iptables", "debootstrap": "debootstrap"}
"""Debian packages by the program that shows that they are there."""
INCLUDE = ("ca-certificates", "g++", "git", "python3", "ripgrep")
"""What the base image has besides Debian's smallest system: it stands for a base that has a compiler and Python."""
READY_SECONDS = 60.0
STOP_SECONDS = 30.0


class DaemonError(Exception):
    """Something that is shown as one line."""


def main() -> int:
    """Run one command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=("start", "stop"))
    parser.add_argument("folder", type=Path, help="where data, state, socket and log of the daemon lie")
    arguments = parser.parse_args()
    folder: Path = arguments.folder.absolute()
    try:
        if os.geteuid() != 0:
            raise DaemonError("needs root")
        if arguments.command == "stop":
            stop(folder)
            return 0
        install_missing()
        address = start(folder)
        make_base(address)
    except (DaemonError, OSError, subprocess.CalledProcessError) as error:
        print(f"daemon.py: {error}", file=sys.stderr)
        return 3
    print(f"DOCKER_HOST={address}")
    return 0


def install_missing() -> None:
    """Install the Debian packages whose programs are not there."""
    wanted = sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})
    if not wanted:
        return
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # A daemon that the package starts by itself would be another one than ours.
    blocker = Path("/usr/sbin/policy-rc.d")
    block = not blocker.exists()
    if block:
        blocker.write_text("#!/bin/sh\nexit 101\n")
        blocker.chmod(0o755)
    try:
        run("apt-get", "update", "-qq", environment=quiet)
        run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *wanted, environment=quiet)
    finally:
        if block:
            blocker.unlink()


def start(folder: Path) -> str:
    """Start dockerd, unless the one of this folder runs already; returns its address."""
    socket = folder / "docker.sock"
    address = f"unix://{socket}"
    if _process(folder) is not None and answers(address):
        return address
    folder.mkdir(parents=True, exist_ok=True)
    # Whoever is in the daemon's group has to get through to the socket.
    folder.chmod(folder.stat().st_mode | 0o011)
    (folder / "pid").unlink(missing_ok=True)
    log = folder / "dockerd.log"
    argv = [
        *("dockerd", "--host", address, "--pidfile", str(folder / "pid"), "--group", "root"),
        *("--data-root", str(folder / "data"), "--exec-root", str(folder / "exec")),
    ]
    with log.open("ab") as output:
        # A session of its own: the daemon outlives the shell that started it.
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True)
    deadline = time.monotonic() + READY_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        if answers(address):
            return address
        time.sleep(0.2)
    ended = f"ended with {process.returncode}" if process.poll() is not None else "does not answer"
    last = "; ".join(log.read_text(errors="replace").splitlines()[-3:])
    raise DaemonError(f"dockerd {ended}: {last}")


def stop(folder: Path) -> None:
    """End the daemon of a folder and remove what it kept."""
    process = _process(folder)
    if process is not None:
        os.kill(process, signal.SIGTERM)
        deadline = time.monotonic() + STOP_SECONDS
        while _process(folder) == process:
            if time.monotonic() > deadline:
                raise DaemonError(f"dockerd ({process}) did not end within {STOP_SECONDS:.0f} s")
            time.sleep(0.2)
    for name in ("data", "exec"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in ("docker.sock", "pid", "dockerd.log"):
        (folder / name).unlink(missing_ok=True)


def make_base(address: str) -> str:
    """Make the base image from the machine's own Debian mirror, unless it is there; returns its name."""
    mirror, suite = mirror_and_suite()
    name = f"akarena-base:{suite}"
    if docker(address, "images", "--quiet", name):
        return name
    with tempfile.TemporaryDirectory(prefix="akarena-base-") as made:
        system = Path(made) / "system"
        include = f"--include={','.join(INCLUDE)}"
        run("debootstrap", "--variant=minbase", include, suite, str(system), mirror)
        for folder in ("var/cache/apt", "var/lib/apt/lists", "var/log", "usr/share/doc", "usr/share/man"):
            _empty(system / folder)
        # What debootstrap wrote there is the mirror; an image names no host of the machine that made it.
        (system / "etc/apt/sources.list").write_text("")
        tar = ["tar", "--sort=name", "--numeric-owner", "-C", str(system), "-c", "."]
        with subprocess.Popen(tar, stdout=subprocess.PIPE) as stream:
            subprocess.run(
                ["docker", "--host", address, "import", "-", name], stdin=stream.stdout, check=True, stdout=2
            )
        if stream.returncode != 0:
            raise DaemonError(f"tar of the base image ended with {stream.returncode}")
    return name


def mirror_and_suite() -> tuple[str, str]:
    """Ask apt for its first Debian mirror and the suite of this system."""
    os_release = Path("/etc/os-release").read_text()
    found = re.search(r'^VERSION_CODENAME="?([a-z]+)"?$', os_release, re.MULTILINE)
    if found is None or not re.search(r'^ID="?debian"?$', os_release, re.MULTILINE):
        raise DaemonError("/etc/os-release: this is no Debian release, so no base image can be made from its mirror")
    suite = found.group(1)
    form = ["--format", "$(REPO_URI) $(CODENAME) $(COMPONENT)", "Created-By: Packages"]
    shown = subprocess.run(["apt-get", "indextargets", *form], capture_output=True, text=True, check=True).stdout
    for line in shown.splitlines():
        uri, codename, component = [*line.split(), "", "", ""][:3]
        if codename == suite and component == "main":
            return uri.rstrip("/"), suite
    raise DaemonError(f"apt names no mirror of {suite} (run apt-get update first)")


def answers(address: str) -> bool:
    """Say whether a daemon answers at this address."""
    return subprocess.run(["docker", "--host", address, "version"], capture_output=True, check=False).returncode == 0


def docker(address: str, *arguments: str) -> str:
    """Run the Docker client and return what it prints."""
    argv = ["docker", "--host", address, *arguments]
    return subprocess.run(argv, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def run(*argv: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a program whose output is of interest only when it fails."""
    done = subprocess.run(argv, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        sys.stderr.buffer.write(done.stdout[-4000:])
        raise DaemonError(f"{argv[0]} ended with {done.returncode}")


def _process(folder: Path) -> int | None:
    """Return the id of the folder's running daemon."""
    try:
        process = int((folder / "pid").read_text())
        arguments = Path(f"/proc/{process}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    # The id may belong to another program by now.
    return process if str(folder / "data").encode() in arguments else None


def _empty(folder: Path) -> None:
    for entry in folder.iterdir() if folder.is_dir() else ():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


if __name__ == "__main__":
    sys.exit(main())
