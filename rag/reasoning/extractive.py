"""A reasoner without a chat model: its answers are selected and ordered sentences of the pages.

A quotable unit is a sentence, a line of code, a few commands with the sentence that introduces them, or a list if
several of its items are likely to answer. Answers show
them as prose, with code unchanged. Each is scored together with its title and headings, since pages seldom repeat the
name in their title. Semantic similarity counts most, since questions use other words than pages. A softmax over all
units of the passages gives the likelihood that each one answers. The best is quoted, with others that are likely
enough: see docs/decisions/0012-quoted-answers.md.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict, deque
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, count, groupby, islice, pairwise, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
from numpy.typing import NDArray

from rag.checking.statements import code_spans, is_statement
from rag.models.cross_encoders import AnswerReader, TitledSentence, get_answer_probability
from rag.models.embedding import SentenceModel, SparseEncoder, fold
from rag.reasoning.questions import answer_from_conversation, exchanges_of, make_call, split_questions
from rag.retrieval.context import is_across
from rag.retrieval.page_names import find_named
from rag.retrieval.strategies import ASKS, Need
from rag.text import (
    HEADING,
    INTRODUCTION,
    NO_LIST,
    Entry,
    ListPlace,
    fenced_blocks,
    find_entries,
    find_list_places,
    first_heading,
    is_chinese,
    lazy_regex,
    letters_and_digits,
    may_be_label,
    split_sentences,
    strip_struck,
    terms,
)
from rag.types import Passage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

MAX_COMMANDS: Final = 6
_MAX_EXPANSION: Final = 1_200  # characters
_FEEDBACK_PASSAGES, _FEEDBACK_SENTENCES = 3, 2  # number of first passages used as feedback, and of sentences from them
_PART = lazy_regex(
    r"[?？;；]\s*|[,，]\s*+(?:and\s++|以及|并且|而)?+(?=(?:what|which|who|when|where|why|how)\b)"
    r"|[,，]\s*+(?=[^,，?？]*(?:什么|哪|谁|多少|几|何时|为什么|如何|怎|多[久长大高远]))"
    r"|(?<!\s)\s++and\s++(?=(?:what|which|who|whom|whose|when|where|why|how)\b)",
    re.IGNORECASE,
)
_FENCE: Final = lazy_regex(r"\s*(?:```|~~~)")
_HEADING_MARKS: Final = lazy_regex(r"^#+\s+")
_CONTINUED: Final = lazy_regex(r"(?<![ \t])[ \t]*+\\$")
_ENDS: Final = lazy_regex(r"[^\w\s)）\]\"”」』]$")
_QUESTION: Final = lazy_regex(r"[?？][\s)）\"”」』*_#`]*$")
_SHORT_ANSWER: Final = lazy_regex(r"\W*\w{1,4}[.!。！]\W*")
_LONGEST_INTRODUCTION: Final = 160
_WORD = lazy_regex(r"\w")
_LIST_MARKS: Final = lazy_regex(r"^(?:\s*(?:[-*+•>]|\d{1,3}[.)]|\[ \])\s+(?:\[[xX]\]\s+)?)+")
_NUMBER: Final = lazy_regex(r"\d{1,3}")
_BOLD: Final = lazy_regex(r"(?<![A-Za-z0-9*])\*\*(?=[^\s*])((?:[^*\n]++|\*(?!\*))++)(?<=[^\s*])\*\*(?![A-Za-z0-9*])")
_CUT_OFF: Final = lazy_regex(r"^\*\*(?=[^\s*])(?!.*\*\*)|(?<=[^\s*])\*\*$")  # a part of a longer emphasis
_UNDERLINED: Final = lazy_regex(r"(?<!\w)__(?=[^\s_])((?:[^_\n]++|_(?!_))++)(?<=[^\s_])__(?!\w)")
_STARTS_WITH_QUANTITY: Final = lazy_regex(r"[$€£¥￥₩~≈<>≤≥]?\s?\d")
_BAR: Final = lazy_regex(r"(?<!\\)\|")
_NOTE_MARK: Final = lazy_regex(r"\[\^[^\[\]\s]{1,8}\]")
_IDENTIFIER: Final = lazy_regex(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Quotable:
    """A quotable unit: `text` is verbatim from the page, `lines` are its form in answers, each with its own mark.

    The text of an attribute of an entry begins with the lines of its title. `place` is that of a sentence in a list,
    or of the first sentence of a whole list. `is_last` is true for the last one of a text.
    """

    text: str
    lines: tuple[str, ...]
    is_last: bool = False
    is_code: bool = False
    is_table_header: bool = False
    is_attribute: bool = False
    place: ListPlace = NO_LIST

    @property
    def is_heading(self) -> bool:
        return not self.is_code and bool(HEADING.match(self.text))

    @property
    def is_list(self) -> bool:
        """True for a whole list."""
        return len(self.lines) > 1 and not self.is_code

    @property
    def introduces(self) -> bool:
        """True for an introduction whose next unit repeats it."""
        stands_alone = self.is_last or self.is_code or self.is_attribute
        return not stands_alone and bool(INTRODUCTION.search(self.text))

    @property
    def leads(self) -> bool:
        """True if the unit only leads to the next one: a heading, a question, as in an FAQ, or an introduction."""
        return self.is_heading or self.introduces or (not self.is_code and bool(_QUESTION.search(self.text)))


def quotables(text: str, header: str = "", section: str = "") -> list[Quotable]:
    """Return the quotable units of `text` in order, without code fences and struck-out text.

    `header` is that of the table that its first rows continue, `section` the heading above a text without headings.
    """
    units: list[Quotable] = []
    position = 0
    header = header.partition("\n")[0]
    for start, end in fenced_blocks(text):
        units += _sentences(text, position, start, "" if position else header, section)
        units = _with_code(units, text[start:end].splitlines())
        position = end
    units += _sentences(text, position, len(text), "" if position else header, section)
    return [*units[:-1], *(replace(unit, is_last=True) for unit in units[-1:])]


def _title_of(heading: Quotable) -> str:
    return _HEADING_MARKS.sub("", heading.text).rstrip("# ").strip("*_` ")


def _join_lead(lead: str, item: str) -> str:
    if is_chinese(lead):
        return f"{lead}{item}" if _ENDS.search(lead) else f"{lead}：{item}"
    return f"{lead} {item}" if _ENDS.search(lead) else f"{lead}: {item}"


def _sentences(text: str, start: int, end: int, header: str, section: str) -> list[Quotable]:
    """Return the sentences of `text[start:end]`.

    Table rows get their header, the row above a line of bars and dashes; list items get the heading or introduction of
    their list, which may reverse their meaning.
    """
    units: list[Quotable] = []
    spans = _join_short_answers(text, split_sentences(text, start, end))
    entries = deque(find_entries(text, start, end))
    for (begin, stop), place in zip(spans, find_list_places(text, spans), strict=True):
        lead = place.lead
        if entries and entries[0].start < stop:
            if begin <= entries[0].start:
                units += _entry(text, entries[0], lead, section)
            if stop >= entries[0].end:
                entries.popleft()
            continue
        sentence, valid = text[begin:stop], strip_struck(text, begin, stop)
        if valid != sentence and not _WORD.search(valid):
            continue
        is_row = sentence.startswith("|")
        if not is_row and not text.startswith("|", text.rfind("\n", 0, begin) + 1):
            header = ""
        elif is_row and units and not sentence.strip("|-: \t") and units[-1].text.startswith("|"):
            header, units[-1] = units[-1].text, replace(units[-1], is_table_header=True)
        line = as_row(valid, header) if is_row and header else as_prose(valid)
        if not lead and units and units[-1].introduces and len(units[-1].text) <= _LONGEST_INTRODUCTION:
            lead = units[-1].text
        lead = as_prose(_HEADING_MARKS.sub("", lead))
        place = place._replace(lead=lead)
        units.append(Quotable(sentence, (_join_lead(lead, line) if lead else line,), place=place))
    return units


def _join_short_answers(text: str, spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join each sentence of one short word, such as "No.", with the sentence after it on the same line."""
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        is_short = joined and _SHORT_ANSWER.fullmatch(text, *joined[-1]) and "\n" not in text[joined[-1][1] : start]
        joined.append((joined.pop()[0] if is_short else start, end))
    return joined


def _entry(text: str, entry: Entry, lead: str, section: str) -> Iterator[Quotable]:
    """Yield each attribute of an entry with its title, and `lead`, the introduction of its list, or its heading."""
    title = text[slice(*entry.title)] if entry.title else ""
    if lead and not entry.heading:
        name = _join_lead(as_prose(lead), as_prose(title))
    else:
        heading = _HEADING_MARKS.sub("", text[slice(*entry.heading)]) if entry.heading else ""
        if not heading and may_be_label(title):
            heading = section
        name = " · ".join(filter(None, (heading, as_prose(title))))
    label = ""
    for number, (a, b) in enumerate(entry.attributes, 1):
        value = as_prose(strip_struck(text, a, b))
        if INTRODUCTION.search(value) and number < len(entry.attributes):
            label += f"{value} "
        elif _WORD.search(value):
            line = f"{name}{' ' if INTRODUCTION.search(name) else ' · '}{label}{value}"
            yield Quotable(f"{title}\n{label}{text[a:b]}".strip(), (line,), is_attribute=True)
            label = ""


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
    """Return a table row as prose, each cell but the first with its column name: `Team: 79 € (Price)`.

    The first has one too if it is a quantity, which names nothing. Equal neighbours, as of a cell that spans several
    columns, are one cell with several names.
    """
    cells, names = _cells(row), _cells(header)
    if not any(cells[1:]) or len(cells) != len(names):
        return as_prose(row)
    named, begin, comma = ("{}（{}）", "：", "、") if is_chinese(row) else ("{} ({})", ": ", ", ")
    has_label = not (_STARTS_WITH_QUANTITY.match(cells[0]) and _WORD.search(names[0]))
    runs = groupby(zip(cells[has_label:], names[has_label:], strict=True), itemgetter(0))
    columns = [(cell, comma.join(name for _, name in run if name)) for cell, run in runs if cell]
    rest = " · ".join(_add_name(cell, named, name) if name else cell for cell, name in columns)
    return as_prose(f"{cells[0]}{begin}{rest}" if has_label and cells[0] else rest)


def _add_name(cell: str, template: str, name: str) -> str:
    """Return a cell with its column name, without the full stop after which the name would be a sentence."""
    named = template.format(cell, name)
    return named if len(split_sentences(named)) == len(split_sentences(cell)) else template.format(cell[:-1], name)


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


MIN_SHARE: Final = 0.2
MIN_COSINE: Final = 0.3
"""Minimum share of the question's weighted terms in a passage, and cosine of a sentence with it; below both, nothing is
quoted. One in twenty questions about another page exceeds them; one in twenty about the right page does not."""
MIN_TOPIC_COSINE: Final = 0.4
"""Minimum cosine with the question for a quote from a further search; the best sentence of an unrelated page seldom
reaches it."""
MIN_RELEVANT_SHARE: Final = 0.3
MIN_LIKELIHOODS: Final = (0.04, 0.2)
"""Minimum likelihoods for quoting a second and a third sentence from the page of the first."""
MIN_LIKELIHOODS_ELSEWHERE: Final = (0.15, 0.25)
"""Those from other pages, whose sentences are seldom about what the first one is about."""
NEXT_WEIGHT: Final = 4.0
"""How many times less likely the sentence after the best one may be: an answer often runs over two sentences."""
MIN_LIST_LIKELIHOOD: Final = 0.05
"""Minimum likelihood of the other items of the best sentence's list, together, for quoting it whole."""
LIST_WEIGHT: Final = 3.0
"""How many times as likely as all items of a list the best sentence must be to be quoted instead of it."""
MIN_LIST_PROBABILITY: Final = 0.2
"""Minimum probability that any sentence answers for quoting a list whole: below, one unrelated sentence is enough."""
MAX_ITEMS: Final = 12
MAX_LIST: Final = 1_500
"""Maximum items and characters of a list that is quoted whole."""
MIN_LIKELIHOOD_NAMED: Final = 0.001
"""Minimum likelihood for the best sentence of a page, if the question names several pages."""
MAX_SENTENCES: Final = 1 + len(MIN_LIKELIHOODS)
MAX_SENTENCES_OF_SEVERAL: Final = 2
"""Maximum number of sentences for each of several questions of a message."""
MIN_NAMED_SHARE: Final = 0.34
"""Minimum share of the question's names, by IDF, that the passages should mention."""

FEATURES: Final = {
    "in_sentence": 4.0,
    "in_neighbours": 4.0,
    "quantity": 1.1,
    "code": 8.0,
    "passage": 1.5,
    "similarity": 25.0,
}
"""The columns of `features` and their weights, chosen on several sets: docs/decisions/0012-quoted-answers.md."""
READER_WEIGHT: Final = 1.0
"""The weight of the reader's logit of a sentence, on the scale of FEATURES."""
IN_SENTENCE, PASSAGE, SIMILARITY = map(list(FEATURES).index, ("in_sentence", "passage", "similarity"))
_MAX_ENCODED: Final = 64
"""Sentences whose vectors are compared with the question's."""
_MAX_PREPARED: Final = 600
"""Sentences that are encoded in advance, which takes some seconds."""
_BATCH: Final = 16
"""Sentences per batch of these, so that a question asked meanwhile doesn't wait for all of them."""
_MAX_CHARACTERS: Final = 600

_GAP: Final = " … "
_NEIGHBOUR_SHARE: Final = 0.4  # of the better neighbour's value, which may have a pronoun's antecedent
_RANK_COST: Final = 0.05  # deducted from each sentence's value per place of its passage
_ASKS_QUANTITY = lazy_regex(
    r"\bhow (?:many|much|old|long|far|tall|high|large|often|big)\b|\bwhen\b"
    r"|\bwhat (?:year|date|percent\w*|number|day|time|age|price|cost)\b|\b(?:in|which) (?:what |which )?year\b"
    r"|多少|几[个年月次天时点号位]|何时|什么时候|哪一?年|多久|多[大长高远]|百分之|价格|时间",
    re.IGNORECASE,
)
_QUANTITY = lazy_regex(r"\d|[一二三四五六七八九十百千万两][个年月日次人名元天点]")
_CODE = lazy_regex(
    r"第\d++[^\W\d]?|(?<![^\W_])[A-Za-z]++[-‐‑–]?\d[\w-]*+|(?<![\d.])\d++(?:(?:\.\d++){2,}+|(?:\.\d++)?+%)"
)
_HYPHENS = str.maketrans("", "", "-‐‑–")
_LETTER = r"[^\W\u3400-\u9fff]"
_NAME = lazy_regex(  # a capital within a sentence, a number, capitals, Latin letters among Chinese characters, a title
    rf"(?<!^)(?<!{_LETTER})(?<!['’])(?:[A-Z]|\d)(?:{_LETTER}|['’&.,:-](?={_LETTER}))*|[A-Z][A-Z\d]+"
    rf"|(?:(?<=[\u3400-\u9fff])|(?<=[\u3400-\u9fff] ))[A-Za-z]{_LETTER}*"
    rf"|(?<!{_LETTER})[A-Za-z]++(?= ?[\u3400-\u9fff])|《[^《》]++》"
)
_QUESTION_WORDS = lazy_regex(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|many|much|does|do|did|is|are|was|were|can|could|should|would"
    r"|will|may|the|a|an|of|in|on|at|to|for|by|with|from|and|or|that|this|it|its|please|tell|me|about|there|have|has"
    r"|had|be|been)\b|什么|怎么样?|如何|为什么|多少|哪些?|哪个|哪里|何时|是否|谁|请问|告诉我|吗|呢|的|了|是|有|在|和|与",
    re.IGNORECASE,
)


TermWeights = Callable[[Sequence[int]], Mapping[int, float]]
"""A function from terms to their IDF in a library, including terms that no chunk has. May block."""


@dataclass(frozen=True, slots=True)
class QuotableSentence:
    """A quotable sentence of the passage with index `passage`.

    `heading` is the nearest one above it. `terms` are those of the sentence, its title and its headings,
    `neighbour_terms` those that only the sentences before and after it have. `codes` are those of the headings, and of
    the last sentence that has some: "It has 70 keys" is about the model named before. `in_page` is the page's title
    followed by the text, that of a row, attribute or list item as in answers: with its column names, title or
    introduction.
    """

    passage: int
    unit: Quotable
    heading: str
    terms: frozenset[int]
    neighbour_terms: frozenset[int]
    codes: set[str]
    in_page: str

    def cite(self, number: int) -> str:
        """Return the lines of the quote, each with this citation mark, those of a list below its introduction."""
        lines = [f"{line} [{number}]" for line in self.unit.lines]
        if not self.unit.is_list:
            return "\n\n".join(lines)
        lead = f"{_join_lead(self.unit.place.lead, '').rstrip()}\n\n" if self.unit.place.lead else ""
        first = _NUMBER.match(self.unit.text)
        marks = (f"{number}." for number in count(int(first[0]))) if first else repeat("-")
        return lead + "\n".join(f"{mark} {line}" for mark, line in zip(marks, lines, strict=False))

    def line(self, passages: Sequence[Passage]) -> TitledSentence:
        """Return the sentence as input for the reader."""
        above = passages[self.passage]
        text = self.in_page.removeprefix(f"{above.title}. ")
        return TitledSentence(self.passage, above.title, self.heading, text)


class ExtractiveReasoner:
    """A `Reasoner` without a chat model: quotes, grades by overlap, rewrites by dropping and adding terms."""

    name = "extractive"
    kind: Literal["extractive", "chat"] = "extractive"

    def __init__(
        self,
        encoder: SparseEncoder,
        weights: TermWeights,
        *,
        meaning: SentenceModel | None = None,
        reader: AnswerReader | None = None,
    ) -> None:
        """Without `meaning` and `reader`, only words count."""
        self.encoder = encoder
        self.weights = weights
        self._terms = encoder.terms
        self._meaning = meaning
        self._reader = reader

    def prepare(self, passages: Sequence[Passage]) -> None:
        """Encode sentences of these passages in advance, so that the first question doesn't wait. Blocks."""
        if self._meaning is None:
            return
        sentences = (sentence.in_page for i, passage in enumerate(passages) for sentence in self._sentences(i, passage))
        texts = list(islice(sentences, _MAX_PREPARED))
        for start in range(0, len(texts), _BATCH):
            self._meaning.encode_passages(texts[start : start + _BATCH])

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Search, except for questions about the conversation, which are answered from it."""
        from langchain_core.messages import AIMessage

        if recall := answer_from_conversation(question, exchanges_of(history)):
            return AIMessage(recall)
        return make_call([question])

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Grade passages as relevant that cover enough of the question's terms, and half as many as the best does."""
        shares = await asyncio.to_thread(self.compute_shares, question, passages)
        threshold = max(MIN_RELEVANT_SHARE, 0.5 * max(shares, default=0.0))
        return [share >= threshold for share in shares]

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """Return the first result of `rephrase` that has not been tried."""
        tried_queries = {query.casefold() for query in tried}
        forms = await asyncio.to_thread(self.rephrase, question, passages)
        return next((form for form in forms if form.casefold() not in tried_queries), "")

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield up to MAX_SENTENCES sentences as they are selected, best first, each with its mark.

        Yields nothing if the passages cover too little of the question. A few commands in a row count as one sentence.
        If the message asks several questions, each gets up to MAX_SENTENCES_OF_SEVERAL, in their order.
        """
        sentences, separator = self._select_for_each(split_questions(question), passages), ""
        while (sentence := await asyncio.to_thread(next, sentences, None)) is not None:
            yield separator + sentence.cite(sentence.passage + 1)
            separator = "\n\n"

    def distil(self, question: str, passages: Sequence[Passage], share: float) -> list[Passage]:
        """Return the passages with about `share` of their text: the sentences with most of the question's terms."""
        weights = self._question_weights(question)
        return distil(passages, lambda text: weighted_share(weights, self._terms(text)), share)

    def find_missing_names(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the names of the question that no passage has; none if the passages have enough of them by IDF.

        Also none for a question, not in Chinese, about pages in another script, which spells names differently.
        """
        if is_across(question, passages) and not is_chinese(question):
            return []
        names = {name: self._terms(name) for name in _NAME.findall(question)}
        weights = self.weights(sorted(frozenset().union(*names.values())))
        page_terms = frozenset[int]().union(*(self._terms(one.text_with_headings) for one in passages))
        if not weights or weighted_share(weights, page_terms) >= MIN_NAMED_SHARE:
            return []
        return [name for name, terms in names.items() if terms and not terms & page_terms]

    def select(self, question: str, passages: Sequence[Passage]) -> Iterator[QuotableSentence]:
        """Yield the best sentence, then others that are likely enough and add something new, best first.

        If the question names several pages, the best of each comes before a second one of any.
        """
        sentences, columns = self.score_sentences(question, passages)
        if (
            columns[:, SIMILARITY].max(initial=0.0) < MIN_COSINE
            and max(self.compute_shares(question, passages), default=0.0) < MIN_SHARE
        ):
            return

        following = {id(a): b for a, b in pairwise(sentences) if a.passage == b.passage}

        def minimum(sentence: QuotableSentence) -> float:
            page, first_page = (passages[one.passage].url_hash for one in (sentence, selected[0]))
            limits = MIN_LIKELIHOODS if page == first_page else MIN_LIKELIHOODS_ELSEWHERE
            return limits[len(selected) - 1] / (NEXT_WEIGHT if sentence is following.get(id(selected[0])) else 1.0)

        named_pages = find_named(passages, self._question_weights(question), self.encoder)
        selected: list[QuotableSentence] = []
        scores, probability = self._judge(question, passages, sentences, columns)
        ranked = _rank_by_likelihood(sentences, scores)
        if probability >= MIN_LIST_PROBABILITY:
            ranked = self._begin_with_list(question, sentences, ranked)
        for sentence, likelihood in _each_page_first(ranked, passages, named_pages):
            if not selected or (likelihood >= minimum(sentence) and _is_new(sentence, selected)):
                selected.append(sentence)
                yield sentence
                if len(selected) == MAX_SENTENCES:
                    return

    def _begin_with_list(
        self,
        question: str,
        sentences: Sequence[QuotableSentence],
        ranked: list[tuple[QuotableSentence, float]],
    ) -> list[tuple[QuotableSentence, float]]:
        """Return `ranked` after the likeliest whole list, if that is likely enough and the question is about all of it.

        It is if the introduction has as much of the question as the best item, or if the other items are likely enough.
        A list that is too long, or not all quotable sentences, is not quoted whole.
        """
        totals: dict[tuple[int, int], float] = defaultdict(float)
        for one, likelihood in ranked:
            if one.unit.place.item:
                totals[_list_of(one)] += likelihood
        key, total = max(totals.items(), key=itemgetter(1), default=((0, 0), 0.0))
        if not totals or total * LIST_WEIGHT < ranked[0][1]:
            return ranked
        members = [(one, likelihood) for one, likelihood in ranked if _list_of(one) == key]
        best = members[0][0]
        place = best.unit.place
        others = sum(likelihood for one, likelihood in members if one.unit.place.item != place.item)
        items: dict[int, list[Quotable]] = {}
        for one in sentences:
            if _list_of(one) == key:
                items.setdefault(one.unit.place.item, []).append(one.unit)
        text = "\n".join(unit.text for units in items.values() for unit in units)
        is_whole = [*items] == [*range(1, len(items) + 1)] and 1 < len(items) <= MAX_ITEMS and len(text) <= MAX_LIST
        weights = self._question_weights(question)
        of_lead, of_item = (weighted_share(weights, self._terms(text)) for text in (place.lead, best.unit.text))
        if not is_whole or (others < MIN_LIST_LIKELIHOOD and not 0 < of_lead >= of_item):
            return ranked
        lines = tuple(" ".join(as_prose(unit.text) for unit in units) for units in items.values())
        return [(replace(best, unit=Quotable(text, lines, place=items[1][0].place)), total), *ranked]

    def _select_for_each(self, questions: Sequence[str], passages: Sequence[Passage]) -> Iterator[QuotableSentence]:
        limit = MAX_SENTENCES if len(questions) == 1 else MAX_SENTENCES_OF_SEVERAL
        seen = set[str]()
        for sentence in chain.from_iterable(islice(self.select(one, passages), limit) for one in questions):
            if sentence.unit.text not in seen:
                seen.add(sentence.unit.text)
                yield sentence

    def answer_probability(self, question: str, passages: Sequence[Passage]) -> float:
        """Return the reader's probability (0 to 1) that the passages have an answer; 1 without a reader."""
        return self._judge(question, passages, *self.score_sentences(question, passages))[1]

    async def select_quotes(
        self, question: str, numbers: Sequence[int], passages: Sequence[Passage], seen: set[str], *, about: str = ""
    ) -> list[tuple[int, str]]:
        """Return quotes for a question from the passages with these 1-based numbers, as (number, text with marks).

        Skips texts in `seen`, and adds the new ones to it. `about` is another question that quotes must be similar to.
        """
        sources = [passages[number - 1] for number in numbers]
        quotes = await asyncio.to_thread(lambda: self._filter_near(about, list(self.select(question, sources))))
        new = [quote for quote in quotes if quote.unit.text not in seen and any(map(is_statement, quote.unit.lines))]
        seen.update(quote.unit.text for quote in new)
        return [(numbers[quote.passage], quote.cite(numbers[quote.passage])) for quote in new]

    def _filter_near(self, question: str, sentences: list[QuotableSentence]) -> list[QuotableSentence]:
        if not question or self._meaning is None or not sentences:
            return sentences
        cosines = _cosines(self._meaning, question, sentences)
        return [sentence for sentence, cosine in zip(sentences, cosines, strict=True) if cosine >= MIN_TOPIC_COSINE]

    def score_sentences(
        self, question: str, passages: Sequence[Passage]
    ) -> tuple[list[QuotableSentence], NDArray[np.float64]]:
        """Return all quotable sentences in the passages, including questions, and their `features`. May block."""
        sentences = [sentence for i, passage in enumerate(passages) for sentence in self._sentences(i, passage)]
        best = max([1e-9, *(passage.score for passage in passages)])
        scores = [max(0.0, passage.score) / best for passage in passages]
        columns = features(question, self._question_weights(question), sentences, scores)
        if self._meaning is not None and sentences:
            promise = columns[:, IN_SENTENCE] + columns[:, PASSAGE]
            columns[:, SIMILARITY] = _similarities(self._meaning, question, sentences, promise)
        return sentences, columns

    def _judge(
        self,
        question: str,
        passages: Sequence[Passage],
        sentences: Sequence[QuotableSentence],
        columns: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], float]:
        """Return log scores (n,) of how likely each sentence answers, by its features and the reader, and the reader's
        probability that any does; 1 without a reader."""
        scores = _score_by_features(sentences, columns)
        logits = self._logits(question, passages, sentences, scores)
        if logits is None:
            return scores, 1.0
        read = np.where(np.isnan(logits), np.nanmin(logits), logits)
        return scores + READER_WEIGHT * read, get_answer_probability(logits)

    def _logits(
        self,
        question: str,
        passages: Sequence[Passage],
        sentences: Sequence[QuotableSentence],
        scores: NDArray[np.float64],
    ) -> NDArray[np.float32] | None:
        """Return the reader's logits (n,), NaN for sentences that it did not read; None if it reads none."""
        order = [index for index in np.argsort(-scores, kind="stable").tolist() if not sentences[index].unit.leads]
        if self._reader is None or not order:
            return None
        logits = self._reader.read(question, [sentence.line(passages) for sentence in sentences], order)
        return np.where([sentence.unit.leads for sentence in sentences], np.float32("nan"), logits)

    def _sentences(self, index: int, passage: Passage) -> Iterator[QuotableSentence]:
        section = "" if first_heading(passage.text) else next(reversed(passage.section), "")
        parts = quotables(passage.text, passage.header, section)
        above = passage.section
        if above and any(part.is_heading and _title_of(part) == above[-1] for part in parts):
            above = above[:-1]  # a passage has the section of most of its text
        terms = [frozenset[int](), *(self._terms(part.text) for part in parts), frozenset[int]()]
        page_terms = self._terms(" ".join((passage.title, *above, passage.header)))
        heading, heading_terms, codes = next(reversed(above), ""), frozenset[int](), set[str]()
        page_codes = _codes(" ".join((passage.title, *passage.section, passage.header)))
        for i, part in enumerate(parts, 1):
            codes = _codes(part.text) or codes
            if part.is_heading:
                heading, heading_terms = _title_of(part), terms[i]
            if part.is_table_header:
                page_terms |= terms[i]
            elif _WORD.search(part.text):
                sentence_terms = terms[i] | heading_terms | page_terms
                neighbour_terms = (terms[i - 1] | terms[i + 1]) - sentence_terms
                is_named = part.is_attribute or part.place.lead or part.text.startswith("|")
                line = part.lines[0] if is_named else part.text
                in_page = f"{passage.title}. {line[:_MAX_CHARACTERS]}"
                own_codes = codes | page_codes
                yield QuotableSentence(index, part, heading, sentence_terms, neighbour_terms, own_codes, in_page)

    def compute_shares(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return the share of the question's words, by IDF, in each passage, its title and headings. May block."""
        weights = self._question_weights(question)
        return [weighted_share(weights, self._terms(one.text_with_headings)) for one in passages]

    def _question_weights(self, question: str) -> Mapping[int, float]:
        return self.weights(sorted(set(self.encoder.encode_query(question).indices)))

    def rephrase(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the question without question words, that with the first heading, and its rarest words. May block."""
        words = [w for w in re.findall(r"[\w][\w'-]*", _QUESTION_WORDS.sub(" ", question)) if w]
        weight = {word: sum(self._question_weights(word).values()) for word in words}
        core = " ".join(words)
        heading = " ".join((passages[0].title, *passages[0].section[-1:])) if passages else ""
        rarest = " ".join(sorted(set(words), key=lambda word: (-weight[word], word))[:2])
        return [form for form in (core, f"{core} {heading}".strip(), rarest) if form]

    def find_closest(self, question: str, passages: Sequence[Passage], count: int) -> list[str]:
        """Return the `count` sentences that have most of the question's terms, best first. May block."""
        weights = self._question_weights(question)
        sentences = dict.fromkeys(p.text[a:b] for p in passages for a, b in split_sentences(p.text))
        return sorted(sentences, key=lambda text: -weighted_share(weights, self._terms(text)))[:count]


def _cosines(meaning: SentenceModel, question: str, sentences: Sequence[QuotableSentence]) -> NDArray[np.float32]:
    """Return the cosine of each sentence with the question, (n,)."""
    vector = meaning.encode_query(question)
    return meaning.encode_passages([sentence.in_page for sentence in sentences]) @ vector


def _similarities(
    meaning: SentenceModel, question: str, sentences: Sequence[QuotableSentence], promise: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each sentence's cosine with the question, clipped at 0; the least promising get the lowest one."""
    places = np.argsort(-promise, kind="stable")[:_MAX_ENCODED]
    cosines = np.maximum(_cosines(meaning, question, [sentences[place] for place in places]), 0.0)
    similarities = np.full(len(sentences), cosines.min(), dtype=np.float64)
    similarities[places] = cosines
    return similarities


def weighted_share(weights: Mapping[int, float], terms: frozenset[int]) -> float:
    """Return the share of the weighted terms, by weight, that are among `terms`, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in terms) / total if total else 0.0


def features(
    question: str, weights: Mapping[int, float], sentences: Sequence[QuotableSentence], scores: Sequence[float]
) -> NDArray[np.float64]:
    """Return the features (n, 6) of sentences as answers; `weights` is the IDF of the question's terms.

    The columns: the shares of the question's terms in the sentence and only in its neighbours, weighted by rarity in
    the library and among the sentences; whether it has a quantity, if one is asked for; the share of the question's
    codes, which vectors cannot tell apart; its passage's score relative to the best; and zeros for the cosine.
    """
    rarity = _local_idf(weights, [sentence.terms for sentence in sentences])
    rare = {term: math.sqrt(weight * rarity[term]) for term, weight in weights.items()}
    asks_quantity, codes = bool(_ASKS_QUANTITY.search(question)), _codes(question)
    rows = [
        (
            weighted_share(rare, sentence.terms),
            weighted_share(rare, sentence.neighbour_terms),
            asks_quantity and bool(_QUANTITY.search(sentence.unit.text)),
            len(codes & sentence.codes) / len(codes) if codes else 0.0,
            scores[sentence.passage],
            0.0,
        )
        for sentence in sentences
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(FEATURES))


def _codes(text: str) -> set[str]:
    """Return the normalised numbers that identify a thing: articles, versions, shares, part numbers."""
    return {code.translate(_HYPHENS).casefold() for code in _CODE.findall(fold(text))}


def _local_idf(terms: Collection[int], texts: Sequence[Collection[int]]) -> dict[int, float]:
    """Return the IDF of each of these terms among the texts, given as sets of terms."""
    counts = Counter(term for text in texts for term in terms if term in text)
    return {term: math.log(1 + (len(texts) - counts[term] + 0.5) / (counts[term] + 0.5)) for term in terms}


def _score_by_features(sentences: Sequence[QuotableSentence], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted sum of the features, (n,). A question passes its score to the next sentence, as in an FAQ."""
    scores: NDArray[np.float64] = columns @ np.array(list(FEATURES.values()))
    for i in range(1, len(sentences)):
        if sentences[i - 1].unit.leads and sentences[i - 1].passage == sentences[i].passage:
            scores[i] = max(scores[i - 1 : i + 1])
    return scores


def _rank_by_likelihood(
    sentences: Sequence[QuotableSentence], scores: NDArray[np.float64]
) -> list[tuple[QuotableSentence, float]]:
    """Return the sentences, without questions, and the likelihood that each one answers, most likely first."""
    statements = [i for i, sentence in enumerate(sentences) if not sentence.unit.leads]
    odds = np.exp(scores[statements] - max(scores[statements], default=0.0))
    order = np.argsort(-odds, kind="stable")
    return [(sentences[statements[i]], float(odds[i] / odds.sum())) for i in order]


def _list_of(sentence: QuotableSentence) -> tuple[int, int]:
    """Return the passage of a sentence, and the place of the list in it, or -1."""
    return sentence.passage, sentence.unit.place.start


def _each_page_first(
    ranked: Sequence[tuple[QuotableSentence, float]], passages: Sequence[Passage], named_pages: Collection[str]
) -> list[tuple[QuotableSentence, float]]:
    """Return `ranked` after the best sentence of each named page, with likelihood 1, if several are named."""
    best: dict[str, tuple[QuotableSentence, float]] = {}
    for sentence, likelihood in ranked:
        page = passages[sentence.passage].url_hash
        if len(named_pages) > 1 and page in named_pages and likelihood >= MIN_LIKELIHOOD_NAMED:
            best.setdefault(page, (sentence, 1.0))
    return [*best.values(), *ranked]


def _is_new(sentence: QuotableSentence, selected: Sequence[QuotableSentence]) -> bool:
    """Return whether a sentence states something that no selected sentence contains verbatim."""
    if any(letters_and_digits(sentence.unit.text) in letters_and_digits(other.unit.text) for other in selected):
        return False
    return any(map(is_statement, sentence.unit.lines))


def distil(passages: Sequence[Passage], score_sentence: Callable[[str], float], share: float) -> list[Passage]:
    """Return the passages in order with about `share` of their text: the best sentences of all by `score_sentence`.

    An ellipsis marks each gap. Every passage keeps at least its best sentence, so that their numbers stay valid.
    Offsets are those of the whole passage.
    """
    if share >= 1.0:
        return list(passages)
    spans = [split_sentences(passage.text) for passage in passages]
    room = share * sum(len(passage.text) for passage in passages)
    ranked = sorted(
        (
            (-value + _RANK_COST * place, place, index)
            for place, passage in enumerate(passages)
            for index, value in enumerate(_sentence_values(passage.text, spans[place], score_sentence))
        )
    )
    selected: list[set[int]] = [set() for _ in passages]
    for _, place, index in ranked:
        start, end = spans[place][index]
        if room >= end - start or not selected[place]:
            selected[place].add(index)
            room -= end - start
    return [
        replace(passage, text=_join_sentences(passage.text, spans[i], selected[i]))
        for i, passage in enumerate(passages)
    ]


def _sentence_values(
    text: str, spans: Sequence[tuple[int, int]], score_sentence: Callable[[str], float]
) -> list[float]:
    values = [score_sentence(text[start:end]) for start, end in spans]
    return [
        value + _NEIGHBOUR_SHARE * max(values[i - 1] if i else 0.0, values[i + 1] if i + 1 < len(values) else 0.0)
        for i, value in enumerate(values)
    ]


def _join_sentences(text: str, spans: Sequence[tuple[int, int]], selected: set[int]) -> str:
    out = ""
    for index in sorted(selected):
        start, end = spans[index]
        follows = index - 1 in selected
        lead = text[spans[index - 1][1] : start] if follows else (_GAP if out else "")
        out += lead + text[start:end]
    return out


class FeedbackExpander:
    """An expander without a model, which uses the question and its first results (pseudo-relevance feedback)."""

    name = "feedback"
    uses_model = False

    def __init__(self, quoter: ExtractiveReasoner) -> None:
        self._quoter = quoter

    def passage(self, question: str, near: Sequence[Passage] = ()) -> str:
        """Return the question and the best sentences of the first passages."""
        return " ".join(
            (question, *self._quoter.find_closest(question, near[:_FEEDBACK_PASSAGES], _FEEDBACK_SENTENCES))
        )[:_MAX_EXPANSION]

    def phrasings(self, question: str, near: Sequence[Passage] = ()) -> list[str]:
        """Return the parts of a question that asks several things, else its keywords, with and without a heading."""
        return split_question(question) or self._quoter.rephrase(question, near)[:2]

    def translation(self, question: str, language: str) -> str:
        return ""

    def need(self, question: str) -> Need:
        return ""


def split_question(question: str) -> list[str]:
    """Split a compound question into its parts; return an empty list for a simple one."""
    parts = [part.strip(" ,，?？") for part in _PART.split(question)]
    questions = [part for part in parts if len(terms(part)) >= 2]
    return questions if len(questions) > 1 and all(ASKS.search(part) for part in questions) else []
