"""The steps of a summary. Each returns a state update, and its decision for the trace."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from langgraph.runtime import Runtime

from rag.errors import ModelError
from rag.graphs.common import Result, check_question, question_of, start_turn
from rag.graphs.summary.gathering import (
    ROUTE,
    Gathered,
    gather,
    gather_changes,
    is_standalone,
    missing_page,
    select_pages,
    since_of,
)
from rag.graphs.summary.state import NoteInput, SummaryContext, SummaryState, blank_state
from rag.prompts import requests
from rag.reasoning.composing import count_tokens
from rag.retrieval.page_names import is_only_name
from rag.runs.serialization import end_update, notice_of, passage_of, record, step_note
from rag.text import question_language
from rag.types import Notice, Passage

CALLS_RESERVED: Final = 5
"""For writing, and for the checks."""
_RULES_AND_REPLY: Final = 1_600  # tokens of a request that are not passages

Running = Runtime[SummaryContext]


async def enter(state: SummaryState, runtime: Running) -> Result:
    """Start a question; of the earlier state only the conversation stays."""
    update, context = blank_state(state["question"].strip()), runtime.context
    if end := check_question(update):
        return end
    alone = await asyncio.to_thread(is_standalone, context.asked, context.reader)
    return await start_turn(update, {} if alone else state, runtime, CALLS_RESERVED)


async def read(state: SummaryState, runtime: Running) -> Result:
    """Find the pages and read them; use a page's stored summary if there is one."""
    context = runtime.context
    if context.reader and (
        missing := await asyncio.to_thread(
            missing_page, question_of(state), context.asked, context.reader, context.search
        )
    ):
        return end_update("not_in_pages", missing), step_note("no_such_page")
    gathered, stored, notice = await asyncio.to_thread(_gather, question_of(state), context)
    if stored:
        end = _stored_end(gathered, stored)
        runtime.stream_writer({"token": end["text"], **end})
        return end, step_note("summary_kept")
    update: dict[str, Any] = {"told": record(notice) if notice else None}
    if not any(part["quotes"] for part in gathered.parts):
        outcome = "answered" if notice else "not_in_pages"
        return {"outcome": outcome, "notice": record(notice or Notice("summary_nothing"))}, step_note("nothing_found")
    batches = _batches(gathered.passages, context) if context.model else []
    if batches and batches[-1][-1] < len(gathered.passages):
        read_size = sum(len(passage.text) for passage in gathered.passages[: batches[-1][-1]])
        notice = Notice("summary_part", {"percent": 100 * read_size // sum(len(one.text) for one in gathered.passages)})
        update["told"] = record(notice)
    is_whole_page = gathered.page is not None and is_only_name(question_of(state), gathered.page)
    update |= {
        "page": gathered.page.url_hash if gathered.page and is_whole_page else "",
        "parts": gathered.parts,
        "passages": [asdict(passage) for passage in gathered.passages],
        "batches": batches if len(batches) > 1 else [],
    }
    runtime.stream_writer({"parts": gathered.parts, "passages": update["passages"], "told": update["told"]})
    return update, step_note("summary_read", passages=len(gathered.passages), of=gathered.of)


def _gather(text: str, context: SummaryContext) -> tuple[Gathered, Mapping[str, Any] | None, Notice | None]:
    """Return the gathered passages, a stored summary of them, and a notice about the coverage."""
    reader, question = context.reader, context.asked
    if reader is None:
        return Gathered(), None, None
    pages, language = select_pages(text, question, reader), question_language(text)
    if question.options.route == ROUTE:
        content = gather_changes(pages, question, reader, language)
        since = {"count": content.of, "since": since_of(question)[:10]}
        partial = content.notice if content.pages < content.of else None
        return content, None, partial or Notice("summary_changes" if content.of else "summary_unchanged", since)
    content = gather(pages, reader, whole=context.model is not None)
    whole = content.page is not None and is_only_name(text, content.page)
    return (
        content,
        reader.find_summary(content.page, language, context.writer) if content.page and whole else None,
        content.notice,
    )


def _stored_end(gathered: Gathered, stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the end of a run that a stored summary answers."""
    assert gathered.page is not None, "only the summaries of single pages are kept"
    passages = [{**one, "text": gathered.page.text[one["start"] : one["end"]]} for one in stored["passages"]]
    coverage = notice_of(stored.get("told"))
    when = str(stored["made"])[:10]
    notice = Notice("summary_kept", {"when": when})
    if coverage:
        notice = Notice("summary_kept_reach", {"when": when, "reach": record(coverage)})
    fields = {name: stored[name] for name in ("text", "composed", "citations", "statements")}
    return {**fields, "passages": passages, "outcome": "caveat" if coverage else "answered", "notice": record(notice)}


def _batches(passages: Sequence[Passage], context: SummaryContext) -> list[list[int]]:
    """Return the numbers of the passages that fit into each of the possible requests."""
    room = max(1_000, context.options.context_tokens - _RULES_AND_REPLY)
    batches: list[list[int]] = [[]]
    remaining = room
    for number, passage in enumerate(passages, 1):
        size = count_tokens([passage])
        if batches[-1] and size > remaining:
            batches.append([])
            remaining = room
        batches[-1].append(number)
        remaining -= size
    return batches[: max(1, context.budget.remaining - CALLS_RESERVED)]


async def note(state: NoteInput, runtime: Running) -> Result:
    """Have the model summarise some passages in notes; if it fails, their own sentences are quoted."""
    context, passages = runtime.context, [passage_of(passage) for passage in state["passages"]]
    assert context.model is not None, "notes are taken by a model"
    numbered = list(zip(state["numbers"], passages, strict=True))
    try:
        with context.budget.share(1):
            lines = await context.model.lines(requests.section_notes(context.model.texts, state["question"], numbered))
    except ModelError as error:
        return {}, step_note("failed", reason=error.code)
    return {"notes": lines}, step_note("summary_noted", passages=len(passages))
