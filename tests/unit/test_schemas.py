from __future__ import annotations

import copy
import json
import math
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from akarena import schemas, strictjson
from akarena.errors import InfrastructureError, UserError
from akarena.records import EventRecord, SeedRecord, TaskRecord, TrialRecord
from akarena.records.run import EventKind
from tests.unit import builders

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "schemas"
VALID = sorted((FOLDER / "examples/valid").glob("*.json"))
INVALID = sorted((FOLDER / "examples/invalid").glob("*.json"))
NAMES = sorted(schemas.RECORDS)


def record_of(path: Path) -> str:
    return path.name.split("-")[0]


def verdicts(name: str, data: bytes) -> tuple[bool, bool]:
    """Whether each engine takes a record: pydantic, jsonschema."""
    try:
        schemas.parse(schemas.RECORDS[name], data, "x")
    except UserError:
        return False, not schemas.validate(name, data)
    return True, not schemas.validate(name, data)


def nodes(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from nodes(item)


class TestGenerated:
    def test_committed_files_are_current(self) -> None:
        assert schemas.drift(FOLDER) == []

    def test_drift_names_missing_stale_and_surplus_files(self, tmp_path: Path) -> None:
        schemas.write(tmp_path)
        assert schemas.drift(tmp_path) == []
        (tmp_path / "seed.schema.json").unlink()
        (tmp_path / "lock.schema.json").write_text("{}")
        (tmp_path / "old.schema.json").write_text("{}")
        found = [problem.removeprefix(f"{tmp_path}/").split(",")[0] for problem in schemas.drift(tmp_path)]
        assert found == ["lock.schema.json: stale", "seed.schema.json: missing", "old.schema.json: surplus"]
        schemas.write(tmp_path)
        assert schemas.drift(tmp_path) == []

    @pytest.mark.parametrize("name", NAMES)
    def test_form(self, name: str) -> None:
        schema = schemas.generate()[name]
        Draft202012Validator.check_schema(schema)
        assert schema["$id"] == f"urn:akarena:schema:{name}:1"
        assert schema["title"]
        assert schema["description"]
        for node in nodes(schema):
            assert "discriminator" not in node
            if node.get("type") == "object":
                closed = node.get("additionalProperties") is False
                assert closed or isinstance(node["additionalProperties"], dict), "neither fixed nor a typed map"

    @pytest.mark.parametrize("name", NAMES)
    def test_patterns_mean_the_same_to_every_engine(self, name: str) -> None:
        """Anchored at both ends, and no class whose members differ between engines or Unicode versions."""
        for node in nodes(schemas.generate()[name]):
            for pattern in [node.get("pattern"), *node.get("patternProperties", {})]:
                if isinstance(pattern, str):
                    assert pattern.startswith("^")
                    assert pattern.endswith("$(?!\\n)")
                    assert not re.search(r"\\[dDwWsSbB]", pattern), pattern


class TestExamples:
    def test_every_record_has_both_kinds(self) -> None:
        assert {record_of(path) for path in VALID} == set(NAMES)
        assert {record_of(path) for path in INVALID} == set(NAMES)

    @pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
    def test_valid(self, path: Path) -> None:
        name, data = record_of(path), path.read_bytes()
        assert schemas.validate(name, data) == []
        record = schemas.load(schemas.RECORDS[name], path)
        again = schemas.parse(schemas.RECORDS[name], schemas.to_json(record), "again")
        assert again == record

    @pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
    def test_invalid_has_exactly_one_fault(self, path: Path) -> None:
        name, data = record_of(path), path.read_bytes()
        assert len(schemas.validate(name, data)) == 1
        with pytest.raises(UserError) as caught:
            schemas.parse(schemas.RECORDS[name], data, path.name)
        message = str(caught.value)
        assert message.startswith(f"{path.name}: ")
        assert "; " not in message.replace("is not known; this akarena", "")
        assert message.isprintable()


def documents(schema: dict[str, Any], node: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Draw documents that a schema takes; it knows the keywords that the records' schemas use, and no others."""
    if "$ref" in node:
        return documents(schema, schema["$defs"][node["$ref"].rsplit("/", 1)[1]])
    if "const" in node:
        return st.just(node["const"])
    if "enum" in node:
        return st.sampled_from(node["enum"])
    for choice in ("oneOf", "anyOf"):
        if choice in node:
            return st.one_of([documents(schema, branch) for branch in node[choice]])
    match node["type"]:
        case "null":
            return st.none()
        case "boolean":
            return st.booleans()
        case "integer":
            low = node.get("minimum", node.get("exclusiveMinimum", -strictjson.MAX_INTEGER - 1) + 1)
            return st.integers(low, node.get("maximum", strictjson.MAX_INTEGER))
        case "number":
            return st.floats(
                node.get("minimum", node.get("exclusiveMinimum")),
                node.get("maximum", node.get("exclusiveMaximum")),
                exclude_min="exclusiveMinimum" in node,
                exclude_max="exclusiveMaximum" in node,
                allow_nan=False,
                allow_infinity=False,
            )
        case "string":
            return strings(node)
        case "array" if "prefixItems" in node:
            return st.tuples(*[documents(schema, item) for item in node["prefixItems"]]).map(list)
        case "array":
            least = node.get("minItems", 0)
            most = min(node.get("maxItems", least + 2), least + 2)
            return st.lists(documents(schema, node["items"]), min_size=least, max_size=most)
        case "object":
            return objects(schema, node)
        case other:
            raise AssertionError(f"unexpected type {other}")


def strings(node: dict[str, Any]) -> st.SearchStrategy[str]:
    least, most = node.get("minLength", 0), node.get("maxLength", 10**6)
    if "pattern" in node:
        pattern = re.compile(node["pattern"].removesuffix("(?!\\n)"), re.ASCII)
        return st.from_regex(pattern, fullmatch=True).filter(lambda text: least <= len(text) <= most)
    return st.text(min_size=least, max_size=min(most, least + 5))


def objects(schema: dict[str, Any], node: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    least = node.get("minProperties", 0)
    if "patternProperties" in node:
        ((pattern, values),) = node["patternProperties"].items()
        keys = strings({"pattern": pattern})
        return st.dictionaries(keys, documents(schema, values), min_size=least, max_size=least + 2)
    if isinstance(node["additionalProperties"], dict):
        keys = documents(schema, node["propertyNames"]) if "propertyNames" in node else strings({})
        return st.dictionaries(
            keys, documents(schema, node["additionalProperties"]), min_size=least, max_size=least + 1
        )
    parts = {key: documents(schema, value) for key, value in node["properties"].items()}
    required = {key: parts.pop(key) for key in node.get("required", ())}
    return st.fixed_dictionaries(required, optional=parts)


JUNK: list[Any] = [
    None,
    True,
    0,
    1,
    -1,
    1.0,
    0.5,
    2**53,
    "",
    "x",
    "x\n",
    "٣",
    "../x",
    "0" * 64,
    [],
    [None],
    {},
    {"x": 1},
]


def mutate(document: Any, choice: random.Random) -> Any:
    """Change one place of a document: put junk there, delete it, add a key, or repeat an item."""
    document = copy.deepcopy(document)
    places: list[tuple[Any, Any]] = []

    def visit(value: Any) -> None:
        for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
            places.append((value, key))
            visit(value[key])

    visit(document)
    if not places:
        return choice.choice(JUNK)
    container, key = choice.choice(places)
    match choice.randrange(4):
        case 0:
            del container[key]
        case 1 if isinstance(container, dict):
            container[choice.choice(["x", "note", "reason", "Ünicode", "", "a b"])] = choice.choice(JUNK)
        case 2 if isinstance(container, list):
            container.insert(key, copy.deepcopy(container[key]))
        case _:
            container[key] = choice.choice(JUNK)
    return document


class TestBothEnginesAgree:
    @pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
    def test_on_mutated_examples(self, path: Path) -> None:
        document = json.loads(path.read_bytes())
        choice = random.Random(path.name)
        refused = 0
        for _ in range(30):
            data = json.dumps(mutate(document, choice)).encode()
            by_pydantic, by_schema = verdicts(record_of(path), data)
            assert by_pydantic == by_schema, data
            refused += not by_schema
        assert refused > 8

    @pytest.mark.parametrize("name", NAMES)
    def test_on_generated_records(self, name: str) -> None:
        schema = schemas.generate()[name]

        @settings(
            max_examples=10, derandomize=True, database=None, deadline=None, suppress_health_check=list(HealthCheck)
        )
        @given(documents(schema, schema), st.integers(0, 2**32))
        def check(document: Any, seed: int) -> None:
            assert verdicts(name, json.dumps(document).encode()) == (True, True)
            data = json.dumps(mutate(document, random.Random(seed))).encode()
            by_pydantic, by_schema = verdicts(name, data)
            assert by_pydantic == by_schema, data

        check()

    @pytest.mark.parametrize("key", ["run_id", "seed"])
    @pytest.mark.parametrize("end", ["\n", "\r", "\u2028", "\x00"])
    def test_on_what_follows_the_end_of_a_pattern(self, key: str, end: str) -> None:
        document = json.loads(schemas.to_json(builders.seed()))
        document[key] += end
        assert verdicts("seed", json.dumps(document).encode()) == (False, False)


class TestToJson:
    def test_is_canonical(self) -> None:
        data = schemas.to_json(builders.seed())
        assert data == json.dumps(json.loads(data), indent=2, sort_keys=True).encode() + b"\n"

    def test_an_event_is_one_line_of_utf8(self) -> None:
        record = EventRecord(schema_version=1, time=builders.TIME, kind=EventKind.TRY_ENDED, detail="größer\nals\x00")
        data = schemas.to_json(record)
        assert data.count(b"\n") == 1
        assert data.endswith(b"\n")
        assert "größer\\nals\\u0000".encode() in data

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"seed": math.nan}, "cannot be written as JSON"),
            ({"seed": "short"}, "seed record: seed: 'short' does not match"),
            ({"seed_source": None}, "seed record: seed_source: None is not one of"),
        ],
    )
    def test_a_record_that_misses_its_schema_is_a_defect(self, changes: dict[str, Any], message: str) -> None:
        content: dict[str, Any] = {"schema_version": 1, "run_id": "r", "seed": "0" * 64, "seed_source": "random"}
        broken = SeedRecord.model_construct(None, **(content | changes))
        with pytest.raises(InfrastructureError, match=message):
            schemas.to_json(broken)


class TestParse:
    def task(self) -> dict[str, Any]:
        document: dict[str, Any] = json.loads((FOLDER / "examples/valid/task-layer-norm.json").read_bytes())
        return document

    def message(self, document: Any) -> str:
        with pytest.raises(UserError) as caught:
            schemas.parse(TaskRecord, json.dumps(document).encode(), "task.toml")
        return str(caught.value)

    def test_names_every_problem_with_its_key(self) -> None:
        document = self.task()
        document["difficulty"] = 7
        document["axes"]["rows"]["min"] = 0
        document["arguments"][3]["distribution"]["kind"] = "gaussian"
        document["arguments"][4]["nmae"] = document["arguments"][4].pop("name")
        document["seen"][1]["eps"] = None
        assert self.message(document) == (
            "task.toml: difficulty: should be less than or equal to 3, got 7; "
            "arguments[3].distribution.kind: should be one of 'normal', 'uniform', 'integers', got 'gaussian'; "
            "arguments[4].name: is required; "
            "arguments[4].nmae: is not a known key; "
            "axes.rows.min: should be greater than 0, got 0; "
            "seen[1].eps: should be a valid integer or should be a valid number or should be a valid string, got None"
        )

    def test_lists_ten_problems_at_most(self) -> None:
        assert self.message({"schema_version": 1}).endswith("; and 7 more")

    def test_a_missing_tag_is_named(self) -> None:
        document = self.task()
        del document["axes"]["rows"]["kind"]
        assert self.message(document) == "task.toml: axes.rows.kind: is required"

    @pytest.mark.parametrize("version", [0, 2, 7, "1", 1.0, True, None])
    def test_an_unknown_version_is_refused_by_name(self, version: Any) -> None:
        expected = f"schema_version {version!r} is not known; this akarena reads 1"
        assert self.message(self.task() | {"schema_version": version}) == f"task.toml: {expected}"
        data = json.dumps({"schema_version": version}).encode()
        assert schemas.validate(TrialRecord, data) == [expected]

    def test_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(UserError, match=r"seed\.json: cannot be read \(No such file or directory\)"):
            schemas.load(SeedRecord, tmp_path / "seed.json")

    def test_an_unknown_schema(self) -> None:
        with pytest.raises(InfrastructureError, match="schema 'sede' does not exist"):
            schemas.validate("sede", b"{}")


class TestStrictJson:
    @pytest.mark.parametrize(
        ("data", "message"),
        [
            (b"", "line 1, column 1: not JSON: Expecting value"),
            (b"{} {}", "line 1, column 4: not JSON: Extra data"),
            (b"{'a': 1}", "line 1, column 2: not JSON"),
            (b"\xff{}", "byte 0 is not UTF-8"),
            (b"\xef\xbb\xbf{}", "not JSON"),
            ("{}".encode("utf-16"), "is not UTF-8"),
            (b'{"a": {"b": [1, NaN]}}', r"a\.b\[1\]: NaN is not a number in JSON, expected a finite number"),
            (b"-Infinity", "the whole document: -Infinity is not a number"),
            (b'{"a": 1e400}', "a: '1e400' is too large for a double"),
            (b'{"a": 9223372036854775808}', "a: '9223372036854775808' is too large, expected at most"),
            (b'{"a": -' + b"9" * 10**5 + b"}", "a: .* is too large"),
            (b'{"a": {"b": 1, "c": 2, "b": 1}}', r"a\.b: the key appears more than once"),
            (b'{"a": 1, "\\u0061": 1}', "a: the key appears more than once"),
            (b'["\\ud800"]', r"\[0\]: holds a lone surrogate, expected Unicode text"),
            (b'{"\\udfff": 1}', "a key holds a lone surrogate"),
            (b"[" * 65 + b"]" * 65, "nested more than 64 levels deep"),
            (b"[" * 10**5, "nested more than 64 levels deep"),
            (b'{"a": ' * 10**5, "nested more than 64 levels deep"),
            (b'{"\\u001b[2J": NaN}', r"\['\\x1b\[2J'\]: NaN"),
        ],
    )
    def test_refuses(self, data: bytes, message: str) -> None:
        with pytest.raises(UserError, match=f"^file: .*{message}"):
            strictjson.loads(data, "file")

    @pytest.mark.parametrize(
        ("data", "value"),
        [
            (b"[" * 64 + b"]" * 64, None),
            (b'"\\ud83d\\ude00"', "😀"),
            (b"9223372036854775807", 2**63 - 1),
            (b'{"a": [1.5, true, null]}', {"a": [1.5, True, None]}),
        ],
    )
    def test_takes(self, data: bytes, value: Any) -> None:
        found = strictjson.loads(data, "file")
        assert value is None or found == value
