"""Traces as a collector receives them: a real server that parses the protobuf."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from rag.app import App, Question
from rag.commands.doctor import examine
from rag.runs.run import RunOptions
from tests.support.apps import add_records, ask, open_app
from tests.support.chat_server import ChatServer, rules
from tests.support.collector import Collector
from tests.support.waiting import until

CANARY = "Zanzibarlight"
PAGE = {
    "url": f"https://a.example/{CANARY}",
    "title": f"The lamp of {CANARY}",
    "text": f"The lamp of {CANARY} was wound every four hours. Its keeper wrote it into a book.",
}
QUESTION = f"How often was the lamp of {CANARY} wound?"


@contextmanager
def app_of(folder: Path, **settings: Any) -> Iterator[App]:
    with closing(open_app(folder, **settings)) as app:
        if not app.library("main").page_count():
            add_records(app, PAGE)
        yield app


def values(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes}


def test_a_run_is_a_tree_of_spans_and_a_thumb_belongs_to_it(tmp_path: Path) -> None:
    with Collector() as collector, ChatServer(rules) as chat:
        headers = "Authorization=Basic%20cGs6c2s=, x-langfuse-ingestion-version=4"
        served = {"llm_base_url": chat.base_url, "llm_model": "test"}
        with app_of(tmp_path, trace_url=collector.url, trace_headers=headers, **served) as app:
            asked = app.converse(Question(QUESTION, ("main",), "deep"), owner="ann")
            answer = app.wait(asked.run_id, timeout=60)
            app.feedback.rate(asked.turn_id, 1, owner="ann")
        assert collector.headers[0]["authorization"] == "Basic cGs6c2s="
        assert collector.headers[0]["x-langfuse-ingestion-version"] == "4"
        assert collector.headers[0]["content-type"] == "application/x-protobuf"
        *spans, thumb = collector.spans()
        (root,) = [one for one in spans if not one.parent_span_id]
        assert (root.name, root.trace_id.hex()) == ("invoke_agent Pagelight", asked.run_id)
        ids = {one.span_id for one in spans}
        assert all(one.parent_span_id in ids for one in spans if one is not root)
        assert len(ids) == len(spans)
        assert {one.trace_id for one in [*spans, thumb]} == {root.trace_id}
        assert all(root.start_time_unix_nano <= one.start_time_unix_nano <= one.end_time_unix_nano for one in spans)
        names = {one.name for one in spans}
        assert {"chat test", "execute_tool retrieve", "retrieval", "agent", "generate"} <= names
        chats = [values(one) for one in spans if one.name == "chat test"]
        assert len(chats) == answer.model_calls
        assert sum(one["gen_ai.usage.input_tokens"] for one in chats) == answer.usage.tokens_in
        assert {(one["gen_ai.operation.name"], one["gen_ai.provider.name"]) for one in chats} == {("chat", "openai")}
        told = values(root)
        assert (told["user.id"], told["session.id"]) == ("ann", asked.conversation_id)
        assert told["pagelight.outcome"] == answer.outcome
        assert [one.string_value for one in told["pagelight.cited_pages"].values] == [answer.citations[0].url_hash]
        assert values(thumb.events[0])["gen_ai.evaluation.score.value"] == 1.0
        assert (thumb.parent_span_id, root.events[0].name) == (root.span_id, "gen_ai.evaluation.result")


@pytest.mark.parametrize("content", ["none", "ids", "text"])
def test_what_people_ask_and_read_leaves_only_as_text(tmp_path: Path, content: str) -> None:
    with Collector() as collector:
        with app_of(tmp_path, trace_url=collector.url, trace_content=content) as app:
            for mode in ("fast", "deep", "research"):
                asked = app.converse(Question(QUESTION, ("main",), mode), owner="ann").run_id  # type: ignore[arg-type]
                assert CANARY in app.wait(asked, timeout=60).text
        sent = b"".join(collector.bodies)
        roots = [values(one) for one in collector.spans() if not one.parent_span_id]
        assert len(collector.spans()) > 10
        assert [CANARY in str(one) for one in roots] == [content == "text"] * 3
        assert (CANARY.encode() in sent) == (content == "text")
        assert (b"ann" in sent) == (content != "none")


def test_a_run_that_is_stopped_is_sent_as_it_is(tmp_path: Path) -> None:
    with Collector() as collector, app_of(tmp_path, trace_url=collector.url) as app:
        asked = app.ask(Question(QUESTION, ("main",), options=RunOptions(seconds=1e-9)))
        app.wait(asked, timeout=60)
        until(lambda: collector.bodies)
        assert collector.spans()[0].trace_id.hex() == asked


def test_a_collector_that_fails_is_slow_or_dead_changes_nothing(tmp_path: Path) -> None:
    with Collector(500) as failing, Collector(silence=30.0) as slow:
        for url in (failing.url, slow.url, "http://127.0.0.1:9/v1/traces"):
            with app_of(tmp_path, trace_url=url) as app:
                assert ask(app, QUESTION).citations
                taken = []
                for _ in range(150):  # more than the queue takes
                    began = time.perf_counter()
                    app._traces.rate("0" * 32, 1)
                    taken.append(time.perf_counter() - began)
                assert statistics.median(taken) < 0.005
                began = time.monotonic()
            assert time.monotonic() - began < 10


_ASK = """
import sys
from pathlib import Path
from tests.support.hashed_model import use_hashed_model
from tests.test_app_trace_export import QUESTION, app_of, ask
use_hashed_model()
with app_of(Path(sys.argv[1]), llm_base_url=sys.argv[2], llm_model="test", trace_langsmith=sys.argv[3] == "on") as app:
    assert ask(app, QUESTION).model_calls
    from langchain_core.tracers.langchain import wait_for_all_tracers
    wait_for_all_tracers()
    print(app.langsmith.code)
"""


@pytest.mark.parametrize("allowed", ["off", "on"])
def test_langsmith_gets_nothing_unless_it_is_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: str
) -> None:
    with Collector() as langsmith, ChatServer(rules) as chat:
        for name, value in {
            "LANGSMITH_TRACING": "true",
            "LANGSMITH_API_KEY": "lsv2_secret",
            "LANGSMITH_ENDPOINT": langsmith.url.removesuffix("/v1/traces"),
        }.items():
            monkeypatch.setenv(name, value)
        command = [sys.executable, "-c", _ASK, str(tmp_path), chat.base_url, allowed]
        ran = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert ran.stdout.strip() == f"doctor_langsmith_{allowed}"
        assert bool(langsmith.bodies) == (allowed == "on")


def test_doctor_says_what_is_sent_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANGSMITH_TRACING", "true")
    with app_of(tmp_path, trace_url="http://127.0.0.1:9/v1/traces") as app:
        found = {one.part: one.text for one in examine(app)}
    assert found["traces"] == "spans go to 127.0.0.1:9 (TRACE_CONTENT=ids)."
    assert "turned off" in found["LangSmith"]
