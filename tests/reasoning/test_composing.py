"""Three ways to write an answer: all passages at once, one by one, or condensed first and joined."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rag.prompts.requests import answer as answer_prompt
from rag.prompts.texts import SHIPPED
from rag.reasoning.chat import ChatReasoner
from rag.reasoning.composing import (
    CompositionPlan,
    Way,
    choose_plan,
    compose_answer,
    fitting_share,
    group_passages,
    parse_score,
)
from rag.reasoning.extractive import ExtractiveReasoner, distil
from rag.runs.run import Question, RunOptions
from rag.runs.runs import Runs
from rag.types import Answer
from tests.support.answering import BRIDGE, TEA, VOLCANO, FakeRetriever, ask, passage
from tests.support.chat_rules import rules
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.conversing import chat_reasoner
from tests.support.fake_model import QueueModel
from tests.support.quoting import make_quoter

LONG = "The harbour was quiet that morning. " * 80
PASSAGES = [passage(1, VOLCANO + " " + LONG), passage(2, LONG + BRIDGE), passage(3, TEA * 30), passage(4, LONG)]
QUOTER = make_quoter()


OPENED = "When was the bridge opened?"


def _ask(
    runs: Runs,
    server: ChatServer,
    question: str = OPENED,
    *,
    quoter: ExtractiveReasoner | None = QUOTER,
    **options: object,
) -> Answer:
    asked = Question(question, options=RunOptions(**options))  # type: ignore[arg-type]
    retriever = FakeRetriever(default=PASSAGES)
    run_id = runs.start(asked, reasoner=chat_reasoner(server.base_url), retriever=retriever, quoter=quoter)
    answer = runs.wait(run_id, 20)
    assert any(event.kind == "token" for event in runs.events(run_id)) == bool(answer.text)
    return answer


@pytest.mark.parametrize(("way", "calls"), [("stuff", 1), ("refine", 4), ("map_reduce", 5)])
def test_each_way_finds_the_answer_and_cites_the_right_passage(runs: Runs, way: str, calls: int) -> None:
    with ChatServer(rules) as server:
        answer = _ask(runs, server, compose=way)
        assert answer.model_calls == len(server.requests) == calls
        assert [request.stream for request in server.requests] == [False] * (calls - 1) + [True]
    assert answer.composed == way and answer.outcome == "answered"
    assert answer.citations[0].quote == "The bridge was opened in 1932."
    assert answer.citations[0].url == "https://example.org/2"


def test_the_best_of_what_each_passage_answers_stands(runs: Runs) -> None:
    scores = {"opened in 1932": "SCORE: 95", "erupted": "score： 40"}

    def scored(request: Request) -> Reply:
        reply = rules(request)
        if "SCORE: n" not in request.rules:
            return reply
        score = next((line for words, line in scores.items() if words in reply.text), "SCORE: 1")
        return Reply(f"{reply.text}\n\n{score}")

    with ChatServer(scored) as server:
        answer = _ask(runs, server, compose="map_rerank")
        assert answer.model_calls == len(server.requests) == 4, "four passages"
    assert answer.composed == "map_rerank" and answer.outcome == "answered"
    assert answer.text == "The bridge was opened in 1932.[1]"
    assert [one.url for one in answer.citations] == ["https://example.org/2"]


@pytest.mark.parametrize(("way", "asked"), [("map_rerank", "SCORE: n"), ("map_reduce", "take notes")])
def test_where_no_passage_answers_nothing_is_in_the_pages(runs: Runs, way: Way, asked: str) -> None:
    def nothing(request: Request) -> Reply:
        return Reply("NOT_IN_PAGES") if asked in request.rules else rules(request)

    with ChatServer(nothing) as server:
        answer = _ask(runs, server, quoter=None, compose=way)
    assert (answer.outcome, answer.text) == ("not_in_pages", "")


def test_a_score_is_the_last_line_alone() -> None:
    assert parse_score("It is red. [1]\n**SCORE: 80**") == (80, "It is red. [1]")
    assert parse_score("It is red. [1]\nSCORE: 80/100\n") == (80, "It is red. [1]")
    assert parse_score("SCORE: 5 is what the page says. It is red.") == (
        1,
        "SCORE: 5 is what the page says. It is red.",
    )
    assert parse_score("SCORE: 100") == (0, "") == parse_score("")


def test_passages_go_in_at_once_unless_another_way_is_chosen(runs: Runs) -> None:
    assert choose_plan(PASSAGES, "auto", 2_600, 8, deep=True).way == "stuff"
    assert choose_plan(PASSAGES, "map_reduce", 2_600, 1).way == "stuff"  # no call is left for another
    with ChatServer(rules) as server:
        answer = _ask(runs, server, context_tokens=2_600, calls=8)
    assert (answer.composed, answer.model_calls) == ("stuff", 1)
    assert answer.citations[0].quote == "The bridge was opened in 1932."


def test_no_request_is_larger_than_the_model_takes(runs: Runs) -> None:
    sizes = []

    def measured(request: Request) -> Reply:
        sizes.append(sum(len(str(message.get("content") or "")) for message in request.messages))
        return rules(request)

    for options in ({"calls": 2}, {"calls": 8}, {"calls": 8, "compose": "refine"}):
        with ChatServer(measured) as server:
            _ask(runs, server, context_tokens=2_600, **options)  # type: ignore[arg-type]
    assert max(sizes) < 2_600 / 0.27


def test_groups_keep_order_and_numbers() -> None:
    numbered = list(enumerate(PASSAGES, 1))
    groups = group_passages(numbered, CompositionPlan("refine", 16_000, 2))
    assert [[number for number, _ in group] for group in groups] == [[1, 2], [3, 4]]
    alone = group_passages(numbered, CompositionPlan("refine", 16_000, 9))
    assert [[number for number, _ in group] for group in alone] == [[1], [2], [3], [4]]


def test_distilling_keeps_what_bears_on_the_question(runs: Runs) -> None:
    short = QUOTER.distil("When was the bridge opened?", PASSAGES, 0.2)
    assert len(short) == len(PASSAGES)
    assert sum(len(one.text) for one in short) < 0.3 * sum(len(one.text) for one in PASSAGES)
    assert "The bridge was opened in 1932." in short[1].text
    assert distil(PASSAGES, lambda _: 0.0, 1.0) == PASSAGES
    with ChatServer(rules) as server:
        answer = _ask(runs, server, distill=True)
        assert len(str(server.requests[-1].messages)) < sum(len(one.text) for one in PASSAGES)
    assert answer.citations[0].quote == "The bridge was opened in 1932."
    assert answer.passages[0].text == PASSAGES[0].text


def test_gaps_are_marked() -> None:
    one = passage(1, "The bridge is red. It rains. It snows. The bridge is long.")
    (short,) = distil([one], lambda text: float("bridge" in text), 0.65)
    assert short.text == "The bridge is red. … The bridge is long."


def test_a_chinese_question_of_english_pages_is_composed_in_chinese(runs: Runs) -> None:
    with ChatServer(rules) as server:
        answer = _ask(runs, server, "龙井茶产于哪里？", compose="map_reduce")
        systems = [request.rules for request in server.requests]
    assert answer.citations[0].url == "https://example.org/3"
    assert "做笔记" in systems[1] and "用中文回答" in systems[-1]


def test_deep_answers_tell_sources_apart_by_their_dates() -> None:
    old, new = (replace(passage(n), date=date) for n, date in ((1, "2023-05-01"), (2, "2026-01-02T00:00:00Z")))
    prompt = answer_prompt(SHIPPED, "When?", [(1, old), (2, new)], deep=True)
    assert "Page 1 › Top › Part 1 (2023-05-01)" in prompt.user and "(2026-01-02)" in prompt.user
    assert "A (2023) says" in prompt.user
    assert "A (2023) says" not in answer_prompt(SHIPPED, "When?", [(1, old), (2, new)]).user
    assert "A（2023）说" in answer_prompt(SHIPPED, "什么时候？", [(1, old), (2, new)], deep=True).user
    same = [(1, old), (2, replace(old, id="p9"))]
    assert "A (2023) says" not in answer_prompt(SHIPPED, "When?", same, deep=True).user


def _composed(way: Way, replies: list[str]) -> tuple[str, list[Request]]:
    with ChatServer(replies) as server:

        async def read() -> str:
            passages, plan = [passage(1, BRIDGE), passage(2, TEA)], CompositionPlan(way, 16_000, len(replies))
            reasoner = chat_reasoner(server.base_url)
            return "".join([piece async for piece in compose_answer(reasoner, "How?", passages, plan)])

        return asyncio.run(read()), server.requests


def test_an_unchanged_draft_is_the_answer_verbatim() -> None:
    draft = "**In short:** it opened in 1932 [1].\n\n1. Bring a card [1].\n2. Pay -5 points [1]."
    text, _ = _composed("refine", [draft, "NOT_IN_PAGES"])
    assert text == draft


def test_notes_keep_signs_and_marks() -> None:
    notes = ["-5 °C was measured [1]\n**Note:** two steps [1]\n“碳中和”是目标 [1]", "NOT_IN_PAGES", "It is so [1]."]
    _, requests = _composed("map_reduce", notes)
    assert "-5 °C was measured\n**Note:** two steps\n“碳中和”是目标\n" in requests[-1].last


def test_what_fits() -> None:
    assert fitting_share(PASSAGES, 10**6) == 1.0
    assert 0 < fitting_share(PASSAGES, 100) < 0.1


def test_a_fast_model_does_all_but_the_answer(runs: Runs) -> None:
    fast, best = QueueModel(replies=['{"irrelevant": [2]}']), QueueModel(replies=[["It erupted in 1953.[1]"]])
    answer, _ = ask(runs, ChatReasoner(best, fast=fast), mode="deep")
    assert answer.outcome == "answered"
    assert len(fast.requests) >= 1 and len(best.requests) == 1
