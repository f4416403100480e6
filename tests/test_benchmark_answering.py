"""The graph's overhead is measured on runs that answer, and the scripted server repeats its answers as configured."""

from __future__ import annotations

import json
import urllib.request

from benchmarks.answering import chat_server, graph_overhead, research_overhead


def test_the_graph_is_measured_by_answered_questions() -> None:
    found = graph_overhead(2)
    assert set(found) == {
        f"{mode}_{turn}_question{late}_ms"
        for mode in ("fast", "deep")
        for turn in ("first", "second")
        for late in ("", "_p95")
    }
    assert all(0 < value < 5000 for value in found.values())


def test_research_is_measured_by_runs_that_come_to_their_report() -> None:
    found = research_overhead(1)
    assert set(found) == {f"{name}{late}_ms" for name in ("research", "research_kept") for late in ("", "_p95")}
    assert all(0 < value < 10_000 for value in found.values())


def test_the_talkative_model_says_its_answer_several_times() -> None:
    asked = "<passage-1>\n[1] Bridges\nThe bridge was opened in 1911.\n</passage-1>\n\nQuestion: When was it opened?"
    with chat_server(times=3) as address:
        body = json.dumps({"model": "test", "messages": [{"role": "user", "content": asked}]}).encode()
        request = urllib.request.Request(f"{address}/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=20) as reply:
            said = json.load(reply)["choices"][0]["message"]["content"]
    assert said.count("1911") == 3
