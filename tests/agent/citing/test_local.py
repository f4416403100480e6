"""A local model behind the check of answers: a tiny one that knows a few lessons by heart."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from rag.agent.chat import ChatReasoner
from rag.agent.citing.local import LocalVerifier
from rag.agent.citing.verifier import Claim, Verifier
from rag.agent.runs import Runs
from rag.app import App
from rag.config import load_settings
from rag.models.chat import build_chat_model
from rag.models.verifier import LateSupportModel
from tests.agent.support import FakeRetriever, ask, passage
from tests.agent.test_checked_loop import FAILS, YES, Model
from tests.support.chat_server import ChatServer, Reply
from tests.support.tiny_model import LESSONS, build_tiny_verifier

PASSAGES = [replace(passage(1, LESSONS[0][0]), title=""), replace(passage(2, LESSONS[2][0]), title="")]
BORNE_OUT, MADE_UP = LESSONS[0][1], LESSONS[1][1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    labels = ("entailment", "neutral", "contradiction")
    return build_tiny_verifier(tmp_path_factory.mktemp("tiny") / "nli", "Sequence", labels, lessons=LESSONS)


def test_each_claim_is_held_against_what_it_cites(folder: Path) -> None:
    verifier = LocalVerifier(LateSupportModel(str(folder)))
    assert isinstance(verifier, Verifier) and verifier.checks_by == "local"
    claims = [Claim(0, BORNE_OUT, (1,)), Claim(1, MADE_UP, (1,)), Claim(2, BORNE_OUT, (2,)), Claim(3, MADE_UP, (2,))]
    found = asyncio.run(verifier.verify(claims, PASSAGES))
    assert [one and one.verdict for one in found] == ["supported", "unsupported", "unsupported", "supported"]


@pytest.mark.parametrize(("opinion", "by", "verdict"), [(YES, "model", "supported"), (FAILS, "local", "unsupported")])
def test_it_answers_where_the_connected_model_does_not(
    folder: Path, opinion: str | Reply, by: str, verdict: str
) -> None:
    runs = Runs(verifier=LocalVerifier(LateSupportModel(str(folder))))
    with ChatServer(Model(f"{MADE_UP.capitalize()}. [1]", opinion)) as server:
        chat = build_chat_model(load_settings(None, llm_base_url=server.base_url, llm_model="test"))
        answer, _ = ask(runs, ChatReasoner(chat), FakeRetriever(default=PASSAGES), question="Which city is it?")
    runs.close()
    assert [(one.by, one.verdict) for one in answer.statements] == [(by, verdict)]


def test_where_it_cannot_be_loaded_rules_answer() -> None:
    runs = Runs(verifier=LocalVerifier(LateSupportModel("/no/such/folder")))
    with ChatServer(Model(f"{MADE_UP.capitalize()}. [1]", FAILS)) as server:
        chat = build_chat_model(load_settings(None, llm_base_url=server.base_url, llm_model="test"))
        answer, _ = ask(runs, ChatReasoner(chat), FakeRetriever(default=PASSAGES), question="Which city is it?")
    runs.close()
    assert [one.by for one in answer.statements] == ["rules"]


def test_the_app_has_the_one_of_the_settings(folder: Path, tmp_path: Path) -> None:
    for name in ("", str(folder)):
        app = App(load_settings(None, rag_data_dir=tmp_path / "data", verifier_model=name))
        assert (app.verifier is not None) == bool(name)
        app.close()
