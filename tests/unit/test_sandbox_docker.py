"""The parts of the container sandbox that need no daemon."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from docker import APIClient
from hypothesis import given
from hypothesis import strategies as st

from akarena import sandbox
from akarena.errors import InfrastructureError
from akarena.sandbox.base import HOME, Command, Limits, Mount, Role, ScratchMount
from akarena.sandbox.docker import DockerSandbox, Image, Images, connect, options, owner
from akarena.sandbox.docker.handoff import Handoff
from akarena.sandbox.docker.profile import ALLOWED, all_words_but, profile
from akarena.sandbox.seccomp import MACHINES

MIB = 1 << 20
LIMITS = Limits(1.0, 64 * MIB, 4, 1024, 2 * MIB, 3 * MIB)
WORD = (1 << 32) - 1


class TestProfile:
    @given(st.integers(0, WORD) | st.sampled_from([0x5411, 0x5412, 0x5413, 0x541B, 0x541C, 0x541D]))
    def test_masks_describe_every_word_but_the_refused(self, word: int) -> None:
        matches = sum(word & mask == value for mask, value in all_words_but(0x5412, 0x541C))
        assert matches == (word not in (0x5412, 0x541C))

    @pytest.mark.parametrize("machine", sorted(MACHINES))
    def test_it_is_an_allow_list_without_what_the_deny_list_names(self, machine: str) -> None:
        found = json.loads(profile(machine))
        assert found["defaultAction"] == "SCMP_ACT_ERRNO"
        assert len(found["architectures"]) == 1
        allowed = [rule for rule in found["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW"]
        free = {name for rule in allowed if "args" not in rule for name in rule["names"]}
        by_argument = {name for rule in allowed if "args" in rule for name in rule["names"]}
        assert by_argument == {"clone", "socket", "socketpair", "personality", "ioctl"}
        assert not free & set(MACHINES[machine].calls)
        assert {"read", "execve", "futex", "mmap", "wait4"} <= free

    def test_every_argument_is_compared_by_its_lower_half(self) -> None:
        for rule in json.loads(profile("x86_64"))["syscalls"]:
            for test in rule.get("args", ()):
                assert test["op"] == "SCMP_CMP_MASKED_EQ"
                assert test["value"] <= WORD

    def test_what_containers_without_capabilities_never_need_is_not_there(self) -> None:
        never = (
            "bpf mount umount2 setns unshare ptrace reboot syslog mbind msgget shmget keyctl open_by_handle_at chroot"
        )
        assert not ALLOWED & set(never.split())

    def test_an_unknown_architecture(self) -> None:
        with pytest.raises(InfrastructureError, match="riscv64"):
            profile("riscv64")


class TestOwner:
    def test_this_process_is_alive(self) -> None:
        assert not owner.is_dead(owner.own_label())

    def test_a_process_that_ended_is_dead(self) -> None:
        code = "from akarena.sandbox.docker import owner; print(owner.own_label())"
        root = Path(__file__).parents[2]
        label = subprocess.run(
            [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True
        ).stdout
        assert owner.is_dead(label.strip())

    def test_a_zombie_is_dead(self) -> None:
        boot, namespace, _, _ = owner.own_label().split(":")
        with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as child:
            started = Path(f"/proc/{child.pid}/stat").read_text().rpartition(")")[2].split()[19]
            label = f"{boot}:{namespace}:{child.pid}:{started}"
            assert not owner.is_dead(label)
            assert child.stdin
            child.stdin.close()
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            assert owner.is_dead(label)

    @pytest.mark.parametrize("label", ["", "x", "a:b:c:d", "a:b"])
    def test_labels_of_others_say_nothing(self, label: str) -> None:
        assert not owner.is_dead(label)

    def test_other_boots_and_other_namespaces(self) -> None:
        boot, namespace, pid, started = owner.own_label().split(":")
        assert owner.is_dead(f"other:{namespace}:{pid}:{started}")
        assert owner.is_dead(f"{boot}:{namespace}:{pid}:{int(started) - 1}")
        assert not owner.is_dead(f"{boot}:1:{pid}:{int(started) - 1}")


class TestOptions:
    def options(self, tmp_path: Path, command: Command, held: tuple[str, ...] = ()) -> dict[str, Any]:
        api = APIClient(base_url="unix:///nowhere", version="1.41")
        handoff = Handoff(tmp_path / "handoff", os.getuid())
        try:
            volumes = {scratch.name: f"volume-{scratch.name}" for scratch in command.scratch} | {n: n for n in held}
            return options.create_options(
                api, Image("an-image", "/py"), command, handoff, {"a": "b"}, volumes, {n: n for n in held}
            )
        finally:
            handoff.close()
            api.close()

    def command(self, *mounts: Mount, **given: Any) -> Command:
        return Command(("x",), {}, mounts, LIMITS, **given)

    def test_limits(self, tmp_path: Path) -> None:
        host = self.options(tmp_path, self.command())["host_config"]
        assert host["Memory"] == host["MemorySwap"] == 64 * MIB
        assert (host["PidsLimit"], host["ShmSize"]) == (5, 3 * MIB)
        limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]}
        assert limits["fsize"] == (2 * MIB, 2 * MIB)
        assert limits["core"] == (0, 0)
        assert f"size={3 * MIB}" in host["Tmpfs"]["/tmp"]
        assert "mode=0700" in host["Tmpfs"][HOME]

    def test_only_a_worker_of_a_finished_kernel_executes_nothing_that_it_wrote(self, tmp_path: Path) -> None:
        for number, role in enumerate(Role):
            folder = tmp_path / str(number)
            folder.mkdir()
            tmpfs = self.options(folder, self.command(role=role))["host_config"]["Tmpfs"]
            assert ("noexec" in tmpfs["/tmp"]) == (role is Role.WORKER)

    def test_gpus_of_nvidia_are_one_request(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(options, "device_group", lambda device: None)
        names = ("nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm")
        mounts = [Mount(Path("/dev", name), f"/dev/{name}", device=True) for name in names]
        host = self.options(tmp_path, self.command(*mounts))["host_config"]
        (request,) = host["DeviceRequests"]
        assert request["DeviceIDs"] == ["2", "10"]
        assert request["Capabilities"] == [["gpu", "compute", "utility"]]
        assert not host.get("Devices")

    def test_nvidia_without_a_gpu(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(options, "device_group", lambda device: None)
        with pytest.raises(InfrastructureError, match="no GPU among them"):
            self.options(tmp_path, self.command(Mount(Path("/dev/nvidiactl"), "/dev/nvidiactl", device=True)))

    def test_devices_of_amd_come_with_their_groups_and_sysfs(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        groups = {"/dev/kfd": 105, "/dev/dri/renderD128": 109}
        monkeypatch.setattr(options, "device_group", lambda device: groups[str(device)])
        mounts = [Mount(Path(path), path, device=True) for path in groups]
        host = self.options(tmp_path, self.command(*mounts))["host_config"]
        assert host["GroupAdd"] == ["105", "109"]
        assert [device["PathOnHost"] for device in host["Devices"]] == list(groups)
        assert {device["CgroupPermissions"] for device in host["Devices"]} == {"rw"}
        assert "/sys" not in host["Tmpfs"]

    def test_without_such_devices_there_is_no_sysfs(self, tmp_path: Path) -> None:
        assert "ro," in self.options(tmp_path, self.command())["host_config"]["Tmpfs"]["/sys"]

    def test_mounts(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "link").symlink_to("real")
        scratch = (ScratchMount("s", "/out", writable=True),)
        command = self.command(Mount(tmp_path / "link", "/in"), Mount(tmp_path / "real", "/etc"), scratch=scratch)
        found = {m["Target"]: m for m in self.options(tmp_path, command, held=("s",))["host_config"]["Mounts"]}
        assert found["/in"]["Source"] == str(tmp_path / "real")
        assert found["/in"]["ReadOnly"]
        assert (found["/out"]["Type"], found["/out"]["ReadOnly"]) == ("volume", False)
        assert found["/akarena-held/s"]["ReadOnly"]
        # What the command mounts hides our tables.
        assert "/etc/passwd" not in found
        binds = [mount for mount in found.values() if mount["Type"] == "bind"]
        assert all(mount["BindOptions"] == {"NonRecursive": True, "Propagation": "rprivate"} for mount in binds)

    def test_low_limits_are_raised_to_what_docker_takes(self, tmp_path: Path) -> None:
        command = Command(("x",), {}, (), Limits(1, 1, 1, 1, 1, 1))
        host = self.options(tmp_path, command)["host_config"]
        assert host["Memory"] == options.LOW_MEMORY_BYTES
        assert f"size={MIB}" in host["Tmpfs"]["/tmp"]


class TestHandoff:
    def start(self, handoff: Handoff) -> subprocess.Popen[bytes]:
        folder = handoff.folder
        argv = [sys.executable, "-I", "-S", str(folder / "connect.py"), str(folder / "socket")]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def talk(self, folder: Path, command: Command, fds: tuple[int, ...] = ()) -> tuple[str | None, bytes, bytes]:
        handoff = Handoff(folder, os.geteuid())
        with self.start(handoff) as stub:
            said = handoff.give(command, fds, lambda: stub.poll() is not None)
            assert not (handoff.folder / "socket").exists()
            output, errors = stub.communicate(timeout=20)
        return said, output, errors

    def test_the_stub_becomes_the_program(self, tmp_path: Path) -> None:
        code = """if True:
            import os
            print(sorted(int(f) for f in os.listdir("/proc/self/fd")), os.read(4, 9), os.environ["A"], os.getcwd())
        """
        reader, writer = os.pipe()
        os.write(writer, b"handed")
        given = (writer, reader)
        environment = {"A": "ü", "PATH": os.path.dirname(sys.executable)}  # noqa: PTH120
        command = Command((Path(sys.executable).name, "-I", "-S", "-c", code), environment, (), LIMITS, "/usr")
        said, output, errors = self.talk(tmp_path / "h", command, given)
        for fd in given:
            os.close(fd)
        # The listing itself holds the last one.
        assert (said, errors) == (None, b"")
        assert output.decode() == "[0, 1, 2, 3, 4, 5] b'handed' ü /usr\n"

    @pytest.mark.parametrize(
        ("argv", "folder", "text"),
        [
            ("/no/such", "/", "/no/such: No such file or directory"),
            ("/etc", "/", "/etc: Permission denied"),
            (sys.executable, "/no/folder", "/no/folder: No such file or directory"),
        ],
    )
    def test_what_can_not_be_executed_is_told(self, tmp_path: Path, argv: str, folder: str, text: str) -> None:
        said, output, errors = self.talk(tmp_path / "h", Command((argv,), {}, (), LIMITS, folder))
        assert (said, output, errors) == (text, b"", b"")

    def test_a_user_that_is_not_the_right_one_is_refused(self, tmp_path: Path) -> None:
        handoff = Handoff(tmp_path / "h", os.geteuid() + 1)
        with self.start(handoff) as stub:
            with pytest.raises(InfrastructureError, match="runs as user"):
                handoff.give(Command(("x",), {}, (), LIMITS), (), lambda: False)
            assert stub.wait(20) != 0
            stub.communicate()

    def test_a_container_that_is_dead_is_not_waited_for(self, tmp_path: Path) -> None:
        handoff = Handoff(tmp_path / "h", os.geteuid())
        dead = threading.Event()
        dead.set()
        with pytest.raises(InfrastructureError, match="did not start"):
            handoff.give(Command(("x",), {}, (), LIMITS), (), dead.is_set)

    def test_a_deep_folder_is_no_problem(self, tmp_path: Path) -> None:
        deep = tmp_path / ("d" * 100)
        deep.mkdir()
        handoff = Handoff(deep / "h", os.geteuid())
        assert (handoff.folder / "socket").is_socket()
        handoff.close()

    def test_the_stub_needs_nothing_of_ours(self) -> None:
        assert "akarena" not in Path(connect.__file__).read_text("utf-8")


class TestSandbox:
    def test_it_is_registered(self) -> None:
        assert "docker" in sandbox.names()
        assert isinstance(sandbox.get("docker"), DockerSandbox)

    def test_without_a_daemon_it_is_not_usable_and_says_why(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
        box = DockerSandbox(Images.one(Image("an-image")))
        assert not box.usable()
        for ask in (box.assurance, box.facts, lambda: box.run(Command(("x",), {}, (), LIMITS))):
            with pytest.raises(InfrastructureError, match=r"no Docker daemon answers at .*/none") as caught:
                ask()
            assert "\n" not in str(caught.value)

    def test_a_role_without_an_image(self) -> None:
        with pytest.raises(InfrastructureError, match="no image for the role agent"):
            Images({Role.JUDGE: Image("x")}).of(Role.AGENT)

    def test_main_must_be_among_the_processes(self) -> None:
        with pytest.raises(ValueError, match="main process"):
            DockerSandbox().judge({}, main="judge")
