"""Images built by a real daemon: what is in them, what is not, and that they come out the same again."""

from __future__ import annotations

import io
import json
import stat
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from docker import DockerClient

import akarena
from akarena import files as plain_files
from akarena import images
from akarena.errors import InfrastructureError
from akarena.images import compare, daemon, lock
from akarena.images.build import Workshop
from akarena.records.image import Image, ImageLockRecord, ImageRole
from akarena.records.task import TargetName
from tests.docker.conftest import ROOT, Builder, lock_kept

pytestmark = [pytest.mark.docker, pytest.mark.timeout(900)]
PACKAGE = Path(akarena.__file__).parent


def run(client: DockerClient, image: str, *argv: str, parts: tuple[str, ...] = ()) -> str:
    """Run a program as the runner does: no network, nothing writable, no capability, our code mounted read-only."""
    volumes = {str(PACKAGE / part): {"bind": f"/akarena/akarena/{part}", "mode": "ro"} for part in parts}
    shown: bytes = client.containers.run(
        image,
        list(argv[1:]),
        entrypoint=[argv[0]],
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges"],
        tmpfs={"/tmp": "", "/home/user": "uid=65532,exec"},
        environment={"HOME": "/home/user"},
        volumes=volumes,
        remove=True,
    )
    return shown.decode()


@pytest.fixture(scope="module")
def worker(builder: Builder) -> Image:
    """A worker's image, built."""
    done = builder("--role", "worker", "--json")
    assert done.code == 0, done.err
    return lock.find(ImageLockRecord.model_validate_json(done.out), ImageRole.WORKER)


@pytest.fixture(scope="module")
def contents(client: DockerClient, worker: Image) -> Mapping[str, str]:
    """Every file of it."""
    (layer,) = compare.snapshot(client, worker.id)
    return layer


class TestWorker:
    def test_the_same_layers_twice(self, workshop: Workshop) -> None:
        assert compare.twice(workshop, "worker") == []

    def test_no_packages_compiler_shell_or_installer(self, contents: Mapping[str, str]) -> None:
        forbidden = {"torch", "triton", "numpy", "site-packages", "dist-packages", "pip", "ensurepip", "dpkg", "apt"}
        assert [path for path in contents if forbidden & set(path.split("/")) or "blas" in path.lower()] == []
        programs = [
            path for path in contents if path.startswith(("usr/bin/", "usr/sbin/", "bin/", "sbin/", "usr/local/"))
        ]
        assert len(programs) == 1, programs
        assert programs[0].startswith("usr/bin/python3.")

    def test_nothing_is_setuid_or_writable_by_all(self, contents: Mapping[str, str]) -> None:
        modes = {path: int(line.split()[1], 8) for path, line in contents.items() if not line.startswith("2 ")}
        assert not [path for path, mode in modes.items() if mode & (stat.S_ISUID | stat.S_ISGID)]
        assert [path for path, mode in modes.items() if mode & stat.S_IWOTH] == ["tmp"]

    def test_a_worker_starts_in_it(self, client: DockerClient, worker: Image) -> None:
        code = "import sys; sys.path.insert(0, '/akarena'); import akarena.worker.main as m, json, ctypes, os; "
        code += "ctypes.CDLL('libstdc++.so.6'); print(os.getuid(), json.__cached__ is not None, sorted(os.environ))"
        argv = (worker.facts.python.bare_executable, "-I", "-S", "-c", code)
        shown = run(client, worker.id, *argv, parts=("__init__.py", "worker"))
        assert shown.startswith("65532 True ")

    def test_facts(self, client: DockerClient, worker: Image) -> None:
        facts = worker.facts
        assert (facts.role, facts.python.executable, facts.compiler, facts.runtime) == (
            ImageRole.WORKER,
            None,
            None,
            None,
        )
        assert facts.python_packages == ()
        assert {"libc6", "libstdc++6"} <= {package.name.partition(":")[0] for package in facts.os_packages}

    def test_history_and_configuration_name_no_host(self, client: DockerClient, worker: Image) -> None:
        found = client.images.get(worker.id)
        assert "://" not in json.dumps([found.history(), found.attrs["Config"]])
        assert found.labels["org.akarena.role"] == "worker"
        assert found.labels["org.akarena.target"] == "cpu"
        assert found.attrs["Config"]["User"] == "65532:65532"


@pytest.mark.slow
class TestRoles:
    def test_the_judge_imports_all_it_needs(self, client: DockerClient, built: ImageLockRecord) -> None:
        judge = lock.find(built, ImageRole.JUDGE)
        python = judge.facts.python
        assert python.executable is not None
        modules = ["main", "judge", "calibrate", "correctness", "speed", "workers", "sample"]
        code = f"import sys; sys.path[:0] = ['/akarena', *{list(python.package_folders)!r}]; import importlib; "
        code += f"[importlib.import_module(f'akarena.judge.{{m}}') for m in {modules!r}]; "
        code += "import triton, akarena.worker.main; print(sys.modules['pydantic'].__file__)"
        parts = tuple(path.name for path in PACKAGE.iterdir() if path.name != "__pycache__")
        shown = run(client, judge.id, python.executable, "-I", "-B", "-c", code, parts=parts)
        assert shown.strip().startswith(python.package_folders[0])

    def test_facts_of_judge_and_agent(self, built: ImageLockRecord) -> None:
        judge, agent = (lock.find(built, role).facts for role in (ImageRole.JUDGE, ImageRole.AGENT))
        packages = {
            role: {package.name: package.version for package in facts.python_packages}
            for role, facts in (("judge", judge), ("agent", agent))
        }
        assert packages["judge"]["torch"] == packages["agent"]["torch"] == "2.13.0+cpu"
        assert {"pydantic", "triton", "numpy"} <= packages["judge"].keys()
        assert "pydantic" not in packages["agent"]
        assert judge.compiler is not None
        assert judge.compiler.path == "/usr/bin/g++"
        assert judge.compiler == (agent.compiler)

    def test_only_a_judge_has_the_judges_packages_and_none_has_our_code(
        self, client: DockerClient, built: ImageLockRecord
    ) -> None:
        code = "import os, json; print(json.dumps([os.path.exists(p) for p in "
        code += "('/opt/akarena', '/build', '/akarena/akarena', '/opt/agents', '/root/.cache', '/etc/pip.conf')]))"
        expected = {"judge": [True, False, False, False, False, False], "agent": [False] * 6}
        for role, answer in expected.items():
            image = lock.find(built, ImageRole(role))
            assert json.loads(run(client, image.id, "/usr/bin/python3", "-I", "-B", "-c", code)) == answer, role

    def test_an_agent_can_work(self, client: DockerClient, built: ImageLockRecord) -> None:
        agent = lock.find(built, ImageRole.AGENT)
        code = (
            "set -e; cd /home/user; git init -q .; echo 'int f(){return 3;}' > a.cpp; g++ -shared -fPIC -o a.so a.cpp; "
        )
        code += "rg -c return a.cpp; "
        code += "python3 -c 'import ctypes, torch, triton; print(ctypes.CDLL(\"./a.so\")._Z1fv())'; id -u"
        assert run(client, agent.id, "/bin/sh", "-c", code).split() == ["1", "3", "65532"]

    def test_judge_and_agent_share_the_layer_of_torch(self, built: ImageLockRecord) -> None:
        judge, agent = (lock.find(built, role) for role in (ImageRole.JUDGE, ImageRole.AGENT))
        assert len(set(judge.layers) & set(agent.layers)) >= 3

    def test_an_image_that_is_gone_is_named(self, client: DockerClient, built: ImageLockRecord) -> None:
        lock.check_present(client, built)
        gone = built.images[0].model_copy(update={"id": "sha256:" + "00" * 32})
        with pytest.raises(
            InfrastructureError, match=r"does not have it any more \(run `akarena build --target cpu`\)"
        ):
            lock.check_present(client, built.model_copy(update={"images": (gone,)}))

    def test_cursor_from_an_archive_that_the_user_gives(
        self, builder: Builder, tmp_path: Path, client: DockerClient
    ) -> None:
        archive = tmp_path / "agent-cli-package.tar.gz"
        program = b"#!/bin/sh\necho 2026.01.01-abc\n"
        with tarfile.open(archive, "w:gz") as tar:
            entry = tarfile.TarInfo("dist-package/cursor-agent")
            entry.size, entry.mode = len(program), 0o755
            tar.addfile(entry, io.BytesIO(program))
        digest = plain_files.sha256(archive)
        with lock_kept(TargetName.CPU):
            done = builder(
                *("--role", "agent", "--agent", "cursor", "--json", "--cursor-archive", str(archive)),
                *("--cursor-version", "2026.01.01-abc", "--cursor-sha256", digest),
            )
        assert done.code == 0, done.err
        image = lock.find(ImageLockRecord.model_validate_json(done.out), ImageRole.AGENT, "cursor")
        assert [(program.name, program.version) for program in image.facts.programs] == [
            ("cursor-agent", "2026.01.01-abc")
        ]
        client.images.remove(image.id, force=True)


class TestErrors:
    def test_a_base_that_is_not_to_be_had(self, builder: Builder) -> None:
        done = builder("--role", "worker", base="akarena.invalid/none@sha256:" + "00" * 32)
        assert done.code == 3
        assert len(done.err.splitlines()) == 1
        assert "is not here and cannot be pulled" in done.err

    def test_a_base_without_a_shell(self, builder: Builder, client: DockerClient, base: str) -> None:
        tag = "akarena-test:empty"
        client.api.import_image_from_data(_tar({"etc/empty": b""}), repository="akarena-test", tag="empty")
        try:
            done = builder("--role", "worker", base=tag)
            assert client.containers.list(all=True, filters={"ancestor": tag}) == []
        finally:
            client.images.remove(tag, force=True)
        assert done.code == 3
        assert len(done.err.splitlines()) == 1
        assert "/bin/sh could not be run" in done.err

    def test_a_step_that_fails_says_why(self, workshop: Workshop) -> None:
        with pytest.raises(
            InfrastructureError, match=r"^build of cursor-files: agent-cursor: .*CURSOR_VERSION is missing"
        ):
            workshop.build("cursor-files")

    def test_a_gpu_base_without_torch_is_refused(self, builder: Builder, base: str) -> None:
        done = builder("--target", "rocm", "--role", "judge")
        assert done.code == 3
        assert "its python3 lacks torch, triton, numpy; a base for rocm brings them" in done.err.splitlines()[-1]

    def test_a_gpu_base_without_runtime_is_refused(self, builder: Builder, base: str) -> None:
        done = builder("--target", "rocm", "--role", "worker")
        assert done.code == 3
        assert "the base has no GPU runtime library for rocm" in done.err.splitlines()[-1]

    def test_a_missing_file_is_told(self, client: DockerClient, base: str) -> None:
        with pytest.raises(InfrastructureError, match=r"/akarena/image.json cannot be read"):
            daemon.read_file(client, base, images.FACTS)


def test_the_checkout_sends_only_what_is_copied() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    assert kept == ["akarena/images/inside", ".akarena/images/context"]


def _tar(files: Mapping[str, bytes]) -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return stream.getvalue()
