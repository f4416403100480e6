"""Conversations survive several questions, restarts, and a killed server."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag.conversations.conversations import PageStamp, find_outdated, title_of
from rag.errors import RagError, StoreError
from rag.reasoning.questions import find_history
from rag.runs.run import Run, RunOptions
from rag.store.values import Filters
from rag.types import Candidate, Retrieval
from tests.conversations.conftest import FIRST, SECOND, WIDE, Talk
from tests.support.answering import BRIDGE, FakeRetriever, ScriptedReasoner, passage
from tests.support.waiting import until_event

LOOKED_UP = "Combien de voies a le pont, et où est le pont ?"
"""A question in a third language, for which a model chooses the searches, given the conversation so far."""


def test_a_follow_up_is_searched_with_the_previous_question(talk: Talk) -> None:
    first, _ = talk.ask(FIRST)
    _, turn = talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=first.conversation_id)
    assert list(zip(talk.retriever.queries, talk.retriever.histories, strict=True)) == [(FIRST, []), (SECOND, [FIRST])]
    assert turn.answer is not None
    assert (turn.answer.question, turn.answer.standalone) == (SECOND, "")
    assert find_history(turn.answer.steps) == [FIRST]
    assert [one.question for one in talk.kept.turns(first.conversation_id)] == [FIRST, SECOND]


def test_the_newest_turn_is_its_owners_alone(talk: Talk) -> None:
    first, _ = talk.ask(FIRST, owner="ada")
    second, turn = talk.ask(SECOND, conversation_id=first.conversation_id, owner="ada")
    assert talk.kept.last_turn(first.conversation_id, "ada") == replace(
        turn, answer=None
    )  # which `newest` does not load
    assert turn.id == second.turn_id
    assert talk.kept.last_turn(first.conversation_id, "bob") is None


def test_a_new_process_lists_it_shows_the_same_and_goes_on(tmp_path: Path) -> None:
    before = Talk(tmp_path)
    asked, shown = before.ask(FIRST)
    before.close()
    with closing(Talk(tmp_path)) as after:
        assert after.kept.recover() == 0
        (one,) = after.kept.conversations("main")
        assert (one.id, one.title) == (asked.conversation_id, FIRST)
        (turn,) = after.kept.turns(one.id)
        assert turn.answer is not None and shown.answer is not None
        assert (turn.answer.text, turn.answer.citations) == (shown.answer.text, shown.answer.citations)
        reasoner = ScriptedReasoner(answers=[WIDE])
        after.ask(SECOND, reasoner, conversation_id=one.id)
        assert (after.retriever.queries, after.retriever.histories) == ([SECOND], [[FIRST]])


LINK, OTHER = "https://cats.example/cats", "https://dogs.example/dogs?x=1"


@pytest.mark.parametrize(
    ("message", "title", "with_titles"),
    [
        (FIRST, FIRST, FIRST),
        (LINK, "cats.example", "About cats"),
        (f"{LINK}\n{OTHER}, {LINK}", "cats.example · dogs.example", "About cats · dogs.example"),
        (f"Summarise {LINK}.", "Summarise cats.example.", "Summarise About cats."),
        (f"总结一下{LINK}  的内容", "总结一下cats.example 的内容", "总结一下About cats 的内容"),
        (f"{LINK} Do they purr?", "Do they purr? · cats.example", "Do they purr? · About cats"),
        (
            f"Which is older? {LINK} {OTHER}",
            "Which is older? · cats.example · dogs.example",
            "Which is older? · About cats · dogs.example",
        ),
    ],
)
def test_a_title_names_links_by_their_pages_or_sites(message: str, title: str, with_titles: str) -> None:
    assert title_of(message) == title
    assert title_of(message, {LINK: "About cats"}) == with_titles


def test_the_title_of_a_long_question_ends_between_words() -> None:
    title = title_of("In which order do the phases of a renovation happen, and how long does each of them take? " * 3)
    assert title.endswith("…") and len(title) <= 120
    assert title.removesuffix("…").split()[-1] in {"the", "phases", "of", "a"}


def test_a_conversation_of_links_is_named_after_their_pages(talk: Talk) -> None:
    def saving(then: Callable[[], object]) -> Callable[[Run], AsyncIterator[dict[str, Any]]]:
        async def direct(run: Run) -> AsyncIterator[dict[str, Any]]:
            then()
            yield {"route": "save", "by": "rules", "saved": [{"source": LINK, "title": "About cats"}]}

        return direct

    first, turn = talk.ask(LINK, dispatch=saving(lambda: None), owner="ann")
    assert talk.kept.conversation(first.conversation_id, "ann").title == "About cats"
    assert not turn.can_regenerate
    begun = []

    def rename() -> None:
        (one,) = (one for one in talk.kept.conversations("main", "ann") if one.id != first.conversation_id)
        talk.kept.rename(one.id, "My cats", "ann")
        begun.append(one.id)

    talk.ask(LINK, dispatch=saving(rename), owner="ann")
    assert talk.kept.conversation(begun[0], "ann").title == "My cats"


def test_a_question_is_asked_again_as_it_was_meant(talk: Talk) -> None:
    scope, options = Filters(pages=("a",)), RunOptions(strategy="dense", locale="en")
    first, turn = talk.ask(FIRST, options=options, scope=scope, owner="ann")
    assert turn.can_regenerate and turn.is_plain
    asked = talk.kept.repeat_question(first.turn_id, "deep", "ann")
    assert (asked.text, asked.mode, asked.scope) == (FIRST, "deep", scope)
    assert (asked.options.standalone, asked.options.strategy) == (FIRST, "dense"), "its first answer is no context"
    assert talk.kept.repeat_question(first.turn_id, owner="ann").mode == "fast"
    talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=first.conversation_id, owner="ann")
    follow_up = talk.kept.turns(first.conversation_id, "ann")[-1]
    assert talk.kept.repeat_question(follow_up.id, owner="ann").options.standalone == "", (
        "it still follows on the first"
    )
    with pytest.raises(RagError):
        talk.kept.repeat_question(first.turn_id, owner="bob")


class Searching(FakeRetriever):
    def search(self, question: str, before: Sequence[str] = ()) -> Retrieval:  # type: ignore[override]
        candidates = tuple(Candidate(one, place) for place, one in enumerate(self.default, 1))
        return Retrieval(question, "mmr", tuple(self.default), candidates, ("dense",), answerable=0.9)


def test_how_the_passages_were_found_is_kept_for_its_owner(talk: Talk) -> None:
    talk.retriever = Searching()
    asked, turn = talk.ask(FIRST, owner="ann")
    (search,) = talk.kept.searches(asked.turn_id, "ann")
    assert (search.question, len(search.candidates), search.answerable, turn.searches) == (FIRST, 2, 0.9, 1)
    assert talk.kept.searches(asked.turn_id, "bob") == ()
    branch = talk.kept.branch(asked.conversation_id, asked.turn_id, "ann")
    talk.kept.delete(asked.conversation_id, "ann")
    assert talk.kept.searches(asked.turn_id, "ann") == ()
    (copied,) = talk.kept.turns(branch, "ann")
    assert talk.kept.searches(copied.id, "ann") == (search,)


def test_a_conversation_without_its_checkpoints_goes_on_from_its_turns(talk: Talk) -> None:
    first, _ = talk.ask(FIRST)
    talk.checkpoints.delete(first.conversation_id)
    talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=first.conversation_id)
    assert (talk.retriever.queries[-1], talk.retriever.histories[-1]) == (SECOND, [FIRST])


def test_what_cannot_be_stored_does_not_stand_in_the_way(talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(talk.database.conversations, "finish_turn", _disk_full)
        first, turn = talk.ask(FIRST)
    assert (turn.state, turn.run_id) == ("interrupted", first.run_id)
    _, second = talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=first.conversation_id)
    assert second.answer is not None and second.answer.outcome == "answered"


def _disk_full(*_: Any, **__: Any) -> bool:
    raise StoreError("store_disk_full", path="app.sqlite3")


def test_removed_while_it_is_answered_nothing_stays(talk: Talk) -> None:
    slow = ScriptedReasoner(answers=[["Mount Aso erupted in 1953. [1] Its crater", 600.0]])
    asked = talk.begin(FIRST, slow)
    until_event(talk.runs, asked.run_id, "token")
    talk.kept.delete(asked.conversation_id)
    talk.runs.wait(asked.run_id, 60)
    assert talk.kept.conversations("main") == []
    assert _checkpoints(talk, asked.conversation_id) == 0


def test_a_conversation_changes_between_fast_and_deep(talk: Talk) -> None:
    first, _ = talk.ask(FIRST, mode="deep")
    _, second = talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=first.conversation_id)
    reasoner = ScriptedReasoner(answers=[["It carries eight lanes of traffic [2]."]])
    _, third = talk.ask(LOOKED_UP, reasoner, conversation_id=first.conversation_id, mode="deep")
    assert second.answer and third.answer and third.answer.outcome == "answered"
    assert reasoner.asked[0] == (
        "decide",
        [FIRST, "Mount Aso erupted in 1953.[1]", SECOND, "Its crater is 24 kilometres wide.[1]"],
    )


def test_what_the_person_understood_better_goes_before_the_rules(talk: Talk) -> None:
    first, _ = talk.ask(FIRST)
    options = RunOptions(standalone="How wide is the crater of Mount Fuji?")
    _, turn = talk.ask(SECOND, conversation_id=first.conversation_id, options=options)
    assert talk.retriever.queries[-1] == options.standalone
    assert turn.answer and turn.answer.standalone == options.standalone
    assert turn.answer.steps[0].detail["decision"] == "corrected"


def test_stopping_keeps_the_text_in_the_conversation_too(talk: Talk) -> None:
    slow = ScriptedReasoner(answers=[["Mount Aso erupted in 1953. [1] Its crater", 30.0]])
    asked = talk.begin(FIRST, slow)
    until_event(talk.runs, asked.run_id, "token")
    began = time.monotonic()
    talk.runs.cancel(asked.run_id)
    talk.runs.wait(asked.run_id, 60)
    assert time.monotonic() - began < 20
    turn = talk.kept.turn(asked.turn_id)
    assert turn.state == "done" and turn.answer is not None
    assert turn.answer.notice and turn.answer.notice.code == "run_stopped"
    assert turn.answer.text == "Mount Aso erupted in 1953.[1]"
    reasoner = ScriptedReasoner()
    talk.ask(LOOKED_UP, reasoner, conversation_id=asked.conversation_id)
    assert reasoner.asked[0] == ("decide", [FIRST, "Mount Aso erupted in 1953. [1] Its crater"])


def test_a_tab_that_comes_back_finds_the_run_again(talk: Talk) -> None:
    release = threading.Event()
    talk.retriever.before = lambda: release.wait(60)
    asked = talk.begin(FIRST)
    (turn,) = talk.kept.turns(asked.conversation_id)
    assert (turn.state, turn.run_id, turn.answer) == ("running", asked.run_id, None)
    assert talk.runs.events(turn.run_id) is not None
    with pytest.raises(RagError, match="still being answered"):
        talk.begin(SECOND, conversation_id=asked.conversation_id)
    release.set()
    talk.runs.wait(turn.run_id, 60)
    (turn,) = talk.kept.turns(asked.conversation_id)
    assert turn.state == "done" and turn.answer is not None


_KILLED = """
import sys, time
from pathlib import Path
from tests.support.answering import ScriptedReasoner
from tests.conversations.conftest import FIRST, SECOND, Talk
talk = Talk(Path(sys.argv[1]))
first, _ = talk.ask(FIRST)
slow = ScriptedReasoner(answers=[["Its crater is 24 kilometres wide. [1]", 60.0]])
asked = talk.begin(SECOND, slow, conversation_id=first.conversation_id)
while not talk.database.conversations.turn(asked.turn_id, "").text:
    time.sleep(0.05)
print(first.conversation_id, flush=True)
time.sleep(60)
"""


@pytest.mark.skipif(os.name != "posix", reason="kills a process as only POSIX can")
def test_a_killed_server_keeps_finished_answers_and_reports_unfinished_ones(tmp_path: Path) -> None:
    server = subprocess.Popen([sys.executable, "-c", _KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    conversation_id = server.stdout.readline().strip()
    server.send_signal(signal.SIGKILL)
    server.wait()
    with closing(Talk(tmp_path)) as after:
        assert after.kept.recover() == 1
        finished, cut = after.kept.turns(conversation_id)
        assert finished.answer is not None and finished.answer.outcome == "answered"
        assert cut.state == "interrupted" and cut.answer is not None and cut.answer.notice is not None
        assert cut.answer.notice.code == "turn_interrupted"
        assert cut.answer.text == "Its crater is 24 kilometres wide."
        _, again = after.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=conversation_id)
        assert again.answer is not None and find_history(again.answer.steps) == [FIRST]


def test_each_sees_their_own(talk: Talk) -> None:
    asked, _ = talk.ask(FIRST, owner="ada")
    assert [one.id for one in talk.kept.conversations("main", "ada")] == [asked.conversation_id]
    assert talk.kept.conversations("main", "bob") == talk.kept.conversations("main") == []
    for forbidden in (
        lambda: talk.kept.turns(asked.conversation_id, "bob"),
        lambda: talk.kept.turn(asked.turn_id, "bob"),
        lambda: talk.kept.rename(asked.conversation_id, "Mine", "bob"),
        lambda: talk.kept.pin_answer(asked.turn_id, True, "bob"),
        lambda: talk.kept.delete(asked.conversation_id, "bob"),
        lambda: talk.kept.branch(asked.conversation_id, asked.turn_id, "bob"),
        lambda: talk.begin(SECOND, conversation_id=asked.conversation_id, owner="bob"),
    ):
        with pytest.raises(RagError):
            forbidden()
    assert len(talk.kept.turns(asked.conversation_id, "ada")) == 1


def test_renaming_searching_deleting(talk: Talk) -> None:
    volcano, _ = talk.ask(FIRST)
    bridge, _ = talk.ask("How long is the 100% bridge?", ScriptedReasoner(answers=[["It opened in 1932 [2]."]]))
    talk.kept.rename(volcano.conversation_id, "  Volcanoes \n of Japan ")
    found = [
        [one.title for one in talk.kept.conversations("main", search=words)] for words in ("japan", "1932", "0%", "%")
    ]
    assert found[:2] == [["Volcanoes of Japan"], ["How long is the 100% bridge?"]]
    assert found[2] == found[3] == ["How long is the 100% bridge?"]
    talk.kept.delete(volcano.conversation_id)
    assert [one.id for one in talk.kept.conversations("main")] == [bridge.conversation_id]
    assert _checkpoints(talk, volcano.conversation_id) == 0 < _checkpoints(talk, bridge.conversation_id)
    with pytest.raises(RagError):
        talk.kept.turns(volcano.conversation_id)


def test_a_branch_continues_from_an_earlier_question_without_changing_the_original(talk: Talk) -> None:
    first, _ = talk.ask(FIRST)
    talk.ask("When was the bridge opened?", conversation_id=first.conversation_id)
    branch = talk.kept.branch(first.conversation_id, first.turn_id)
    talk.ask(SECOND, ScriptedReasoner(answers=[WIDE]), conversation_id=branch)
    assert (talk.retriever.queries[-1], talk.retriever.histories[-1]) == (SECOND, [FIRST])
    assert [turn.question for turn in talk.kept.turns(branch)] == [FIRST, SECOND]
    assert [turn.question for turn in talk.kept.turns(first.conversation_id)] == [FIRST, "When was the bridge opened?"]
    assert talk.kept.conversation(branch).branch_of == first.turn_id
    assert [one.id for one in talk.kept.branches(first.conversation_id)] == [branch]
    assert talk.kept.branches(branch) == talk.kept.branches(first.conversation_id, "bob") == []
    empty = talk.kept.branch(first.conversation_id, first.turn_id, including=False)
    assert talk.kept.turns(empty) == []


def test_thirty_turns_take_a_few_kilobytes_each(talk: Talk) -> None:
    long_text = "Mount Aso erupted in 1953. " + BRIDGE * 40
    talk.retriever = FakeRetriever(default=[passage(number, long_text) for number in range(1, 11)])
    answer = ["Mount Aso erupted in 1953 [1]. " * 12]
    asked, _ = talk.ask(FIRST, ScriptedReasoner(answers=[answer]), mode="deep")
    for number in range(2, 31):
        question = f"What is known about eruption number {number} of Mount Aso?"
        talk.ask(question, ScriptedReasoner(answers=[answer]), conversation_id=asked.conversation_id, mode="deep")
    with sqlite3.connect(talk.folder / "conversations.sqlite3") as db:
        sizes = [row[0] for row in db.execute("SELECT length(checkpoint) + length(metadata) FROM checkpoints")]
    turns = [len(json.dumps(turn.answer)) for turn in talk.database.conversations.turns(asked.conversation_id)]
    assert len(sizes) == 1 and sizes[0] < 32_000  # after thirty turns: only the last ones and a summary
    assert max(turns) < 8_000


def test_pages_that_changed_since_are_marked(talk: Talk) -> None:
    _, turn = talk.ask(FIRST, stamps=lambda hashes: {one: PageStamp(1, "old") for one in hashes})
    assert find_outdated(turn, {"hash1": PageStamp(1, "old")}) == {}
    assert find_outdated(turn, {"hash1": PageStamp(2, "new")}) == {"hash1": "newer"}
    assert find_outdated(turn, {}) == {"hash1": "gone"}


def test_an_answer_survives_a_conversation_that_cannot_be_written(talk: Talk) -> None:
    (talk.folder / "conversations.sqlite3").mkdir()
    _, turn = talk.ask(FIRST)
    assert turn.answer is not None and turn.answer.outcome == "answered"


def _checkpoints(talk: Talk, conversation_id: str) -> int:
    with sqlite3.connect(talk.folder / "conversations.sqlite3") as db:
        return int(db.execute("SELECT count(*) FROM checkpoints WHERE thread_id = ?", (conversation_id,)).fetchone()[0])


def test_where_a_page_was_cited_is_known_and_only_to_its_owner(talk: Talk) -> None:
    first, view = talk.ask(FIRST, owner="ann")
    talk.ask(FIRST, owner="bob")
    talk.ask(FIRST, ScriptedReasoner(answers=[["Nothing is cited here."]]), owner="ann")
    assert view.answer is not None
    cited = view.answer.citations[0].url_hash
    assert [turn.id for turn in talk.kept.find_citing_turns("main", cited, "ann")] == [first.turn_id]
    assert talk.kept.find_citing_turns("other", cited, "ann") == []
    assert talk.kept.find_citing_turns("main", "0" * 32, "ann") == []
