"""Everything that an agent, a compiler or a foreign run folder can write is shown as text, and bounded."""

import hashlib
import json
import unicodedata
from html.parser import HTMLParser

import pytest

from akarena.report import render_run
from akarena.store import RunFolder, TryFolder
from tests.unit.builders import build_inspection, build_run

MARK = "EVIL"
HOSTILE = (
    f"</code></pre></title></style></script><script>{MARK}()</script><img src=x onerror={MARK}()>{{{{7*7}}}}{{% raw %}}"
    "\x1b[31m\u202e\u2066\x00\x9b|`````\r\n# heading\n- [l](javascript:alert(1)) $x$ \u2028 '\" &amp; \ufeff"
)
SOFTMAX = "hip2hip/softmax"


class Page(HTMLParser):
    """Collects elements, attributes and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.ids: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_data(self, data: str) -> None:
        self.text += data


def poison(value: object) -> object:
    """Put hostile text into every free text of a record, by the names of the fields that hold such."""
    free = {
        *("evidence", "note", "detail", "model", "effort", "how", "limit", "device", "driver", "compiler", "text"),
        *("operating_system", "python", "architecture", "akarena_version", "version", "name", "tool", "result"),
    }
    if isinstance(value, dict):
        return {
            key: HOSTILE[:200] if key in free and isinstance(item, str | None) and key != "effort" else poison(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [poison(item) for item in value]
    return value


@pytest.fixture(scope="module")
def rendered(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    outcomes = {
        (SOFTMAX, "cursor", 1): ["wrong_unseen"],
        (SOFTMAX, "claude", 1): ["not_built"],
        ("triton2triton/rms_norm", "claude", 1): ["void"],
    }
    run = build_run(
        tmp_path_factory.mktemp("hostile") / "run", agents=("cursor", "claude"), outcomes=outcomes, seal=False
    )
    _poison_run(run)
    return render_run(run.root)


def _poison_run(run: RunFolder) -> None:
    manifest = json.loads(run.manifest.read_bytes())
    manifest["agents"][0] |= {"command": [HOSTILE, HOSTILE], "replay_of": HOSTILE[:200], "arguments": [HOSTILE]}
    manifest["agents"][0]["service_url"] = HOSTILE
    run.manifest.write_text(json.dumps(poison(manifest)))
    run.lock.write_text(json.dumps(poison(json.loads(run.lock.read_bytes()))))
    for attempt in run.attempts():
        for one in attempt.tries():
            (one.root / "patch.diff").write_bytes(
                f"--- a\n+++ b\n@@ -1 +1 @@\n+{HOSTILE}\n".encode()
                + b"\xff\xfe"
                + b"A" * 2**20
                + b"\n"
                + b"+x\n" * 9999
            )
            (one.logs / "agent.txt").write_text(HOSTILE * 3 + "B" * 2**20)
            (one.logs / f"<b>{MARK}|`\u202e\n.log").write_text(HOSTILE)
            for index in range(20):
                (one.logs / f"z{index}.log").write_text("C")
            evaluation = json.loads((one.root / "evaluation.json").read_bytes())
            for case in evaluation["cases"]:
                case["configuration"]["values"]["mode"] = HOSTILE
                if case["speed"]["state"] == "measured":
                    case["speed"]["flags"] = [HOSTILE]
            for gate in evaluation["gates"]:
                if gate["verdict"] == "fail":
                    gate["configuration"] = HOSTILE
            data = json.dumps(poison(evaluation)).encode()
            (one.root / "evaluation.json").write_bytes(data)
            trial = poison(json.loads(one.trial.read_bytes()))
            assert isinstance(trial, dict)
            if "evaluation_sha256" in trial:
                trial["evaluation_sha256"] = hashlib.sha256(data).hexdigest()
            one.trial.write_text(json.dumps(trial))
            _poison_work(one)


def _poison_work(one: TryFolder) -> None:
    trajectory = json.loads(one.trajectory.read_bytes())
    step = {"kind": "tool_call", "seconds": 1e308, "text": HOSTILE, "tool": HOSTILE[:200], "result": HOSTILE}
    long = {"kind": "other", "seconds": 0.0, "text": "D" * 20_000, "tool": None, "result": "\n" * 20_000}
    trajectory |= {"steps": [step, step | {"kind": "check"}, long] * 300, "notes": [HOSTILE] * 99, "detail": HOSTILE}
    one.trajectory.write_text(json.dumps(trajectory))
    if build_inspection(one) is None:
        return
    inspection = json.loads(one.inspection.read_bytes())
    inspection["baseline"] = {"status": "failed", "reason": HOSTILE, "log": HOSTILE}
    inspection["candidate"]["kernels"] *= 200
    for index, kernel in enumerate(inspection["candidate"]["kernels"]):
        inspection["candidate"]["kernels"][index] = kernel | {"name": f"{HOSTILE}{index}"}
    one.inspection.write_text(json.dumps(inspection))


def test_every_poisoned_record_was_read(rendered: dict[str, bytes]) -> None:
    document = json.loads(rendered["data.json"])
    trials = [trial for task in document["tasks"] for trial in task["trials"]]
    assert all(trial["status"] != "missing" for trial in trials)
    assert all(trial["gates"] for trial in trials)
    assert all(trial["work"]["steps_total"] == 900 for trial in trials)
    assert sum(trial["inspection"] is not None for trial in trials) == 3
    assert rendered["data.json"].decode().count(MARK) > 100


def test_html_has_no_element_of_theirs(rendered: dict[str, bytes]) -> None:
    page = Page(rendered["report.html"].decode())
    assert page.tags.count("script") == 1
    assert not {"img", "b", "iframe", "object", "link", "base", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [
        value for name, value in page.attributes if name in ("href", "src", "xlink:href") and not value.startswith("#")
    ]
    assert len(page.ids) == len(set(page.ids))
    assert f"<img src=x onerror={MARK}()>" in page.text
    assert "{{7*7}}" in page.text


def test_html_loads_nothing(rendered: dict[str, bytes]) -> None:
    page = rendered["report.html"].decode()
    assert "default-src 'none'" in page
    assert "@import" not in page
    assert "url(http" not in page


@pytest.mark.parametrize("name", ["data.json", "report.md", "report.html"])
def test_nothing_invisible_and_nothing_huge(rendered: dict[str, bytes], name: str) -> None:
    text = rendered[name].decode()
    bad = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} - {"\n", "\t"}
    assert bad == set()
    assert "\u241b[31m" in text
    assert "\u27e8U+202E\u27e9" in text
    assert len(text) < 600_000
    assert "A" * 300 not in text
    assert "D" * 300 not in text
    assert "more logs are in the run folder" in text


def test_markdown_tables_keep_their_columns(rendered: dict[str, bytes]) -> None:
    lines = rendered["report.md"].decode().split("\n")
    fence, width, tables = "", 0, 0
    for line in lines:
        if not fence and line.startswith("```"):
            fence = line[: len(line) - len(line.lstrip("`"))]
        elif fence and line.startswith(fence):
            fence = ""
        elif not fence and line.startswith("|"):
            columns = line.replace("\\|", "").count("|")
            tables += width == 0
            assert width in (0, columns), line[:200]
            width = columns
        elif not fence:
            width = 0
            assert "<script" not in line
            assert not line.startswith("# heading")
    assert fence == ""
    assert tables > 20
