"""The command that checks statements: a user's text against the library, or cases against their own passages."""

from __future__ import annotations

import argparse
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from rag.app import App
from rag.app.chat_models import ChatModels
from rag.app.models import Models
from rag.background import BACKGROUND
from rag.checking.citations import Check, ScoredStatement
from rag.checking.statements import find_statements
from rag.checking.verifier import LocalVerifier, Verifier
from rag.commands import print_row, read_text_file, shorten
from rag.config import Settings
from rag.errors import IngestError, ModelError
from rag.reasoning.chat import ChatReasoner
from rag.types import Passage

log = logging.getLogger(__name__)

_PASSAGES = 5  # per statement of a user's text
_SIGNS = {"supported": "+", "partly": "~", "unsupported": "?"}


@dataclass(frozen=True, slots=True)
class _Case:
    id: str
    passages: list[str]
    text: str


def check(settings: Settings, options: argparse.Namespace) -> int:
    if options.cases:
        _check_cases(settings, options)
    else:
        _check_file(settings, options)
    return 0


def _check_cases(settings: Settings, options: argparse.Namespace) -> None:
    """Check each case's text against its own passages; no library is opened."""
    verifiers = [] if options.rules else verifiers_of(settings)
    for case in _cases(options.cases):
        result = _check_by_rules(case)
        BACKGROUND.wait(_consult(result, verifiers, settings))
        rows = [_row(statement) for statement in result.scored_statements]
        print_row(options, {"id": case.id, "statements": rows}, _as_text(case.text, rows))


def _check_by_rules(case: _Case) -> Check:
    """Check a case by rules, each sentence against all passages."""
    passages = [_passage(number, text) for number, text in enumerate(case.passages, 1)]
    return Check(case.text, passages, find_passages=lambda _: range(1, len(passages) + 1))


def _check_file(settings: Settings, options: argparse.Namespace) -> None:
    """Check each statement of a text against the passages that a search for it finds."""
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
        BACKGROUND.wait(_consult(result, [] if options.rules else verifiers_of(settings), settings))
    rows = [{**_row(scored), "sources": _sources(scored)} for scored in result.scored_statements]
    print_row(options, {"id": options.file, "statements": rows}, _as_text(text, rows))


async def _consult(result: Check, verifiers: Sequence[Verifier], settings: Settings) -> None:
    """Apply the first verifier that works; if none does, the verdicts of the rules stay."""
    for verifier in verifiers:
        try:
            await result.consult(verifier, "", settings.llm_context_tokens)
            break
        except ModelError as error:
            log.error("%s", error)


def _cases(name: str) -> Iterator[_Case]:
    for number, line in enumerate(read_text_file(name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.strip())
            yield _Case(str(row["id"]), [str(text) for text in row["passages"]], str(row["text"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise IngestError("case_broken", name=name, line=number) from error


def _passage(number: int, text: str) -> Passage:
    return Passage(str(number), "", str(number), "", "", "", (), text, 0, len(text))


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
        sentence = shorten(text[row["start"] : row["end"]])
        lines.append(f"{_SIGNS[row['verdict']]} {row['score']:.2f} {row['by']:5}  {sentence}")
        lines += [f"      {source['url']}  {shorten(source['quote'])}" for source in row.get("sources", ())]
    return "\n".join(lines) + "\n"


def verifiers_of(settings: Settings) -> list[Verifier]:
    """Return the configured verifiers, best first: chat model, local model. Raises ModelError for wrong settings."""
    local = Models(settings).verifier
    verifiers: list[Verifier] = [LocalVerifier(local)] if local else []
    if settings.has_chat_model:
        chats = ChatModels(settings)
        verifiers.insert(0, ChatReasoner(chats.chat(), fast=chats.fast_chat(), texts=chats.prompts))
    return verifiers
