"""The contract of every reasoner: the extractive one, and a chat model over HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Sequence
from typing import TypeVar

import pytest

from rag.checking.citations import check
from rag.graphs.answer import read_decision, retrieve_tool
from rag.reasoning import RESET, Reasoner
from rag.runs.runs import Runs
from rag.text import terms
from rag.types import Passage, RunMode
from tests.support.answering import BRIDGE, TEA, VOLCANO, FakeRetriever, ask, passage
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer
from tests.support.conversing import chat_reasoner
from tests.support.quoting import make_quoter

T = TypeVar("T")

QUESTIONS = [
    ("When did Mount Aso erupt?", VOLCANO, "1953"),
    ("How many lanes of traffic does the bridge carry?", BRIDGE, "eight lanes"),
    ("龙井茶产于哪里？", TEA, "杭州"),
]
UNANSWERABLE = ["Who painted the ceiling of the Sistine Chapel?", "量子计算机的退相干时间是多少？"]
PASSAGES = [passage(1, VOLCANO), passage(2, BRIDGE), passage(3, TEA)]


@pytest.fixture(params=["extractive", "chat"])
def reasoner(request: pytest.FixtureRequest) -> Iterator[Reasoner]:
    if request.param == "extractive":
        yield make_quoter()
        return
    with ChatServer(rules) as server:
        yield chat_reasoner(server.base_url)


def _read(reasoner: Reasoner, question: str, passages: Sequence[Passage]) -> list[str]:
    async def read() -> list[str]:
        return [piece async for piece in reasoner.answer(question, passages)]

    return asyncio.run(read())


def _do(work: Awaitable[T]) -> T:
    async def run() -> T:
        return await work

    return asyncio.run(run())


def test_it_says_what_it_is(reasoner: Reasoner) -> None:
    assert reasoner.kind in ("extractive", "chat")
    assert reasoner.name


@pytest.mark.parametrize("question", [q for q, _, _ in QUESTIONS])
def test_a_question_is_searched_for(reasoner: Reasoner, question: str) -> None:
    wish = read_decision(_do(reasoner.decide(question, [], [retrieve_tool()])))
    assert wish.queries and not wish.text and not wish.problem


@pytest.mark.parametrize(("question", "source", "gold"), QUESTIONS)
def test_grades_are_one_for_each_and_let_the_source_through(
    reasoner: Reasoner, question: str, source: str, gold: str
) -> None:
    grades = _do(reasoner.grade(question, PASSAGES))
    assert len(grades) == len(PASSAGES)
    assert all(isinstance(grade, bool) for grade in grades)
    assert grades[[p.text for p in PASSAGES].index(source)]
    assert not all(grades)


@pytest.mark.parametrize(("question", "source", "gold"), QUESTIONS)
def test_an_answer_holds_the_fact_and_cites_its_source(
    reasoner: Reasoner, question: str, source: str, gold: str
) -> None:
    pieces = _read(reasoner, question, PASSAGES)
    assert pieces and RESET not in pieces
    checked = check("".join(pieces), PASSAGES)
    text, citations = checked.text, checked.citations
    assert gold in text
    assert citations and citations[0].quote in source
    by_url = {p.url: p for p in PASSAGES}
    for citation in citations:
        cited = by_url[citation.url]
        assert cited.text[citation.start - cited.start : citation.end - cited.start] == citation.quote


@pytest.mark.parametrize("question", UNANSWERABLE)
def test_what_the_passages_do_not_hold_is_not_answered(reasoner: Reasoner, question: str) -> None:
    assert "".join(_read(reasoner, question, PASSAGES)).strip() == ""


def test_no_passages_give_no_grades_and_a_rewrite_of_some_kind(reasoner: Reasoner) -> None:
    question = "What is the height of the tower?"
    assert isinstance(_do(reasoner.rewrite(question, [question], [])), str)


@pytest.mark.parametrize("question", [q for q, _, _ in QUESTIONS])
def test_rewrites_keep_a_key_term_and_come_to_an_end(reasoner: Reasoner, question: str) -> None:
    async def until_none_is_left() -> list[str]:
        tried = [question]
        while len(tried) < 9:
            query = await reasoner.rewrite(question, tried, PASSAGES)
            if not query or query.casefold() in {t.casefold() for t in tried}:
                break
            tried.append(query)
        return tried

    tried = asyncio.run(until_none_is_left())
    assert 2 <= len(tried) <= 8
    assert all(set(terms(query)) & set(terms(question)) for query in tried)


@pytest.mark.parametrize("mode", ["fast", "deep"])
@pytest.mark.parametrize(("question", "source", "gold"), QUESTIONS)
def test_a_whole_run(reasoner: Reasoner, runs: Runs, mode: RunMode, question: str, source: str, gold: str) -> None:
    answer, events = ask(runs, reasoner, FakeRetriever(default=PASSAGES), question=question, mode=mode)
    assert (answer.outcome, answer.notice) == ("answered", None)
    assert gold in answer.text and answer.citations
    assert (answer.model_calls == 0) == (reasoner.kind == "extractive")
    assert "".join(e.data for e in events if e.kind == "token")


@pytest.mark.parametrize("mode", ["fast", "deep"])
def test_a_whole_run_without_an_answer(reasoner: Reasoner, runs: Runs, mode: RunMode) -> None:
    question = UNANSWERABLE[0]
    answer, events = ask(runs, reasoner, FakeRetriever(default=PASSAGES), question=question, mode=mode)
    assert (answer.outcome, answer.text) == ("not_in_pages", "")
    assert answer.passages and not any(event.kind == "token" for event in events)


def test_one_reasoner_serves_many_at_once(reasoner: Reasoner) -> None:
    async def all_at_once() -> list[str]:
        async def read(question: str) -> str:
            return "".join([piece async for piece in reasoner.answer(question, PASSAGES)])

        return await asyncio.gather(*(read(question) for question, _, _ in QUESTIONS * 5))

    texts = asyncio.run(all_at_once())
    for text, (_, _, gold) in zip(texts, QUESTIONS * 5, strict=True):
        assert gold in text
