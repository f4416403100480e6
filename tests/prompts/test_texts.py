"""The instructions for chat models: shipped defaults, which users can replace."""

from __future__ import annotations

import logging
import string
from pathlib import Path

import pytest

from rag.errors import ConfigError
from rag.locales import LANGUAGES
from rag.prompts.texts import MAX_CHARACTERS, SHIPPED, PromptTexts

NAMES = SHIPPED.names()


def test_each_job_has_a_text_in_each_language_with_the_same_fields() -> None:
    jobs = {name.partition(".")[0] for name in NAMES}
    assert {f"{job}.{language}" for job in jobs for language in LANGUAGES} == set(NAMES)
    for job in jobs:
        assert len({SHIPPED.text(f"{job}.{language}").fields for language in LANGUAGES}) == 1, job
    assert SHIPPED.for_job("answer", "龙井茶产于哪里？").name == "answer.zh"
    assert SHIPPED.for_job("answer", "Where does tea grow?").name == "answer.en"


def test_a_text_of_ones_own_holds_until_the_original_is_taken_back(tmp_path: Path) -> None:
    texts = PromptTexts(tmp_path / "prompts")
    before = texts.text("grade.en")
    made = texts.replace("grade.en", "Judge {count} passages between <{marker}>. Write {{}}.")
    assert made.is_custom and made.version != before.version and not before.is_custom
    again = PromptTexts(tmp_path / "prompts").text("grade.en")
    assert again == made
    assert again.fill({"count": 2, "marker": "m", "more": 1}) == "Judge 2 passages between <m>. Write {}.\n"
    assert SHIPPED.text("grade.en") == before
    assert texts.restore("grade.en") == texts.text("grade.en") == before
    assert list((tmp_path / "prompts").iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n",
        "Judge {count} passages.",
        "Judge {count} between <{marker}> and {secret}.",
        "Judge {count.__class__} between <{marker}>.",
        "Judge {count!r} between <{marker}>.",
        "Judge {count:>9999999} between <{marker}>.",
        "Judge {count} between <{marker}> {",
        "{count} {marker} " + "x" * MAX_CHARACTERS,
    ],
)
def test_a_text_that_would_not_work_is_refused_and_passed_over(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    texts = PromptTexts(tmp_path)
    with pytest.raises(ConfigError) as caught:
        texts.replace("grade.en", text)
    assert caught.value.notice.code in ("prompt_fields", "prompt_length")
    (tmp_path / "grade.en.md").write_text(text, encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert texts.text("grade.en") == SHIPPED.text("grade.en")
    assert "grade.en.md and using the built-in prompt" in caplog.text


def test_what_cannot_be_read_or_kept_is_said(tmp_path: Path) -> None:
    (tmp_path / "grade.en.md").write_bytes(b"\xff\xfe{count}{marker}")
    assert PromptTexts(tmp_path).text("grade.en") == SHIPPED.text("grade.en")
    (tmp_path / "file").touch()
    for texts in (PromptTexts(tmp_path / "file"), SHIPPED):
        with pytest.raises(ConfigError) as caught:
            texts.replace("grade.en", "{count} {marker}")
        assert caught.value.notice.code == "prompt_not_kept"


@pytest.mark.parametrize("name", NAMES)
def test_shipped_texts_have_plain_fields_only(name: str) -> None:
    for _, field, form, turn in string.Formatter().parse(SHIPPED.text(name).text):
        assert field is None or (field.isidentifier() and not form and not turn)
