"""Commands that search, answer questions, check statements, and print the routes of messages."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag.app import App, Question, RunOptions
from rag.app.chat_models import ChatModels
from rag.app.libraries import Models
from rag.background import BACKGROUND
from rag.checking.citations import Check, ScoredStatement
from rag.checking.statements import find_statements
from rag.checking.verifier import LocalVerifier, Verifier
from rag.commands import print_row, read_text_file
from rag.config import Settings
from rag.errors import IngestError, ModelError
from rag.ingest.sources import text_lines
from rag.locales import label, say
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.questions import questions_before
from rag.retrieval.explain import explain_candidates, explanation
from rag.retrieval.retriever import site_filters
from rag.store.values import Filters
from rag.text import question_language, truncate
from rag.tools import describe_use
from rag.types import Answer, Exchange, Passage
from rag.web.urls import url_hash

log = logging.getLogger(__name__)

_PASSAGES = 5  # per statement of a user's text
_SIGNS = {"supported": "+", "partly": "~", "unsupported": "?"}


def check(settings: Settings, options: argparse.Namespace) -> int:
    """Check the statements of a text against the passages that searches for them find, or cases without a library."""
    verifiers = [] if options.rules else verifiers_of(settings)
    if options.cases:
        for case, texts, text in _cases(options.cases):
            passages = [
                Passage(str(number), "", str(number), "", "", "", (), passage, 0, len(passage))
                for number, passage in enumerate(texts, 1)
            ]
            everything = range(1, len(passages) + 1)
            result = Check(text, passages, find_passages=lambda _, everything=everything: everything)  # type: ignore[misc]
            BACKGROUND.wait(_consult(result, verifiers, settings))
            rows = [_row(statement) for statement in result.scored_statements]
            print_row(options, {"id": case, "statements": rows}, _as_text(text, rows))
        return 0
    text = read_text_file(options.file)
    with closing(App(settings)) as app:
        by_statement = {
            statement.bare: app.search(statement.bare, library=settings.rag_library, k=_PASSAGES).passages
            for statement in find_statements(text)
            if statement.is_statement
        }
        passages = list({passage.id: passage for group in by_statement.values() for passage in group}.values())
        numbers = {passage.id: number for number, passage in enumerate(passages, 1)}
        result = Check(
            text, passages, find_passages=lambda bare: [numbers[hit.id] for hit in by_statement.get(bare, ())]
        )
        BACKGROUND.wait(_consult(result, verifiers, settings))
    rows = [{**_row(scored), "sources": _sources(scored)} for scored in result.scored_statements]
    print_row(options, {"id": options.file, "statements": rows}, _as_text(text, rows))
    return 0


async def _consult(result: Check, verifiers: Sequence[Verifier], settings: Settings) -> None:
    """Apply the first verifier that works; if none does, the verdicts of the rules stay."""
    for verifier in verifiers:
        try:
            await result.consult(verifier, "", settings.llm_context_tokens)
            break
        except ModelError as error:
            log.error("%s", error)


def _cases(name: str) -> Iterator[tuple[str, list[str], str]]:
    """Yield the id, the passages and the text of each case in a file."""
    for number, line in enumerate(read_text_file(name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.strip())
            yield str(row["id"]), [str(text) for text in row["passages"]], str(row["text"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise IngestError("case_broken", name=name, line=number) from error


def _row(statement: ScoredStatement) -> dict[str, Any]:
    """Return the row of a sentence; one without a checkable statement counts as supported."""
    span, finding = statement.sentence, statement.finding
    verdict, score = (finding.verdict, finding.score) if statement.is_counted else ("supported", 1.0)
    return {"start": span.start, "end": span.stop, "verdict": verdict, "score": score, "by": statement.by}


def _sources(statement: ScoredStatement) -> list[dict[str, Any]]:
    quotes = statement.quotes if statement.is_counted and statement.finding.verdict != "unsupported" else []
    return [{"url": quote.source.passage.url, "quote": quote.text} for quote in quotes]


def _as_text(text: str, rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        sentence = truncate(text[row["start"] : row["end"]])
        lines.append(f"{_SIGNS[row['verdict']]} {row['score']:.2f} {row['by']:5}  {sentence}")
        lines += [f"      {source['url']}  {truncate(source['quote'])}" for source in row.get("sources", ())]
    return "\n".join(lines) + "\n"


def verifiers_of(settings: Settings) -> list[Verifier]:
    """Return the configured verifiers, best first: chat model, local model. Raises ModelError for wrong settings."""
    local = Models(settings).verifier
    verifiers: list[Verifier] = [LocalVerifier(local)] if local else []
    if settings.has_chat_model:
        chats = ChatModels(settings)
        verifiers.insert(0, ChatReasoner(chats.chat(), fast=chats.fast_chat(), texts=chats.prompts))
    return verifiers


_TOOL_ROUTES = frozenset({"calculate", "date", "statistics", "web", "small_talk", "unknown"})
_CITATION_FIELDS = ("n", "url", "title", "quote", "start", "end")
_CLOSEST = 3
"""Passages listed for a question that the pages don't answer."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A question of a file, with the exchanges before it, oldest first."""

    id: str
    question: str
    history: tuple[tuple[str, str], ...] = ()


def search(settings: Settings, options: argparse.Namespace) -> int:
    with closing(App(settings)) as app:
        search_options = {**_search_options(options, app), "k": options.k}
        for row in _questions(options):
            before = questions_before([Exchange(*exchange) for exchange in row.history])
            libraries: dict[str, Any] = {"library": settings.rag_library, "others": tuple(_weights(options))[1:]}
            result = app.search(
                row.question, **libraries, weights=_weights(options), earlier_questions=before, **search_options
            )
            hits = [_hit(rank, passage) for rank, passage in enumerate(result.passages, 1)]
            fields = {"id": row.id, "question": row.question}
            hit_row: dict[str, Any] = {**fields, "answerable": result.answerable, "hits": hits}
            if options.explain:
                print_row(options, {**hit_row, **explanation(result)}, explain_candidates(result))
            else:
                print_row(options, hit_row, "\n".join([f"? {row.question}", *map(_hit_as_text, hits)]))
    return 0


def route(settings: Settings, options: argparse.Namespace) -> int:
    with closing(App(settings)) as app:
        for row in _questions(options):
            routed = app.route(row.question)
            reason = say(routed.reason, question_language(row.question))
            result = {"id": row.id, "route": routed.route, "by": routed.by, "reason": reason}
            print_row(options, result, f"{routed.route:14} {reason}  ({row.question})")
    return 0


def ask(settings: Settings, options: argparse.Namespace) -> int:
    status = 0
    with closing(App(settings)) as app:
        search_options = _search_options(options, app)
        run_options = RunOptions(
            strategy=search_options["strategy"] or "",
            searches=options.max_searches,
            web="allowed" if options.web else "",
            weights=_weights(options),
        )
        libraries = tuple(_weights(options)) or (settings.rag_library,)
        for row in _questions(options):
            # In tool mode a question that a tool answers takes its route; the web must be allowed.
            route = app.route(row.question).route if options.mode == "tool" else ""
            is_tool = route in _TOOL_ROUTES and (route != "web" or options.web)
            question_options = replace(run_options, route=route if is_tool else "")
            question = Question(row.question, libraries, options.mode, search_options["filters"], question_options)
            answer = app.wait(app.ask(question, history=row.history))
            status = 1 if answer.outcome == "failed" else status
            print_row(options, {"id": row.id, **_answer(answer)}, _answer_as_text(answer))
    return status


def _weights(options: argparse.Namespace) -> dict[str, float]:
    """Return the weights of the libraries on the command line, in order; empty if none is named."""
    return dict(options.library)


def _search_options(options: argparse.Namespace, app: App) -> dict[str, Any]:
    """Return the strategy and the filters as arguments of `App.search`."""
    sites: tuple[str, ...] = ()
    pages = tuple(url_hash(url) for url in options.page)
    for name in options.site:
        on_site = site_filters(name, app.library_view(list(_weights(options)) or app.settings.rag_library).pages())
        sites, pages = (*sites, *on_site.sites), (*pages, *on_site.pages)
    since, until = options.since or "", options.until or ""
    filters = Filters(pages, sites, tuple(options.language), tuple(options.heading), since, until)
    return {"strategy": options.strategy, "filters": filters}


def _questions(options: argparse.Namespace) -> Iterator[_Row]:
    if options.question is not None:
        yield _Row("", options.question)
        return
    for number, line in enumerate(text_lines(read_text_file(options.questions)), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            turns = row.get("history") or ()
            history = tuple((str(turn["question"]), str(turn.get("answer") or "")) for turn in turns)
            yield _Row(str(row.get("id", number)), str(row["question"]), history)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise IngestError("question_broken", name=options.questions, line=number) from error


def _hit(rank: int, passage: Passage) -> dict[str, Any]:
    return {
        "rank": rank,
        "url": passage.url,
        "title": passage.title,
        "section": list(passage.section),
        "text": passage.text,
        "start": passage.start,
        "end": passage.end,
        "score": round(passage.score, 6),
        **_library_field(passage.library),
    }


def _library_field(library: str) -> dict[str, str]:
    """Return the library of a source, if several libraries were searched."""
    return {"library": library} if library else {}


def _answer(answer: Answer) -> dict[str, Any]:
    citations = [
        {**{name: getattr(c, name) for name in _CITATION_FIELDS}, **_library_field(c.library)} for c in answer.citations
    ]
    steps = [{"node": step.node, "ms": step.ms, **step.detail} for step in answer.steps]
    tools = [
        {"name": use.name, "argument": use.argument, "result": use.result, "seconds": use.seconds}
        | ({"failed": use.failed.code} if use.failed else {})
        for use in answer.tools
    ]
    return {
        "question": answer.question,
        "mode": answer.mode,
        "outcome": answer.outcome,
        "answer": answer.text,
        "citations": citations,
        "steps": steps,
        "hits": [_hit(rank, passage) for rank, passage in enumerate(answer.passages, 1)],
        "model_calls": answer.model_calls,
        "calls": answer.model_calls,
        "searches": len(answer.searches),
        "seconds": round(answer.seconds, 3),
        "answerable": answer.answerable,
        **({"tools": tools} if tools else {}),
        **answer.trail,
    }


def _source(source: Mapping[str, Any]) -> str:
    return " › ".join(filter(None, (source.get("library"), source["title"])))


def _hit_as_text(hit: Mapping[str, Any]) -> str:
    return f"{hit['rank']:3}  {hit['score']:.3f}  {_source(hit)}  {hit['url']}\n     {truncate(hit['text'])}"


def _answer_as_text(answer: Answer) -> str:
    lines = [f"? {answer.question}", answer.text]
    lines += [f"  [{c.n}] {_source(asdict(c))}  {c.url}\n      {truncate(c.quote)}" for c in answer.citations]
    lines += [f"  {describe_use(use, question_language(answer.question), answer.text)}" for use in answer.tools]
    notice = say(answer.notice, question_language(answer.question)) if answer.notice else ""
    if notice and notice != answer.text:
        lines.append(f"  ({notice})")
    if answer.outcome == "not_in_pages" and answer.passages:
        lines.append(f"  {label('nearest', question_language(answer.question))}")
        lines += [_hit_as_text(_hit(rank, passage)) for rank, passage in enumerate(answer.passages[:_CLOSEST], 1)]
    return "\n".join(filter(None, lines)) + "\n"
