"""A reasoner that needs no model: its answers are sentences of the pages, chosen and ordered.

A sentence is worth the share of the question's terms that it covers, each weighted by its IDF in the library, and
the share of the question's stems, each the more the fewer of the sentences found hold it. What the heading and title
above it add counts less, and so does how well the passage as a whole was found.
One is quoted, and others where they are nearly as good: see docs/decisions/0012-quoted-answers.md.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeVar

from rag.agent.quotable import Quotable, quotables
from rag.checking.statements import is_statement
from rag.messages import say
from rag.reasoning.composing import distilled
from rag.reasoning.history import recalled
from rag.reasoning.messages import call_for
from rag.reasoning.questions import is_small_talk, is_thanks
from rag.retrieval.following import term_weights
from rag.text import is_chinese, split_sentences, terms
from rag.types import Notice, Passage, SparseVector

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage, BaseMessage
    from langchain_core.tools import BaseTool

Term = TypeVar("Term", int, str)

BEARS_ON_IT: Final = 0.2
"""Where no passage holds this share of the question's weighted terms, there is nothing to quote."""
RELEVANT: Final = 0.3
NEARLY_AS_GOOD: Final = 0.76
"""The share of the best sentence's score from which another one is quoted."""
NAMED_NEAR: Final = 0.34
"""The share of what the question names that a further sentence has in it, above it or just before it."""
_REPEATED: Final = 0.5  # what a term that was covered already loses: the next sentence should say something else

MAX_SENTENCES: Final = 3

_STEMS, _ABOVE, _FOUND, _KIND = 0.9, 0.7, 1.0, 0.3
_STEM = 5  # letters; terms of Chinese are pairs of signs

_ASKS_QUANTITY = re.compile(
    r"\bhow (?:many|much|old|long|far|tall|high|large|often|big)\b|\bwhen\b"
    r"|\bwhat (?:year|date|percent\w*|number|day|time|age|price|cost)\b|\b(?:in|which) (?:what |which )?year\b"
    r"|多少|几[个年月次天时点号位]|何时|什么时候|哪一?年|多久|多[大长高远]|百分之|价格|时间",
    re.IGNORECASE,
)
_HAS_QUANTITY = re.compile(
    r"\d|[一二三四五六七八九十百千万两][个年月日次人名元天点]"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|hundred|thousand|million|billion|half"
    r"|third|once|twice)\b",
    re.IGNORECASE,
)
_ASKS_CAUSE = re.compile(
    r"\bwhy\b|\bwhat (?:caused?|led|is the reason)\b|\breasons?\b|为什么|为何|原因|怎么会", re.IGNORECASE
)
_HAS_CAUSE = re.compile(
    r"\bbecause\b|\bdue to\b|\bcaus(?:e|es|ed)\b|\bsince\b|\bso that\b|\bas a result\b|\bled to\b|\breason"
    r"|因为|由于|因此|导致|造成|原因|所以",
    re.IGNORECASE,
)
_KINDS = ((_ASKS_QUANTITY, _HAS_QUANTITY), (_ASKS_CAUSE, _HAS_CAUSE))
_ASKS_DEGREE = re.compile(
    r"\bhow (old|long|far|tall|high|large|often|big|fast|wide|deep|heavy|hot|cold|expensive|frequently|quickly|soon)\b",
    re.IGNORECASE,
)
_DEGREE = 0.3  # of its weight: "how large" is answered by a size, seldom by the word
_WORD = re.compile(r"\w")
_NAME = re.compile(r"(?<!^)(?<![\w'’])[A-Z][\w'’&.-]*|(?<![\w.])\d[\w.,:-]*|[A-Z][A-Z\d]+")
_ASKING = re.compile(
    r"\b(?:what|which|who|whom|whose|when|where|why|how|many|much|does|do|did|is|are|was|were|can|could|should|would"
    r"|will|may|the|a|an|of|in|on|at|to|for|by|with|from|and|or|that|this|it|its|please|tell|me|about|there|have|has"
    r"|had|be|been)\b|什么|怎么样?|如何|为什么|多少|哪些?|哪个|哪里|何时|是否|谁|请问|告诉我|吗|呢|的|了|是|有|在|和|与",
    re.IGNORECASE,
)


class TermWeights(Protocol):
    """IDF of terms in a library."""

    def __call__(self, terms: Sequence[int]) -> Mapping[int, float]:
        """The IDF of each term, also of those that no chunk holds. May block."""
        ...


class Encoder(Protocol):
    def encode_query(self, text: str) -> SparseVector: ...
    def terms(self, text: str) -> frozenset[int]: ...


@dataclass(frozen=True, slots=True)
class _Sentence:
    passage: int
    place: int
    quoted: Quotable
    terms: frozenset[int]
    near: frozenset[int]
    stems: frozenset[str]
    score: float

    @property
    def text(self) -> str:
        return self.quoted.text

    @property
    def written(self) -> str:
        return "\n\n".join(f"{line} [{self.passage + 1}]" for line in self.quoted.lines)


class ExtractiveReasoner:
    """Implements Reasoner without a model: quotes, grades by overlap, rewrites by dropping and adding terms."""

    name = "extractive"
    kind: Literal["extractive", "chat"] = "extractive"

    def __init__(self, encoder: Encoder, weights: TermWeights, before: Sequence[str] = ()) -> None:
        self._encoder = encoder
        self._weights = weights
        self._before = tuple(before)

    def following(self, before: Sequence[str]) -> Self:
        """Implements Follower."""
        return type(self)(self._encoder, self._weights, before)

    async def decide(self, question: str, history: Sequence[BaseMessage], tools: Sequence[BaseTool]) -> AIMessage:
        """Search for everything but small talk; what was said is answered from the conversation."""
        from langchain_core.messages import AIMessage

        from rag.reasoning.messages import exchanges_of

        if recall := recalled(question, exchanges_of(history)):
            return AIMessage(recall)
        if is_small_talk(question):
            code = "small_talk_thanks" if is_thanks(question) else "small_talk"
            return AIMessage(say(Notice(code), "zh" if is_chinese(question) else "en"))
        return call_for([question])

    async def grade(self, question: str, passages: Sequence[Passage]) -> list[bool]:
        """Relevant is what covers a fair share of the question's terms, or half of what the best covers."""
        shares = await asyncio.to_thread(self._shares, question, passages)
        enough = max(RELEVANT, 0.5 * max(shares, default=0.0))
        return [share >= enough for share in shares]

    async def rewrite(self, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> str:
        """First the question's words without those that ask, then with the nearest heading, then the rarest."""
        return await asyncio.to_thread(self._rewrite, question, tried, passages)

    async def answer(self, question: str, passages: Sequence[Passage]) -> AsyncIterator[str]:
        """Yield one to three sentences as they are chosen, best first, each with its mark.

        None if the passages cover too little. A few commands that stand together count as one.
        """
        chosen, between = self._choose(question, passages), ""
        while (sentence := await asyncio.to_thread(next, chosen, None)) is not None:
            yield between + sentence.written
            between = "\n\n"

    def distilled(self, question: str, passages: Sequence[Passage], share: float) -> list[Passage]:
        """Implements Quoter."""
        weights = self._question_weights(question)
        return distilled(passages, lambda text: _share(weights, self._terms(text)), share)

    def _choose(self, question: str, passages: Sequence[Passage]) -> Iterator[_Sentence]:
        """The best sentence, and what is nearly as good and says something else, best first."""
        weights = self._question_weights(question)
        if max(self._coverages(weights, passages), default=0.0) < BEARS_ON_IT:
            return
        left = [s for i, p in enumerate(passages) for s in self._sentences(question, weights, i, p, passages)]
        left = _with_stems(_stems(question), left)
        named = self._terms(" ".join(_NAME.findall(question)))
        names = {term: weight for term, weight in weights.items() if term in named}
        chosen: list[_Sentence] = []
        said: frozenset[int] = frozenset()
        while left and len(chosen) < MAX_SENTENCES:
            worth, best = max(
                ((s.score - _REPEATED * _share(weights, s.terms & said), s) for s in left), key=lambda pair: pair[0]
            )
            left.remove(best)
            if chosen and worth < NEARLY_AS_GOOD * chosen[0].score:
                return
            if not chosen or (_share(names, best.near) >= NAMED_NEAR * bool(names) and _adds(best, chosen)):
                chosen.append(best)
                said |= best.terms
                yield best

    def _sentences(
        self,
        question: str,
        weights: Mapping[int, float],
        index: int,
        passage: Passage,
        passages: Sequence[Passage],
    ) -> list[_Sentence]:
        parts = quotables(passage.text)
        terms = [self._terms(part.text) for part in parts]
        above = self._terms(" ".join((passage.title, *passage.section)))
        found = passage.score / max(1e-9, *(p.score for p in passages))
        wanted = [has for asks, has in _KINDS if asks.search(question)]
        scored = []
        for i, part in enumerate(parts):
            own, before = terms[i], terms[i - 1] if i else frozenset()
            if part.is_table_header:
                above |= own
            elif (part.asks or not part.is_heading) and _WORD.search(part.text):
                score = _FOUND * found + _share(weights, own) + _ABOVE * _share(weights, above - own)
                score += _KIND if any(has.search(part.text) for has in wanted) else 0.0
                scored.append(_Sentence(index, i, part, own, own | before | above, _stems(part.text), score))
        return scored

    def _shares(self, question: str, passages: Sequence[Passage]) -> list[float]:
        return self._coverages(self._question_weights(question), passages)

    def _coverages(self, weights: Mapping[int, float], passages: Sequence[Passage]) -> list[float]:
        texts = ("\n".join((p.title, *p.section, p.text)) for p in passages)
        return [_share(weights, self._terms(text)) for text in texts]

    def _question_weights(self, question: str) -> Mapping[int, float]:
        """The question's terms by IDF, and those of the questions it follows on as far as they count."""
        counts = term_weights(question, self._before, self._encoder)
        idf = self._weights(sorted(counts))
        asked = self._terms(" ".join(_ASKS_DEGREE.findall(question)))
        return {term: idf[term] * count * (_DEGREE if term in asked else 1.0) for term, count in counts.items()}

    def _terms(self, text: str) -> frozenset[int]:
        return self._encoder.terms(text)

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


def _stems(text: str) -> frozenset[str]:
    return frozenset(term[:_STEM] for term in terms(text))


def _with_stems(asked: frozenset[str], sentences: Sequence[_Sentence]) -> list[_Sentence]:
    """The sentences that state something, scored by the question's stems too: the fewer hold one, the more it tells.

    One that asks hands what it is worth on to the one after it, as in an FAQ.
    """
    counts = Counter(stem for sentence in sentences for stem in sentence.stems & asked)
    rarity = {stem: math.log(1 + (len(sentences) - n + 0.5) / (n + 0.5)) for stem, n in counts.items()}
    kept: list[_Sentence] = []
    asking: _Sentence | None = None
    for sentence in sentences:
        sentence = replace(sentence, score=sentence.score + _STEMS * _share(rarity, sentence.stems))
        if sentence.quoted.asks:
            asking = sentence
            continue
        if asking is not None and asking.passage == sentence.passage:
            better = max(asking.score, sentence.score)
            sentence = replace(sentence, terms=sentence.terms | asking.terms, score=better)
        asking = None
        kept.append(sentence)
    return kept


def _adds(sentence: _Sentence, chosen: Sequence[_Sentence]) -> bool:
    """Whether it states something that none of those chosen says to the letter."""
    if any(_plain(sentence.text) in _plain(other.text) for other in chosen):
        return False
    return any(map(is_statement, sentence.quoted.lines))


def _plain(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).casefold()
