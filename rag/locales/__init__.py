"""All sentences that users see, by key, in one file per language in this folder.

A sentence has placeholders `{name}`; `{count:page|pages}` becomes `1 page` or `2 pages`. Adding a file here adds a
language to the app; sentences that it lacks are shown in English.
"""

from __future__ import annotations

import functools
import string
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rag.types import Notice

Language = str
FOLDER = Path(__file__).resolve().parent


def list_languages(folder: Path) -> tuple[Language, ...]:
    """Return the languages that have a file in `folder`."""
    return tuple(sorted(file.stem for file in folder.glob("*.toml")))


LANGUAGES = list_languages(FOLDER)


@functools.cache
def sentences(language: Language) -> Mapping[str, str]:
    """Return the sentences of `language` by key, with English ones for those that are missing."""
    if language not in LANGUAGES:
        return sentences("en")
    sections = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    own = {key: sentence for section in sections.values() for key, sentence in section.items()}
    return own if language == "en" else {**sentences("en"), **own}


def choose_language(accepted: str) -> Language:
    """Return the first language of an Accept-Language header that has a file, else English."""
    tags = (tag.split(";")[0].split("-")[0].strip().lower() for tag in accepted.split(","))
    return next((tag for tag in tags if tag in LANGUAGES), "en")


def say(notice: Notice, language: Language) -> str:
    """Return `notice` as a sentence in `language`."""
    return fill(sentences(language)[notice.code], notice.params, language)


def label(key: str, language: Language, **values: Any) -> str:
    """Return the sentence for `key`, filled with `values`. Raises KeyError for an unknown key."""
    return fill(sentences(language)[key], values, language)


def label_or(default: str, key: str, language: Language) -> str:
    """Return the sentence for `key`, or `default` if there is none."""
    return label(key, language) if key in sentences("en") else default


def label_count(key_one: str, key_many: str, count: int, language: Language, **values: Any) -> str:
    """Return the sentence for `key_one` if `count` is 1, else for `key_many`, filled with `{count}`."""
    return label(key_one if count == 1 else key_many, language, count=f"{count:,}", **values)


def language_name(tag: str, language: Language) -> str:
    """Return `en` as "English" or “英文”; other tags stay as they are."""
    if tag in ("en", "zh"):
        return label(f"language_{tag}", language)
    return tag or label("language_unknown", language)


def fill(sentence: str, values: Mapping[str, Any], language: Language = "en") -> str:
    """Fill the placeholders of `sentence`. A value of `rag.types.because` becomes a sentence in `language`."""
    return _Filling(language).vformat(sentence, (), values)


class _Filling(string.Formatter):
    def __init__(self, language: Language) -> None:
        self._language = language

    def format_field(self, value: Any, spec: str) -> str:
        if isinstance(value, Mapping):
            return say(Notice(value["code"], value["params"]), self._language)
        one, is_count, many = spec.partition("|")
        if not is_count:
            return str(super().format_field(value, spec))
        return f"{value} {one if str(value) == '1' else many}"
