"""Quotable units of a passage: a sentence, a line of code, or a few commands with the sentence that introduces them.

Answers show them as prose, with code unchanged.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

from rag.checking.marks import code_spans
from rag.patterns import lazy_regex
from rag.text import HEADING, INTRODUCTION, fenced_blocks, is_chinese, list_leads, split_sentences, strip_struck

MAX_COMMANDS: Final = 6
_FENCE: Final = lazy_regex(r"\s*(?:```|~~~)")
_CONTINUED: Final = lazy_regex(r"(?<![ \t])[ \t]*+\\$")
_ENDS: Final = lazy_regex(r"[^\w\s)）\]\"”」』]$")
_QUESTION: Final = lazy_regex(r"[?？][\s)）\"”」』*_#`]*$")
_WORD: Final = lazy_regex(r"\w")
_LIST_MARKS: Final = lazy_regex(r"^(?:\s*(?:[-*+•>]|\d{1,3}[.)]|\[ \])\s+(?:\[[xX]\]\s+)?)+")
_BOLD: Final = lazy_regex(r"(?<![A-Za-z0-9*])\*\*(?=[^\s*])((?:[^*\n]++|\*(?!\*))++)(?<=[^\s*])\*\*(?![A-Za-z0-9*])")
_CUT_OFF: Final = lazy_regex(r"^\*\*(?=[^\s*])(?!.*\*\*)|(?<=[^\s*])\*\*$")  # a part of a longer emphasis
_UNDERLINED: Final = lazy_regex(r"(?<!\w)__(?=[^\s_])((?:[^_\n]++|_(?!_))++)(?<=[^\s_])__(?!\w)")
_BAR: Final = lazy_regex(r"(?<!\\)\|")
_NOTE_MARK: Final = lazy_regex(r"\[\^[^\[\]\s]{1,8}\]")
_IDENTIFIER: Final = lazy_regex(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Quotable:
    """A quotable unit: `text` is verbatim from the page, `lines` are its form in answers, each with its own mark."""

    text: str
    lines: tuple[str, ...]
    is_code: bool = False
    is_table_header: bool = False

    @property
    def is_heading(self) -> bool:
        return not self.is_code and bool(HEADING.match(self.text))

    @property
    def asks(self) -> bool:
        return not self.is_code and bool(_QUESTION.search(self.text))


def quotables(text: str, header: str = "") -> list[Quotable]:
    """Return the quotable units of `text` in order, without code fences and struck-out text.

    `header` is that of the table that its first rows continue.
    """
    units: list[Quotable] = []
    position = 0
    header = header.partition("\n")[0]
    for start, end in fenced_blocks(text):
        units += _sentences(text, position, start, "" if position else header)
        units = _with_code(units, text[start:end].splitlines())
        position = end
    return units + _sentences(text, position, len(text), "" if position else header)


def _join_lead(lead: str, item: str) -> str:
    if is_chinese(lead):
        return f"{lead}{item}" if _ENDS.search(lead) else f"{lead}：{item}"
    return f"{lead} {item}" if _ENDS.search(lead) else f"{lead}: {item}"


def _sentences(text: str, start: int, end: int, header: str) -> list[Quotable]:
    """Return the sentences of `text[start:end]`.

    Table rows get their header, the row above a line of bars and dashes; list items get the heading or introduction of
    their list, which may reverse their meaning.
    """
    units: list[Quotable] = []
    spans = list(split_sentences(text, start, end))
    for (begin, stop), lead in zip(spans, list_leads(text, spans), strict=True):
        sentence, valid = text[begin:stop], strip_struck(text, begin, stop)
        if valid != sentence and not _WORD.search(valid):
            continue
        if not sentence.startswith("|"):
            header = ""
        elif units and not sentence.strip("|-: \t") and units[-1].text.startswith("|"):
            header, units[-1] = units[-1].text, replace(units[-1], is_table_header=True)
        line = as_row(valid, header) if header else as_prose(valid)
        units.append(Quotable(sentence, (_join_lead(as_prose(lead), line) if lead else line,)))
    return units


def _with_code(before: list[Quotable], block: list[str]) -> list[Quotable]:
    """Append a block of code: a few commands as one unit, with the line before that ends in a colon; other code line
    by line."""
    lines = [line for line in block if _WORD.search(line) and not _FENCE.match(line)]
    commands = _commands(lines)
    if not 0 < len(commands) <= MAX_COMMANDS:
        return before + [Quotable(line.strip(), (as_code(line),), is_code=True) for line in lines]
    code_lines = tuple(as_code(command) for command in commands)
    text = "\n".join(lines)
    if before and not before[-1].is_code and INTRODUCTION.search(before[-1].text):
        *before, lead = before
        text, code_lines = f"{lead.text}\n{text}", (*lead.lines, *code_lines)
    return [*before, Quotable(text, code_lines, is_code=True)]


def _commands(lines: list[str]) -> list[str]:
    """Return the lines as commands, joined at backslashes; none if indentation shows other code."""
    commands: list[str] = []
    is_continued = False
    for line in lines:
        command = _CONTINUED.sub("", line).strip()
        if is_continued:
            commands[-1] += f" {command}"
        elif line[:1].isspace() and commands:
            return []
        else:
            commands.append(command)
        is_continued = line.rstrip().endswith("\\")
    return commands


def as_prose(text: str) -> str:
    """Return a sentence without list marks, footnote marks, table bars and emphasis; code stays verbatim."""
    sentence = " ".join(_LIST_MARKS.sub("", text).split())
    if sentence.startswith("|"):
        sentence = " · ".join(filter(None, _cells(sentence)))
    result, position = "", 0
    for start, end in code_spans(sentence):
        result += _without_emphasis(sentence[position:start]) + sentence[start:end]
        position = end
    return result + _without_emphasis(sentence[position:])


def as_row(row: str, header: str) -> str:
    """Return a table row as prose, each cell but the first with its column name: `Team: 79 € (Price)`."""
    (first, *cells), (_, *names) = _cells(row), _cells(header)
    if not any(cells) or len(cells) != len(names):
        return as_prose(row)
    named, begin = ("{}（{}）", "：") if is_chinese(row) else ("{} ({})", ": ")
    pairs = zip(cells, names, strict=True)
    rest = " · ".join(named.format(cell, name) if name else cell for cell, name in pairs if cell)
    return as_prose(f"{first}{begin}{rest}" if first else rest)


def _cells(row: str) -> list[str]:
    return [cell.strip().replace("\\|", "|") for cell in _BAR.split(row.strip().removeprefix("|").removesuffix("|"))]


def as_code(line: str) -> str:
    """Return a line as inline code, between more backticks than it has in a row."""
    line = line.strip()
    marks = "`" * (1 + max(map(len, re.findall("`+", line)), default=0))
    room = " " if "`" in (line[:1], line[-1:]) else ""
    return f"{marks}{room}{line}{room}{marks}"


def _without_emphasis(text: str) -> str:
    """Remove emphasis and footnote marks, but keep `2 ** 3` and `__init__` even outside of code."""
    return _UNDERLINED.sub(_name_or_words, _CUT_OFF.sub("", _BOLD.sub(r"\1", _NOTE_MARK.sub("", text))))


def _name_or_words(underlined: re.Match[str]) -> str:
    return as_code(underlined[0]) if _IDENTIFIER.fullmatch(underlined[1]) else underlined[1]
