"""The benchmark of charsets: which articles it uses, and what it counts as right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import charsets

CZECH = "V zimě odplouvá přívoz ze severního nábřeží v sedm a v devět hodin, jízdenka stojí čtyři koruny a děti šetří. "


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Create three manual pages in Czech, one of them too short, and one mostly in another alphabet."""
    place = tmp_path / "help" / "cs" / "manual"
    place.mkdir(parents=True)
    for name, text in {"a": CZECH * 4 + "→", "b": CZECH, "c": "Паром отправляется от причала. " * 20}.items():
        page = f"<page><info><credit>Ж</credit></info>\n<title>Přívoz</title> <p>{text}</p></page>"
        (place / f"{name}.page").write_text(page, encoding="utf-8")
    return tmp_path


def test_an_article_is_read_each_way(folder: Path) -> None:
    (read,) = [one for one in charsets.measure("iso-8859-2", folder) if one.language == "cs"]
    assert all(read.right[way] for way in ("declared", "undeclared", "country"))
    assert "iso-8859-2 cs" in charsets.rows([read]) and "| all |" in charsets.rows([read])


def test_one_wrong_letter_is_wrong(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charsets, "decode", lambda body, url="": body.decode("iso-8859-2").replace("ř", "°"))
    (read,) = [one for one in charsets.measure("iso-8859-2", folder) if one.language == "cs"]
    assert not read.right["declared"] and not read.right["country"]


def test_the_command(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert charsets.main(["windows-1250", "--texts", str(folder), "--json"]) == 0
    assert [row["charset"] for row in json.loads(capsys.readouterr().out)] == ["windows-1250"]
