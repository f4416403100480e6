"""The summary graph: its state, its steps, and the recovery of an interrupted run.

Each step returns a state update, and its decision for the trace. The text is checked against its passages; unsupported
sentences are removed.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Annotated, Any, Final, Literal

from langchain_core.messages import AIMessage
from langgraph.graph import END, START, StateGraph
from langgraph.types import Overwrite, Send
from typing_extensions import TypedDict

from rag.checking.citations import Check, check_with
from rag.checking.statements import remove_spans
from rag.checking.verifier import Claim, ClaimJudgement, Verifier
from rag.errors import ModelError
from rag.graphs.common import (
    ConversationState,
    Result,
    Running,
    add_steps,
    blank_fields,
    check_question,
    question_of,
    select_cited,
    start_turn,
    unless_ended,
    write_or_quote,
)
from rag.graphs.summary.gathering import (
    ROUTE,
    PartRecord,
    SummaryContent,
    changes_notice,
    gather,
    gather_changes,
    is_standalone,
    missing_page,
    select_pages,
)
from rag.prompts import requests
from rag.reasoning.composing import count_tokens, fit, parse_notes
from rag.retrieval.page_names import is_only_name
from rag.runs.run import (
    NoticeRecord,
    Run,
    end_update,
    notice_of,
    passage_of,
    record,
    step_note,
)
from rag.text import lazy_regex, question_language
from rag.types import CheckedBy, Notice, Passage

_CALLS_RESERVED: Final = 5
"""Model calls for writing and checks."""
_OVERHEAD_TOKENS: Final = 1_600  # tokens of a request that are not passages
_HEADING: Final = lazy_regex(r"\s*(?:#{1,6}\s|\*\*[^*\n]+\*\*\s*$)")


class SummaryState(ConversationState, total=False):
    """The conversation, and the fields of the current question, which `enter` resets.

    `page` is the hash of the only page, if its summary may be stored. `told` is the notice about the coverage,
    `batches` are the passage numbers of each request. `composed` is `quoted` if rules replaced the model.
    """

    page: str
    parts: list[PartRecord]
    passages: list[dict[str, Any]]
    batches: list[list[int]]
    notes: Annotated[list[str], operator.add]
    told: NoticeRecord | None
    composed: str


class NoteInput(TypedDict):
    """The passages of one request, by number, and the question."""

    question: str
    passages: list[dict[str, Any]]
    numbers: list[int]


async def enter(state: SummaryState, runtime: Running) -> Result:
    """Start a question; only the conversation survives from the earlier state."""
    run = runtime.context
    empty: dict[str, Any] = {"page": "", "parts": [], "passages": [], "batches": [], "notes": Overwrite([])}
    update = {**blank_fields(state["question"].strip()), **empty, "told": None, "composed": ""}
    if end := check_question(update):
        return end
    alone = await asyncio.to_thread(is_standalone, run.question, run.cache.retriever.reader)
    return await start_turn(update, {} if alone else state, runtime, _CALLS_RESERVED)


async def read(state: SummaryState, runtime: Running) -> Result:
    """Find the pages and read them; use a page's stored summary if there is one."""
    run = runtime.context
    reader = run.cache.retriever.reader
    if reader and (
        missing := await asyncio.to_thread(missing_page, question_of(state), run.question, reader, run.cache.search)
    ):
        return end_update("not_in_pages", missing), step_note("no_such_page")
    content, stored, notice = await asyncio.to_thread(_gather, question_of(state), run)
    if stored:
        end = _stored_end(content, stored)
        runtime.stream_writer({"token": end["text"], **end})
        return end, step_note("summary_kept")
    update: dict[str, Any] = {"told": record(notice) if notice else None}
    if not any(part["quotes"] for part in content.parts):
        outcome = "answered" if notice else "not_in_pages"
        return {"outcome": outcome, "notice": record(notice or Notice("summary_nothing"))}, step_note("nothing_found")
    batches = _batches(content.passages, run) if run.chat else []
    if batches and batches[-1][-1] < len(content.passages):
        read_size = sum(len(passage.text) for passage in content.passages[: batches[-1][-1]])
        notice = Notice("summary_part", {"percent": 100 * read_size // sum(len(one.text) for one in content.passages)})
        update["told"] = record(notice)
    is_whole_page = content.page is not None and is_only_name(question_of(state), content.page)
    update |= {
        "page": content.page.url_hash if content.page and is_whole_page else "",
        "parts": content.parts,
        "passages": [asdict(passage) for passage in content.passages],
        "batches": batches if len(batches) > 1 else [],
    }
    runtime.stream_writer({"parts": content.parts, "passages": update["passages"], "told": update["told"]})
    return update, step_note("summary_read", passages=len(content.passages), of=content.total_pages)


def _gather(text: str, run: Run) -> tuple[SummaryContent, Mapping[str, Any] | None, Notice | None]:
    """Return the gathered passages, a stored summary of them, and a notice about the coverage."""
    reader, question = run.cache.retriever.reader, run.question
    if reader is None:
        return SummaryContent(), None, None
    pages, language = select_pages(text, question, reader, run.recent_pages), question_language(text)
    if question.options.route == ROUTE:
        content = gather_changes(pages, question, reader, language)
        partial = content.notice if content.pages < content.total_pages else None
        return content, None, partial or changes_notice(content.total_pages, question)
    content = gather(pages, reader, whole=run.chat is not None)
    whole = content.page is not None and is_only_name(text, content.page)
    return (
        content,
        reader.find_summary(content.page, language, run.reasoner.name) if content.page and whole else None,
        content.notice,
    )


def _stored_end(content: SummaryContent, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the final state update of a run that a stored summary answers."""
    assert content.page is not None, "only summaries of single pages are stored"
    passages = [{**one, "text": content.page.text[one["start"] : one["end"]]} for one in stored["passages"]]
    coverage = notice_of(stored.get("told"))
    when = str(stored["made"])[:10]
    notice = Notice("summary_kept", {"when": when})
    if coverage:
        notice = Notice("summary_kept_reach", {"when": when, "reach": record(coverage)})
    fields = {name: stored[name] for name in ("text", "composed", "citations", "statements")}
    return {**fields, "passages": passages, "outcome": "caveat" if coverage else "answered", "notice": record(notice)}


def _batches(passages: Sequence[Passage], run: Run) -> list[list[int]]:
    """Return the passage numbers of each request: as many as fit, in as many requests as the budget allows."""
    room = max(1_000, run.options.context_tokens - _OVERHEAD_TOKENS)
    batches: list[list[int]] = [[]]
    remaining = room
    for number, passage in enumerate(passages, 1):
        size = count_tokens([passage])
        if batches[-1] and size > remaining:
            batches.append([])
            remaining = room
        batches[-1].append(number)
        remaining -= size
    return batches[: max(1, run.budget.remaining - _CALLS_RESERVED)]


async def note(state: NoteInput, runtime: Running) -> Result:
    """Have the model summarise some passages in notes; if it fails, their parts are quoted later."""
    run, passages = runtime.context, [passage_of(passage) for passage in state["passages"]]
    assert run.chat is not None, "only a model takes notes"
    numbered = list(zip(state["numbers"], passages, strict=True))
    try:
        with run.budget.share(1):
            lines = await run.chat.ask_lines(
                requests.notes(run.chat.texts, "section_notes", state["question"], numbered)
            )
    except ModelError as error:
        return {}, step_note("failed", reason=error.code)
    return {"notes": lines}, step_note("summary_noted", passages=len(passages))


async def write(state: SummaryState, runtime: Running) -> Result:
    """Have the model write, from its notes if the passages exceed its context; quote without a model or if it fails."""
    run, passages = runtime.context, _passages(state)
    quoted, by_model = _quote(state["parts"]), None
    if run.chat is not None:
        numbered = list(enumerate(passages, 1))
        notes = parse_notes(numbered, state["notes"])
        context_passages = fit(notes or numbered, run.options.context_tokens - _OVERHEAD_TOKENS)
        headings, question = _headings(state["parts"]), question_of(state)
        prompt = requests.by_headings(run.chat.texts, "summary", question, headings, context_passages)
        by_model = run.chat.stream(prompt)
    text, problem = await write_or_quote(by_model, _stream(quoted), runtime)
    composed = "quoted" if problem and text == quoted else ""
    notice = record(problem) if problem else None
    runtime.stream_writer({"composed": composed})
    return {"text": text, "composed": composed, "notice": notice}, step_note("summary_written", passages=len(passages))


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
    """Return the quotes of the parts under their headings; consecutive parts with the same heading share it."""
    quoted = [part for part in parts if part["quotes"]]
    texts, above = list[str](), ""
    for part in quoted:
        texts += [part["heading"] * (part["heading"] != above), part["quotes"]]
        above = part["heading"]
    return "\n\n".join(filter(None, texts))


async def verify(state: SummaryState, runtime: Running) -> Result:
    """Remove unsupported sentences, quote parts that are then no longer cited, and store the summary of a page."""
    run, passages = runtime.context, _passages(state)
    by_model = run.chat is not None and state["composed"] != "quoted"
    verifiers = [_CachingVerifier(verifier) for verifier in run.verifiers] if by_model else []
    check, struck = await _remove_unsupported(state["text"], passages, verifiers, state, run)
    cited = [quote.source.passage for one in check.scored_statements if one.is_counted for quote in one.quotes]
    quoted = [part for part in state["parts"] if part["quotes"]]
    missing = [part for part in quoted if not any(passages[number - 1] in cited for number in part["numbers"])]
    if by_model and missing:
        text = "\n\n".join([check.text, _quote(missing)])
        check, _ = await _remove_unsupported(text, passages, verifiers, state, run)
    update = {**_result(check, passages), **_end_state(state, check, struck)}
    if update["text"]:
        update["messages"] = [AIMessage(update["text"])]
        await asyncio.to_thread(_store, state, update, run)
    return update, step_note("verified", statements=len(update["statements"]), struck=struck)


class _CachingVerifier:
    """A `Verifier` that verifies each claim only once, and none after a failure."""

    def __init__(self, verifier: Verifier) -> None:
        self.verifier_kind: CheckedBy = verifier.verifier_kind
        self._verifier = verifier
        self._judgements: dict[tuple[str, tuple[int, ...]], ClaimJudgement | None] = {}
        self._failed: ModelError | None = None

    async def verify(
        self, claims: Sequence[Claim], passages: Sequence[Passage], question: str = ""
    ) -> list[ClaimJudgement | None]:
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
    text: str, passages: Sequence[Passage], verifiers: Sequence[Verifier], state: SummaryState, run: Run
) -> tuple[Check, int]:
    """Return the check of the text without unsupported sentences, and how many were removed."""
    struck = 0
    while True:
        check = await check_with(text, passages, verifiers, question_of(state), run.options.context_tokens)
        doubtful = _find_unsupported(check)
        if not doubtful:
            return check, struck
        text, struck = remove_spans(check.text, doubtful), struck + len(doubtful)


def _find_unsupported(check: Check) -> list[tuple[int, int]]:
    """Return the bounds of the sentences that are neither headings nor supported by their citations."""
    spans = []
    for one in check.scored_statements:
        is_supported = one.is_counted and one.finding.verdict == "supported" and one.quotes
        is_heading = not one.is_counted and _HEADING.match(one.sentence.bare)
        if not (is_supported or is_heading):
            spans.append((one.sentence.start, one.sentence.stop))
    return spans


def _result(check: Check, passages: Sequence[Passage]) -> dict[str, Any]:
    """Return the text with its citations, and the cited passages."""
    result = check.result()
    return {**result.plain(), "passages": [asdict(one) for one in select_cited(passages, result.citations)]}


def _end_state(state: SummaryState, check: Check, struck: int) -> dict[str, Any]:
    """Return the outcome, and a notice about the answer."""
    coverage, problem = state["told"], state["notice"]
    if not check.scored_statements:
        return {"outcome": "not_in_pages", "notice": problem or record(Notice("summary_nothing"))}
    is_partial = coverage is not None and coverage["code"] in ("summary_some", "summary_part", "summary_sections")
    removed = record(Notice("summary_struck", {"count": struck})) if struck and state["composed"] != "quoted" else None
    return {"outcome": "caveat" if problem or is_partial else "answered", "notice": problem or coverage or removed}


def _store(state: SummaryState, result: Mapping[str, Any], run: Run) -> None:
    """Store the summary of a page, unless its text has changed since, or rules replaced the model."""
    reader = run.cache.retriever.reader
    if not (state["page"] and reader) or state["notice"]:
        return
    page = reader.read(state["page"])
    cited = result["citations"]
    if page is None or any(page.text[one["start"] : one["end"]] != one["quote"] for one in cited):
        return
    summary = {name: result[name] for name in ("text", "citations", "statements")}
    passages = [{**passage, "text": ""} for passage in result["passages"]]
    language = question_language(question_of(state))
    summary |= {"told": state["told"], "composed": state["composed"], "passages": passages}
    reader.save_summary(page, language, run.reasoner.name, summary)


async def rescue(run: Run) -> dict[str, Any]:
    """Return quotes from what an interrupted run read; {} if it read nothing."""
    state: Any = run.state
    if not state.get("parts"):
        return {}
    passages = _passages(state)
    check = await asyncio.to_thread(Check, _quote(state["parts"]), passages)
    check = await asyncio.to_thread(Check, remove_spans(check.text, _find_unsupported(check)), passages)
    result = _result(check, passages)
    return {**result, "composed": "quoted", "outcome": "caveat" if result["text"] else "failed"}


def _passages(state: SummaryState) -> list[Passage]:
    return [passage_of(passage) for passage in state["passages"]]


@cache
def graph_of(saver: Any) -> Any:
    """Build enter → read → (notes in parallel, for several requests) → write → verify; `saver` stores checkpoints."""
    builder = StateGraph(SummaryState, context_schema=Run)
    add_steps(builder, enter, read, note, write, verify)
    builder.add_edge(START, "enter")
    builder.add_conditional_edges("enter", unless_ended("read"), ["read", END])
    builder.add_conditional_edges("read", _after_read, ["note", "write", END])
    builder.add_edge("note", "write")
    builder.add_edge("write", "verify")
    builder.add_edge("verify", END)
    return builder.compile(checkpointer=saver)


def _after_read(state: SummaryState) -> list[Send] | Literal["write", "__end__"]:
    if state["outcome"]:
        return "__end__"
    passages = state["passages"]
    inputs = [
        NoteInput(question=question_of(state), passages=[passages[n - 1] for n in numbers], numbers=numbers)
        for numbers in state["batches"]
    ]
    return [Send("note", note_input) for note_input in inputs] or "write"
