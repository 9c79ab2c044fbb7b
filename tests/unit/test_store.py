from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from akarena import store
from akarena.errors import InfrastructureError, UserError
from akarena.records import EventRecord, ManifestRecord, SeedRecord
from akarena.records.run import EventKind
from akarena.store import RunFolder
from tests.unit import builders


def event(detail: str = "") -> EventRecord:
    return EventRecord(schema_version=1, time=builders.TIME, kind=EventKind.TRY_STARTED, detail=detail)


class TestLayout:
    def test_paths(self, tmp_path: Path) -> None:
        folder = RunFolder(tmp_path).attempt("hip2hip/softmax", "claude-high", 2).try_folder(3)
        assert folder.trial == tmp_path / "trials/hip2hip/softmax/claude-high/a2/t3/trial.json"
        assert folder.attempt.attempt == tmp_path / "trials/hip2hip/softmax/claude-high/a2/attempt.json"

    @pytest.mark.parametrize(
        ("task", "agent", "attempt"),
        [
            ("hip2hip/../../x", "nop", 1),
            ("hip2hip/softmax", "..", 1),
            ("hip2hip/softmax", "a/b", 1),
            ("/etc", "nop", 1),
            ("hip2hip/softmax\n", "nop", 1),
            ("hip2hip/softmax", "nop", 0),
        ],
    )
    def test_refuses_names_that_lead_out(self, tmp_path: Path, task: str, agent: str, attempt: int) -> None:
        with pytest.raises(UserError):
            RunFolder(tmp_path).attempt(task, agent, attempt)

    def test_attempts_are_sorted_by_number_and_strangers_passed_over(self, tmp_path: Path) -> None:
        run = RunFolder(tmp_path)
        for number in (10, 2, 1):
            run.attempt("triton2triton/rope", "nop", number).root.mkdir(parents=True)
        run.attempt("hip2hip/softmax", "nop", 1).root.mkdir(parents=True)
        for name in ("trials/other/x/nop/a1", "trials/hip2hip/softmax/nop/a01", "trials/hip2hip/UPPER/nop/a1"):
            (tmp_path / name).mkdir(parents=True)
        (tmp_path / "trials/hip2hip/linked").symlink_to(tmp_path / "trials/hip2hip/softmax")
        found = [(folder.task_id, folder.number) for folder in run.attempts()]
        assert found == [
            ("hip2hip/softmax", 1),
            ("triton2triton/rope", 1),
            ("triton2triton/rope", 2),
            ("triton2triton/rope", 10),
        ]

    def test_attempts_do_not_follow_a_linked_trials_folder(self, tmp_path: Path) -> None:
        RunFolder(tmp_path / "a").attempt("hip2hip/softmax", "nop", 1).root.mkdir(parents=True)
        (tmp_path / "b").mkdir()
        (tmp_path / "b/trials").symlink_to(tmp_path / "a/trials")
        assert list(RunFolder(tmp_path / "b").attempts()) == []

    def test_new_try_never_reuses_a_folder(self, tmp_path: Path) -> None:
        attempt = RunFolder(tmp_path).attempt("hip2hip/softmax", "nop", 1)
        assert [attempt.new_try().number for _ in range(11)] == list(range(1, 12))
        assert [one.number for one in attempt.tries()] == list(range(1, 12))

    def test_complete_means_that_the_trial_is_there(self, tmp_path: Path) -> None:
        folder = RunFolder(tmp_path).attempt("hip2hip/softmax", "nop", 1).new_try()
        assert not folder.complete
        folder.trial.write_text("{}")
        assert folder.complete


class TestWrite:
    def test_refuses_to_overwrite(self, tmp_path: Path) -> None:
        path = tmp_path / "seed.json"
        store.write_record(path, builders.seed())
        with pytest.raises(InfrastructureError, match="not overwritten"):
            store.write_record(path, builders.seed())
        store.write_record(path, builders.seed(), replace=True)
        assert RunFolder(tmp_path).read(SeedRecord, path) == builders.seed()

    def test_a_failed_write_leaves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def broken(_: int) -> None:
            raise OSError("disk is gone")

        monkeypatch.setattr("akarena.files.os.fsync", broken)
        with pytest.raises(OSError, match="disk is gone"):
            store.write_record(tmp_path / "seed.json", builders.seed())
        assert list(tmp_path.iterdir()) == []

    def test_a_dangling_link_is_not_written_through(self, tmp_path: Path) -> None:
        (tmp_path / "seed.json").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InfrastructureError):
            store.write_record(tmp_path / "seed.json", builders.seed())
        assert not (tmp_path / "elsewhere").exists()


class TestEvents:
    def test_appends_one_line_each(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        store.append_event(path, event("first\nline"))
        store.append_event(path, event("second"))
        assert path.read_bytes().count(b"\n") == 2
        assert [one.detail for one in store.read_events(path)] == ["first\nline", "second"]

    def test_a_torn_last_line_is_left_out_and_cut_off_by_the_next(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        store.append_event(path, event("kept"))
        with path.open("ab") as file:
            file.write(b'{"schema_ver')
        assert [one.detail for one in store.read_events(path)] == ["kept"]
        store.append_event(path, event("next"))
        assert [one.detail for one in store.read_events(path)] == ["kept", "next"]

    def test_a_file_that_is_all_torn(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        path.write_bytes(b'{"sch')
        store.append_event(path, event("only"))
        assert [one.detail for one in store.read_events(path)] == ["only"]

    def test_a_broken_line_inside_is_an_error_that_names_it(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        store.append_event(path, event())
        with path.open("ab") as file:
            file.write(b"{}\n")
        with pytest.raises(UserError, match=r"events\.jsonl line 2: schema_version: is required"):
            store.read_events(path)


class TestFindRun:
    @pytest.fixture
    def runs(self, tmp_path: Path) -> Path:
        for name in ("2026-01-01-one", "2026-01-01-two", "2026-02-02-three"):
            store.write_record(tmp_path / name / "manifest.json", builders.manifest())
        (tmp_path / "no-run").mkdir()
        return tmp_path

    @pytest.mark.parametrize("name", ["2026-02-02-three", "2026-02"])
    def test_by_name_and_prefix(self, runs: Path, name: str) -> None:
        assert store.find_run(runs, name).root == runs / "2026-02-02-three"

    def test_by_path(self, runs: Path) -> None:
        assert store.find_run(runs / "no-run", str(runs / "2026-01-01-two")).root == runs / "2026-01-01-two"

    def test_ambiguous(self, runs: Path) -> None:
        with pytest.raises(UserError, match="ambiguous: 2026-01-01-one, 2026-01-01-two"):
            store.find_run(runs, "2026-01")

    @pytest.mark.parametrize("name", ["", "no-run", "2026-02-02-thre3"])
    def test_unknown(self, runs: Path, name: str) -> None:
        with pytest.raises(UserError, match="does not exist"):
            store.find_run(runs, name)


class TestSums:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunFolder:
        run = RunFolder(tmp_path)
        store.write_record(run.manifest, builders.manifest())
        store.write_bytes(tmp_path / "trials/kernel.hip", b"code")
        store.write_bytes(tmp_path / "report/report.md", b"text")
        store.write_sums(run)
        return run

    def test_hold_and_do_not_cover_the_report(self, run: RunFolder) -> None:
        store.write_bytes(run.report / "report.md", b"other", replace=True)
        assert store.check_sums(run) == []

    def test_are_what_sha256sum_reads(self, run: RunFolder) -> None:
        command = ["sha256sum", "--check", "--strict", "SHA256SUMS"]
        done = subprocess.run(command, cwd=run.root, capture_output=True, text=True, check=True)
        assert done.stdout == "manifest.json: OK\ntrials/kernel.hip: OK\n"

    def test_name_what_was_changed_added_and_removed(self, run: RunFolder) -> None:
        run.manifest.unlink()
        (run.root / "trials/kernel.hip").write_text("c0de")
        (run.root / "extra").write_text("")
        assert store.check_sums(run) == [
            "manifest.json: missing, though it has a sum",
            "extra: added: it has no sum",
            "trials/kernel.hip: changed: its sum differs",
        ]

    def test_unsealed(self, run: RunFolder) -> None:
        run.sums.unlink()
        assert store.check_sums(run) == ["SHA256SUMS: missing or unreadable: the run is not sealed"]

    def test_a_link_is_named_and_not_followed(self, run: RunFolder) -> None:
        path = run.root / "trials/kernel.hip"
        path.rename(run.root.parent / "outside")
        path.symlink_to(run.root.parent / "outside")
        problems = store.check_sums(run)
        assert "trials/kernel.hip: is not a regular file with a plain name" in problems
        (run.root / "SHA256SUMS").unlink()
        with pytest.raises(InfrastructureError, match="cannot be sealed"):
            store.write_sums(run)

    @pytest.mark.parametrize("line", ["0" * 64 + "  ../x", "zz", "0" * 64 + "  manifest.json"])
    def test_a_hostile_line_is_a_problem(self, run: RunFolder, line: str) -> None:
        with run.sums.open("a") as file:
            file.write(f"{line}\n")
        assert len(store.check_sums(run)) == 1


class TestRead:
    @pytest.fixture
    def run(self, tmp_path: Path) -> RunFolder:
        run = RunFolder(tmp_path / "run")
        store.write_record(run.manifest, builders.manifest())
        return run

    def test_a_regular_file(self, run: RunFolder) -> None:
        assert run.read(ManifestRecord, run.manifest) == builders.manifest()

    def link_file(self, run: RunFolder) -> Path:
        (run.root / "link.json").symlink_to(run.manifest)
        return run.root / "link.json"

    def link_folder(self, run: RunFolder) -> Path:
        (run.root / "link").symlink_to(run.root)
        return run.root / "link" / "manifest.json"

    def pipe(self, run: RunFolder) -> Path:
        os.mkfifo(run.root / "pipe")
        return run.root / "pipe"

    def folder(self, run: RunFolder) -> Path:
        (run.root / "folder").mkdir()
        return run.root / "folder"

    def outside(self, run: RunFolder) -> Path:
        (run.root.parent / "secret").write_text("{}")
        return run.root / ".." / "secret"

    def absolute(self, run: RunFolder) -> Path:
        return Path("/etc/hostname")

    def large(self, run: RunFolder) -> Path:
        with (run.root / "large").open("wb") as file:
            file.truncate(store.MAX_RECORD_BYTES + 1)
        return run.root / "large"

    @pytest.mark.parametrize("make", [link_file, link_folder, pipe, folder, outside, absolute, large])
    def test_refuses(self, run: RunFolder, make: Callable[[TestRead, RunFolder], Path]) -> None:
        with pytest.raises(UserError):
            store.read_bytes(run.root, make(self, run))


class TestDigest:
    def test_depends_on_names_and_bytes_only(self, tmp_path: Path) -> None:
        store.write_bytes(tmp_path / "a/x/one", b"1")
        store.write_bytes(tmp_path / "b/x/one", b"1")
        (tmp_path / "b/empty").mkdir()
        (tmp_path / "b/x/one").chmod(0o700)
        first = store.digest_tree(tmp_path / "a")
        assert store.digest_tree(tmp_path / "b") == first
        (tmp_path / "b/x/one").rename(tmp_path / "b/one")
        assert store.digest_tree(tmp_path / "b") != first

    def test_skips_named_folders_only_when_asked(self, tmp_path: Path) -> None:
        store.write_bytes(tmp_path / "one", b"1")
        first = store.digest_tree(tmp_path)
        store.write_bytes(tmp_path / "x/__pycache__/one.pyc", b"1")
        assert store.digest_tree(tmp_path) != first
        assert store.digest_tree(tmp_path, skip={"__pycache__"}) == first

    def test_refuses_links_and_missing_folders(self, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to("/etc/hostname")
        for folder in (tmp_path, tmp_path / "none"):
            with pytest.raises(UserError):
                store.digest_tree(folder)
