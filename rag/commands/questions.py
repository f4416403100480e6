"""Commands that search, answer questions, and print the routes of messages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from typing import Any

from rag.app import App, Question, RunOptions
from rag.commands import print_row, read_text_file, shorten
from rag.config import Settings
from rag.errors import IngestError
from rag.ingest.sources import text_lines
from rag.locales import label, say
from rag.reasoning.history import questions_before
from rag.retrieval.explain import explain_candidates, explanation
from rag.retrieval.scoped_search import site_filters
from rag.store.values import Filters
from rag.text import question_language
from rag.tools import describe_use
from rag.types import Answer, Exchange, Passage, ToolUse
from rag.web.url_key import url_hash

_TOOL_ROUTES = frozenset({"calculate", "date", "statistics", "web", "small_talk", "unknown"})
_CLOSEST = 3
"""Passages listed for a question that the pages don't answer."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A question of a file, with the exchanges before it, oldest first."""

    id: str
    question: str
    history: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, row: Mapping[str, Any], number: int) -> _Row:
        """Parse a row of a file. Raises KeyError, TypeError or AttributeError if it is malformed."""
        history = [(str(turn["question"]), str(turn.get("answer") or "")) for turn in row.get("history") or ()]
        return cls(str(row.get("id", number)), str(row["question"]), tuple(history))


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
                print_row(options, hit_row, _hits_as_text(row.question, hits))
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
            question_options = replace(run_options, route=_tool_route(row.question, options, app))
            question = Question(row.question, libraries, options.mode, search_options["filters"], question_options)
            answer = app.wait(app.ask(question, history=row.history))
            status = 1 if answer.outcome == "failed" else status
            print_row(options, {"id": row.id, **_answer(answer)}, _answer_as_text(answer))
    return status


def _weights(options: argparse.Namespace) -> dict[str, float]:
    """Return the weights of the libraries on the command line, in order; empty if none is named."""
    return dict(options.library)


def _tool_route(question: str, options: argparse.Namespace, app: App) -> str:
    """Return the route of a question that a tool answers in tool mode; else "". The web must be allowed."""
    route = app.route(question).route if options.mode == "tool" else ""
    return route if route in _TOOL_ROUTES and (route != "web" or options.web) else ""


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
            yield _Row.read(json.loads(line), number)
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
        {
            "n": c.n,
            "url": c.url,
            "title": c.title,
            "quote": c.quote,
            "start": c.start,
            "end": c.end,
            **_library_field(c.library),
        }
        for c in answer.citations
    ]
    steps = [{"node": step.node, "ms": step.ms, **step.detail} for step in answer.steps]
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
        **({"tools": [_use(use) for use in answer.tools]} if answer.tools else {}),
        **answer.trail,
    }


def _use(use: ToolUse) -> dict[str, Any]:
    failed = {"failed": use.failed.code} if use.failed else {}
    return {"name": use.name, "argument": use.argument, "result": use.result, "seconds": use.seconds, **failed}


def _source(source: Mapping[str, Any]) -> str:
    return " › ".join(filter(None, (source.get("library"), source["title"])))


def _hits_as_text(question: str, hits: Iterable[dict[str, Any]]) -> str:
    return "\n".join([f"? {question}", *map(_hit_as_text, hits)])


def _hit_as_text(hit: Mapping[str, Any]) -> str:
    return f"{hit['rank']:3}  {hit['score']:.3f}  {_source(hit)}  {hit['url']}\n     {shorten(hit['text'])}"


def _answer_as_text(answer: Answer) -> str:
    lines = [f"? {answer.question}", answer.text]
    lines += [f"  [{c.n}] {_source(asdict(c))}  {c.url}\n      {shorten(c.quote)}" for c in answer.citations]
    lines += [f"  {describe_use(use, question_language(answer.question), answer.text)}" for use in answer.tools]
    notice = say(answer.notice, question_language(answer.question)) if answer.notice else ""
    if notice and notice != answer.text:
        lines.append(f"  ({notice})")
    if answer.outcome == "not_in_pages" and answer.passages:
        lines.append(f"  {label('nearest', question_language(answer.question))}")
        lines += [_hit_as_text(_hit(rank, passage)) for rank, passage in enumerate(answer.passages[:_CLOSEST], 1)]
    return "\n".join(filter(None, lines)) + "\n"
