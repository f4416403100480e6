"""The checkpointer of conversations and runs, with LangGraph's own conformance tests and ours."""

from __future__ import annotations

import operator
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import psycopg
import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.graph import END, START, StateGraph

from rag.background import BACKGROUND
from rag.conversations import checkpoints
from rag.conversations.checkpoints import Checkpoints, first_id
from rag.conversations.saver import ConversationSaver
from rag.runs.run import KEEPS_HISTORY_KEY
from rag.store.sql.database import Database
from tests.support import postgres

ROOT = Path(__file__).resolve().parents[2]


class Counted(TypedDict):
    steps: Annotated[list[int], operator.add]


def graph(saver: BaseCheckpointSaver[Any], inner: bool = False) -> Any:
    """Return a graph of three steps; with `inner`, the second one is a nested graph."""
    builder = StateGraph(Counted)
    for number in range(3):
        step: Any = graph_below() if inner and number == 1 else lambda state, number=number: {"steps": [number]}
        builder.add_node(f"step{number}", step)
    builder.add_edge(START, "step0")
    builder.add_edge("step0", "step1")
    builder.add_edge("step1", "step2")
    builder.add_edge("step2", END)
    return builder.compile(checkpointer=saver)


def graph_below() -> Any:
    builder = StateGraph(Counted)
    builder.add_node("below", lambda state: {"steps": [10]})
    builder.add_edge(START, "below")
    builder.add_edge("below", END)
    return builder.compile(checkpointer=True)


def config(thread: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def run(saver: BaseCheckpointSaver[Any], thread: str, *, keeps_history: bool = True, inner: bool = False) -> Any:
    """Return a run of the graph, to be awaited."""
    options = {KEEPS_HISTORY_KEY: True} if keeps_history else {}
    return graph(saver, inner).ainvoke({"steps": []}, config(thread, **options), durability="sync")


def rows(path: Path, table: str) -> list[tuple[str, str, str]]:
    with closing(sqlite3.connect(path)) as database:
        return database.execute(f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM {table}").fetchall()


@pytest.fixture(params=["sqlite", "postgres"])
def kept(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Checkpoints]:
    if request.param == "sqlite":
        yield Checkpoints(tmp_path / "c.sqlite3")
        return
    database = Database(str(request.getfixturevalue("postgres_url")))
    with closing(database), closing(Checkpoints(tmp_path / "unused", database.postgres)) as made:
        yield made


async def do_nothing(*_: Any) -> None:
    """Prune nothing."""


def failures(kept: Checkpoints, *, pruned: bool) -> list[str]:
    """Run the conformance tests in the event loop of runs, to which the connections belong."""

    @checkpointer_test(name="pruned" if pruned else "all")
    async def made() -> AsyncGenerator[BaseCheckpointSaver[Any], None]:
        saver = kept.saver()
        assert isinstance(saver, ConversationSaver)
        yield saver if pruned else ConversationSaver(saver._open_saver, do_nothing, do_nothing)

    report = BACKGROUND.wait(validate(made))
    return [failure for result in report.results.values() for failure in result.failures]


def test_langgraphs_own_tests_pass_without_pruning(kept: Checkpoints) -> None:
    assert failures(kept, pruned=False) == []


def test_with_pruning_only_history_is_missing(kept: Checkpoints) -> None:
    found = {failure.partition(":")[0] for failure in failures(kept, pruned=True)}
    earlier = {"test_put_multiple_checkpoints_same_thread", "test_put_incremental_channel_update"}
    assert found - {name for name in found if name.startswith("test_list_")} == {
        *earlier,
        "test_get_tuple_specific_checkpoint_id",
    }


@pytest.mark.parametrize("inner", [False, True])
async def test_one_checkpoint_stays_unless_the_run_keeps_its_history(tmp_path: Path, inner: bool) -> None:
    path = tmp_path / "c.sqlite3"
    saver = Checkpoints(path).saver()
    await run(saver, "plain", keeps_history=False, inner=inner)
    await run(saver, "told", inner=inner)
    spaces = [space for thread, space, _ in rows(path, "checkpoints") if thread == "plain"]
    assert sorted(set(spaces)) == sorted(spaces) and len(spaces) == 1 + inner
    history = [state async for state in graph(saver, inner).aget_state_history(config("told"))]
    assert history[0].values["steps"][-1] == 2
    assert len(history) == 5


def test_in_postgres_as_much_is_pruned_as_in_the_file(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = {"plain": 1, "told": 5, "told again": 5}
    for days in (30, -1):
        database = Database(postgres_url)
        monkeypatch.setattr(checkpoints, "_DAYS", days)
        kept = Checkpoints(tmp_path / "unused", database.postgres)
        saver = kept.saver()
        BACKGROUND.wait(run(saver, "plain", keeps_history=False, inner=True))
        for thread in ("told", "told again"):
            BACKGROUND.wait(run(saver, thread))
        kept.close()
        database.close()
        with psycopg.connect(postgres_url) as connection:
            found = connection.execute("SELECT thread_id, checkpoint_ns FROM checkpoints").fetchall()
            counts = Counter(thread for thread, namespace in found if not namespace)
            loose = connection.execute(
                "SELECT count(*) FROM checkpoint_blobs b WHERE NOT EXISTS (SELECT FROM checkpoints c,"
                " jsonb_each_text(c.checkpoint -> 'channel_versions') v WHERE c.thread_id = b.thread_id"
                " AND c.checkpoint_ns = b.checkpoint_ns AND v.key = b.channel AND v.value = b.version)"
            ).fetchone()
        assert counts == expected and loose == (0,)
        expected = {"plain": 1, "told": 1, "told again": 5}


def test_the_tables_of_checkpoints_are_made_by_six_processes_at_once(postgres_server: str) -> None:
    program = (
        "import sys; from pathlib import Path; from rag.conversations.checkpoints import Checkpoints;"
        "from rag.store.sql.database import Database;"
        "Checkpoints(Path('unused'), Database(sys.argv[1]).postgres).saver()"
    )
    with postgres.empty_database(postgres_server) as url:
        children = [subprocess.Popen([sys.executable, "-c", program, url], cwd=ROOT) for _ in range(6)]
        assert [child.wait(60) for child in children] == [0] * 6


def test_what_a_graph_within_a_run_knew_is_read_by_its_namespace(tmp_path: Path) -> None:
    kept = Checkpoints(tmp_path / "c.sqlite3")
    BACKGROUND.wait(
        graph(kept.saver(), inner=True).ainvoke({"steps": [7]}, config("talk", **{KEEPS_HISTORY_KEY: True}))
    )
    (namespace,) = {name for _, name, _ in rows(tmp_path / "c.sqlite3", "checkpoints")} - {""}
    assert kept.values("talk", namespace) == {"steps": [7, 0, 10]}
    assert kept.values("talk", "step1:gone") == kept.values("another", namespace) == {}


async def test_histories_are_bounded_in_days_and_megabytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite3"
    for days, megabytes in ((30.0, 0.0), (-1.0, 500.0)):
        monkeypatch.setattr(checkpoints, "_DAYS", days)
        monkeypatch.setattr(checkpoints, "_MEGABYTES", megabytes)
        saver = Checkpoints(path).saver()
        for thread in ("a", "b", "last"):
            await run(saver, thread)
        kept = [thread for thread, _, _ in rows(path, "checkpoints")]
        assert (kept.count("a"), kept.count("b"), kept.count("last")) == (1, 1, 5)
        assert {row[2] for row in rows(path, "writes")} <= {row[2] for row in rows(path, "checkpoints")}
        await saver.adelete_thread("last")


async def test_what_a_step_wrote_before_its_checkpoint_is_stored_stays(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite3"
    saver = Checkpoints(path).saver()
    await run(saver, "a")
    coming = config("a", checkpoint_ns="", checkpoint_id=str(uuid6()))
    await saver.aput_writes(coming, [("__interrupt__", ["May I?"])], "a-task")
    await run(saver, "b")
    assert coming["configurable"]["checkpoint_id"] in {row[2] for row in rows(path, "writes")}


def test_the_first_id_of_a_moment() -> None:
    now = time.time()
    assert first_id(now - 1) < str(uuid6()) < first_id(now + 60)
