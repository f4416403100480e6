"""The table of a search's candidates. On a narrow screen the stylesheet makes a card of each row.

Every score stands with its column's name in it, in italics, which only the cards show.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rag.messages import say
from rag.retrieval.explain import Row, Standing, legs_of
from rag.text import is_chinese
from rag.types import Answer, Citation, Passage
from rag.ui.escape import escape_line
from rag.ui.strings import LABELS, Language, label

_OPENING = 110  # characters, half as many in Chinese
_BAR = 10
_HEADING = re.compile(r"(?m)^[ \t]{0,3}#{1,6}[ \t].*$")
_BULLET = re.compile(r"(?m)^[ \t]*[-*+][ \t]+")
_NOT_WORDS = re.compile(r"[#|*`>_~]+|-{3,}")


@dataclass(frozen=True, slots=True)
class Marks:
    """What an answer says of passages, by id: whether each was found relevant, and the marks that cite it."""

    relevant: Mapping[str, bool] = field(default_factory=dict)
    cited: Mapping[str, Sequence[int]] = field(default_factory=dict)


def marks_of(answer: Answer, rows: Sequence[Row]) -> Marks:
    """The grades of `answer` and which of `rows` it quotes."""
    grades = [one for step in answer.steps if step.node == "grade" for one in step.detail.get("grades") or ()]
    cited = {row.passage.id: [c.n for c in answer.citations if _holds(row.passage, c)] for row in rows}
    return Marks({one["id"]: bool(one["relevant"]) for one in grades}, cited)


def _holds(passage: Passage, citation: Citation) -> bool:
    return passage.url_hash == citation.url_hash and passage.start <= citation.start < passage.end


def candidates_markdown(
    rows: Sequence[Row], legs: Sequence[str], marks: Marks, language: Language, *, best: float = 0.0
) -> str:
    """A Markdown table of `rows`; `legs` are its columns, the last the one that decided.

    Scores of that one show as a bar, too, `best` as a full one.
    """
    head = [label("candidate_place", language), label("candidate_passage", language)]
    head += [leg_name(leg, language) for leg in legs]
    lines = [_line(head), "|" + " --- |" * len(head)]
    for row in rows:
        cells = [f":green-badge[{row.place}]" if row.place else ":gray[–]", _about(row, marks, language)]
        cells += [_cell(leg, row.standings.get(leg), best if leg == legs[-1] else 0.0, language) for leg in legs]
        lines.append(_line(cells))
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _about(row: Row, marks: Marks, language: Language) -> str:
    """The passage's name, how it begins, and what became of it."""
    parts = [f"**{escape_line(passage_name(row.passage))}**", escape_line(opening(row.passage.text))]
    if cited := marks.cited.get(row.passage.id):
        numbers = " ".join(f"[{n}]" for n in cited)
        parts.append(f":green-badge[{label('candidate_cited', language, marks=escape_line(numbers))}]")
    if (relevant := marks.relevant.get(row.passage.id)) is not None:
        color, key = ("green", "relevant") if relevant else ("orange", "irrelevant")
        parts.append(f":{color}-badge[{label(f'candidate_{key}', language)}]")
    if row.became.code != "candidate_kept":
        parts.append(f":gray[{escape_line(say(row.became, language))}]")
    return " ".join(parts)


def _cell(leg: str, standing: Standing | None, best: float, language: Language) -> str:
    name = f"*{leg_name(leg, language)}*"
    if standing is None:
        return f"{name} :gray[–]"
    parts = [name, f"**{standing.rank}**", f":gray[{score(standing.score)}]"]
    if standing.query > 1:
        parts.append(f":gray[{label('candidate_query', language, number=standing.query)}]")
    if best > 0.0:
        parts.append(_bar(standing.score / best))
    return " ".join(parts)


def _bar(share: float) -> str:
    return f":primary[{'━' * min(_BAR, max(1, round(_BAR * share)))}]"


def best_score(rows: Sequence[Row], legs: Sequence[str]) -> float:
    """The best score in the last leg, 0 where there is none."""
    return max((row.standings[legs[-1]].score for row in rows if legs and legs[-1] in row.standings), default=0.0)


def leg_name(leg: str, language: Language) -> str:
    """A leg's name for the reader; one without shows its own."""
    key = f"leg_{leg}"
    return label(key, language) if key in LABELS else escape_line(leg)


def score(value: float) -> str:
    """Two decimals, one from 10 on: as much of a score as can be compared at a glance."""
    return f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"


def passage_name(passage: Passage) -> str:
    """The page's title and the heading that the passage stands under."""
    title = passage.title or passage.url
    heading = passage.section[-1] if passage.section else ""
    return f"{title} › {heading}" if heading and heading != title else title


def opening(text: str) -> str:
    """The first words of a passage in one line, without its headings and the signs of its markup."""
    below = _HEADING.sub("", text) if _HEADING.sub("", text).strip() else text
    plain = " ".join(_NOT_WORDS.sub(" ", _BULLET.sub("• ", below)).split())
    if is_chinese(plain):
        return plain if len(plain) <= _OPENING // 2 else f"{plain[: _OPENING // 2]}…"
    words = plain[:_OPENING].rpartition(" ")[0] or plain[:_OPENING]
    return plain if len(plain) <= _OPENING else f"{words}…"


def split_rows(rows: Sequence[Row]) -> tuple[list[Row], list[Row], list[str]]:
    """The rows in the context, the others, and the legs that are the columns of both."""
    kept = [row for row in rows if row.place is not None]
    return kept, [row for row in rows if row.place is None], legs_of(rows)
