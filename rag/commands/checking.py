"""Checking statements: of a person's own text against the library, or of cases that bring their passages."""

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
from rag.commands.output import put, shorten, text_of
from rag.config import Settings
from rag.errors import IngestError, ModelError
from rag.reasoning.chat import ChatReasoner
from rag.types import Passage

log = logging.getLogger(__name__)

_PASSAGES = 5  # that a statement of a person's own is held against
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
    """Hold each case's text against its own passages; no library is opened."""
    verifiers = [] if options.rules else verifiers_of(settings)
    for case in _cases(options.cases):
        checked = _weighed(case)
        BACKGROUND.wait(_consult(checked, verifiers, settings))
        rows = [_row(weighed) for weighed in checked.weighed]
        put(options, {"id": case.id, "statements": rows}, _as_text(case.text, rows))


def _weighed(case: _Case) -> Check:
    """By rules; each sentence rests on all passages."""
    passages = [_passage(number, text) for number, text in enumerate(case.passages, 1)]
    return Check(case.text, passages, rests_on=lambda _: range(1, len(passages) + 1))


def _check_file(settings: Settings, options: argparse.Namespace) -> None:
    """Hold a text against what the library has on each of its statements."""
    text = text_of(options.file)
    with closing(App(settings)) as app:
        found = {
            stated.bare: app.search(stated.bare, library=settings.rag_library, k=_PASSAGES).passages
            for stated in find_statements(text)
            if stated.checked
        }
        passages = list({passage.id: passage for ones in found.values() for passage in ones}.values())
        numbers = {passage.id: number for number, passage in enumerate(passages, 1)}
        checked = Check(text, passages, rests_on=lambda bare: [numbers[one.id] for one in found.get(bare, ())])
        BACKGROUND.wait(_consult(checked, [] if options.rules else verifiers_of(settings), settings))
    rows = [{**_row(weighed), "sources": _sources(weighed)} for weighed in checked.weighed]
    put(options, {"id": options.file, "statements": rows}, _as_text(text, rows))


async def _consult(checked: Check, verifiers: Sequence[Verifier], settings: Settings) -> None:
    """Ask the first verifier that answers; rules have judged already."""
    for verifier in verifiers:
        try:
            await checked.consult(verifier, "", settings.llm_context_tokens)
            break
        except ModelError as error:
            log.error("%s", error)


def _cases(name: str) -> Iterator[_Case]:
    for number, line in enumerate(text_of(name).split("\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line.strip())
            yield _Case(str(row["id"]), [str(text) for text in row["passages"]], str(row["text"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise IngestError("case_broken", name=name, line=number) from error


def _passage(number: int, text: str) -> Passage:
    return Passage(str(number), "", str(number), "", "", "", (), text, 0, len(text))


def _row(weighed: ScoredStatement) -> dict[str, Any]:
    """One sentence. What states nothing that a passage could bear out is nothing to doubt."""
    stated, finding = weighed.stated, weighed.finding
    verdict, score = (finding.verdict, finding.score) if weighed.counts else ("supported", 1.0)
    return {"start": stated.start, "end": stated.stop, "verdict": verdict, "score": score, "by": weighed.by}


def _sources(weighed: ScoredStatement) -> list[dict[str, Any]]:
    shown = weighed.quotes if weighed.counts and weighed.finding.verdict != "unsupported" else []
    return [{"url": quote.source.passage.url, "quote": quote.text} for quote in shown]


def _as_text(text: str, rows: Sequence[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        said = shorten(text[row["start"] : row["end"]])
        lines.append(f"{_SIGNS[row['verdict']]} {row['score']:.2f} {row['by']:5}  {said}")
        lines += [f"      {source['url']}  {shorten(source['quote'])}" for source in row.get("sources", ())]
    return "\n".join(lines) + "\n"


def verifiers_of(settings: Settings) -> list[Verifier]:
    """The best first: the chat model of the settings, then their local model. Raises ModelError for wrong settings."""
    local = Models(settings).verifier
    found: list[Verifier] = [LocalVerifier(local)] if local else []
    if settings.has_chat_model:
        chats = ChatModels(settings)
        found.insert(0, ChatReasoner(chats.chat(), fast=chats.fast_chat(), texts=chats.prompts))
    return found
