"""The summary itself: written, held against its passages, and what they do not bear out left out of it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from langchain_core.messages import AIMessage

from rag.checking.citations import Check, ScoredStatement, check_with
from rag.checking.statements import without
from rag.checking.verifier import Claim, Judgement, Verifier
from rag.errors import ModelError
from rag.graphs.common import Result, check_text_so_far, question_of, write_or_quote
from rag.graphs.summary.nodes import Running
from rag.graphs.summary.state import PartRecord, SummaryContext, SummaryState
from rag.prompts import requests
from rag.reasoning.composing import fitted, notes_of
from rag.runs.run import Run
from rag.runs.serialization import passage_of, record, step_note
from rag.text import question_language
from rag.types import CheckedBy, Notice, Passage

_HEADS: Final = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*\n]+\*\*\s*$)")


async def write(state: SummaryState, runtime: Running) -> Result:
    """Have the model write, from its notes where there are more passages than it takes in; else quote."""
    context, passages = runtime.context, _passages(state)
    quoted = _quote(state["parts"])
    text, problem = await write_or_quote(_by_model(state, passages, context), _stream(quoted), runtime)
    composed = "quoted" if problem and text == quoted else ""
    notice = record(problem) if problem else None
    runtime.stream_writer({"composed": composed})
    return {"text": text, "composed": composed, "notice": notice}, step_note("summary_written", passages=len(passages))


def _by_model(state: SummaryState, passages: Sequence[Passage], context: SummaryContext) -> AsyncIterator[str] | None:
    if context.model is None:
        return None
    numbered = list(enumerate(passages, 1))
    noted = notes_of(numbered, state["notes"])
    given = fitted(noted or numbered, context.options.context_tokens - 1_600)
    prompt = requests.summary(context.model.texts, question_of(state), _headings(state["parts"]), given)
    return context.model.stream(prompt)


def _headings(parts: Sequence[PartRecord]) -> list[str]:
    """The parts for the model: each with what stands above it, and the passages that it is told from."""
    found, above = list[str](), ""
    for part in parts:
        *over, own = (line.lstrip("# ") for line in part["heading"].split("\n\n"))
        above = over[0] if over else above
        names = (above if part["heading"].startswith("###") or over else "", own)
        found.append(f"{' › '.join(filter(None, names))} [{part['numbers'][0]}–{part['numbers'][-1]}]")
    return found


async def _stream(text: str) -> AsyncIterator[str]:
    yield text


def _quote(parts: Sequence[PartRecord]) -> str:
    return "\n\n".join("\n\n".join(filter(None, (part["heading"], part["quotes"]))) for part in parts if part["quotes"])


async def verify(state: SummaryState, runtime: Running) -> Result:
    """Leave out every sentence that its passages do not bear out, tell the parts that then lack by quotes, and keep
    what is told of a page."""
    context, passages = runtime.context, _passages(state)
    by_model = context.model is not None and state["composed"] != "quoted"
    verifiers = [_Remembering(one) for one in context.verifiers] if by_model else []
    check, struck = await _is_supported(state["text"], passages, verifiers, state, context)
    lacking = [part for part in state["parts"] if part["quotes"] and not _tells(check, part, passages)]
    if by_model and lacking:
        text = "\n\n".join([check.text, _quote(lacking)])
        check, _ = await _is_supported(text, passages, verifiers, state, context)
    update = {**_result(check, passages), **_end(state, check, struck)}
    if update["text"]:
        update["messages"] = [AIMessage(update["text"])]
        await asyncio.to_thread(_keep, state, update, context)
    return update, step_note("verified", statements=len(update["statements"]), struck=struck)


class _Remembering:
    """Implements Verifier: each claim is asked about once, and one that fails is not asked again."""

    def __init__(self, verifier: Verifier) -> None:
        self.checks_by: CheckedBy = verifier.checks_by
        self._verifier = verifier
        self._said: dict[tuple[str, tuple[int, ...]], Judgement | None] = {}
        self._failed: ModelError | None = None

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        new = [one for one in claims if (one.statement, one.cited) not in self._said]
        if self._failed and new:
            raise self._failed
        try:
            said = await self._verifier.verify(new, passages, question) if new else []
        except ModelError as error:
            self._failed = error
            raise
        self._said |= {(one.statement, one.cited): told for one, told in zip(new, said, strict=True)}
        return [self._said[one.statement, one.cited] for one in claims]


async def _is_supported(
    text: str, passages: Sequence[Passage], verifiers: Sequence[Verifier], state: SummaryState, context: SummaryContext
) -> tuple[Check, int]:
    """The check of a text all of whose sentences are borne out, and how many were not."""
    struck = 0
    while True:
        check = await check_with(text, passages, verifiers, question_of(state), context.options.context_tokens)
        doubtful = [(one.stated.start, one.stated.stop) for one in check.weighed if not _stands(one)]
        if not doubtful:
            return check, struck
        text, struck = without(check.text, doubtful), struck + len(doubtful)


def _stands(one: ScoredStatement) -> bool:
    """Whether a sentence is a heading, or is borne out by what it cites."""
    borne_out = one.counts and one.finding.verdict == "supported" and bool(one.quotes)
    return borne_out or (not one.counts and bool(_HEADS.match(one.stated.bare)))


def _tells(check: Check, part: PartRecord, passages: Sequence[Passage]) -> bool:
    """Whether a sentence rests on a passage of the part."""
    own = [passages[number - 1] for number in part["numbers"]]
    return any(quote.source.passage in own for one in check.weighed if one.counts for quote in one.quotes)


def _result(check: Check, passages: Sequence[Passage]) -> dict[str, Any]:
    """The text with its citations, and the passages that they stand in."""
    result = check.result()
    cited = [(one.url_hash, one.start) for one in result.citations]
    used = [one for one in passages if any(key == one.url_hash and one.start <= at < one.end for key, at in cited)]
    return {**result.plain(), "passages": [asdict(one) for one in used]}


def _end(state: SummaryState, check: Check, struck: int) -> dict[str, Any]:
    """How the question ended, and what a person should know of it."""
    told, problem = state["told"], state["notice"]
    if not check.weighed:
        return {"outcome": "not_in_pages", "notice": problem or record(Notice("summary_nothing"))}
    partly = told is not None and told["code"] in ("summary_some", "summary_part", "summary_sections")
    left_out = record(Notice("summary_struck", {"count": struck})) if struck and state["composed"] != "quoted" else None
    return {"outcome": "caveat" if problem or partly else "answered", "notice": problem or told or left_out}


def _keep(state: SummaryState, made: Mapping[str, Any], context: SummaryContext) -> None:
    """Keep the summary of a page, unless a newer text came meanwhile, or rules took the model's place."""
    if not (state["page"] and context.reader) or state["notice"]:
        return
    page = context.reader.read(state["page"])
    cited = made["citations"]
    if page is None or any(page.text[one["start"] : one["end"]] != one["quote"] for one in cited):
        return
    kept = {name: made[name] for name in ("text", "citations", "statements")}
    passages = [{**one, "text": ""} for one in made["passages"]]
    language = question_language(question_of(state))
    kept |= {"told": state["told"], "composed": state["composed"], "passages": passages}
    context.reader.keep(page, language, context.writer, kept)


async def rescue(run: Run) -> Mapping[str, Any]:
    """Return the last state of a run that broke off, with its text so far, or quotes from what it read."""
    state: Any = run.state
    if written := await check_text_so_far(run):
        return {**state, **written}
    if not state.get("parts"):
        return run.state
    passages = _passages(state)
    check = await asyncio.to_thread(Check, _quote(state["parts"]), passages)
    doubtful = [(one.stated.start, one.stated.stop) for one in check.weighed if not _stands(one)]
    check = await asyncio.to_thread(Check, without(check.text, doubtful), passages)
    made = _result(check, passages)
    return {**state, **made, "composed": "quoted", "outcome": "caveat" if made["text"] else "failed"}


def _passages(state: SummaryState) -> list[Passage]:
    return [passage_of(one) for one in state["passages"]]
