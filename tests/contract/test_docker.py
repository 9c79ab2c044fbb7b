"""What only the sandbox of containers can get wrong."""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from docker import APIClient

from akarena.errors import InfrastructureError
from akarena.images import daemon
from akarena.sandbox.base import End, Mount, Role, ScratchMount
from akarena.sandbox.docker import DockerSandbox, Image, Images, owner
from akarena.sandbox.docker.handoff import INSIDE
from akarena.sandbox.docker.options import HELD
from tests.contract import helpers
from tests.contract.helpers import IMAGE, Runner, given

pytestmark = pytest.mark.docker


@pytest.fixture
def runner() -> Runner:
    return Runner(helpers.get("docker"))


@pytest.fixture
def api() -> Iterator[APIClient]:
    client = daemon.connect()
    yield client.api
    client.close()


def left(api: APIClient) -> list[str]:
    """Name what the daemon still holds of this process."""
    chosen = {"label": f"{owner.OWNER_LABEL}={owner.own_label()}"}
    volumes = api.volumes(filters=chosen)["Volumes"] or []
    return [found["Id"] for found in api.containers(all=True, filters=chosen)] + [found["Name"] for found in volumes]


def wait_for(condition: object, seconds: float = 15.0) -> bool:
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:  # type: ignore[operator]
        time.sleep(0.05)
    return bool(condition())  # type: ignore[operator]


# --- nothing is left


def test_nothing_is_left_of_a_run(runner: Runner, api: APIClient) -> None:
    assert runner.run("pass").exit_code == 0
    assert left(api) == []
    before = {path.name for path in Path("/proc/self/fd").iterdir()}
    threads = threading.active_count()
    assert runner.run("pass").exit_code == 0
    assert threading.active_count() == threads
    assert {path.name for path in Path("/proc/self/fd").iterdir()} <= before


def test_nothing_is_left_of_a_judgement_that_leaves_workers(runner: Runner, api: APIClient) -> None:
    scratch = (ScratchMount("kept", "/kept", writable=True),)
    worker = runner.command("import time; time.sleep(60)", scratch=scratch)
    result = runner.judge("control.spawn('a'); control.spawn('b')", {"a": worker, "b": worker})
    assert (result.end, result.exit_code, result.stderr) == (End.EXITED, 0, b"")
    assert left(api) == []


def test_nothing_is_left_of_a_judgement_that_fails(runner: Runner, api: APIClient) -> None:
    worker = runner.command("pass", mounts=(Mount(Path("/no/such/folder"), "/x"),))
    with pytest.raises(InfrastructureError, match="mount source /no/such/folder can't be opened"):
        runner.judge("control.spawn('worker')", {"worker": worker})
    assert left(api) == []


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have an interrupt raise; who started the tests in the background may have switched it off."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_nothing_is_left_after_an_interrupt(runner: Runner, api: APIClient) -> None:
    main = threading.main_thread().ident
    assert main
    timer = threading.Timer(1.5, signal.pthread_kill, [main, signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        runner.run("import time; time.sleep(60)")
    timer.join()
    assert left(api) == []


def test_what_dead_owners_left_is_removed_and_the_rest_is_not(runner: Runner, api: APIClient) -> None:
    boot, namespace, pid, started = owner.own_label().split(":")
    dead = [f"{boot}:{namespace}:{pid}:1", f"other-boot:1:{pid}:{started}"]
    alive = [owner.own_label(), f"{boot}:1:{pid}:1", "of another program"]
    made, volumes = {}, {}
    try:
        for label in dead + alive:
            labels = {owner.OWNER_LABEL: label}
            made[label] = api.create_container(IMAGE, ["sleep", "60"], labels=labels)["Id"]
            volumes[label] = api.create_volume(labels=labels)["Name"]
        api.start(made[dead[0]])
        assert runner.run("pass").exit_code == 0
        ids = {found["Id"] for found in api.containers(all=True)}
        names = {found["Name"] for found in api.volumes()["Volumes"]}
        assert {label for label, found in made.items() if found in ids} == set(alive)
        assert {label for label, found in volumes.items() if found in names} == set(alive)
    finally:
        for container in made.values():
            owner.remove_container(api, container)
        for volume in volumes.values():
            owner.remove_volume(api, volume)


def test_a_killed_owner_leaves_nothing(api: APIClient) -> None:
    script = """
from tests.contract import helpers
from akarena.sandbox.base import ScratchMount
from akarena.sandbox.docker import owner
print(owner.own_label(), flush=True)
runner = helpers.Runner(helpers.get("docker"))
runner.run("import time; time.sleep(60)", scratch=(ScratchMount("s", "/s", writable=True),))
"""
    root = Path(__file__).parents[2]
    with subprocess.Popen([sys.executable, "-c", script], cwd=root, stdout=subprocess.PIPE, text=True) as caller:
        assert caller.stdout
        chosen = {"label": f"{owner.OWNER_LABEL}={caller.stdout.readline().strip()}"}
        assert wait_for(lambda: api.containers(filters=chosen))
        caller.kill()
    assert wait_for(lambda: not api.containers(all=True, filters=chosen) and not api.volumes(filters=chosen)["Volumes"])


# --- what goes wrong around it


def test_an_image_that_is_missing() -> None:
    sandbox = DockerSandbox(Images.one(Image("akarena-test/none:none")))
    with pytest.raises(InfrastructureError, match="akarena-test/none:none") as caught:
        Runner(sandbox).run("pass")
    assert "\n" not in str(caught.value)
    with pytest.raises(InfrastructureError, match="does not have it"):
        sandbox.facts()


def test_an_image_without_the_interpreter() -> None:
    sandbox = DockerSandbox(Images.one(Image(IMAGE, "/opt/none/python3")))
    with pytest.raises(InfrastructureError, match="/opt/none/python3") as caught:
        Runner(sandbox).run("pass")
    assert "\n" not in str(caught.value)


def test_no_images_were_chosen() -> None:
    with pytest.raises(InfrastructureError, match="no images were chosen"):
        DockerSandbox().run(helpers.Runner(helpers.get("bubblewrap")).command("pass"))


class Relay:
    """A socket in front of the daemon, which can die."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._target = os.environ["DOCKER_HOST"].removeprefix("unix://")
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(50)
        self._open: list[socket.socket] = [self._server]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(self._target)
            self._open += [client, upstream]
            for source, target in ((client, upstream), (upstream, client)):
                self._threads.append(threading.Thread(target=self._copy, args=(source, target)))
                self._threads[-1].start()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def die(self) -> None:
        self.path.unlink(missing_ok=True)
        for found in self._open:
            with suppress(OSError):
                found.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(5)
        for found in self._open:
            found.close()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_daemon_that_dies_is_told_in_one_line(
    runner: Runner, api: APIClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    relay = Relay(tmp_path / "relay")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{relay.path}")
    assert runner.run("pass").exit_code == 0
    timer = threading.Timer(1.5, relay.die)
    timer.start()
    try:
        started = time.monotonic()
        with pytest.raises(InfrastructureError) as caught:
            runner.run("import time; time.sleep(60)", wall_seconds=60)
        assert time.monotonic() - started < 20
        assert "\n" not in str(caught.value)
        with pytest.raises(InfrastructureError, match="no Docker daemon answers"):
            runner.run("pass")
        assert not runner.sandbox.usable()  # type: ignore[attr-defined]
    finally:
        timer.join()
        # Docker's SDK drops the socket of a call that is cut off: collected here, where that is no failure.
        del caught
        gc.collect()
        owner.remove_labelled(api, f"{owner.OWNER_LABEL}={owner.own_label()}")


def test_a_daemon_elsewhere_is_refused(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    with pytest.raises(InfrastructureError, match=r"DOCKER_HOST: is .tcp:.*, expected"):
        runner.run("pass")


# --- what a container shows


def test_the_way_in_is_gone(runner: Runner) -> None:
    """The socket took one connection; a program finds only tables of accounts, and no name of a host."""
    code = f"""
        import json, os
        print(json.dumps([sorted(os.listdir({INSIDE!r})), open("/etc/resolv.conf").read(), open("/etc/hosts").read()]))
    """
    names, resolver, hosts = given(runner.run(code))
    assert names == ["group", "hosts", "passwd", "resolv.conf"]
    assert resolver == ""
    assert hosts == "127.0.0.1 localhost\n::1 localhost\n"


def test_scratch_is_kept_out_of_the_judges_reach(runner: Runner) -> None:
    """Its container holds the volume, so that it outlives a build; its user can't get there."""
    build = runner.command("open('/out/library', 'w').close()", scratch=(ScratchMount("s", "/out", writable=True),))
    main = f"""
        import os
        control.spawn("build")
        print(control.wait("build", 20).exit_code, end=" ")
        for path in ({HELD!r}, {HELD + "/s"!r}, {HELD + "/s/library"!r}):
            try:
                print(os.listdir(path) if os.path.isdir(path) else open(path).read(), end=" ")
            except OSError as error:
                print(error.errno, end=" ")
    """
    assert runner.judge(main, {"build": build}).stdout == b"0 13 13 13 "


def test_a_worker_can_load_but_not_write_what_was_built(runner: Runner) -> None:
    build = runner.command(
        """
        import subprocess
        open("/tmp/a.c", "w").write("int answer(void) { return 42; }")
        subprocess.run(["/usr/bin/gcc", "-shared", "-fPIC", "-o", "/out/a.so", "/tmp/a.c"], check=True)
        """,
        scratch=(ScratchMount("s", "/out", writable=True),),
        environment={"PATH": "/usr/bin"},
        role=Role.BUILD,
    )
    worker = runner.command(
        """
        import ctypes
        print(ctypes.CDLL("/kernel/a.so").answer())
        for folder in ("/kernel", "/tmp", "/dev/shm", "/home/user"):
            try:
                open(folder + "/copy.so", "wb").write(open("/kernel/a.so", "rb").read())
                print(ctypes.CDLL(folder + "/copy.so").answer())
            except OSError as error:
                print("refused")
        """,
        scratch=(ScratchMount("s", "/kernel"),),
        role=Role.WORKER,
    )
    main = """
        for name in ("build", "worker"):
            control.spawn(name)
            ended = control.wait(name, 20)
            print(ended.stdout.decode() + ended.stderr.decode(), end="")
    """
    assert runner.judge(main, {"build": build, "worker": worker}).stdout == b"42\n" + b"refused\n" * 4


def test_the_users_proxies_stay_outside(runner: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proxies = {"default": {"httpProxy": "http://user:secret@proxy.invalid"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    code = "print([open(f'/proc/{p}/environ').read() for p in ('self', '1')])"
    result = runner.run(code)
    assert result.exit_code == 0
    assert b"secret" not in result.stdout


@pytest.mark.parametrize("name", ["name_to_handle_at", "msgget", "mbind"])
def test_calls_that_docker_refuses_are_refused(runner: Runner, name: str) -> None:
    numbers = {"name_to_handle_at": 303, "msgget": 68, "mbind": 237}
    if os.uname().machine != "x86_64":
        pytest.skip("numbers of x86-64")
    code = f"""
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.syscall({numbers[name]}, 0, 0, 0, 0, 0), ctypes.get_errno())
    """
    assert runner.run(code).stdout == b"-1 1\n"


def test_what_the_daemon_was_asked_for(runner: Runner, api: APIClient) -> None:
    cancel = threading.Event()
    thread = threading.Thread(target=runner.run, args=("import time; time.sleep(60)",), kwargs={"cancel": cancel})
    thread.start()
    try:
        chosen = {"label": f"{owner.OWNER_LABEL}={owner.own_label()}"}
        assert wait_for(lambda: api.containers(filters=chosen))
        found = api.inspect_container(api.containers(filters=chosen)[0]["Id"])
    finally:
        cancel.set()
        thread.join(30)
    host = found["HostConfig"]
    assert not host["Privileged"]
    assert (host["NetworkMode"], host["IpcMode"], host["PidMode"], host["UsernsMode"]) == ("none", "private", "", "")
    assert (host["CapAdd"], host["CapDrop"], host["ReadonlyRootfs"], host["Init"]) == (None, ["ALL"], True, True)
    assert host["Memory"] == host["MemorySwap"] == helpers.LIMITS.memory_bytes
    assert host["PidsLimit"] == helpers.LIMITS.processes + 1
    assert host["LogConfig"]["Type"] == "none"
    assert "no-new-privileges:true" in host["SecurityOpt"]
    assert not any("sock" in (mount.get("Source") or "") for mount in found["Mounts"])
    assert [mount["Destination"] for mount in found["Mounts"] if mount["RW"]] == []
    assert found["Config"]["Env"] in (None, []) or not any("KEY" in entry for entry in found["Config"]["Env"])


def test_facts(runner: Runner) -> None:
    assert isinstance(runner.sandbox, DockerSandbox)
    facts = runner.sandbox.facts()
    assert facts.version
    assert facts.runtime == "runc"
    assert set(facts.images) == set(Role)
    assert all(digest.startswith("sha256:") for digest in facts.images.values())
    assert runner.sandbox.usable()


def test_starting_costs_little_more_than_docker_itself(
    runner: Runner, api: APIClient, capsys: pytest.CaptureFixture[str]
) -> None:
    """Against a container that is created, started, awaited and removed with nothing asked of it."""

    def bare() -> float:
        started = time.perf_counter()
        container = api.create_container(IMAGE, [runner.python.path, "-I", "-S", "-c", "pass"])["Id"]
        api.start(container)
        api.wait(container)
        api.remove_container(container)
        return time.perf_counter() - started

    def ours() -> float:
        started = time.perf_counter()
        assert runner.run("pass").exit_code == 0
        return time.perf_counter() - started

    pairs = [(bare(), ours()) for _ in range(5)]
    bare_s, ours_s = (sorted(column)[2] for column in zip(*pairs, strict=True))
    with capsys.disabled():
        print(f"\n[docker: median of a bare container {bare_s:.2f} s, of ours {ours_s:.2f} s]")
    assert ours_s < bare_s + 1.5
