"""The standing rules that chat models are given: a file for each job and language, which a person may replace."""

from __future__ import annotations

import hashlib
import logging
import os
import string
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from rag.errors import ConfigError
from rag.text import is_chinese

log = logging.getLogger(__name__)

LANGUAGES: Final = ("en", "zh")
MAX_CHARACTERS: Final = 20_000
_SHIPPED: Final = Path(__file__).parent / "texts"


@dataclass(frozen=True, slots=True)
class PromptText:
    """One text with the `{fields}` that are filled in when it is sent; `own` is true for one that a person wrote."""

    name: str
    text: str
    own: bool = False

    @property
    def fields(self) -> frozenset[str]:
        return _fields(self.text)

    @property
    def version(self) -> str:
        """The name with what tells this wording from every other: kept with each answer that it had a part in."""
        return f"{self.name}@{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    def filled(self, values: Mapping[str, object]) -> str:
        return self.text.format(**{field: values[field] for field in self.fields})


class PromptTexts:
    """The texts by name, such as `answer.en`: a file of that name and `.md` in the folder, else the shipped one.

    Files are read when they are needed, so that a change holds from the next request on. One that cannot be used is
    passed over, and the log says so.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        return sorted(_shipped())

    def text(self, name: str) -> PromptText:
        """Raises KeyError for a name that is none."""
        shipped = _shipped()[name]
        if (path := self._path(name)) is None or not path.is_file():
            return shipped
        try:
            return _checked(PromptText(name, path.read_text(encoding="utf-8"), own=True), shipped)
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            log.warning("%s is passed over, and the text that came with the app is used: %s", path, error)
            return shipped

    def of(self, job: str, said: str) -> PromptText:
        """The text of a job, in the language of what was said."""
        return self.text(f"{job}.{'zh' if is_chinese(said) else 'en'}")

    def replace(self, name: str, text: str) -> PromptText:
        """Use this text from now on. Raises ConfigError for one that lacks a field, or cannot be kept."""
        made = _checked(PromptText(name, text.strip() + "\n", own=True), _shipped()[name])
        path = self._path(name)
        if path is None:
            raise ConfigError("prompt_not_kept", name=name)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(made.text)
            Path(draft).replace(path)
        except OSError as error:
            raise ConfigError("prompt_not_kept", name=name) from error
        return made

    def restore(self, name: str) -> PromptText:
        """Use the text that came with the app again. Raises ConfigError where the other cannot be removed."""
        try:
            if path := self._path(name):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError("prompt_not_kept", name=name) from error
        return _shipped()[name]

    def _path(self, name: str) -> Path | None:
        return self._folder / f"{name}.md" if self._folder else None


@cache
def _shipped() -> dict[str, PromptText]:
    return {path.stem: PromptText(path.stem, path.read_text(encoding="utf-8")) for path in _SHIPPED.glob("*.md")}


def _checked(own: PromptText, shipped: PromptText) -> PromptText:
    """Raises ConfigError for a text that is empty, too long, or has other fields than it must have."""
    if not own.text.strip() or len(own.text) > MAX_CHARACTERS:
        raise ConfigError("prompt_length", name=own.name, limit=MAX_CHARACTERS)
    if own.fields != shipped.fields:
        raise ConfigError(
            "prompt_fields", name=own.name, fields=", ".join(f"{{{one}}}" for one in sorted(shipped.fields))
        )
    return own


@cache
def _fields(text: str) -> frozenset[str]:
    """The names in braces; one with a stroke of a pen too many, such as `{a.b}` or an open brace, is no known name."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return frozenset({"{"})
    return frozenset(f"{name}{form or ''}{turn or ''}" for _, name, form, turn in parts if name is not None)


SHIPPED: Final = PromptTexts()
