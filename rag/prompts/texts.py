"""The instructions for chat models: a file for each job and language, which users may replace."""

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

MAX_CHARACTERS: Final = 20_000
_SHIPPED: Final = Path(__file__).parent / "texts"


@dataclass(frozen=True, slots=True)
class PromptText:
    """A text with `{fields}` that are filled in when it is sent; `is_custom` is true if a user wrote it."""

    name: str
    text: str
    is_custom: bool = False

    @property
    def fields(self) -> frozenset[str]:
        return _fields(self.text)

    @property
    def version(self) -> str:
        """The name with a hash of the text, stored with each answer that used it."""
        return f"{self.name}@{hashlib.sha256(self.text.encode()).hexdigest()[:8]}"

    def fill(self, values: Mapping[str, object]) -> str:
        return self.text.format(**{field: values[field] for field in self.fields})


class PromptTexts:
    """The texts by name, such as `answer.en`: the file `answer.en.md` in the folder, or else the shipped one.

    Files are read on use, so that a change applies from the next request. Invalid files are logged and ignored.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    def names(self) -> list[str]:
        return sorted(_load_shipped())

    def text(self, name: str) -> PromptText:
        """Return a text by name. Raises KeyError for an unknown name."""
        shipped = _load_shipped()[name]
        if (path := self._path(name)) is None or not path.is_file():
            return shipped
        try:
            return _check(PromptText(name, path.read_text(encoding="utf-8"), is_custom=True), shipped)
        except (OSError, UnicodeDecodeError, ConfigError) as error:
            log.warning("Ignoring %s and using the built-in prompt: %s", path, error)
            return shipped

    def for_job(self, job: str, message: str) -> PromptText:
        """Return the text of a job, in the language of a message."""
        return self.text(f"{job}.{'zh' if is_chinese(message) else 'en'}")

    def replace(self, name: str, text: str) -> PromptText:
        """Save a replacement for a text. Raises ConfigError if its length or fields are invalid, or saving fails."""
        prompt = _check(PromptText(name, text.strip() + "\n", is_custom=True), _load_shipped()[name])
        path = self._path(name)
        if path is None:
            raise ConfigError("prompt_not_kept", name=name)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle, draft = tempfile.mkstemp(dir=path.parent)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(prompt.text)
            Path(draft).replace(path)
        except OSError as error:
            raise ConfigError("prompt_not_kept", name=name) from error
        return prompt

    def restore(self, name: str) -> PromptText:
        """Restore the shipped text. Raises ConfigError if the replacement cannot be removed."""
        try:
            if path := self._path(name):
                path.unlink(missing_ok=True)
        except OSError as error:
            raise ConfigError("prompt_not_kept", name=name) from error
        return _load_shipped()[name]

    def _path(self, name: str) -> Path | None:
        return self._folder / f"{name}.md" if self._folder else None


@cache
def _load_shipped() -> dict[str, PromptText]:
    return {path.stem: PromptText(path.stem, path.read_text(encoding="utf-8")) for path in _SHIPPED.glob("*.md")}


def _check(custom: PromptText, shipped: PromptText) -> PromptText:
    """Return `custom`. Raises ConfigError if it is empty, too long, or has other fields than the shipped text."""
    if not custom.text.strip() or len(custom.text) > MAX_CHARACTERS:
        raise ConfigError("prompt_length", name=custom.name, limit=MAX_CHARACTERS)
    if custom.fields != shipped.fields:
        raise ConfigError(
            "prompt_fields", name=custom.name, fields=", ".join(f"{{{field}}}" for field in sorted(shipped.fields))
        )
    return custom


@cache
def _fields(text: str) -> frozenset[str]:
    """Return the names in braces; a malformed one, such as `{a.b}` or an open brace, matches no known name."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:
        return frozenset({"{"})
    return frozenset(f"{name}{form or ''}{turn or ''}" for _, name, form, turn in parts if name is not None)


SHIPPED: Final = PromptTexts()
