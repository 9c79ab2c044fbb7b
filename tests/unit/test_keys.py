from __future__ import annotations

import base64
import urllib.parse
from pathlib import Path

import pytest

from akarena import keys
from akarena.errors import InfrastructureError
from akarena.records.run import AgentConfiguration

KEY = "sk/very+secret=4f1c77ab9e"


def test_the_variables_of_services_are_named() -> None:
    with_vendor = AgentConfiguration(id="a", agent="command", service="anthropic")
    without_key = AgentConfiguration(id="b", agent="command", service="openai", service_url="http://127.0.0.1:1")
    alone = AgentConfiguration(id="c", agent="nop")
    assert keys.variables((with_vendor, without_key, alone)) == ["ANTHROPIC_API_KEY"]


@pytest.mark.parametrize(
    "form",
    [
        KEY.encode(),
        KEY.encode().hex().encode(),
        KEY.encode().hex().upper().encode(),
        urllib.parse.quote(KEY, safe="").encode(),
        base64.b64encode(KEY.encode()),
        base64.b64encode(b"x" + KEY.encode() + b"yz"),
        base64.b64encode(b"xy" + KEY.encode() + b"z"),
        base64.urlsafe_b64encode(b"xyz" + KEY.encode()),
    ],
)
def test_a_key_is_found_in_any_form(form: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_KEY", KEY)
    keys.require_absent(tmp_path, ["A_KEY"])
    (tmp_path / "deep").mkdir()
    file = tmp_path / "deep" / "log"
    file.write_bytes(b"." * ((1 << 20) - 10) + form + b"." * 100)
    with pytest.raises(InfrastructureError, match="holds the value of A_KEY") as raised:
        keys.require_absent(tmp_path, ["A_KEY"])
    assert KEY not in str(raised.value)
    assert str(file) in str(raised.value)


def test_an_unset_or_tiny_key_finds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log").write_text("abc")
    monkeypatch.setenv("A_KEY", "abc")
    monkeypatch.delenv("B_KEY", raising=False)
    keys.require_absent(tmp_path, ["A_KEY", "B_KEY"])
