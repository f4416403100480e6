"""A real chat model at TEST_LLM_BASE_URL: the form of its answers, not their quality.

make model-server                      # or any other server of OpenAI's protocol
TEST_LLM_BASE_URL=http://127.0.0.1:9115/v1 python -m pytest -m model
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import closing

import pytest

from rag.app import App, Question
from rag.ingest.batch import ingest_all
from rag.ingest.sources import example_sources
from tests.support.apps import open_app

ADDRESS = os.environ.get("TEST_LLM_BASE_URL", "")
pytestmark = [pytest.mark.model, pytest.mark.skipif(not ADDRESS, reason="TEST_LLM_BASE_URL names no chat server")]

QUESTIONS = (
    "When did Mount Aso erupt?",
    "What is the capital of the Moon?",
    "How do I cancel a hotel booking?",
    "龙井茶产于哪里？",
    "Which lighthouse is the oldest?",
)
CALLS = {"fast": 1, "deep": 4, "research": 30, "judge": 20}
SECONDS = 300.0


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    model = {"llm_base_url": ADDRESS, "llm_model": os.environ.get("TEST_LLM_MODEL", "local")}
    with closing(open_app(tmp_path_factory.mktemp("model"), **model, answer_max_seconds=SECONDS)) as made:
        list(ingest_all(made.imports.ingestor("main"), example_sources()))
        yield made


@pytest.mark.parametrize("mode", CALLS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_has_a_sound_shape(app: App, question: str, mode: str) -> None:
    answer = app.wait(app.ask(Question(question, ("main",), mode)), SECONDS + 60)
    assert answer.outcome in ("answered", "caveat", "not_in_pages")
    assert answer.model_calls <= CALLS[mode] and answer.seconds <= SECONDS + 5
    bare = re.sub(r"\[\d+\]", "", answer.text)
    assert answer.outcome == "not_in_pages" or re.search(r"\w", bare), "no bare marks, no empty text"
    assert answer.outcome != "answered" or answer.citations
    assert not re.search(r"<\|?/?(?:think|im_end|answer)|\bNOT_IN_PAGES\b|passage-[0-9a-f]{6}", answer.text)
