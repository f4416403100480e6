import re
import shutil
import string
import tomllib
from pathlib import Path

import pytest

import rag.locales
from rag.locales import FOLDER, LANGUAGES, choose_language, fill, label, label_count, say, sentences
from rag.prompts.texts import PromptTexts
from rag.types import Notice, because
from tests.support.sentence_keys import is_used, plurals, uses

NUMBERS = (
    "added characters chunks count failures fewest kept libraries most of pages rate reached searches seconds supported"
).split()


def places(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name}


def test_every_sentence_exists_in_every_language_with_the_same_places() -> None:
    english = sentences("en")
    for language in LANGUAGES:
        own = {key: text for rows in tomllib.loads(_file(language).read_text()).values() for key, text in rows.items()}
        assert own.keys() == english.keys()
        assert [key for key in own if places(own[key]) != places(english[key]) or not own[key].strip()] == []


def _file(language: str) -> Path:
    return FOLDER / f"{language}.toml"


def test_no_key_stands_in_two_sections() -> None:
    for language in LANGUAGES:
        keys = [key for rows in tomllib.loads(_file(language).read_text()).values() for key in rows]
        assert sorted(set(keys)) == sorted(keys)


def test_english_has_no_chinese_characters() -> None:
    assert [key for key, text in sentences("en").items() if re.search("[\u4e00-\u9fff]", text)] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_can_be_said(language: str) -> None:
    for key, text in sentences(language).items():
        said = say(Notice(key, {name: f"<{name}>" for name in places(text)}), language)
        assert not re.search(r"[{}]\w", said), key
        assert all(f"<{name}>" in said for name in places(text)), key


def test_every_key_that_is_named_exists_with_its_places() -> None:
    english = sentences("en")
    assert [use for use in uses() if use.key not in english] == []
    lacking = [use for use in uses() if use.values is not None and not places(english[use.key]) <= use.values]
    assert lacking == []


def test_every_sentence_is_used() -> None:
    assert [key for key in sentences("en") if not is_used(key)] == []


def test_a_sentence_that_nothing_names_would_be_found() -> None:
    assert not is_used("page_sleeps_soundly")
    assert is_used("tool_calculator") and is_used("date_from_today_after")


def test_a_reason_is_said_in_the_readers_language() -> None:
    led = because("led_to", target="http://10.0.0.1/", **because("metadata", address="10.0.0.1"))
    notice = Notice("blocked", {"url": "https://a.example/", **led})
    assert notice.cause == "metadata"
    assert "10.0.0.1 is where cloud machines" in say(notice, "en")
    assert "云主机" in say(notice, "zh") and not re.search("{|}|None", say(notice, "zh"))
    assert Notice("chat_failed").cause == ""


def test_counts_choose_their_form() -> None:
    assert label_count("chunks_one", "chunks_many", 1, "en") == "1 passage"
    assert label_count("chunks_one", "chunks_many", 1200, "en") == "1,200 passages"
    assert label("nav_chat", "zh") == "问答"
    assert fill("{count:page|pages}, {n:is|are} {name}", {"count": 1, "n": "2", "name": "{x}"}) == "1 page, 2 are {x}"
    with pytest.raises(KeyError):
        label("no_such_label", "en")


def test_one_is_not_said_in_the_plural() -> None:
    paired = set(dict(plurals()).values())
    english = [text for key, text in sentences("en").items() if key not in paired]
    said = [fill(text, dict.fromkeys(places(text), "…") | dict.fromkeys(NUMBERS, "1")) for text in english]
    plural = r"\b1 (?!is\b|was\b|has\b|does\b|ms\b|s\b)(?:other |neighbouring )?[a-z]+(?<!s)s\b"
    assert [text for text in said if re.search(plural, text)] == []


def test_a_file_more_is_a_language_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language in LANGUAGES:
        shutil.copy(_file(language), tmp_path)
    german = '[common]\nlanguage_name = "Deutsch"\nnav_library = "Bibliothek"\n'
    (tmp_path / "de.toml").write_text(german, encoding="utf-8")
    monkeypatch.setattr(rag.locales, "FOLDER", tmp_path)
    monkeypatch.setattr(rag.locales, "LANGUAGES", rag.locales.list_languages(tmp_path))
    assert rag.locales.LANGUAGES == ("de", "en", "zh")
    sentences.cache_clear()
    try:
        assert (label("language_name", "de"), label("nav_library", "de"), label("nav_chat", "de")) == (
            "Deutsch",
            "Bibliothek",
            "Chat",
        )
        assert choose_language("de-AT,zh;q=0.5") == "de"
    finally:
        sentences.cache_clear()


@pytest.mark.parametrize(
    ("accepted", "language"),
    [("", "en"), ("zh-CN", "zh"), ("en-GB,zh;q=0.9", "en"), ("xx,zh-TW;q=0.8", "zh"), ("xx", "en"), ("ZH", "zh")],
)
def test_the_browsers_language_is_chosen(accepted: str, language: str) -> None:
    assert choose_language(accepted) == language


def test_every_prompt_has_a_name_on_the_screen() -> None:
    jobs = {name.partition(".")[0] for name in PromptTexts().names()}
    assert {job for job in jobs for language in LANGUAGES if f"prompt_{job}" not in sentences(language)} == set()
