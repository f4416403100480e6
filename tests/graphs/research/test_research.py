"""Research end to end: planned, searched in parallel, read, decided, written, checked, within its limits."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rag.conversations.checkpoints import Checkpoints
from rag.errors import StoreError, WebSearchError
from rag.graphs.modes import MODES
from rag.graphs.research.nodes import stagnation
from rag.runs.run import Hooks, Question, RunOptions
from rag.runs.runs import Runs
from rag.store.sql.conversation_table import Change
from rag.types import Answer, Wait
from tests.support.answering import BRIDGE, VOLCANO, FakeRetriever, passage
from tests.support.chat_server import ChatServer, Reply, Request
from tests.support.conversing import QUOTER, chat_reasoner, run_over_http
from tests.support.research_model import ResearchModel, step

BOTH = "When did Mount Aso erupt, and when was the bridge opened?"
FIRST, SECOND = "When did Mount Aso erupt?", "When was the bridge opened?"
CONTINUE = {"ChoiceReply": {"action": "continue", "justification": "", "steps": []}}


@pytest.fixture
def retriever() -> FakeRetriever:
    return FakeRetriever(by_query={FIRST: [passage(1, VOLCANO)], SECOND: [passage(2, BRIDGE)]})


def research(
    runs: Runs,
    model: ResearchModel | None,
    retriever: Any,
    *,
    question: str = BOTH,
    changes: Sequence[Change] = (),
    retried: int = 0,
    **options: Any,
) -> Answer:
    """Run the question to its end; expect `retried` repeated requests."""
    asked = Question(question, mode="research", options=RunOptions(**options))
    hooks = Hooks(load_changes=lambda: list(changes))
    answer, requests = run_over_http(runs, model, retriever, asked, hooks=hooks)
    assert answer.model_calls == len(requests) - retried
    return answer


def begin(runs: Runs, server: ChatServer, retriever: Any, text: str = BOTH, thread: str = "", **options: Any) -> str:
    question, reasoner = Question(text, mode="research", options=RunOptions(**options)), chat_reasoner(server.base_url)
    return runs.start(question, reasoner=reasoner, retriever=retriever, quoter=QUOTER, thread=thread)


def first_wait(runs: Runs, run_id: str) -> Wait:
    while not (waits := [one.data for one in runs.events(run_id) if one.kind == "waiting"]):
        runs.events(run_id, len(runs.events(run_id)), 60)
    (wait,) = waits[0]
    return wait  # type: ignore[no-any-return]


def stop_of(answer: Answer) -> str:
    return str(answer.trail["stop"]["code"])


def steps_of(answer: Answer) -> list[tuple[str, str]]:
    return [(one["sub_question"], one["status"]) for one in answer.trail["plan"]]


def test_steps_run_side_by_side_and_the_report_cites_what_they_found(runs: Runs, retriever: FakeRetriever) -> None:
    answer = research(runs, ResearchModel(), retriever, searches=2)  # complete with the last one that is allowed
    assert (answer.outcome, answer.notice) == ("answered", None)
    assert steps_of(answer) == [(FIRST, "done"), (SECOND, "done")]
    assert stop_of(answer) == "research_complete"
    assert sorted(retriever.queries) == [FIRST, SECOND]
    assert [one.quote for one in answer.citations] == ["Mount Aso erupted in 1953.", "The bridge was opened in 1932."]
    assert {one["id"]: one["steps"] for one in answer.trail["ledger"]} == {"p1": ["s1"], "p2": ["s2"]}
    assert answer.trail["ledger"][0]["distilled"] == ["Mount Aso erupted in 1953."]


def test_without_a_model_quotes_are_the_report(runs: Runs, retriever: FakeRetriever) -> None:
    answer = research(runs, None, retriever, question=FIRST)
    assert answer.model_calls == 0 and answer.outcome in ("answered", "caveat")
    assert answer.citations[0].quote == "Mount Aso erupted in 1953."


BORN, HOP = "In which town was the designer of the Harbour Bridge born?", "Ada Lindqvist town born?"


@pytest.mark.parametrize("is_found", [True, False])
def test_a_follow_up_search_by_rules_is_a_question_and_no_gap(runs: Runs, is_found: bool) -> None:
    bridge = passage(1, "The designer of the Harbour Bridge was Ada Lindqvist.", title="Harbour Bridge")
    person = passage(2, "Ada Lindqvist was born in Skagen, a small town.", title="Ada Lindqvist")
    retriever = FakeRetriever(default=[person], by_query={BORN: [bridge], HOP: [person] if is_found else []})
    answer = research(runs, None, retriever, question=BORN)
    hop = ("What do your pages say about “Ada Lindqvist”?", "done" if is_found else "empty")
    assert steps_of(answer) == [(BORN, "done"), hop]
    assert retriever.queries[-1] == HOP and answer.trail["gaps"] == []
    assert hop[0] not in answer.text


def test_a_step_waits_for_those_that_it_needs(runs: Runs, retriever: FakeRetriever) -> None:
    model = ResearchModel(steps=(step(FIRST), step(SECOND, needs=[1])), replies=CONTINUE)
    answer = research(runs, model, retriever)
    assert retriever.queries == [FIRST, SECOND]
    assert [(one["action"], one["by"]) for one in answer.trail["decisions"]] == [
        ("continue", "model"),
        ("finish", "rules"),
    ]


def test_a_failed_step_costs_its_siblings_nothing(runs: Runs, retriever: FakeRetriever) -> None:
    search = retriever.search

    def breaks(question: str, before: Any = (), **how: Any) -> Any:
        if question == SECOND:
            raise StoreError("store_unreachable", url="http://db")
        return search(question, before, **how)

    retriever.search = breaks  # type: ignore[method-assign]
    answer = research(runs, ResearchModel(report="Mount Aso erupted in 1953 [1]."), retriever)
    assert steps_of(answer) == [(FIRST, "done"), (SECOND, "failed")]
    assert answer.text == "Mount Aso erupted in 1953.[1]"
    assert [(gap["sub_question"], gap["code"]) for gap in answer.trail["gaps"]] == [(SECOND, "store_unreachable")]


def test_what_nothing_bears_out_is_mended_once_else_struck(runs: Runs, retriever: FakeRetriever) -> None:
    written = "Mount Aso erupted in 1953 [1]. The bridge was opened in 1777 [2]. The bridge cost 9999 pounds [2]."
    mended = {"sentences": [{"number": 1, "sentence": "The bridge was opened in 1932. [2]"}]}
    answer = research(runs, ResearchModel(report=written, replies={"MendReply": mended}), retriever)
    assert answer.text == "Mount Aso erupted in 1953.[1] The bridge was opened in 1932.[2]"
    assert answer.trail["struck"] == ["The bridge cost 9999 pounds [2]."]
    assert answer.notice and answer.notice.code == "research_struck"
    assert all(one.verdict != "unsupported" for one in answer.statements)


def _broken(_: Request) -> Reply:
    return Reply("{ this is no JSON")


def _refused(_: Request) -> Reply:
    return Reply("no", status=400)


ADVERSARIES: dict[str, dict[str, Any]] = {
    "always continue": CONTINUE,
    "broken JSON": dict.fromkeys(("PlanReply", "QueryReply", "ReadReply", "ChoiceReply", "MendReply"), _broken),
    "refusals": dict.fromkeys(("PlanReply", "QueryReply", "ReadReply", "ChoiceReply", "MendReply"), _refused),
    "nothing is ever met": {"ReadReply": {"sentences": [], "summary": "", "met": []}},
}


@pytest.mark.parametrize("kind", ADVERSARIES)
def test_a_hostile_model_cannot_pass_a_limit_and_a_report_is_written(
    runs: Runs, retriever: FakeRetriever, kind: str
) -> None:
    answer = research(runs, ResearchModel(replies=ADVERSARIES[kind]), retriever)
    assert answer.model_calls <= MODES["research"].max_calls
    assert answer.text and answer.citations
    assert {one.url for one in answer.citations} <= {one["url"] for one in answer.trail["ledger"]}


def test_endless_new_sub_questions_end_at_the_limits(runs: Runs, retriever: FakeRetriever) -> None:
    numbers = itertools.count()

    def more(_: Request) -> Any:
        steps = [step(f"What about bridge number {next(numbers)}?") for _ in range(5)]
        return {"action": "revise", "justification": "more", "steps": steps}

    unmet = {"sentences": [], "summary": "", "met": [1]}
    model = ResearchModel(replies={"ChoiceReply": more, "ReadReply": unmet})
    answer = research(runs, model, retriever)
    assert answer.model_calls <= MODES["research"].max_calls
    assert len(answer.trail["plan"]) <= 2 + 2 * 2
    assert answer.text


def test_more_calls_than_the_most_are_never_made(runs: Runs, retriever: FakeRetriever) -> None:
    many = tuple(step(f"Who is number {n}?") for n in range(6))
    answer = research(runs, ResearchModel(steps=many), retriever, calls=99)
    assert answer.model_calls <= 24
    few = research(runs, ResearchModel(steps=many), retriever, calls=5)
    assert few.model_calls <= 5 and few.text


def test_searches_end_at_their_limit(runs: Runs, retriever: FakeRetriever) -> None:
    many = tuple(step(f"Who is number {n}?") for n in range(6))
    answer = research(runs, ResearchModel(steps=many), retriever, searches=2)
    assert len(retriever.queries) == 2
    assert [status for _, status in steps_of(answer)] == ["done", "done", "open", "open", "open", "open"]
    assert stop_of(answer) == "research_budget_searches" and answer.outcome == "caveat"
    assert [gap["code"] for gap in answer.trail["gaps"]] == ["research_gap_open"] * 4


def test_a_person_changes_the_plan_while_it_is_carried_out(runs: Runs, retriever: FakeRetriever) -> None:
    steps = (step(FIRST), step("Who built it?", needs=[1]), step("Who paid?", needs=[1]))
    model = ResearchModel(steps=steps, replies=CONTINUE)
    changes: list[Change] = []
    retriever.before = lambda: changes.extend(
        [
            Change("step_skip", {"id": "s2"}),
            Change("step_edit", {"id": "s3", "sub_question": SECOND}),
            Change("step_add", {"id": "p1", "sub_question": "How wide is the crater?"}),
            Change("step_edit", {"id": "s1", "sub_question": "Too late."}),
        ]
        if not changes
        else []
    )
    answer = research(runs, model, retriever, changes=changes)
    assert steps_of(answer) == [
        (FIRST, "done"),
        ("Who built it?", "skipped"),
        (SECOND, "done"),
        ("How wide is the crater?", "done"),
    ]
    assert [one["by"] for one in answer.trail["plan"]] == ["plan", "plan", "person", "person"]


def test_a_person_ends_the_search(runs: Runs, retriever: FakeRetriever) -> None:
    steps, report = (step(FIRST), step(SECOND, needs=[1])), "Mount Aso erupted in 1953 [1]."
    model = ResearchModel(steps=steps, report=report, replies=CONTINUE)
    changes: list[Change] = []
    retriever.before = lambda: changes.append(Change("finish"))
    answer = research(runs, model, retriever, changes=changes)
    assert stop_of(answer) == "research_stopped_by_person"
    assert answer.text == "Mount Aso erupted in 1953.[1]"


def test_a_stopped_report_is_kept_up_to_its_last_complete_sentence(runs: Runs, retriever: FakeRetriever) -> None:
    begun = "Mount Aso erupted in 1953, as people near it recall [1].\n\n## Later\n\nThe crater was then"
    pieces = [f"{part} " for part in begun.split(" ")]  # doubled, since a stream that hangs ends halfway
    model = ResearchModel(report=Reply(parts=[*pieces, *pieces], pause=0.01, fault="hang"))
    with ChatServer(model) as server:
        run_id = begin(runs, server, retriever)
        seen: list[str] = []
        while "crater" not in "".join(seen):
            events = runs.events(run_id, since=len(seen), wait=60)
            assert events
            seen += [str(one.data) if one.kind == "token" else "" for one in events]
        runs.cancel(run_id)
        answer = runs.wait(run_id, 60)
    assert answer.text == "Mount Aso erupted in 1953, as people near it recall.[1]"
    assert (answer.outcome, answer.notice and answer.notice.code) == ("caveat", "run_stopped")
    assert answer.citations and answer.composed != "quoted" and len(answer.trail["ledger"]) == 2


def test_nothing_found_is_said(runs: Runs) -> None:
    answer = research(runs, ResearchModel(), FakeRetriever(default=[]))
    assert answer.outcome == "not_in_pages" and answer.text == ""
    assert [status for _, status in steps_of(answer)] == ["empty", "empty"]


def test_a_step_of_the_web_is_searched_there_and_marked(runs: Runs, retriever: FakeRetriever) -> None:
    asked: list[str] = []

    def web(query: str) -> list[Any]:
        asked.append(query)
        return [replace(passage(9, BRIDGE), id="web:hash9:0")]

    model = ResearchModel(steps=(step(FIRST), step(SECOND, tool="web")))
    without = research(runs, model, retriever)
    assert [note["code"] for note in without.trail["notes"]] == ["research_web_unset"]
    retriever.web, retriever.queries = web, []
    answer = research(runs, model, retriever, web="allowed")
    assert (asked, retriever.queries) == ([SECOND], [FIRST])
    sources = {one["id"]: (one["source"], bool(one["fetched_at"])) for one in answer.trail["ledger"]}
    assert sources == {"p1": ("library", False), "web:hash9:0": ("web", True)}
    assert answer.citations[1].url == "https://example.org/9"


def test_a_web_that_does_not_answer_leaves_the_library(runs: Runs, retriever: FakeRetriever) -> None:
    def web(query: str) -> list[Any]:
        raise WebSearchError("web_search_slow", name="SearXNG")

    retriever.web = web
    model = ResearchModel(steps=(step(FIRST), step(SECOND, tool="web")))
    answer = research(runs, model, retriever, web="allowed")
    assert steps_of(answer) == [(FIRST, "done"), (SECOND, "done")]
    assert [note["code"] for note in answer.trail["notes"]] == ["web_search_slow"]


@pytest.mark.parametrize(
    ("steps", "said", "done", "asked_web"),
    [
        ((FIRST, "web"), "question", ["done", "done"], [SECOND]),
        ((FIRST, "web"), "conversation", ["done", "done"], [SECOND]),
        ((FIRST, "web"), "no", ["done", "skipped"], []),
        (("web",), "no", ["done"], []),
    ],
)
def test_the_person_is_asked_before_the_question_leaves_the_machine(
    tmp_path: Path, retriever: FakeRetriever, steps: tuple[str, ...], said: str, done: list[str], asked_web: list[str]
) -> None:
    runs = Runs(MODES, saver=Checkpoints(tmp_path / "conversations.sqlite3").saver)
    beyond: list[str] = []
    retriever.web = lambda query: beyond.append(query) or [replace(passage(9, BRIDGE), id="web:hash9:0")]
    planned = [step(SECOND, tool="web") if one == "web" else step(one) for one in steps]
    with closing(runs), ChatServer(ResearchModel(steps=planned, report="It was so [1].")) as server:
        run_id = begin(runs, server, retriever, thread="one", web="ask")
        wait = first_wait(runs, run_id)
        assert (wait.asks["web"], beyond, retriever.queries) == ([SECOND], [], [])
        runs.reply(run_id, {wait.id: {"web": said}})
        answer = runs.wait(run_id, 60)
    assert beyond == asked_web
    assert [status for _, status in steps_of(answer)] == done
    refused = [(SECOND, "research_web_refused")] if "skipped" in done else []
    assert [(gap["sub_question"], gap["code"]) for gap in answer.trail["gaps"]] == refused
    assert retriever.queries == [FIRST] * (FIRST in steps) + [SECOND] * (steps == ("web",))


def test_a_question_that_can_mean_two_things_is_asked_about_once(tmp_path: Path, retriever: FakeRetriever) -> None:
    planned = {"aspects": [], "steps": [step(FIRST)], "unclear": "Mount Aso, or the town?"}
    model = ResearchModel(replies={"PlanReply": planned}, report="It was so [1].")
    runs = Runs(MODES, saver=Checkpoints(tmp_path / "conversations.sqlite3").saver)
    with closing(runs), ChatServer(model) as server:
        run_id = begin(runs, server, retriever, "When did Aso erupt?", thread="one")
        wait = first_wait(runs, run_id)
        assert (wait.asks["unclear"], retriever.queries) == ("Mount Aso, or the town?", [])
        runs.reply(run_id, {wait.id: {"changes": [], "meant": "the mountain"}})
        answer = runs.wait(run_id, 60)
    assert answer.standalone == "When did Aso erupt? (the mountain)"
    assert (model.asked.count("PlanReply"), retriever.queries) == (2, [FIRST])


def test_nobody_is_asked_where_nobody_can_answer(runs: Runs, retriever: FakeRetriever) -> None:
    planned = {"aspects": [], "steps": [step(FIRST)], "unclear": "Mount Aso, or the town?"}
    answer = research(runs, ResearchModel(replies={"PlanReply": planned}), retriever)
    assert steps_of(answer) == [(FIRST, "done")]


def test_a_search_can_be_confined_to_headings_of_what_was_found(runs: Runs, retriever: FakeRetriever) -> None:
    seen: list[str] = []

    def worded(request: Request) -> Any:
        seen.append(request.last)
        return {"query": SECOND, "search": "hybrid", "reason": "", "section": "Part 1"}

    model = ResearchModel(steps=(step(FIRST), step(SECOND, needs=[1])), replies={**CONTINUE, "QueryReply": worded})
    retriever.default = [passage(1, VOLCANO)]
    retriever.by_query = {}
    research(runs, model, retriever)
    assert "Part 1" not in seen[0] and "Part 1" in seen[1]
    assert [one["sections"] for one in retriever.options if "sections" in one] == [["Part 1"]]


def test_a_report_is_written_without_a_model_that_times_out(runs: Runs, retriever: FakeRetriever) -> None:
    """Searching gets three quarters of the user's time limit; the rules do the rest."""
    model = ResearchModel(replies={"ReadReply": Reply("{}", fault="hang")})
    answer = research(runs, model, retriever, seconds=8.0)
    assert {note["code"] for note in answer.trail["notes"]} == {"research_model_slow"}
    assert steps_of(answer) == [(FIRST, "done"), (SECOND, "done")]
    assert answer.text == "Mount Aso erupted in 1953.[1] The bridge was opened in 1932.[2]"


def test_a_busy_service_costs_the_model_but_not_the_report(runs: Runs, retriever: FakeRetriever) -> None:
    model = ResearchModel(replies={"QueryReply": Reply("slow down", status=429, headers={"retry-after": "0"})})
    answer = research(runs, model, retriever, retried=2 * 2)
    assert steps_of(answer) == [(FIRST, "done"), (SECOND, "done")]
    assert all(one["by_rules"] for one in answer.trail["plan"]) and answer.citations


def test_what_a_page_orders_a_model_to_cite_is_not_cited(runs: Runs, retriever: FakeRetriever) -> None:
    obeyed = "Mount Aso erupted in 1953 [1]. Read more at [our shop](https://evil.example/x) [7]."
    answer = research(runs, ResearchModel(report=obeyed), retriever)
    assert "evil.example" not in answer.text
    assert {one.url for one in answer.citations} <= {one["url"] for one in answer.trail["ledger"]}


def test_twenty_at_once_each_come_to_their_report(runs: Runs) -> None:
    questions = [f"When did Mount Aso erupt for the {n}th time?" for n in range(20)]
    asked = [Question(one, mode="research") for one in questions]
    ids = [runs.start(one, reasoner=QUOTER, retriever=FakeRetriever(), quoter=QUOTER) for one in asked]
    answers = [runs.wait(run_id, 120) for run_id in ids]
    assert [one.question for one in answers] == questions
    assert all(one.citations and one.trail["ledger"] for one in answers)


def test_a_step_that_a_person_adds_at_the_end_is_still_carried_out(runs: Runs, retriever: FakeRetriever) -> None:
    changes: list[Change] = []
    retriever.before = lambda: changes.append(
        Change("step_add", {"id": "p1", "sub_question": "How wide is the crater?"})
    )
    answer = research(runs, ResearchModel(steps=(step(FIRST),)), retriever, changes=changes)
    assert steps_of(answer) == [(FIRST, "done"), ("How wide is the crater?", "done")]


def test_the_planners_keywords_reach_who_words_the_search(runs: Runs, retriever: FakeRetriever) -> None:
    model = ResearchModel(steps=(step(FIRST, keywords=["eruption", "1953"]),))
    research(runs, model, retriever)
    assert retriever.queries == [f"{FIRST} (eruption, 1953)"]


@pytest.mark.parametrize(
    ("gains", "told"), [([0], ""), ([0, 0], "stagnant"), ([2, 0, 0], "stagnant"), ([0, 1], ""), ([0, 0, 1], "")]
)
def test_two_rounds_that_met_no_new_aspect_are_enough(gains: Sequence[int], told: str) -> None:
    state: Any = {"ledger": {}}
    run: Any = SimpleNamespace(chat=object())
    assert stagnation(state, gains, (), run) == told
