"""The command ``akarena build``: its arguments, and what it says where there is no daemon. Scripts that run inside."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from akarena import paths
from akarena.errors import UserError
from akarena.images import command
from akarena.images.inside import closure, common, cursor, facts, npm
from akarena.records.task import TargetName


def akarena(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "akarena", "build", *arguments],
        cwd=paths.root(),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


class TestArguments:
    def test_all_roles(self) -> None:
        assert command.stages_of([], []) == {"worker": None, "judge": None, "agent": None}

    def test_agents_take_the_place_of_the_plain_one(self) -> None:
        expected = {"worker": None, "judge": None, "agent-codex": "codex", "agent-claude": "claude"}
        assert command.stages_of([], ["codex", "claude"]) == expected

    def test_one_alone(self) -> None:
        for name in ("codex", "openai-compatible"):
            assert command.stages_of(["agent"], [name]) == {f"agent-{name}": name}

    @pytest.mark.parametrize(
        ("roles", "agents", "message"),
        [
            (["jugde"], [], "did you mean judge"),
            ([], ["cluade"], "did you mean claude"),
            (["judge"], ["codex"], "expected --role agent"),
        ],
    )
    def test_what_does_not_exist_is_refused(self, roles: list[str], agents: list[str], message: str) -> None:
        with pytest.raises(UserError, match=message):
            command.stages_of(roles, agents)

    def test_targets(self) -> None:
        assert command.target_of("rocm") is TargetName.ROCM
        assert command.target_of("auto") in set(TargetName)
        with pytest.raises(UserError, match="did you mean rocm"):
            command.target_of("rcom")


class TestErrors:
    @pytest.mark.parametrize(
        ("arguments", "code", "message"),
        [
            (("--target", "cpu"), 3, "no Docker daemon answers at unix:///nowhere.sock"),
            (("--target", "cuda"), 2, "expected --base"),
            (("--target", "cpu", "--agent", "cursor"), 2, "in no registry"),
            (("--compare", "--download-only"), 2, "not allowed with argument"),
        ],
    )
    def test_one_line_and_an_exit_code(self, arguments: tuple[str, ...], code: int, message: str) -> None:
        done = akarena(*arguments, DOCKER_HOST="unix:///nowhere.sock")
        assert done.returncode == code, done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert message in done.stderr


class TestInside:
    def test_seal_gives_one_date(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        layer = tmp_path / "layer"
        (layer / "deep").mkdir(parents=True)
        (layer / "deep" / "file").write_text("x")
        (layer / "link").symlink_to("nowhere")
        monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
        common.seal(layer)
        assert {path.lstat().st_mtime for path in (layer, *layer.rglob("*"))} == {86400}

    def test_byte_code_is_the_same_twice(self, tmp_path: Path) -> None:
        made = []
        for number in (1, 2):
            folder = tmp_path / f"layer{number}" / "code"
            folder.mkdir(parents=True)
            source = folder / "module.py"
            source.write_text("A = {'x', 'y', 'z'}\n\ndef f(a, b=1):\n    return a in {'p', 'q'}\n")
            os.utime(source, (number, number))
            common.precompile(Path(sys.executable), folder, strip=folder.parent)
            made.append(next((folder / "__pycache__").glob("*.pyc")).read_bytes())
        assert made[0] == made[1]
        assert made[0][4:8] == b"\x01\x00\x00\x00", "unchecked, by the hash of the source"
        assert b"/code/module.py" in made[0]
        assert str(tmp_path).encode() not in made[0]

    def test_needed_libraries_are_found_and_missing_ones_named(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        found = closure.needed([Path("/bin/sh").resolve()])
        assert any(path.name.startswith("libc.so") for path in found)
        assert any(path.name.startswith("ld-linux") for path in found)
        shown = "\tlibx.so.1 => not found\n\tlibc.so.6 => /lib/libc.so.6 (0x00007f)\n"
        monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 0, stdout=shown))
        with pytest.raises(SystemExit):
            closure.needed([Path("/x")])
        assert "need libx.so.1, which the base lacks" in capfd.readouterr().err

    def test_version_is_the_first_line_with_a_number(self, tmp_path: Path) -> None:
        program = tmp_path / "tool"
        program.write_text("#!/bin/sh\necho 'a tool: driver'\necho 'release 13.0, V13.0.88'\n")
        program.chmod(0o755)
        assert facts.program_version(str(program)) == "release 13.0, V13.0.88"

    def test_archives_become_the_sources_of_the_lock(self, tmp_path: Path) -> None:
        (tmp_path / "package-lock.json").write_text('{"packages": {"": {}, "node_modules/x": {"integrity": "i"}}}')
        (tmp_path / "archives.json").write_text('{"node_modules/x": "x-1.tgz"}')
        made = npm.with_archives(tmp_path)
        assert made["packages"] == {
            "": {},
            "node_modules/x": {"integrity": "i", "resolved": f"file:{tmp_path}/x-1.tgz"},
        }


class TestCursor:
    @pytest.fixture
    def archive(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        path = tmp_path / "cursor.tar.gz"
        monkeypatch.setattr(cursor, "ARCHIVE", path)
        return path

    def pack(self, path: Path, *names: str) -> str:
        with tarfile.open(path, "w:gz") as tar:
            for name in names:
                entry = tarfile.TarInfo(name)
                entry.size, entry.mode = 2, 0o755
                tar.addfile(entry, io.BytesIO(b"#!"))
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def run(self, monkeypatch: pytest.MonkeyPatch, layer: Path, version: str, digest: str) -> None:
        argv = ["cursor", "--version", version, "--sha256", digest, "--into", str(layer)]
        monkeypatch.setattr(sys, "argv", argv)
        cursor.main()

    def test_unpacks_without_the_outermost_folder(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        digest = self.pack(archive, "dist-package/cursor-agent", "dist-package/lib/index.js")
        self.run(monkeypatch, tmp_path / "layer", "2026.01.01-abc", digest)
        assert (tmp_path / "layer/opt/agents/cursor/lib/index.js").is_file()
        link = tmp_path / "layer/usr/local/bin/cursor-agent"
        assert str(link.readlink()) == "/opt/agents/cursor/cursor-agent"

    @pytest.mark.parametrize(
        ("names", "version", "digest", "message"),
        [
            (("d/cursor-agent",), "1", "", "CURSOR_SHA256 is missing"),
            (("d/cursor-agent",), "", "00" * 32, "CURSOR_VERSION is missing"),
            (("d/cursor-agent",), "1", "00" * 32, "expected 0000"),
            ((), "1", "00" * 32, "holds no cursor.tar.gz"),
            (("d/other",), "1", "right", "holds no cursor-agent"),
        ],
    )
    def test_fails_clearly(
        self,
        archive: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
        names: tuple[str, ...],
        version: str,
        digest: str,
        message: str,
    ) -> None:
        right = self.pack(archive, *names) if names else ""
        with pytest.raises(SystemExit):
            self.run(monkeypatch, tmp_path / "layer", version, right if digest == "right" else digest)
        assert message in capsys.readouterr().err

    def test_a_member_that_leads_out_is_refused(
        self, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        digest = self.pack(archive, "d/cursor-agent", "d/../../../escaped")
        with pytest.raises(SystemExit):
            self.run(monkeypatch, tmp_path / "layer", "1", digest)
        assert not (tmp_path / "escaped").exists()
