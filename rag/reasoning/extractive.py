"""A reasoner that needs no model: its answers are sentences of the pages, chosen and ordered.

A sentence is read with its title and headings: what a page says of the thing in its title
seldom names it again. What it means counts most: people ask in words that the page does not use. A softmax over all
sentences of the passages says how likely each is the one that answers. The best one is quoted, and others that are
likely enough: see docs/decisions/0012-quoted-answers.md.
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
"""Where no passage holds this share of the question's weighted terms, nor a sentence has this cosine with it, there is
nothing to quote: of questions about another page one in twenty is nearer, of those about it one in twenty is not."""
ON_SUBJECT: Final = 0.4
"""The lowest cosine with the question for a quote of a further search; the best sentence of an unrelated page seldom
reaches it."""
RELEVANT: Final = 0.3
LIKELY: Final = (0.04, 0.2)
"""How likely a second sentence has to be the one that answers, and a third."""
LIKELY_OF_NAMED: Final = 0.001
"""How likely the first sentence of a page has to be that the question names beside others."""
MAX_SENTENCES: Final = 1 + len(LIKELY)
NAMED: Final = 0.34
"""The share of what a question names, by IDF, that what is quoted or stands beside it should hold."""

FEATURES: Final = {"holds": 4.0, "beside": 4.0, "quantity": 1.1, "code": 8.0, "passage": 1.5, "near": 25.0}
"""The columns of `features` and their weights, chosen on several sets: docs/decisions/0012-quoted-answers.md."""
READ: Final = 1.0
"""The weight of what the reader says of a sentence, beside those."""
HOLDS, PASSAGE, NEAR = map(list(FEATURES).index, ("holds", "passage", "near"))
_ENCODED: Final = 64
"""Sentences whose meaning is compared with the question's."""
_PREPARED: Final = 600
"""Sentences that are encoded before anybody asks: some seconds of work."""
_GROUP: Final = 16
"""Sentences that are encoded together then: a question that is asked meanwhile goes between."""
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
_NAME = re.compile(  # a capital within a sentence, a number, capitals, Latin letters among Chinese signs, a title
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
"""The IDF in a library of each of these terms, also of those that no chunk has. May block."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What can be quoted of the passage at `passage`.

    `terms` are its own and those of its title and headings, `beside` the terms that only the sentences before and after
    it have. `in_page` is its text after the page's title.
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
        """The sentence as the reader takes it."""
        above = passages[self.passage]
        text = self.in_page.removeprefix(f"{above.title}. ")
        return Line(self.passage, above.title, next(reversed(above.section), ""), text)


class ExtractiveReasoner:
    """Implements Reasoner without a model: quotes, grades by overlap, rewrites by dropping and adding terms."""

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
        """Without `meaning` and `reader` words alone decide."""
        self.encoder = encoder
        self.weights = weights
        self._meaning = meaning
        self._reader = reader

    def prepare(self, passages: Sequence[Passage]) -> None:
        """Encode sentences of these passages, so that the first question about them needn't wait for it. Blocks."""
        if self._meaning is None:
            return
        sentences = (one.in_page for i, passage in enumerate(passages) for one in self._sentences(i, passage))
        texts = list(islice(sentences, _PREPARED))
        for begin in range(0, len(texts), _GROUP):
            self._meaning.encode_passages(texts[begin : begin + _GROUP])

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Search for everything but what was said, which is answered from the conversation."""
        from langchain_core.messages import AIMessage

        if recall := recalled(question, exchanges_of(history)):
            return AIMessage(recall)
        return call_for([question])

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Relevant is what covers a fair share of the question's terms, or half of what the best covers."""
        shares = await asyncio.to_thread(self.shares, question, passages)
        enough = max(RELEVANT, 0.5 * max(shares, default=0.0))
        return [share >= enough for share in shares]

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """First the question's words without those that ask, then with the nearest heading, then the rarest."""
        return await asyncio.to_thread(self._rewrite, question, tried, passages)

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield one to three sentences as they are chosen, best first, each with its mark.

        None if the passages cover too little. A few commands that stand together count as one.
        """
        chosen, between = self.chosen(question, passages), ""
        while (sentence := await asyncio.to_thread(next, chosen, None)) is not None:
            yield between + sentence.written
            between = "\n\n"

    def distilled(self, question: str, passages: Sequence[Passage], share: float) -> list[Passage]:
        """Implements Quoter."""
        weights = self._question_weights(question)
        return distilled(passages, lambda text: _share(weights, self._terms(text)), share)

    def unnamed(self, question: str, passages: Sequence[Passage]) -> list[str]:
        """Implements Quoter. Latin names are spelt otherwise in Chinese pages."""
        if is_across(question, passages) and not is_chinese(question):
            return []
        names = {name: self._terms(name) for name in _NAME.findall(question)}
        weights = self.weights(sorted(frozenset().union(*names.values())))
        held = frozenset[int]().union(*(self._terms("\n".join((p.title, *p.section, p.text))) for p in passages))
        if not weights or _share(weights, held) >= NAMED:
            return []
        return [name for name, terms in names.items() if terms and not terms & held]

    def chosen(self, question: str, passages: Sequence[Passage]) -> Iterator[Sentence]:
        """The best sentence, and others that are likely and say something else, best first.

        Where the question names several pages, the best of each goes before a second one of any.
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
        """Implements Quoter."""
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
        """Quotes for a question from the passages of these numbers, from 1, with their marks; none of what was `said`,
        which they are added to. With `about`, another question, only those near to that too.
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
        """All that can be quoted of the passages, in order, with what asks, and their `features`. May block."""
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
        """How likely each sentence answers, (n,), on a logarithmic scale: by its features, and as it was read."""
        scores = _by_features(sentences, columns)
        logits = self._logits(question, passages, sentences, scores)
        return scores if logits is None else scores + READ * np.where(np.isnan(logits), np.nanmin(logits), logits)

    def _logits(
        self, question: str, passages: Sequence[Passage], sentences: Sequence[Sentence], scores: NDArray[np.float64]
    ) -> NDArray[np.float32] | None:
        """What the reader says of each sentence, (n,), NaN for those that were not read; None where nothing is."""
        order = [at for at in np.argsort(-scores, kind="stable").tolist() if not sentences[at].quoted.asks]
        if self._reader is None or not order:
            return None
        return self._reader.read(question, [sentence.line(passages) for sentence in sentences], order)

    def _near(self, question: str, sentences: Sequence[Sentence], promise: NDArray[np.float64]) -> NDArray[np.float64]:
        """The cosine of each sentence with the question, at least 0: those of less promise get the lowest there is."""
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
        """How much of the question's words, by IDF, each passage holds with its title and headings. May block."""
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
        """The question's words without those that ask; these with the nearest heading; the two rarest. May block."""
        words = [w for w in re.findall(r"[\w][\w'-]*", _ASKING.sub(" ", question)) if w]
        weight = {word: sum(self._question_weights(word).values()) for word in words}
        core = " ".join(words)
        heading = " ".join((passages[0].title, *passages[0].section[-1:])) if passages else ""
        rarest = " ".join(sorted(set(words), key=lambda word: (-weight[word], word))[:2])
        return [form for form in (core, f"{core} {heading}".strip(), rarest) if form]

    def closest(self, question: str, passages: Sequence[Passage], count: int) -> list[str]:
        """The sentences of the passages that hold most of the question's terms, best first. May block."""
        weights = self._question_weights(question)
        sentences = dict.fromkeys(p.text[a:b] for p in passages for a, b in split_sentences(p.text))
        return sorted(sentences, key=lambda text: -_share(weights, self._terms(text)))[:count]


def _share(weights: Mapping[Term, float], found: frozenset[Term]) -> float:
    """The weighted share of the question's terms that are among those `found`, 0 to 1."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in found) / total if total else 0.0


def features(
    question: str, weights: Mapping[int, float], sentences: Sequence[Sentence], scores: Sequence[float]
) -> NDArray[np.float64]:
    """What tells that a sentence answers, (n, 6), but for how near it is; `weights` are the question's terms by IDF.

    Of the question's terms, each the more the rarer it is in the library and among the sentences, the shares that the
    sentence and what stands beside it hold; a quantity where one is asked for; the share of the question's codes that
    it holds, which no meaning tells apart; its passage's score, of the best one's; and a column of zeros for its cosine
    with the question.
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
    """Numbers that name a thing: articles, versions, shares, part numbers; in one form of writing."""
    return {code.translate(_HYPHENS).casefold() for code in _CODE.findall(fold(text))}


def _rarity(asked: Collection[Term], texts: Sequence[Collection[Term]]) -> dict[Term, float]:
    """The IDF of each term that is asked for among these texts, each of which holds it once or not."""
    holding = Counter(term for text in texts for term in asked if term in text)
    return {term: math.log(1 + (len(texts) - holding[term] + 0.5) / (holding[term] + 0.5)) for term in asked}


def _by_features(sentences: Sequence[Sentence], columns: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the features are worth, (n,). A sentence that asks hands it on to the one after it, as in an FAQ."""
    scores: NDArray[np.float64] = columns @ np.array(list(FEATURES.values()))
    for i in range(1, len(sentences)):
        if sentences[i - 1].quoted.asks and sentences[i - 1].passage == sentences[i].passage:
            scores[i] = max(scores[i - 1 : i + 1])
    return scores


def _by_likelihood(sentences: Sequence[Sentence], scores: NDArray[np.float64]) -> list[tuple[Sentence, float]]:
    """The sentences that state something with how likely each is the one that answers, most likely first."""
    kept = [i for i, sentence in enumerate(sentences) if not sentence.quoted.asks]
    odds = np.exp(scores[kept] - max(scores[kept], default=0.0))
    order = np.argsort(-odds, kind="stable")
    return [(sentences[kept[i]], float(odds[i] / odds.sum())) for i in order]


def _each_page_first(
    ranked: Sequence[tuple[Sentence, float]], passages: Sequence[Passage], named: Collection[str]
) -> list[tuple[Sentence, float]]:
    """`ranked`, before them the best sentence of each page that is `named`, as sure as the best one of all."""
    best: dict[str, tuple[Sentence, float]] = {}
    for sentence, likely in ranked:
        page = passages[sentence.passage].url_hash
        if len(named) > 1 and page in named and likely >= LIKELY_OF_NAMED:
            best.setdefault(page, (sentence, 1.0))
    return [*best.values(), *ranked]


def _adds(sentence: Sentence, chosen: Sequence[Sentence]) -> bool:
    """Whether it states something that none of those chosen says to the letter."""
    if any(_plain(sentence.quoted.text) in _plain(other.quoted.text) for other in chosen):
        return False
    return any(map(is_statement, sentence.quoted.lines))


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
