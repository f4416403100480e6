"""What an answer says, held against its passages and against a reference: RAGAS's and ALCE's measures.

Each asks a `Supports` for verdicts: rules, or whatever verifier is there. None is one that could not be given; a
measure without any verdict is None, which is "not judged", and never 0.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from rag.background import BACKGROUND
from rag.checking.citations import Check
from rag.checking.statements import find_statements
from rag.checking.verifier import RANK, Claim, Verifier, batches
from rag.errors import ModelError
from rag.types import Answer, CheckedBy, Passage, Verdict

Verdicts = Sequence[Verdict | None]
Supports = Callable[[Sequence[Claim], Sequence[Passage]], Verdicts]
"""Whether passages (1-based in `Claim.cited`) bear claims out: a verdict for each claim, None where there is none."""

_PARTLY: Final = 0.5


@dataclass(frozen=True, slots=True)
class Said:
    """A statement of an answer, the passages that it cites (1-based), and the verdict that it was shown with; `by` gave
    it."""

    text: str
    cited: tuple[int, ...] = ()
    verdict: Verdict | None = None
    by: CheckedBy = "rules"


# Who judges


def by_rules(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
    """The rules of `rag.checking`: no model."""
    return [_judge_by_rules(claim.statement, [passages[n - 1] for n in claim.cited]) for claim in claims]


def _judge_by_rules(statement: str, passages: Sequence[Passage]) -> Verdict | None:
    check = Check(statement, passages, rests_on=lambda _: range(1, len(passages) + 1))
    return min((one.finding.verdict for one in check.weighed if one.counts), key=RANK.__getitem__, default=None)


def by_verifier(verifier: Verifier, tokens: int) -> Supports:
    """What a verifier says, in requests of so many tokens; what it does not answer is not judged. Blocks."""

    async def said(claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Verdict | None]:
        found: list[Verdict | None] = []
        for some in batches(claims, passages, tokens):
            try:
                judged = [one.verdict if one else None for one in await verifier.verify(some, passages)]
            except ModelError:
                judged = []
            found += [*judged, *[None] * len(some)][: len(some)]
        return found

    return lambda claims, passages: BACKGROUND.wait(said(claims, passages)) if claims else []


# What is judged


def passage_of(text: str, name: str = "reference") -> Passage:
    return Passage(name, "", name, "", "", "", (), text, 0, len(text))


def said_in(answer: Answer) -> list[Said]:
    """Its statements as they were checked; of an answer that nothing checked, its sentences with their marks."""
    citations = {citation.n: citation for citation in answer.citations}
    places = {n: place for n, one in citations.items() for place in _holding(answer, one.url_hash, one.start, one.end)}

    def cited(marks: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(places[n] for n in marks if n in places))

    if answer.statements:
        return [Said(answer.text[s.start : s.end], cited(s.marks), s.verdict, s.by) for s in answer.statements]
    return [Said(one.bare, cited(one.marks)) for one in find_statements(answer.text) if one.checked]


def _holding(answer: Answer, url_hash: str, start: int, end: int) -> list[int]:
    """The passage that a quote was taken from, or the one of its page that comes nearest."""
    own = [(n, one) for n, one in enumerate(answer.passages, 1) if one.url_hash == url_hash]
    whole = [n for n, one in own if one.start <= start and end <= one.end]
    return (whole or [n for n, one in own if one.start < end and start < one.end] or [n for n, _ in own])[:1]


def statements_of(text: str) -> list[str]:
    """What a text states, without marks; the whole of it where it is no sentence, such as a name."""
    found = [one.bare for one in find_statements(text) if one.checked]
    return found or [text.strip()][: bool(re.search(r"\w", text))]


def against(statements: Sequence[str], passages: Sequence[Passage], supports: Supports) -> Verdicts:
    """Each statement held against all of the passages."""
    everywhere = tuple(range(1, len(passages) + 1))
    claims = [Claim(place, one, everywhere) for place, one in enumerate(statements)]
    return supports(claims, passages) if passages else ["unsupported"] * len(claims)


# Measures


def share_supported(verdicts: Verdicts, partly: float = 0.0) -> float | None:
    """Faithfulness: supported statements / statements; what is borne out in part counts as `partly`."""
    worth = {"supported": 1.0, "partly": partly, "unsupported": 0.0}
    known = [worth[verdict] for verdict in verdicts if verdict is not None]
    return sum(known) / len(known) if known else None


def faithfulness(said: Sequence[Said], passages: Sequence[Passage], supports: Supports) -> dict[str, float | None]:
    """Strict, where "partly" is 0, and lenient, where it is a half."""
    verdicts = [one.verdict for one in said]
    if not any(verdicts):
        verdicts = list(against([one.text for one in said], passages, supports))
    return {"faithfulness": share_supported(verdicts), "faithfulness_lenient": share_supported(verdicts, _PARTLY)}


def factual_f1(said: Sequence[str], reference: str, supports: Supports) -> float | None:
    """F1 of an answer's statements: true are those that the reference bears out, missed those of it that they do not
    bear out (RAGAS's answer correctness, β = 1)."""
    if not (wanted := statements_of(reference)):
        return None
    right = against(said, [passage_of(reference)], supports)
    found = against(wanted, [passage_of(" ".join(said))] if said else [], supports)
    if None in (*right, *found):
        return None
    true = right.count("supported")
    wrong, missed = len(right) - true, len(found) - found.count("supported")
    return true / (true + (wrong + missed) / 2) if true else 0.0


def correctness(factual: float | None, similarity: float | None) -> float | None:
    """RAGAS's answer correctness: three parts F1 of the statements, one part cosine of answer and reference."""
    return None if factual is None or similarity is None else 0.75 * factual + 0.25 * similarity


def noise_sensitivity(
    said: Sequence[str], reference: str, passages: Sequence[Passage], relevant: Sequence[bool], supports: Supports
) -> dict[str, float | None]:
    """The share of the statements that are wrong, and yet borne out by a relevant passage, or by an irrelevant one
    and no relevant one (RAGAS, both of its modes). Lower is better."""
    names = ("noise_sensitivity", "noise_sensitivity_irrelevant")
    right = against(said, [passage_of(reference)], supports)
    if not right or None in right:
        return dict.fromkeys(names)
    wrong = [one for one, verdict in zip(said, right, strict=True) if verdict != "supported"]
    pairs = [Claim(place, one, (n,)) for place, one in enumerate(wrong) for n in range(1, len(passages) + 1)]
    verdicts = supports(pairs, passages)
    if None in verdicts:
        return dict.fromkeys(names)
    borne = {
        (pair.place, relevant[pair.cited[0] - 1]) for pair, v in zip(pairs, verdicts, strict=True) if v == "supported"
    }
    by_relevant = sum((place, True) in borne for place in range(len(wrong)))
    by_others = sum((place, False) in borne and (place, True) not in borne for place in range(len(wrong)))
    return dict(zip(names, (by_relevant / len(said), by_others / len(said)), strict=True))


def citations(said: Sequence[Said], passages: Sequence[Passage], supports: Supports) -> dict[str, float | None]:
    """ALCE's (Gao et al. 2023). Recall: the share of the statements that what they cite bears out together. Precision:
    the share of the citations that their statement needs: it is borne out, and by this one alone, or not without it.
    """
    claims = [claim for place, one in enumerate(said) for claim in _citing(place, one)]
    found = supports(claims, passages)
    if None in found or not said:
        return {"citation_precision": None, "citation_recall": None}
    holds = {(one.place, one.cited): verdict == "supported" for one, verdict in zip(claims, found, strict=True)}
    whole = [bool(one.cited) and holds[place, one.cited] for place, one in enumerate(said)]
    needed = [
        whole[place] and (holds[place, (n,)] or not holds[place, _others(one.cited, n)])
        for place, one in enumerate(said)
        for n in one.cited
    ]
    return {
        "citation_precision": sum(needed) / len(needed) if needed else None,
        "citation_recall": sum(whole) / len(said),
    }


def _citing(place: int, said: Said) -> list[Claim]:
    """A statement with all that it cites, with each alone, and with all but each."""
    alone = [(n,) for n in said.cited]
    ways = dict.fromkeys([said.cited, *alone, *(_others(said.cited, n) for n in said.cited)])
    return [Claim(place, said.text, cited) for cited in ways if cited]


def _others(cited: Sequence[int], n: int) -> tuple[int, ...]:
    return tuple(one for one in cited if one != n)
