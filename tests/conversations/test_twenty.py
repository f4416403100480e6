"""Twenty conversations of three turns, ten of them in Chinese, over the sample pages and a chat server."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from benchmarks.samples import samples
from rag.conversations.conversations import TurnRequest
from rag.ingest.chunking import get_chunker
from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import LoadedPage, web_source
from rag.models.embedding import SparseEncoder
from rag.reading.parser import Parser
from rag.retrieval.retriever import Retriever
from rag.runs.run import Question
from rag.store.qdrant.edge.client import EdgeClient
from rag.store.qdrant.library import open_library
from rag.text import is_chinese
from rag.types import Page, Passage, Retrieval
from rag.web.fetch import Fetcher
from tests.conversations.conftest import Services
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.conversing import chat_reasoner
from tests.support.hashed_model import HashedModel
from tests.support.storing import store_page

TALKS = json.loads((Path(__file__).parent / "conversations.json").read_text(encoding="utf-8"))


class Found:
    """A keyword search that records its queries and its last results."""

    def __init__(self, retriever: Retriever) -> None:
        self._retriever = retriever
        self.queries: list[str] = []
        self.last: tuple[Passage, ...] = ()

    def search(self, question: str, before: Sequence[str] = ()) -> Retrieval:
        found = self._retriever.search(question, strategy="keyword", earlier_questions=before)
        self.queries.append(question)
        self.last = found.passages
        return found

    def passages(self, ids: Any) -> list[Passage]:
        return self._retriever.passages(ids)


@pytest.fixture(scope="module")
def retriever(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Retriever]:
    model, sparse = HashedModel(), SparseEncoder()
    client = EdgeClient(tmp_path_factory.mktemp("talks") / "qdrant")
    library = open_library(client, "main", model.name, model.dimension)
    ingestor = Ingestor(library, model, sparse, Fetcher(()), Parser(), get_chunker())
    for row in samples().pages:
        url_hash = sha256(row["url"].encode()).hexdigest()
        page = Page(
            row["url"], url_hash, row["title"], row["lang"], "docs.example.com", row["text"], url_hash, "import"
        )
        store_page(ingestor, LoadedPage(web_source(page.url), page), lambda _: None)
    yield Retriever(library, model, sparse)
    client.close()


class Model:
    """A model that completes follow-ups as conversations.json says, and follows the rules otherwise."""

    def __init__(self) -> None:
        self.meant: dict[str, str] = {}
        self.answered: list[str] = []

    def __call__(self, request: Request) -> Reply:
        last = request.last.rsplit("\n", 1)[-1]
        if "Last question:" in last or "最后一个问题：" in last:
            return Reply(self.meant[last.split("：" if is_chinese(last) else ": ", 1)[1]])
        if request.stream:
            self.answered.append(request.last)
        return rules(request)


@pytest.mark.parametrize("talk", TALKS, ids=lambda talk: talk["id"])
def test_the_second_and_third_question_find_what_they_mean(
    talk: dict[str, Any], retriever: Retriever, tmp_path: Path
) -> None:
    found, model = Found(retriever), Model()
    conversation_id = ""
    with ChatServer(model) as server, closing(Services(tmp_path)) as services:
        for place, turn in enumerate(talk["turns"]):
            model.meant[turn["question"]] = meant = turn["standalone"] or turn["question"]
            asking = TurnRequest(
                Question(turn["question"], ("main",)),
                reasoner=chat_reasoner(server.base_url),
                retriever=found,
                conversation_id=conversation_id,
                suggest=False,
            )
            asked = services.kept.ask(asking)
            answer = services.runs.wait(asked.run_id, 20)
            conversation_id = asked.conversation_id
            assert found.queries[-1] == meant, "the search is for what is meant"
            assert meant in model.answered[-1], "and so is the answer"
            assert answer.standalone == turn["standalone"] and answer.model_calls <= 3, "the third checks"
            if place:
                assert turn["page"] in [one.url for one in found.last[:3]]
