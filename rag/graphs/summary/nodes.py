"""The steps of a summary. Each returns what changes in the state, and what it decided, for the trace."""

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
    changes,
    chosen_pages,
    gather,
    no_such_page,
    since_of,
    stands_alone,
)
from rag.graphs.summary.state import NoteInput, SummaryContext, SummaryState, fresh
from rag.prompts import requests
from rag.reasoning.composing import tokens_of
from rag.retrieval.page_names import names_alone
from rag.runs.serialization import ending, notice_of, passage_of, record, step_note
from rag.text import question_language
from rag.types import Notice, Passage

CALLS_KEPT: Final = 5
"""For writing, and for the checks."""
_RULES_AND_REPLY: Final = 1_600  # tokens of a request that are not passages

Running = Runtime[SummaryContext]


async def enter(state: SummaryState, runtime: Running) -> Result:
    """Begin a question: nothing of what was before stays but the conversation."""
    update, context = fresh(state["question"].strip()), runtime.context
    if end := check_question(update):
        return end
    alone = await asyncio.to_thread(stands_alone, context.asked, context.reader)
    return await start_turn(update, {} if alone else state, runtime, CALLS_KEPT)


async def read(state: SummaryState, runtime: Running) -> Result:
    """Find the pages and read them; the summary of a page that is kept serves at once."""
    context = runtime.context
    if context.reader and (
        missing := await asyncio.to_thread(
            no_such_page, question_of(state), context.asked, context.reader, context.search
        )
    ):
        return ending("not_in_pages", missing), step_note("no_such_page")
    made, kept, notice = await asyncio.to_thread(_gather, question_of(state), context)
    if kept:
        end = _kept(made, kept)
        runtime.stream_writer({"token": end["text"], **end})
        return end, step_note("summary_kept")
    update: dict[str, Any] = {"told": record(notice) if notice else None}
    if not any(part["quotes"] for part in made.parts):
        outcome = "answered" if notice else "not_in_pages"
        return {"outcome": outcome, "notice": record(notice or Notice("summary_nothing"))}, step_note("nothing_found")
    batches = _batches(made.passages, context) if context.model else []
    if batches and batches[-1][-1] < len(made.passages):
        read = sum(len(one.text) for one in made.passages[: batches[-1][-1]])
        notice = Notice("summary_part", {"percent": 100 * read // sum(len(one.text) for one in made.passages)})
        update["told"] = record(notice)
    alone = made.page is not None and names_alone(question_of(state), made.page)
    update |= {
        "page": made.page.url_hash if made.page and alone else "",
        "parts": made.parts,
        "passages": [asdict(one) for one in made.passages],
        "batches": batches if len(batches) > 1 else [],
    }
    runtime.stream_writer({"parts": made.parts, "passages": update["passages"], "told": update["told"]})
    return update, step_note("summary_read", passages=len(made.passages), of=made.of)


def _gather(wished: str, context: SummaryContext) -> tuple[Gathered, Mapping[str, Any] | None, Notice | None]:
    """What is told of, the summary of it that is kept, and what a person should know of its reach."""
    reader, question = context.reader, context.asked
    if reader is None:
        return Gathered(), None, None
    pages, language = chosen_pages(wished, question, reader), question_language(wished)
    if question.options.route == ROUTE:
        made = changes(pages, question, reader, language)
        since = {"count": made.of, "since": since_of(question)[:10]}
        partly = made.notice if made.pages < made.of else None
        return made, None, partly or Notice("summary_changes" if made.of else "summary_unchanged", since)
    made = gather(pages, reader, whole=context.model is not None)
    alone = made.page is not None and names_alone(wished, made.page)
    return made, reader.kept(made.page, language, context.writer) if made.page and alone else None, made.notice


def _kept(made: Gathered, kept: Mapping[str, Any]) -> dict[str, Any]:
    """The end of a run that a kept summary answers."""
    assert made.page is not None, "only the summaries of single pages are kept"
    passages = [{**one, "text": made.page.text[one["start"] : one["end"]]} for one in kept["passages"]]
    reach = notice_of(kept.get("told"))
    when = str(kept["made"])[:10]
    told = Notice("summary_kept", {"when": when})
    if reach:
        told = Notice("summary_kept_reach", {"when": when, "reach": record(reach)})
    same = {name: kept[name] for name in ("text", "composed", "citations", "statements")}
    return {**same, "passages": passages, "outcome": "caveat" if reach else "answered", "notice": record(told)}


def _batches(passages: Sequence[Passage], context: SummaryContext) -> list[list[int]]:
    """The numbers of the passages that a request has room for, for each of the requests that may be made."""
    room = max(1_000, context.options.context_tokens - _RULES_AND_REPLY)
    found: list[list[int]] = [[]]
    left = room
    for number, passage in enumerate(passages, 1):
        size = tokens_of([passage])
        if found[-1] and size > left:
            found.append([])
            left = room
        found[-1].append(number)
        left -= size
    return found[: max(1, context.budget.left - CALLS_KEPT)]


async def note(state: NoteInput, runtime: Running) -> Result:
    """Have the model note what some passages say; where it fails, they are told by their own sentences."""
    context, passages = runtime.context, [passage_of(one) for one in state["passages"]]
    assert context.model is not None, "notes are taken by a model"
    numbered = list(zip(state["numbers"], passages, strict=True))
    try:
        with context.budget.share(1):
            lines = await context.model.lines(requests.section_notes(context.model.texts, state["question"], numbered))
    except ModelError as error:
        return {}, step_note("failed", reason=error.code)
    return {"notes": lines}, step_note("summary_noted", passages=len(passages))
