"""What came of the fixtures the last time that all of a target were judged, kept for the table in the docs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from akarena.judgement import judge_digest
from akarena.records.task import TargetName
from tests.adversarial.bench import Outcome
from tests.adversarial.catalogue import HERE

FOLDER = HERE / "results"


@dataclass(frozen=True)
class Results:
    """One target's.

    Attributes:
        device: Where they were judged.
        judge_digest: Digest of the judge that did it.
        outcomes: By the name of the fixture.
    """

    device: str
    judge_digest: str
    outcomes: dict[str, Outcome]


def save(target: TargetName, device: str, outcomes: Sequence[Outcome]) -> None:
    """Keep outcomes; those of other fixtures stay where the same judge made them."""
    digest = judge_digest()
    before = load(target)
    kept = before.outcomes if before is not None and before.judge_digest == digest else {}
    found = {**kept, **{outcome.name: outcome for outcome in outcomes}}
    content = {
        "device": device,
        "judge_digest": digest,
        "outcomes": [_plain(found[name]) for name in sorted(found)],
    }
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{target.value}.json").write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def load(target: TargetName) -> Results | None:
    """Return what was kept for a target."""
    path = FOLDER / f"{target.value}.json"
    if not path.exists():
        return None
    content = json.loads(path.read_text("utf-8"))
    outcomes = [Outcome(**{**one, "speedups": tuple(one["speedups"])}) for one in content["outcomes"]]
    return Results(content["device"], content["judge_digest"], {outcome.name: outcome for outcome in outcomes})


def _plain(outcome: Outcome) -> dict[str, object]:
    plain = asdict(outcome)
    plain["evidence"] = plain["evidence"][:200]
    plain["seconds"] = round(outcome.seconds, 1)
    plain["speedups"] = [round(speedup, 3) for speedup in outcome.speedups]
    return plain
