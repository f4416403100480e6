"""One question about two sources: a filing in the library, and news that only the web has. Its pages are substitutes.

The web search is an HTTP server with SearXNG's API that always finds the same three pages, one of them irrelevant; the
model is one with OpenAI's API. Its plan is fixed; its writer states each fact whose quotes are all in the passages that
it gets, and nothing else, in every mode. So an answer shows what a way of searching found, not how a model writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from rag.app import App
from rag.evaluation.cases import Case, case_of
from rag.evaluation.support import normalise_text
from rag.ingest.batch import ingest_all
from rag.ingest.sources import web_source
from rag.prompts.requests import NOT_IN_PAGES
from tests.support.apps import open_app
from tests.support.chat_protocol import PASSAGE, Reply, Request
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.page_server import PageServer
from tests.support.research_model import ResearchModel, form_of, verdicts_of

_FOLDER: Final = Path(__file__).parent
_FILING: Final = "nvidia-10-k-2023"
SCENARIO: Final[Mapping[str, Any]] = json.loads((_FOLDER / "question.json").read_text(encoding="utf-8"))
QUESTION: Final = str(SCENARIO["question"])
_STATEMENT = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)


def case() -> Case:
    """Return the question with its evidence, and the facts as its reference answer."""
    evidence = [{"quote": quote} for quote in SCENARIO["quotes"]]
    reference = " ".join(fact["says"] for fact in SCENARIO["facts"])
    return case_of({"id": "deep", "question": QUESTION, "answers": [reference], "evidence": evidence})


class DeepModel(ResearchModel):
    """A model with a fixed plan that states what its passages support."""

    def __init__(self) -> None:
        super().__init__(
            steps=SCENARIO["plan"], report=write_answer, replies={"QueryReply": make_query, "Judgements": make_verdicts}
        )

    def __call__(self, request: Request) -> Reply | str:
        form = form_of(request)
        if request.tools or form == "Verdicts":
            return rules(request)
        return super().__call__(request)


def write_answer(request: Request) -> str:
    """Return each fact that the passages support, with citations."""
    places = _places(request)
    facts = [(fact["says"], [places.get(n) for n in fact["quotes"]]) for fact in SCENARIO["facts"]]
    lines = [_with_citations(says, [n for n in at if n]) for says, at in facts if all(at)]
    return " ".join(lines) or NOT_IN_PAGES


def make_query(request: Request) -> dict[str, Any]:
    """Return the sub-question as the query, under the heading that the plan names."""
    wanted = re.findall(r"^Sub-question: (.+)$", request.last, re.MULTILINE)[-1]
    step = next(one for one in SCENARIO["plan"] if wanted.startswith(one["question"]))
    return {"query": wanted, "search": "hybrid", "reason": "names and terms", "section": step.get("section", "")}


def make_verdicts(request: Request) -> dict[str, Any]:
    """Return the verdicts: a statement is supported if it is one of the facts and the passages support it."""
    supported = {_without_citations(line) for line in re.split(r"(?<=\.) ", write_answer(request))}
    statements = _STATEMENT.findall(PASSAGE.sub("", request.last))
    return verdicts_of({int(n): _without_citations(statement) in supported for n, statement in statements})


def _places(request: Request) -> dict[int, int]:
    """Return for each quote the number of the first passage that contains all of it."""
    bodies = [(number, normalise_text(text)) for number, text in reversed(request.passages)]
    return {
        at: number
        for at, quote in enumerate(SCENARIO["quotes"])
        for number, body in bodies
        if normalise_text(quote) in body
    }


def _with_citations(says: str, numbers: list[int]) -> str:
    marks = "".join(f"[{number}]" for number in dict.fromkeys(numbers))
    return f"{says.removesuffix('.')} {marks}."


def _without_citations(sentence: str) -> str:
    return normalise_text(re.sub(r"\[\d+\]|\(cites[^)]*\)|\.", "", sentence))


@contextmanager
def deep_app(folder: Path, *, with_model: bool, **settings: Any) -> Iterator[tuple[App, PageServer]]:
    """Yield an app with the filing in its library, the scripted model or none, and the server that finds the news."""
    with PageServer() as server, ChatServer(DeepModel()) as chat:
        for path in _FOLDER.glob("*.html"):
            server.add(f"/{path.stem}", path.read_bytes())
        news = [{"url": server.url(f"/{name}"), "title": name, "content": ""} for name in SCENARIO["news"]]
        server.add("/search", json.dumps({"results": news}), content_type="application/json")
        if with_model:
            settings |= {"llm_model": "test", "llm_base_url": chat.base_url}
        settings |= {"searxng_url": server.origin, "fetch_allow_private_hosts": f"{server.host}:{server.port}"}
        with closing(open_app(folder, **settings)) as app:
            for _, result in ingest_all(app.imports.ingestor("main"), [web_source(server.url(f"/{_FILING}"))]):
                assert result.status == "added", result.notice
            yield app, server
