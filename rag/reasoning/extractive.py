"""A reasoner without a chat model: its answers are selected and ordered sentences of the pages.

A sentence is scored with its title and headings, since a page seldom repeats the name in its title. Meaning counts
most: people ask in words that the page does not use. A softmax over all sentences of the passages gives the likelihood
that each one answers. The best one is quoted, with others that are likely enough:
see docs/decisions/0012-quoted-answers.md.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from rag.checking.statements import is_statement
from rag.models.answer_reader import AnswerReader, Line
from rag.models.embedding import SentenceModel
from rag.models.sparse import SparseEncoder, fold
from rag.reasoning.composing import distilled
from rag.reasoning.history import call_for, exchanges_of, recalled
from rag.reasoning.quotable import Quotable, quotables
from rag.retrieval.answerable import is_across
from rag.retrieval.page_names import named_whole
from rag.text import is_chinese, split_sentences
from rag.types import Passage

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

Term = TypeVar("Term", int, str)

BEARS_ON_IT: Final = 0.2
NEAR_ENOUGH: Final = 0.3
"""Minimum share of the question's weighted terms in a passage, or cosine of a sentence with it: below both, nothing is
quoted. One in twenty questions about another page is nearer; one in twenty about this page is not."""
ON_SUBJECT: Final = 0.4
"""Minimum cosine with the question for a quote from a further search; the best sentence of an unrelated page seldom
reaches it."""
RELEVANT: Final = 0.3
LIKELY: Final = (0.04, 0.2)
"""Minimum likelihood that a second sentence answers, and a third."""
LIKELY_OF_NAMED: Final = 0.001
"""Minimum likelihood for the best sentence of a page, if the question names several pages."""
MAX_SENTENCES: Final = 1 + len(LIKELY)
NAMED: Final = 0.34
"""Minimum share of the question's names, by IDF, that the passages should mention."""

FEATURES: Final = {"holds": 4.0, "beside": 4.0, "quantity": 1.1, "code": 8.0, "passage": 1.5, "near": 25.0}
"""The columns of `features` and their weights, chosen on several sets: docs/decisions/0012-quoted-answers.md."""
READ: Final = 1.0
"""The weight of the reader's logit of a sentence, relative to those."""
HOLDS, PASSAGE, NEAR = map(list(FEATURES).index, ("holds", "passage", "near"))
_ENCODED: Final = 64
"""Sentences whose vectors are compared with the question's."""
_PREPARED: Final = 600
"""Sentences that are encoded in advance, which takes some seconds."""
_GROUP: Final = 16
"""Sentences per batch of these, so that a question asked meanwhile need not wait for all."""
_MOST_CHARACTERS: Final = 600

_ASKS_QUANTITY = re.compile(
    r"\bhow (?:many|much|old|long|far|tall|high|large|often|big)\b|\bwhen\b"
    r"|\bwhat (?:year|date|percent\w*|number|day|time|age|price|cost)\b|\b(?:in|which) (?:what |which )?year\b"
    r"|多少|几[个年月次天时点号位]|何时|什么时候|哪一?年|多久|多[大长高远]|百分之|价格|时间",
    re.IGNORECASE,
)
_QUANTITY = re.compile(r"\d|[一二三四五六七八九十百千万两][个年月日次人名元天点]")
_CODE = re.compile(
    r"第\d++[^\W\d]?|(?<![^\W_])[A-Za-z]++[-‐‑–]?\d[\w-]*+|(?<![\d.])\d++(?:(?:\.\d++){2,}+|(?:\.\d++)?+%)"
)
_HYPHENS = str.maketrans("", "", "-‐‑–")
_WORD = re.compile(r"\w")
_LETTER = r"[^\W\u3400-\u9fff]"
_NAME = re.compile(  # a capital within a sentence, a number, capitals, Latin letters among Chinese characters, a title
    rf"(?<!^)(?<!{_LETTER})(?<!['’])(?:[A-Z]|\d)(?:{_LETTER}|['’&.,:-](?={_LETTER}))*|[A-Z][A-Z\d]+"
    rf"|(?<=[\u3400-\u9fff])[A-Za-z]{_LETTER}*|(?<!{_LETTER})[A-Za-z]++(?=[\u3400-\u9fff])|《[^《》]++》"
)
_ASKING = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|many|much|does|do|did|is|are|was|were|can|could|should|would"
    r"|will|may|the|a|an|of|in|on|at|to|for|by|with|from|and|or|that|this|it|its|please|tell|me|about|there|have|has"
    r"|had|be|been)\b|什么|怎么样?|如何|为什么|多少|哪些?|哪个|哪里|何时|是否|谁|请问|告诉我|吗|呢|的|了|是|有|在|和|与",
    re.IGNORECASE,
)


TermWeights = Callable[[Sequence[int]], Mapping[int, float]]
"""A function from terms to their IDF in a library, including terms that no chunk has. May block."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """A quotable sentence of the passage with index `passage`.

    `terms` are those of the sentence, its title and its headings, `beside` those that only the sentences before and
    after it have. `in_page` is the page's title followed by the text.
    """

    passage: int
    quoted: Quotable
    terms: frozenset[int]
    beside: frozenset[int]
    in_page: str

    @property
    def written(self) -> str:
        return "\n\n".join(f"{line} [{self.passage + 1}]" for line in self.quoted.lines)

    def line(self, passages: Sequence[Passage]) -> Line:
        """Return the sentence as input for the reader."""
        above = passages[self.passage]
        text = self.in_page.removeprefix(f"{above.title}. ")
        return Line(self.passage, above.title, next(reversed(above.section), ""), text)


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
        self._meaning = meaning
        self._reader = reader

    def prepare(self, passages: Sequence[Passage]) -> None:
        """Encode sentences of these passages in advance, to save the first question the wait. Blocks."""
        if self._meaning is None:
            return
        sentences = (one.in_page for i, passage in enumerate(passages) for one in self._sentences(i, passage))
        texts = list(islice(sentences, _PREPARED))
        for begin in range(0, len(texts), _GROUP):
            self._meaning.encode_passages(texts[begin : begin + _GROUP])

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Search, except for questions about the conversation, which are answered from it."""
        from langchain_core.messages import AIMessage

        if recall := recalled(question, exchanges_of(history)):
            return AIMessage(recall)
        return call_for([question])

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Grade passages as relevant that cover enough of the question's terms, or half as many as the best does."""
        shares = await asyncio.to_thread(self.shares, question, passages)
        enough = max(RELEVANT, 0.5 * max(shares, default=0.0))
        return [share >= enough for share in shares]

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """Return the first of the question's `forms` that has not been tried."""
        return await asyncio.to_thread(self._rewrite, question, tried, passages)

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield one to three sentences as they are selected, best first, each with its mark.

        None if the passages cover too little. A short run of commands counts as one.
        """
        chosen, between = self.chosen(question, passages), ""
        while (sentence := await asyncio.to_thread(next, chosen, None)) is not None:
            yield between + sentence.written
            between = "\n\n"

    def distilled(self, question: str, passages: Sequence[Passage], share: float) -> list[Passage]:
        """Return the passages with about `share` of their text: the sentences with most of the question's terms."""
        weights = self._question_weights(question)
        return distilled(passages, lambda text: _share(weights, self._terms(text)), share)

    def unnamed(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the names of the question that no passage has; none if the passages have enough of them by IDF.

        Also none for a question in Latin script with Chinese pages, which spell names differently.
        """
        if is_across(question, passages) and not is_chinese(question):
            return []
        names = {name: self._terms(name) for name in _NAME.findall(question)}
        weights = self.weights(sorted(frozenset().union(*names.values())))
        held = frozenset[int]().union(*(self._terms("\n".join((p.title, *p.section, p.text))) for p in passages))
        if not weights or _share(weights, held) >= NAMED:
            return []
        return [name for name, terms in names.items() if terms and not terms & held]

    def chosen(self, question: str, passages: Sequence[Passage]) -> Iterator[Sentence]:
        """Yield the best sentence, and others that are likely and say something else, best first.

        If the question names several pages, the best of each comes before a second one of any.
        """
        sentences, columns = self.told(question, passages)
        if (
            columns[:, NEAR].max(initial=0.0) < NEAR_ENOUGH
            and max(self.shares(question, passages), default=0.0) < BEARS_ON_IT
        ):
            return
        named = named_whole(passages, self._question_weights(question), self.encoder)
        chosen: list[Sentence] = []
        ranked = _by_likelihood(sentences, self._scores(question, passages, sentences, columns))
        for sentence, likely in _each_page_first(ranked, passages, named):
            if len(chosen) == MAX_SENTENCES or (chosen and likely < LIKELY[len(chosen) - 1]):
                return
            if not chosen or _adds(sentence, chosen):
                chosen.append(sentence)
                yield sentence

    def answers(self, question: str, passages: Sequence[Passage]) -> float:
        """Return the reader's probability (0 to 1) that a sentence of the passages answers; 1 without a reader."""
        sentences, columns = self.told(question, passages)
        logits = self._logits(question, passages, sentences, _by_features(sentences, columns))
        if logits is None:
            return 1.0
        odds = float(np.nansum(np.exp(logits)))
        return odds / (1.0 + odds)

    async def quotes(
        self,
        question: str,
        numbers: Sequence[int],
        passages: Sequence[Passage],
        said: set[str],
        *,
        about: str = "",
    ) -> list[str]:
        """Return quotes for a question from the passages with these numbers, from 1, with their marks.

        Skips texts in `said`, and adds the new ones to it. `about` is another question that they must be near to.
        """
        given = [passages[number - 1] for number in numbers]
        found = await asyncio.to_thread(lambda: self._near_to(about, list(self.chosen(question, given))))
        new = [one for one in found if one.quoted.text not in said]
        said.update(one.quoted.text for one in new)
        return ["\n\n".join(f"{line} [{numbers[one.passage]}]" for line in one.quoted.lines) for one in new]

    def _near_to(self, question: str, sentences: list[Sentence]) -> list[Sentence]:
        if not question or self._meaning is None or not sentences:
            return sentences
        near = self._meaning.encode_passages([one.in_page for one in sentences]) @ self._meaning.encode_query(question)
        return [one for one, cosine in zip(sentences, near, strict=True) if cosine >= ON_SUBJECT]

    def told(self, question: str, passages: Sequence[Passage]) -> tuple[list[Sentence], NDArray[np.float64]]:
        """Return all quotable sentences of the passages in order, with questions, and their `features`. May block."""
        sentences = [sentence for i, passage in enumerate(passages) for sentence in self._sentences(i, passage)]
        best = max([1e-9, *(passage.score for passage in passages)])
        scores = [max(0.0, passage.score) / best for passage in passages]
        columns = features(question, self._question_weights(question), sentences, scores)
        if self._meaning is not None and sentences:
            columns[:, NEAR] = self._near(question, sentences, columns[:, HOLDS] + columns[:, PASSAGE])
        return sentences, columns

    def _scores(
        self,
        question: str,
        passages: Sequence[Passage],
        sentences: Sequence[Sentence],
        columns: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return log scores (n,) of how likely each sentence answers, by its features and the reader."""
        scores = _by_features(sentences, columns)
        logits = self._logits(question, passages, sentences, scores)
        return scores if logits is None else scores + READ * np.where(np.isnan(logits), np.nanmin(logits), logits)

    def _logits(
        self, question: str, passages: Sequence[Passage], sentences: Sequence[Sentence], scores: NDArray[np.float64]
    ) -> NDArray[np.float32] | None:
        """Return the reader's logits (n,), NaN for sentences that it did not read; None if it reads none."""
        order = [at for at in np.argsort(-scores, kind="stable").tolist() if not sentences[at].quoted.asks]
        if self._reader is None or not order:
            return None
        return self._reader.read(question, [sentence.line(passages) for sentence in sentences], order)

    def _near(self, question: str, sentences: Sequence[Sentence], promise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each sentence's cosine with the question, at least 0: the less promising ones get the lowest."""
        assert self._meaning is not None
        asked = self._meaning.encode_query(question)
        places = np.argsort(-promise, kind="stable")[:_ENCODED]
        cosines = np.maximum(self._meaning.encode_passages([sentences[at].in_page for at in places]) @ asked, 0.0)
        near = np.full(len(sentences), cosines.min(), dtype=np.float64)
        near[places] = cosines
        return near

    def _sentences(self, index: int, passage: Passage) -> Iterator[Sentence]:
        parts = quotables(passage.text, passage.header)
        terms = [frozenset[int](), *(self._terms(part.text) for part in parts), frozenset[int]()]
        above = " ".join((passage.title, *passage.section, passage.header))
        known = self._terms(above)
        for i, part in enumerate(parts, 1):
            if part.is_table_header:
                known |= terms[i]
            elif (part.asks or not part.is_heading) and _WORD.search(part.text):
                own = terms[i] | known
                beside = (terms[i - 1] | terms[i + 1]) - own
                said = part.lines[0] if part.text.startswith("|") else part.text
                in_page = f"{passage.title}. {said[:_MOST_CHARACTERS]}"
                yield Sentence(index, part, own, beside, in_page)

    def shares(self, question: str, passages: Sequence[Passage]) -> list[float]:
        """Return the share of the question's words, by IDF, in each passage, its title and headings. May block."""
        weights = self._question_weights(question)
        texts = ("\n".join((p.title, *p.section, p.text)) for p in passages)
        return [_share(weights, self._terms(text)) for text in texts]

    def _question_weights(self, question: str) -> Mapping[int, float]:
        return self.weights(sorted(set(self.encoder.encode_query(question).indices)))

    def _terms(self, text: str) -> frozenset[int]:
        return self.encoder.terms(text)

    def _rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        before = {query.casefold() for query in tried}
        return next((form for form in self.forms(question, passages) if form.casefold() not in before), "")

    def forms(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Return the question without question words, that with the first heading, and its two rarest words. May block."""
        words = [w for w in re.findall(r"[\w][\w'-]*", _ASKING.sub(" ", question)) if w]
        weight = {word: sum(self._question_weights(word).values()) for word in words}
        core = " ".join(words)
        heading = " ".join((passages[0].title, *passages[0].section[-1:])) if passages else ""
        rarest = " ".join(sorted(set(words), key=lambda word: (-weight[word], word))[:2])
        return [form for form in (core, f"{core} {heading}".strip(), rarest) if form]

    def closest(self, question: str, passages: Sequence[Passage], count: int) -> list[str]:
        """Return the sentences of the passages with most of the question's terms, best first. May block."""
        weights = self._question_weights(question)
        sentences = dict.fromkeys(p.text[a:b] for p in passages for a, b in split_sentences(p.text))
        return sorted(sentences, key=lambda text: -_share(weights, self._terms(text)))[:count]


def _share(weights: Mapping[Term, float], found: frozenset[Term]) -> float:
    """Return the weighted share of the question's terms that are among `terms`, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in found) / total if total else 0.0


def features(
    question: str, weights: Mapping[int, float], sentences: Sequence[Sentence], scores: Sequence[float]
) -> NDArray[np.float64]:
    """Return the features (n, 6) of sentences as answers; `weights` are the question's terms by IDF.

    The columns: the shares of the question's terms in the sentence and in its neighbours, rarer terms of the library
    and among the sentences counting more; whether it has a quantity, if one is asked for; the share of the question's
    codes, which vectors cannot tell apart; its passage's score relative to the best; and zeros for the cosine with the
    question.
    """
    rarity = _rarity(weights, [sentence.terms for sentence in sentences])
    rare = {term: math.sqrt(weight * rarity[term]) for term, weight in weights.items()}
    counts, codes = bool(_ASKS_QUANTITY.search(question)), _codes(question)
    rows = [
        (
            _share(rare, sentence.terms),
            _share(rare, sentence.beside),
            counts and bool(_QUANTITY.search(sentence.quoted.text)),
            len(codes & _codes(sentence.quoted.text)) / len(codes) if codes else 0.0,
            scores[sentence.passage],
            0.0,
        )
        for sentence in sentences
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, len(FEATURES))


def _codes(text: str) -> set[str]:
    """Return the normalised numbers that identify a thing: articles, versions, shares, part numbers."""
    return {code.translate(_HYPHENS).casefold() for code in _CODE.findall(fold(text))}


def _rarity(asked: Collection[Term], texts: Sequence[Collection[Term]]) -> dict[Term, float]:
    """Return the IDF of each of these terms among the texts, given as sets of terms."""
    holding = Counter(term for text in texts for term in asked if term in text)
    return {term: math.log(1 + (len(texts) - holding[term] + 0.5) / (holding[term] + 0.5)) for term in asked}


def _by_features(sentences: Sequence[Sentence], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the weighted sum of the features, (n,). A question passes its score to the next sentence, as in an FAQ."""
    scores: NDArray[np.float64] = columns @ np.array(list(FEATURES.values()))
    for i in range(1, len(sentences)):
        if sentences[i - 1].quoted.asks and sentences[i - 1].passage == sentences[i].passage:
            scores[i] = max(scores[i - 1 : i + 1])
    return scores


def _by_likelihood(sentences: Sequence[Sentence], scores: NDArray[np.float64]) -> list[tuple[Sentence, float]]:
    """Return the sentences that are no questions with the likelihood that each one answers, most likely first."""
    kept = [i for i, sentence in enumerate(sentences) if not sentence.quoted.asks]
    odds = np.exp(scores[kept] - max(scores[kept], default=0.0))
    order = np.argsort(-odds, kind="stable")
    return [(sentences[kept[i]], float(odds[i] / odds.sum())) for i in order]


def _each_page_first(
    ranked: Sequence[tuple[Sentence, float]], passages: Sequence[Passage], named: Collection[str]
) -> list[tuple[Sentence, float]]:
    """Return `ranked` after the best sentence of each `named` page, which gets likelihood 1."""
    best: dict[str, tuple[Sentence, float]] = {}
    for sentence, likely in ranked:
        page = passages[sentence.passage].url_hash
        if len(named) > 1 and page in named and likely >= LIKELY_OF_NAMED:
            best.setdefault(page, (sentence, 1.0))
    return [*best.values(), *ranked]


def _adds(sentence: Sentence, chosen: Sequence[Sentence]) -> bool:
    """True if it states something that no selected sentence contains verbatim."""
    if any(_plain(sentence.quoted.text) in _plain(other.quoted.text) for other in chosen):
        return False
    return any(map(is_statement, sentence.quoted.lines))


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
