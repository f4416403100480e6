"""Cases made from feedback, and from the pages themselves, without a model or with one.

Cases made from pages are drafts until a person approves them. Without a model a question has the page's own words, so
that a keyword search finds it: such questions test chunks, refusals and everything after the search.
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
from rag.evaluation.evidence import HALF, quote_coverage, squash
from rag.locales import say
from rag.quantities.numerals import DIGITS
from rag.text import question_language, split_sentences, terms, weigh
from rag.types import Notice, Page

_HEADING: Final = re.compile(r"^#{2,6}[ \t]+(?P<heading>\S[^\n]*)$", re.MULTILINE)
_NAME: Final = re.compile(r"(?<![\w'’-])[A-Z][\w'’-]++(?: [A-Z][\w'’-]++)++|《[^《》\n]{2,40}》")
_DIGITS: Final = re.compile(DIGITS)
_MIN_LENGTH, _MAX_LENGTH = 40.0, 240.0  # Latin characters' worth of a sentence that a question is made from
_GAP: Final = "____"
_MAX_SHARED: Final = 0.6
"""The share of a question's words that its evidence may have: with more, the words alone find it."""
_PART_SIZE: Final = 6_000  # characters of a page in a model's prompt


def cases_from_feedback(rows: Iterable[Mapping[str, Any]]) -> list[Case]:
    """Return the cases of `Feedback.questions`; those without an answer are drafts."""
    return [
        case_of({**row, "status": "approved" if row["answers"] else "draft", "tags": _feedback_tags(row)})
        for row in rows
        if row["question"].strip()
    ]


def _feedback_tags(row: Mapping[str, Any]) -> list[str]:
    return [tag for tag in ("feedback", "good" if row["rating"] > 0 else "bad", row.get("reason", "")) if tag]


# Without a model


def draft_cases(pages: Sequence[Page], most: int) -> list[Case]:
    """Return up to `most` drafts, equally many of each kind: headings, numbers, names, names that two pages share, and
    questions whose page is excluded."""
    gaps = [case for page in pages for case in _gap_cases(page)]
    bodies = {page.url: squash(page.text) for page in pages}
    kinds = [
        [case for page in pages for case in _heading_cases(page)],
        [case for case in gaps if "number" in case.tags],
        [case for case in gaps if "name" in case.tags],
        list(_bridge_cases(pages)),
        [_exclude_page(case) for case in gaps if _is_unique(case, bodies)],
    ]
    drafts = [case for row in _take_turns(kinds) for case in row]
    return list({case.id: case for case in drafts[:most]}.values())


def _take_turns(kinds: Sequence[Sequence[Case]]) -> Iterator[list[Case]]:
    """Yield one of each kind at a time."""
    for index in range(max(map(len, kinds), default=0)):
        yield [kind[index] for kind in kinds if index < len(kind)]


def _heading_cases(page: Page) -> Iterator[Case]:
    matches = list(_HEADING.finditer(page.text))
    ends = [*(match.start() for match in matches[1:]), len(page.text)]
    for match, end in zip(matches, ends, strict=False):
        spans = split_sentences(page.text, match.end(), end)
        texts = [page.text[slice(*span)] for span in spans if weigh(page.text[slice(*span)]) >= _MIN_LENGTH]
        if texts:
            yield _make_case("make_heading", page, texts[:1], heading=match["heading"].strip("# "), title=page.title)


def _gap_cases(page: Page) -> Iterator[Case]:
    """Yield questions from the first sentence with a number and the first with a name, a gap in its place."""
    sentences = [page.text[start:end] for start, end in split_sentences(page.text)]
    texts = [s for s in sentences if _MIN_LENGTH <= weigh(s) <= _MAX_LENGTH and "\n" not in s and s[0] not in "#|>-*"]
    for kind, pattern in (("number", _DIGITS), ("name", _NAME)):
        matches = ((text, match) for text in texts for match in pattern.finditer(text))
        if pair := next(matches, None):
            sentence, match = pair
            gap = sentence[: match.start()] + _GAP + sentence[match.end() :]
            yield _make_case(f"make_{kind}", page, [sentence], answers=(match[0],), sentence=gap)


def _bridge_cases(pages: Sequence[Page]) -> Iterator[Case]:
    """Yield questions about names that exactly two pages share."""
    mentions: dict[str, list[tuple[Page, str]]] = defaultdict(list)
    for page in pages:
        for name in dict.fromkeys(match[0] for match in _NAME.finditer(page.text)):
            spans = (page.text[slice(*span)] for span in split_sentences(page.text))
            if sentence := next((quote for quote in spans if name in quote and weigh(quote) >= _MIN_LENGTH), ""):
                mentions[name].append((page, sentence))
    for name, ((first, quote), (second, second_quote), *more) in ((n, v) for n, v in mentions.items() if len(v) > 1):
        if not more:
            case = _make_case("make_bridge", first, [quote], name=name, title=first.title, other=second.title)
            yield replace(case, evidence=(*case.evidence, Evidence(second.url, second_quote)))


def _is_unique(case: Case, bodies: Mapping[str, str]) -> bool:
    """True if no other page has the evidence of the case."""
    (item,) = case.evidence
    return not any(quote_coverage(squash(item.quote), body) >= HALF for url, body in bodies.items() if url != item.url)


def _exclude_page(case: Case) -> Case:
    """Return the same case, asked while its page is excluded: the pages do not have the answer."""
    urls = tuple(item.url for item in case.evidence)
    tags = (*case.tags[:1], "unanswerable")
    return replace(case, id=f"{case.id}-0", answers=(), evidence=(), tags=tags, answerable=False, without=urls)


def _make_case(code: str, page: Page, quotes: Sequence[str], answers: tuple[str, ...] = (), **values: str) -> Case:
    language = question_language(quotes[0])
    question = say(Notice(code, values), language)
    return _make_draft(question, page, quotes, answers, code.removeprefix("make_"))


def _make_draft(question: str, page: Page, quotes: Sequence[str], answers: tuple[str, ...], kind: str) -> Case:
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


def page_part(page: Page, number: int) -> str:
    """Return the part of a page that a model reads, a different one for each number."""
    parts = max(1, len(page.text) // _PART_SIZE)
    at = (number % parts) * _PART_SIZE
    return page.text[at : at + _PART_SIZE]


def case_from_reply(reply: Written, page: Page) -> Case | None:
    """Return a draft, or None if the quote is not in the page, or the question's words alone find it."""
    span, question = reply.span.strip(), " ".join(reply.question.split())
    words, span_words = set(terms(question)), set(terms(span))
    if not span or span not in page.text or not words or len(words & span_words) > _MAX_SHARED * len(words):
        return None
    answers = (reply.answer.strip(),) if reply.answer.strip() else ()
    return _make_draft(question, page, [span], answers, "written")
