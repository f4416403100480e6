"""Routing of messages: right for nearly all of those that others wrote, and never wrong where it costs most."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from rag.errors import ModelError
from rag.routing import router
from rag.routing.router import (
    ROUTES,
    TRAINING,
    Message,
    Route,
    Router,
    digest,
    read_message,
    read_options,
    route_probabilities,
    strip_save_request,
    training_digest,
)

HERE = Path(__file__).parent
TODAY = date(2026, 11, 23)


def utterances(name: str) -> list[tuple[str, str]]:
    with (HERE / name).open(encoding="utf-8") as lines:
        return [(row["question"], row["route"]) for row in map(json.loads, lines)]


@pytest.mark.parametrize("name", ["utterances.jsonl", "kept_back.jsonl"])
def test_messages_that_somebody_else_wrote_go_their_way(name: str) -> None:
    rows, router = utterances(name), Router()
    told = [router.route(text).route for text, _ in rows]
    right = Counter(route for (_, route), said in zip(rows, told, strict=True) if route == said)
    meant, said = Counter(route for _, route in rows), Counter(told)
    assert sum(2 * right[route] / (meant[route] + said[route]) for route in ROUTES) / len(ROUTES) >= 0.9
    wrong = [(route, said) for (_, route), said in zip(rows, told, strict=True) if route != said]
    assert not [pair for pair in wrong if pair[1] == "save" and pair[0] != "save_then_ask"]
    assert not [pair for pair in wrong if pair[1] == "web"]
    assert not [pair for pair in wrong if pair[0] == "ask" and pair[1] in ("unknown", "small_talk")]


def test_keywords_are_searched_for() -> None:
    rows, router = utterances("keywords.jsonl"), Router()
    routes = Counter(router.route(text).route for text, _ in rows)
    assert routes["unknown"] + routes["small_talk"] <= 0.02 * len(rows)


def test_you_may_mean_anyone_or_the_author_of_a_page() -> None:
    rows, router = utterances("addressed.jsonl"), Router()
    routes = Counter((route, router.route(text).route) for text, route in rows)
    asked, talked = (sum(count for (meant, _), count in routes.items() if meant == it) for it in ("ask", "small_talk"))
    assert routes["ask", "ask"] >= 0.9 * asked
    assert routes["small_talk", "small_talk"] >= 0.9 * talked


def test_a_question_is_never_called_unintelligible() -> None:
    text = "will my son cope?"
    assert route_probabilities(read_message(text))["unknown"] > 0.5, "take another question"
    assert Router().route(text).route == "ask"


def test_the_weights_are_those_of_the_training_file() -> None:
    assert training_digest() == digest(TRAINING), "fit them anew: python -m benchmarks.routing --fit"


def test_no_message_of_the_tests_was_learned_from() -> None:
    with TRAINING.open(encoding="utf-8") as lines:
        learned = {json.loads(line)["question"].strip().lower() for line in lines}
    names = ("utterances.jsonl", "kept_back.jsonl", "keywords.jsonl", "addressed.jsonl")
    held = {text.strip().lower() for name in names for text, _ in utterances(name)}
    assert not learned & held


@pytest.mark.parametrize(
    ("text", "route", "by"),
    [
        ("https://a.example/x", "save", "rules"),
        ("https://a.example/x\nwww.b.example/y、c.example.org/z。", "save", "rules"),
        ("12 * 7", "calculate", "rules"),
        ("北京现在几点", "date", "rules"),
        ("…", "unknown", "rules"),
        ("我刚才问了什么？", "small_talk", "rules"),
        ("你好", "small_talk", "classifier"),
        ("what can I do here", "small_talk", "classifier"),
        ("我在这里能做什么", "small_talk", "classifier"),
        ("Which page is newest?", "statistics", "classifier"),
        ("哪些网页是2024年发表的？", "statistics", "classifier"),
        ("Which pages mention kettles?", "statistics", "classifier"),
        ("summary judgment requirements", "ask", "classifier"),
        ("Summarise “pacman”", "summarise", "rules"),
        ("总结“pacman”", "summarise", "rules"),
        ("总结《什么变了》", "summarise", "rules"),
        ("is “summary” a noun?", "ask", "classifier"),
        ("Why was the web search engine Altavista shut down?", "ask", "classifier"),
        ("最近更新的版本是多少", "ask", "classifier"),
        ("总结性条款有哪些", "ask", "classifier"),
    ],
)
def test_plain_cases(text: str, route: str, by: str) -> None:
    routed = Router().route(text)
    assert (routed.route, routed.by) == (route, by)


def test_nothing_is_saved_that_holds_no_address_and_no_file() -> None:
    assert Router().route("save this page").route not in ("save", "save_then_ask")
    assert Router().route("save it please", has_files=True).route == "save"
    assert Router().route("", has_files=True).route == "save"


def test_what_a_person_chose_holds_for_messages_like_it() -> None:
    text = "Wie viele Seiten, was kosten sie?"
    router = Router(lambda: [(read_message(text).masked, "statistics")])
    assert (router.route(text).route, router.route(text).by) == ("statistics", "person")
    assert router.route("What does the premium plan cost?").by != "person"


async def test_a_model_is_asked_only_where_it_is_unsure_and_may_fail() -> None:
    asked: list[str] = []

    async def model(message: Message) -> tuple[Route, str]:
        asked.append(message.text)
        return "statistics", "counts pages"

    async def broken(message: Message) -> tuple[Route, str]:
        raise ModelError("chat_unreachable")

    assert (await Router().ask("What is the refund deadline for cancelled courses?", model)).route == "ask"
    assert not asked
    unsure = "现在库有多大了"
    assert Router().route(unsure).confidence < 0.8
    assert (await Router().ask(unsure, model)).by == "model"
    assert (await Router().ask(unsure, broken)) == Router().route(unsure)


async def test_a_message_does_not_wait_for_a_slow_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(router, "MODEL_TIMEOUT", 0.05)

    async def slow(message: Message) -> tuple[Route, str]:
        await asyncio.sleep(30)
        return "statistics", "too late"

    unsure = "现在库有多大了"
    assert (await Router().ask(unsure, slow)) == Router().route(unsure)


@pytest.mark.parametrize(
    ("text", "rest", "found"),
    [
        ("In deep mode, why did it fail?", "why did it fail?", {"mode": "deep"}),
        ("用关键词检索 NAS 备份", "NAS 备份", {"strategy": "keyword"}),
        ("只看中文网页，票价多少", "票价多少", {"language": "zh"}),
        ("What is deep mode?", "What is deep mode?", {}),
        ("Does semantic search work offline?", "Does semantic search work offline?", {}),
        ("按语义切分", "按语义切分", {}),
    ],
)
def test_wishes_are_read_and_taken_out(text: str, rest: str, found: dict[str, object]) -> None:
    wishes = read_options(text, TODAY)
    assert (wishes.rest, dict(wishes.values)) == (rest, found)


def test_a_wish_that_was_taken_off_stays_in_the_question() -> None:
    text = "In deep mode, why did it fail?"
    assert read_options(text, TODAY, without=["mode"]).rest == text


def test_how_pages_are_cut_is_read_where_they_are_saved() -> None:
    text = "read this in with chunk size 500 and semantic chunking"
    assert dict(read_options(text, TODAY, saves=True).values) == {"chunk_size": 500, "chunker": "semantic"}
    assert read_options(text, TODAY).rest == text
    days = read_options("只看最近一周保存的网页，价格是多少？", TODAY)
    assert days.rest == "价格是多少？"
    assert days.values["days"][0] <= date(2026, 11, 17)


@pytest.mark.parametrize(
    ("rest", "question"),
    [
        ("Save and then tell me the price", "tell me the price"),
        ("保存，然后告诉我价格", "告诉我价格"),
        ("看一下。它的价格是多少？", "看一下。它的价格是多少？"),
        ("what does say about refunds?", "what does say about refunds?"),
    ],
)
def test_a_question_is_asked_without_the_words_that_save(rest: str, question: str) -> None:
    assert strip_save_request(rest) == question
