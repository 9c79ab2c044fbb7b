"""Images without a Docker daemon: what is sent to it, what is downloaded for it, what the lock says."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import tarfile
from pathlib import Path
from typing import Any

import pytest

from akarena import images, paths, schemas
from akarena.errors import InfrastructureError, UserError
from akarena.images import archives, build, compare, context, dockerfile, lock, requirements, stock
from akarena.images.requirements import Interpreter
from akarena.records.image import Image, ImageBase, ImageLockRecord, ImageRole
from akarena.records.task import TargetName

ROOT = paths.root()
DOCKERFILE = (ROOT / images.DOCKERFILE).read_text("utf-8")
LOCKS = sorted((ROOT / "requirements" / "images").rglob("*.lock"))
BOOKWORM = Interpreter("3.11.2", "x86_64", "2.36")
NOBLE = Interpreter("3.12.3", "aarch64", "2.39")
SMALL = """# a comment
ARG BASE=x
FROM ${BASE} AS one
COPY a/ b.txt /in/
# COPY commented /out/
FROM one AS two
COPY --from=one --chmod=0644 \\
    /made /
FROM scratch AS three
COPY --from=two /made /
FROM one AS four
COPY c /in/
"""


class TestDockerfile:
    def test_prune_keeps_what_a_target_needs(self) -> None:
        kept = dockerfile.prune(SMALL, "three")
        assert [stage.name for stage in dockerfile.parse(kept)[1]] == ["one", "two", "three"]
        assert kept.startswith("# a comment\nARG BASE=x\n")
        assert "FROM one AS four" not in kept

    def test_sources_are_those_of_the_context_alone(self) -> None:
        assert dockerfile.sources(SMALL) == ["a/", "b.txt", "c"]
        assert dockerfile.sources(dockerfile.prune(SMALL, "three")) == ["a/", "b.txt"]

    def test_an_unknown_stage_is_named(self) -> None:
        with pytest.raises(UserError, match="has no stage five"):
            dockerfile.prune(SMALL, "five")

    def test_a_worker_is_made_from_scratch_without_any_package(self) -> None:
        kept = dockerfile.prune(DOCKERFILE, "worker")
        assert {stage.name for stage in dockerfile.parse(kept)[1]} == {"system", "tools", "worker-files", "worker"}
        assert "FROM scratch AS worker" in kept
        assert all("torch" not in source and "judge" not in source for source in dockerfile.sources(kept))

    def test_a_judge_has_no_program_of_an_agent_and_an_agent_nothing_of_the_judge(self) -> None:
        judge = {stage.name for stage in dockerfile.parse(dockerfile.prune(DOCKERFILE, "judge"))[1]}
        assert not [name for name in judge if name.startswith(("agent", "npm", *images.AGENTS))]
        for agent in images.AGENTS:
            stages = {stage.name for stage in dockerfile.parse(dockerfile.prune(DOCKERFILE, f"agent-{agent}"))[1]}
            assert not [name for name in stages if name.startswith("judge")]
            others = [other for other in images.AGENTS if other != agent]
            assert not [name for name in stages for other in others if other in name], "one can be built alone"

    def test_nothing_of_tasks_or_runs_is_sent(self) -> None:
        sources = dockerfile.sources(DOCKERFILE)
        assert all(source.startswith(("akarena/images/inside/", ".akarena/images/context/")) for source in sources)

    def test_every_image_says_what_it_is_and_runs_as_our_user(self) -> None:
        stages = {stage.name: "\n".join(stage.lines) for stage in dockerfile.parse(DOCKERFILE)[1]}
        for name in ("worker", "judge", "agent", *(f"agent-{agent}" for agent in images.AGENTS)):
            assert "USER 65532:65532" in stages[name]
            assert f'org.akarena.role="{name.partition("-")[0]}"' in stages[name]
            assert "org.akarena.target=" in stages[name]

    def test_no_syntax_of_buildkit_alone(self) -> None:
        assert not re.search(r"RUN --|COPY --(chmod|link|exclude|parents)|<<|^# syntax", DOCKERFILE, re.MULTILINE)

    def test_bases_are_pinned_by_digest_and_named_once(self) -> None:
        for base in images.BASES.values():
            assert re.search(r"@sha256:[0-9a-f]{64}$", base)
            assert base in DOCKERFILE

    @pytest.mark.parametrize(
        ("agent", "package"), [("claude", "@anthropic-ai/claude-code"), ("codex", "@openai/codex")]
    )
    def test_versions_of_labels_are_those_of_the_locks(self, agent: str, package: str) -> None:
        declared = json.loads((ROOT / "requirements/images" / agent / "package.json").read_text("utf-8"))
        version = declared["dependencies"][package]
        assert f"ARG {agent.upper()}_VERSION={version}\n" in DOCKERFILE

    def test_version_of_the_label_of_mini_swe_agent_is_that_of_its_lock(self) -> None:
        (version,) = re.findall(r"^mini-swe-agent==(\S+)", (ROOT / "requirements/images/mini.lock").read_text(), re.M)
        assert f"ARG MINI_VERSION={version}\n" in DOCKERFILE


class TestContext:
    def make(self, root: Path, epoch: int = 5) -> bytes:
        stream = io.BytesIO()
        context.write(stream, root, ["b/", "a.txt"], ("Dockerfile", "FROM scratch\n"), epoch)
        return stream.getvalue()

    def fill(self, root: Path) -> None:
        (root / "b" / "deep").mkdir(parents=True)
        (root / "b" / "__pycache__").mkdir()
        for name in ("a.txt", "b/z", "b/deep/y", "b/__pycache__/x.pyc"):
            (root / name).write_text(name)

    def test_depends_on_content_alone(self, tmp_path: Path) -> None:
        first, second = tmp_path / "1", tmp_path / "2"
        self.fill(first)
        self.fill(second)
        (second / "b" / "z").chmod(0o600)
        assert self.make(first) == self.make(second)

    def test_entries(self, tmp_path: Path) -> None:
        self.fill(tmp_path)
        with tarfile.open(fileobj=io.BytesIO(self.make(tmp_path))) as tar:
            found = [(m.name, m.mode, m.uid, m.mtime, m.isdir()) for m in tar]
        assert found == [
            ("Dockerfile", 0o644, 0, 5, False),
            ("a.txt", 0o644, 0, 5, False),
            ("b", 0o755, 0, 5, True),
            ("b/deep/y", 0o644, 0, 5, False),
            ("b/z", 0o644, 0, 5, False),
        ]

    def test_a_link_is_refused(self, tmp_path: Path) -> None:
        self.fill(tmp_path)
        (tmp_path / "b" / "link").symlink_to("/etc/passwd")
        with pytest.raises(InfrastructureError, match="link: is no regular file"):
            self.make(tmp_path)

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(InfrastructureError, match=r"a\.txt: is missing"):
            self.make(tmp_path)


class TestRequirements:
    def test_markers_are_those_of_the_image(self) -> None:
        text = (ROOT / "requirements/images/torch.lock").read_text("utf-8")
        old, new = (requirements.narrow(text, "x", python) for python in (BOOKWORM, NOBLE))
        assert "networkx==3.6.1 " in old
        assert "networkx==3.6.1 " not in new
        assert old.count("networkx==") == new.count("networkx==") == 1
        assert ";" not in old

    @pytest.mark.parametrize(
        "line", ["torch", "torch>=2 --hash=sha256:00", "torch==2.*,>1 --hash=sha256:00", "torch==2"]
    )
    def test_what_is_not_pinned_is_refused(self, line: str) -> None:
        with pytest.raises(UserError, match="is not pinned with hashes"):
            requirements.narrow(f"# why\n{line}\n", "x", BOOKWORM)

    def test_what_is_no_requirement_is_refused(self) -> None:
        with pytest.raises(UserError, match="is no requirement"):
            requirements.narrow("--index-url somewhere\n", "x", BOOKWORM)

    def test_platforms(self) -> None:
        assert BOOKWORM.platforms[0] == "manylinux_2_36_x86_64"
        assert "manylinux_2_39_aarch64" in NOBLE.platforms
        assert "manylinux_2_37_x86_64" not in BOOKWORM.platforms

    @pytest.mark.parametrize("path", [*LOCKS, ROOT / "requirements/images/torch-cpu.txt"], ids=lambda path: path.name)
    @pytest.mark.parametrize("interpreter", [BOOKWORM, NOBLE], ids=lambda python: python.version)
    def test_locks_are_hashed_and_name_no_host(self, path: Path, interpreter: Interpreter) -> None:
        text = path.read_text("utf-8")
        assert "://" not in text
        for line in requirements.narrow(text, str(path), interpreter).splitlines():
            assert re.fullmatch(r"[\w.+-]+==[\w.+-]+( sha256:[0-9a-f]{64})+", line.replace(" --hash=", " ")), line

    def test_an_image_has_the_versions_that_the_tests_run_with(self) -> None:
        pinned = dict(re.findall(r"^([\w.-]+)==([^ ]+)", (ROOT / "requirements/core.lock").read_text("utf-8"), re.M))
        judge = dict(re.findall(r"^([\w.-]+)==([^ ]+)", (ROOT / "requirements/images/judge.lock").read_text(), re.M))
        assert judge
        assert {name: pinned[name] for name in judge} == judge


class TestArchives:
    def entry(self, **more: Any) -> dict[str, Any]:
        return {"version": "1.0.0", "integrity": "sha512-AA==", **more}

    def test_those_of_the_machine(self) -> None:
        packages = {
            "": {"name": "root"},
            "node_modules/cli": self.entry(),
            "node_modules/cli-linux-x64": self.entry(os=["linux"], cpu=["x64"], optional=True, name="@vendor/cli"),
            "node_modules/cli-linux-x64-musl": self.entry(os=["linux"], cpu=["x64"], optional=True),
            "node_modules/cli-glibc": self.entry(os=["linux"], libc=["glibc"]),
            "node_modules/cli-musl2": self.entry(os=["linux"], libc=["musl"]),
            "node_modules/cli-linux-arm64": self.entry(os=["linux"], cpu=["arm64"], optional=True),
            "node_modules/cli-darwin": self.entry(os=["darwin"]),
        }
        found = [name for _, name, _, _ in archives.packages({"packages": packages}, "x86_64")]
        assert found == ["cli", "cli-glibc", "@vendor/cli"]

    def test_one_without_digest_is_refused(self) -> None:
        with pytest.raises(UserError, match="has no sha512 digest"):
            list(archives.packages({"packages": {"node_modules/x": {"version": "1"}}}, "x86_64"))

    def test_an_unknown_processor_is_refused(self) -> None:
        with pytest.raises(UserError, match="riscv64"):
            list(archives.packages({"packages": {}}, "riscv64"))

    @pytest.mark.parametrize("agent", ["claude", "codex"])
    @pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
    def test_locks_of_the_agents(self, agent: str, machine: str) -> None:
        text = (ROOT / "requirements/images" / agent / "package-lock.json").read_text("utf-8")
        assert "resolved" not in text
        assert "://" not in text
        assert len(list(archives.packages(json.loads(text), machine))) == 2

    def test_a_changed_archive_is_refused(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder, source = tmp_path / "into", tmp_path / "lock"
        source.mkdir()
        good = b"archive"
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(good).digest()).decode()
        (source / "package.json").write_text("{}")
        lock_text = json.dumps({"packages": {"node_modules/@a/b": {"version": "1.2", "integrity": integrity}}})
        (source / "package-lock.json").write_text(lock_text)
        answers = [b"other", good]
        monkeypatch.setattr(archives, "_pack", lambda spec, node, path: path.write_bytes(answers.pop(0)))
        with pytest.raises(InfrastructureError, match=r"@a/b@1.2: the archive has another digest"):
            archives.download(source, "x86_64", tmp_path, folder)
        assert not list(folder.glob("*.tgz"))
        archives.download(source, "x86_64", tmp_path, folder)
        assert json.loads((folder / "archives.json").read_text()) == {"node_modules/@a/b": "a-b-1.2.tgz"}
        archives.download(source, "x86_64", tmp_path, folder)
        assert not answers, "what is there is not downloaded again"


class TestCursor:
    def test_says_what_is_missing(self) -> None:
        with pytest.raises(UserError, match="in no registry; expected --cursor-archive"):
            stock.check_cursor(None, "1", "00" * 32)

    def test_refuses_another_digest(self, tmp_path: Path) -> None:
        (tmp_path / "cursor.tar.gz").write_bytes(b"x")
        with pytest.raises(UserError, match="has the digest 2d711642b726b044"):
            stock.check_cursor(tmp_path / "cursor.tar.gz", "1.0", "00" * 32)

    @pytest.mark.parametrize(("version", "digest"), [("1 0", "00" * 32), ("1", "00"), ("", "00" * 32)])
    def test_refuses_what_is_no_version_or_digest(self, tmp_path: Path, version: str, digest: str) -> None:
        with pytest.raises(UserError, match="expected"):
            stock.check_cursor(tmp_path / "cursor.tar.gz", version, digest)


class TestEpoch:
    def test_given(self) -> None:
        assert build.epoch_of(ROOT, {"SOURCE_DATE_EPOCH": "1767225600"}) == 1767225600

    @pytest.mark.parametrize("text", ["now", "-1", "1.5", "9" * 12])
    def test_refuses_what_is_no_time(self, text: str) -> None:
        with pytest.raises(UserError, match="expected seconds since 1970"):
            build.epoch_of(ROOT, {"SOURCE_DATE_EPOCH": text})

    def test_without_a_repository(self, tmp_path: Path) -> None:
        assert build.epoch_of(tmp_path, {}) == build.EARLIEST


class TestCause:
    def cause(self, tmp_path: Path, step: str, error: str = "returned a non-zero code: 1") -> str:
        log = tmp_path / "log"
        log.write_text(f"Step 1/2 : RUN a\n ---> Running in 00\nfine\nStep 2/2 : RUN b\n ---> Running in 01\n{step}")
        return build.cause(log, error)

    def test_our_line_wins(self, tmp_path: Path) -> None:
        step = "\x1b[91makarena: no torch\n\x1b[0mtrailing\nRemoving intermediate container 01\nmore\n"
        assert self.cause(tmp_path, step) == "no torch"

    def test_else_the_last_line_of_the_step(self, tmp_path: Path) -> None:
        assert self.cause(tmp_path, "E: no package\nRemoving intermediate container 01\n") == "E: no package"

    def test_else_the_error(self, tmp_path: Path) -> None:
        assert self.cause(tmp_path, "") == "returned a non-zero code: 1"

    def test_a_full_disk_is_told_as_such(self, tmp_path: Path) -> None:
        error = "write /x/layer.tar: no space left on device"
        assert self.cause(tmp_path, "extracting\n", error) == "the disk of the Docker daemon is full"


class TestCompare:
    def tar(self, *entries: tuple[str, bytes, int, float]) -> dict[str, str]:
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.PAX_FORMAT) as tar:
            for name, data, mode, mtime in entries:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode, entry.mtime = len(data), mode, mtime
                tar.addfile(entry, io.BytesIO(data))
        stream.seek(0)
        with tarfile.open(fileobj=stream) as tar:
            return dict(compare.describe(tar))

    def test_names_each_kind_of_difference(self) -> None:
        first = self.tar(
            ("same", b"1", 0o644, 1), ("bytes", b"1", 0o644, 1), ("mode", b"", 0o644, 1), ("gone", b"", 0, 1)
        )
        second = self.tar(
            ("same", b"1", 0o644, 1), ("bytes", b"2", 0o644, 1), ("mode", b"", 0o755, 1), ("new", b"", 0, 1)
        )
        lines = compare.differences([first], [second])
        assert [line.split(": ")[1] for line in lines] == ["bytes", "gone", "mode", "new"]
        assert lines[1].endswith("/ absent")

    def test_a_part_of_a_second_and_another_layer_are_differences(self) -> None:
        layers = [[self.tar(("a", b"", 0, time))] for time in (1, 1.5)]
        (line,) = compare.differences(layers[0], layers[1])
        assert re.fullmatch(r"layer 0: a: 0 0000 0:0 1 \w+ / 0 0000 0:0 1\.5 \w+", line)
        assert compare.differences(layers[0], []) == ["1 layers / 0 layers"]


class TestLock:
    @pytest.fixture
    def example(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ImageLockRecord:
        monkeypatch.setattr(images, "folder", lambda: tmp_path)
        return schemas.load(ImageLockRecord, ROOT / "schemas/examples/valid/images-cpu.json")

    def other(self, image: Image, name: str) -> Image:
        return image.model_copy(update={"tag": f"akarena/cpu-{name}"})

    def test_written_and_read(self, example: ImageLockRecord) -> None:
        assert lock.write(example).name == "cpu.json"
        assert lock.load(TargetName.CPU) == example
        assert lock.find(example, ImageRole.WORKER).tag == "akarena/cpu-worker"

    def test_missing_images_name_the_command(self, example: ImageLockRecord) -> None:
        with pytest.raises(InfrastructureError, match="run `akarena build --target cuda`"):
            lock.load(TargetName.CUDA)
        with pytest.raises(InfrastructureError, match=r"no image agent-codex .*--target cpu --agent codex"):
            lock.find(example, ImageRole.AGENT, "codex")

    def test_images_of_the_same_inputs_are_kept(self, example: ImageLockRecord) -> None:
        lock.write(example)
        fresh = example.model_copy(update={"images": ()})
        merged = lock.merge(fresh, [self.other(example.images[0], "agent")])
        assert [image.tag for image in merged.images] == ["akarena/cpu-agent", "akarena/cpu-worker"]

    @pytest.mark.parametrize("changed", ["dockerfile_sha256", "scripts_sha256"])
    def test_images_of_other_inputs_are_dropped(self, example: ImageLockRecord, changed: str) -> None:
        lock.write(example)
        fresh = example.model_copy(update={"images": (), changed: "00" * 32})
        merged = lock.merge(fresh, [self.other(example.images[0], "agent")])
        assert [image.tag for image in merged.images] == ["akarena/cpu-agent"]

    def test_a_broken_lock_is_replaced(self, example: ImageLockRecord) -> None:
        lock.path(TargetName.CPU).write_text("{")
        merged = lock.merge(example.model_copy(update={"images": ()}), list(example.images))
        assert merged == example

    def test_inputs_name_every_lock(self) -> None:
        base = ImageBase(reference="b", id="sha256:" + "00" * 32, repository_digests=())
        found = lock.inputs(ROOT, TargetName.CPU, base, "docker 1", 5)
        expected = {"pip.lock", "torch.lock", "judge.lock", "node.lock", "mini.lock", "torch-cpu.txt"}
        assert set(found.requirements) == expected | {"claude/package-lock.json", "codex/package-lock.json"}
