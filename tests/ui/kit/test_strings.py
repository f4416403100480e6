import re
import string
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from rag.messages import MESSAGES, fill
from rag.ui import labels
from rag.ui.kit.strings import LABELS, LANGUAGES, counted, label

ROOT = Path(labels.__file__).resolve().parents[3]
SCREENS = [*(ROOT / "rag" / "ui").rglob("*.py"), *(ROOT / "pages").glob("*.py")]


def places(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_label_exists_in_both_languages_with_the_same_places() -> None:
    pairs = {key: (english.strip(), chinese.strip()) for key, (english, chinese) in LABELS.items()}
    assert [key for key, pair in pairs.items() if not all(pair)] == []
    assert [key for key, (english, chinese) in pairs.items() if places(english) != places(chinese)] == []


def test_english_labels_hold_no_chinese() -> None:
    assert [key for key, (english, _) in LABELS.items() if re.search("[\u4e00-\u9fff]", english)] == []


def test_no_key_stands_in_two_files() -> None:
    files = [import_module(f"rag.ui.labels.{found.name}") for found in iter_modules(labels.__path__)]
    assert sum(len(file.LABELS) for file in files) == len(LABELS)


def test_counts_choose_their_form() -> None:
    assert counted("chunks_one", "chunks_many", 1, "en") == "1 passage"
    assert counted("chunks_one", "chunks_many", 1200, "en") == "1,200 passages"
    assert label("nav_chat", LANGUAGES[1]) == "问答"
    with pytest.raises(KeyError):
        label("no_such_label", "en")


def test_a_number_and_its_noun_agree() -> None:
    assert fill("{count:page|pages}, {n:is|are} {name}", {"count": 1, "n": "2", "name": "{x}"}) == "1 page, 2 are {x}"


PAIRED = {key for file in SCREENS for key in re.findall(r'counted\(\s*[\'"]\w+[\'"],\s*[\'"](\w+)', file.read_text())}
NUMBERS = (
    "added characters chunks count failures fewest kept libraries most of pages rate reached searches seconds supported"
).split()


def test_one_is_not_said_in_the_plural() -> None:
    english = {key: (LABELS.get(key) or MESSAGES[key])[0] for key in {*LABELS, *MESSAGES} - PAIRED}
    said = [fill(text, dict.fromkeys(places(text), "…") | dict.fromkeys(NUMBERS, "1")) for text in english.values()]
    plural = r"\b1 (?!is\b|was\b|has\b|does\b|ms\b|s\b)(?:other |neighbouring )?[a-z]+(?<!s)s\b"
    assert [text for text in said if re.search(plural, text)] == []
