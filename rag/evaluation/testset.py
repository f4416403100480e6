"""Cases made of what is there: what people thought of answers, and the pages themselves, without a model or with one.

What is made of pages is a draft: a person approves it. Without a model a question is put in the page's own words, so
that a search by words finds it: such questions try chunks, refusals and whatever comes after the search.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, Field

from rag.evaluation.cases import Case, Evidence, case_of
from rag.evaluation.evidence import HALF, covered_share, squash
from rag.locales import say
from rag.quantities.numerals import DIGITS
from rag.text import question_language, split_sentences, terms, weigh
from rag.types import Notice, Page

_HEADING: Final = re.compile(r"^#{2,6}[ \t]+(?P<heading>\S[^\n]*)$", re.MULTILINE)
_NAME: Final = re.compile(r"(?<![\w'’-])[A-Z][\w'’-]++(?: [A-Z][\w'’-]++)++|《[^《》\n]{2,40}》")
_DIGITS: Final = re.compile(DIGITS)
_LEAST, _MOST = 40.0, 240.0  # Latin characters' worth of a sentence that is asked of
_GAP: Final = "____"
_SHARED: Final = 0.6
"""The share of a question's words that its evidence may hold: where it holds more, their words alone find it."""
_READ: Final = 6_000  # characters of a page that a model is given


def of_feedback(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Cases of `Feedback.questions`; what has no answer is a draft."""
    return [
        case_of({**row, "status": "approved" if row["answers"] else "draft", "tags": _tags(row)})
        for row in rows
        if row["question"].strip()
    ]


def _tags(row: Mapping[str, Any]) -> list[str]:
    return [one for one in ("feedback", "good" if row["rating"] > 0 else "bad", row.get("reason", "")) if one]


# Without a model


def of_pages(pages: Sequence[Page], most: int) -> list[Case]:
    """At most so many drafts, of each kind as many: headings, numbers, names, names that two pages share, and what a
    page answers that is left aside."""
    gaps = [case for page in pages for case in _gaps(page)]
    bodies = {page.url: squash(page.text) for page in pages}
    kinds = [
        [case for page in pages for case in _headings(page)],
        [case for case in gaps if "number" in case.tags],
        [case for case in gaps if "name" in case.tags],
        list(_bridges(pages)),
        [_left_aside(case) for case in gaps if _alone(case, bodies)],
    ]
    taken = [case for row in _in_turns(kinds) for case in row]
    return list({case.id: case for case in taken[:most]}.values())


def _in_turns(kinds: Sequence[Sequence[Case]]) -> Iterator[list[Case]]:
    """One of each kind after another."""
    for at in range(max(map(len, kinds), default=0)):
        yield [kind[at] for kind in kinds if at < len(kind)]


def _headings(page: Page) -> Iterator[Case]:
    found = list(_HEADING.finditer(page.text))
    ends = [*(match.start() for match in found[1:]), len(page.text)]
    for match, end in zip(found, ends, strict=False):
        spans = split_sentences(page.text, match.end(), end)
        said = [page.text[slice(*span)] for span in spans if weigh(page.text[slice(*span)]) >= _LEAST]
        if said:
            yield _case("make_heading", page, said[:1], heading=match["heading"].strip("# "), title=page.title)


def _gaps(page: Page) -> Iterator[Case]:
    """The first sentence with a number, and the first with a name, each with a gap in its place."""
    sentences = [page.text[start:end] for start, end in split_sentences(page.text)]
    asked = [one for one in sentences if _LEAST <= weigh(one) <= _MOST and "\n" not in one and one[0] not in "#|>-*"]
    for kind, pattern in (("number", _DIGITS), ("name", _NAME)):
        matches = ((one, match) for one in asked for match in pattern.finditer(one))
        if found := next(matches, None):
            sentence, match = found
            gap = sentence[: match.start()] + _GAP + sentence[match.end() :]
            yield _case(f"make_{kind}", page, [sentence], answers=(match[0],), sentence=gap)


def _bridges(pages: Sequence[Page]) -> Iterator[Case]:
    """What two pages say of a name that they share, and no other."""
    named: dict[str, list[tuple[Page, str]]] = defaultdict(list)
    for page in pages:
        for name in dict.fromkeys(match[0] for match in _NAME.finditer(page.text)):
            spans = (page.text[slice(*span)] for span in split_sentences(page.text))
            if sentence := next((one for one in spans if name in one and weigh(one) >= _LEAST), ""):
                named[name].append((page, sentence))
    for name, ((first, one), (second, other), *more) in ((n, v) for n, v in named.items() if len(v) > 1):
        if not more:
            case = _case("make_bridge", first, [one], name=name, title=first.title, other=second.title)
            yield replace(case, evidence=(*case.evidence, Evidence(second.url, other)))


def _alone(case: Case, bodies: Mapping[str, str]) -> bool:
    """Whether no other of the pages holds its evidence."""
    (own,) = case.evidence
    return not any(covered_share(squash(own.quote), body) >= HALF for url, body in bodies.items() if url != own.url)


def _left_aside(case: Case) -> Case:
    """The same, asked while its page is left aside: the pages do not hold the answer."""
    urls = tuple(one.url for one in case.evidence)
    tags = (*case.tags[:1], "unanswerable")
    return replace(case, id=f"{case.id}-0", answers=(), evidence=(), tags=tags, answerable=False, without=urls)


def _case(code: str, page: Page, quotes: Sequence[str], answers: tuple[str, ...] = (), **values: str) -> Case:
    language = question_language(quotes[0])
    question = say(Notice(code, values), language)
    return _draft(question, page, quotes, answers, code.removeprefix("make_"))


def _draft(question: str, page: Page, quotes: Sequence[str], answers: tuple[str, ...], kind: str) -> Case:
    name = hashlib.sha256(f"{page.url}\n{question}".encode()).hexdigest()[:12]
    evidence = tuple(Evidence(page.url, quote) for quote in quotes)
    language = question_language(question)
    return Case(name, question, language, answers, evidence, ("made", kind), True, status="draft")


# With a model


class Written(BaseModel):
    """A question that a page answers."""

    question: str = Field(description="the question, in words of its own")
    answer: str = Field(description="the answer, in a few words")
    span: str = Field(description="the sentence of the page that holds the answer, copied to the letter")


def opening(page: Page, number: int) -> str:
    """What a model reads of a page: a part of it, each time another."""
    parts = max(1, len(page.text) // _READ)
    at = (number % parts) * _READ
    return page.text[at : at + _READ]


def of_written(written: Written, page: Page) -> Case | None:
    """A draft, unless what is quoted does not stand in the page, or the question's words alone find it."""
    span, question = written.span.strip(), " ".join(written.question.split())
    asked, said = set(terms(question)), set(terms(span))
    if not span or span not in page.text or not asked or len(asked & said) > _SHARED * len(asked):
        return None
    answers = (written.answer.strip(),) if written.answer.strip() else ()
    return _draft(question, page, [span], answers, "written")
