import subprocess
import sys
from pathlib import Path

import pytest

from scripts import prose

ROOT = Path(prose.__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("At most 100 MB a file", ["At most"]),
        ("The page is read anew and goes on", ["anew", "goes on"]),
        ("{n} of {m} passages bear on the question", ["bear on"]),
        ("The model is told of it", ["is told of"]),
        ("由聊天模型判断", ["聊天模型"]),
        ("Up to 100 MB per file. Install them in all places.", []),
    ],
)
def test_tell_tales_of_texts(text: str, found: list[str]) -> None:
    hints = list(prose.in_text(text))
    assert len(hints) == len(found)
    assert all(f"“{word}”" in " ".join(hints) for word in found)


def test_a_docstring_begins_with_a_verb_or_a_noun() -> None:
    assert list(prose.in_docstring("What a page holds.")) and list(prose.in_docstring("Whether it is so."))
    assert not list(prose.in_docstring("Return the page's text."))
    assert not list(prose.in_docstring("Run `git restore anew`."))


def test_names_and_docstrings_are_checked_but_for_replies_of_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prose, "ROOT", tmp_path)
    code = """
class Page:
    def _text(self):
        "What it says."

    def told(self): ...

    @property
    def quoted(self): ...


class Reply(BaseModel):
    "What the passage says."
"""
    (tmp_path / "room.py").write_text(code, encoding="utf-8")
    found = [one for file in prose.files(("room.py",)) for one in prose.code_findings(file)]
    assert [one.partition(" ")[0] for one in found] == ["room.py:3:", "room.py:6:"]
    assert "“What”" in found[0] and "“told”" in found[1]


def test_the_texts_of_the_program_have_none() -> None:
    done = subprocess.run([sys.executable, ROOT / "scripts" / "prose.py"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "No tell-tales found.\n")
