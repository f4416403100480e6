"""The text of a summary: written, checked against its passages, and without unsupported sentences."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from langchain_core.messages import AIMessage

from rag.checking.citations import Check, ScoredStatement, check_with
from rag.checking.statements import remove_spans
from rag.checking.verifier import Claim, Judgement, Verifier
from rag.errors import ModelError
from rag.graphs.common import Result, check_text_so_far, question_of, write_or_quote
from rag.graphs.summary.nodes import Running
from rag.graphs.summary.state import PartRecord, SummaryContext, SummaryState
from rag.patterns import lazy_regex
from rag.prompts import requests
from rag.reasoning.composing import fit, parse_notes
from rag.runs.run import Run
from rag.runs.serialization import passage_of, record, step_note
from rag.text import question_language
from rag.types import CheckedBy, Notice, Passage

_HEADING: Final = lazy_regex(r"\s*(?:#{1,6}\s|\*\*[^*\n]+\*\*\s*$)")


async def write(state: SummaryState, runtime: Running) -> Result:
    """Have the model write, from its notes if the passages exceed its context; else quote."""
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
    notes = parse_notes(numbered, state["notes"])
    context_passages = fit(notes or numbered, context.options.context_tokens - 1_600)
    prompt = requests.summary(context.model.texts, question_of(state), _headings(state["parts"]), context_passages)
    return context.model.stream(prompt)


def _headings(parts: Sequence[PartRecord]) -> list[str]:
    """Return the parts for the model: the heading of each, and the numbers of its passages."""
    headings, section = list[str](), ""
    for part in parts:
        *sections, name = (line.lstrip("# ") for line in part["heading"].split("\n\n"))
        section = sections[0] if sections else section
        names = (section if part["heading"].startswith("###") or sections else "", name)
        headings.append(f"{' › '.join(filter(None, names))} [{part['numbers'][0]}–{part['numbers'][-1]}]")
    return headings


async def _stream(text: str) -> AsyncIterator[str]:
    yield text


def _quote(parts: Sequence[PartRecord]) -> str:
    return "\n\n".join("\n\n".join(filter(None, (part["heading"], part["quotes"]))) for part in parts if part["quotes"])


async def verify(state: SummaryState, runtime: Running) -> Result:
    """Remove unsupported sentences, add quotes for parts that are then missing, and store the summary of a page."""
    context, passages = runtime.context, _passages(state)
    by_model = context.model is not None and state["composed"] != "quoted"
    verifiers = [_CachingVerifier(verifier) for verifier in context.verifiers] if by_model else []
    check, struck = await _remove_unsupported(state["text"], passages, verifiers, state, context)
    missing = [part for part in state["parts"] if part["quotes"] and not _cites(check, part, passages)]
    if by_model and missing:
        text = "\n\n".join([check.text, _quote(missing)])
        check, _ = await _remove_unsupported(text, passages, verifiers, state, context)
    update = {**_result(check, passages), **_end_state(state, check, struck)}
    if update["text"]:
        update["messages"] = [AIMessage(update["text"])]
        await asyncio.to_thread(_store, state, update, context)
    return update, step_note("verified", statements=len(update["statements"]), struck=struck)


class _CachingVerifier:
    """Implements Verifier: each claim is verified once, and after a failure no more are."""

    def __init__(self, verifier: Verifier) -> None:
        self.checks_by: CheckedBy = verifier.checks_by
        self._verifier = verifier
        self._judgements: dict[tuple[str, tuple[int, ...]], Judgement | None] = {}
        self._failed: ModelError | None = None

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[Judgement | None]:
        new = [claim for claim in claims if (claim.statement, claim.cited) not in self._judgements]
        if self._failed and new:
            raise self._failed
        try:
            judgements = await self._verifier.verify(new, passages, question) if new else []
        except ModelError as error:
            self._failed = error
            raise
        self._judgements |= {(one.statement, one.cited): found for one, found in zip(new, judgements, strict=True)}
        return [self._judgements[claim.statement, claim.cited] for claim in claims]


async def _remove_unsupported(
    text: str, passages: Sequence[Passage], verifiers: Sequence[Verifier], state: SummaryState, context: SummaryContext
) -> tuple[Check, int]:
    """Return the check of the text without unsupported sentences, and how many were removed."""
    struck = 0
    while True:
        check = await check_with(text, passages, verifiers, question_of(state), context.options.context_tokens)
        doubtful = [(one.stated.start, one.stated.stop) for one in check.scored_statements if not _is_kept(one)]
        if not doubtful:
            return check, struck
        text, struck = remove_spans(check.text, doubtful), struck + len(doubtful)


def _is_kept(statement: ScoredStatement) -> bool:
    """Return whether a sentence is a heading, or is supported by its citations."""
    is_supported = statement.counts and statement.finding.verdict == "supported" and bool(statement.quotes)
    return is_supported or (not statement.counts and bool(_HEADING.match(statement.stated.bare)))


def _cites(check: Check, part: PartRecord, passages: Sequence[Passage]) -> bool:
    """Return whether a sentence cites a passage of the part."""
    part_passages = [passages[number - 1] for number in part["numbers"]]
    return any(
        quote.source.passage in part_passages for one in check.scored_statements if one.counts for quote in one.quotes
    )


def _result(check: Check, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the text with its citations, and the cited passages."""
    result = check.result()
    cited = [(citation.url_hash, citation.start) for citation in result.citations]
    used = [one for one in passages if any(key == one.url_hash and one.start <= at < one.end for key, at in cited)]
    return {**result.plain(), "passages": [asdict(passage) for passage in used]}


def _end_state(state: SummaryState, check: Check, struck: int) -> dict[str, Any]:
    """Return the outcome, and a notice about the answer."""
    coverage, problem = state["told"], state["notice"]
    if not check.scored_statements:
        return {"outcome": "not_in_pages", "notice": problem or record(Notice("summary_nothing"))}
    is_partial = coverage is not None and coverage["code"] in ("summary_some", "summary_part", "summary_sections")
    removed = record(Notice("summary_struck", {"count": struck})) if struck and state["composed"] != "quoted" else None
    return {"outcome": "caveat" if problem or is_partial else "answered", "notice": problem or coverage or removed}


def _store(state: SummaryState, result: Mapping[str, Any], context: SummaryContext) -> None:
    """Store the summary of a page, unless its text has changed meanwhile, or rules replaced the model."""
    if not (state["page"] and context.reader) or state["notice"]:
        return
    page = context.reader.read(state["page"])
    cited = result["citations"]
    if page is None or any(page.text[one["start"] : one["end"]] != one["quote"] for one in cited):
        return
    summary = {name: result[name] for name in ("text", "citations", "statements")}
    passages = [{**passage, "text": ""} for passage in result["passages"]]
    language = question_language(question_of(state))
    summary |= {"told": state["told"], "composed": state["composed"], "passages": passages}
    context.reader.save_summary(page, language, context.writer, summary)


async def rescue(run: Run) -> Mapping[str, Any]:
    """Return the last state of an interrupted run, with its text so far, or quotes from what it read."""
    state: Any = run.state
    if partial := await check_text_so_far(run):
        return {**state, **partial}
    if not state.get("parts"):
        return run.state
    passages = _passages(state)
    check = await asyncio.to_thread(Check, _quote(state["parts"]), passages)
    doubtful = [(one.stated.start, one.stated.stop) for one in check.scored_statements if not _is_kept(one)]
    check = await asyncio.to_thread(Check, remove_spans(check.text, doubtful), passages)
    result = _result(check, passages)
    return {**state, **result, "composed": "quoted", "outcome": "caveat" if result["text"] else "failed"}


def _passages(state: SummaryState) -> list[Passage]:
    return [passage_of(passage) for passage in state["passages"]]
