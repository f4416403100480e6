"""A library of the harbour tolls of twelve towns, and questions about them, without weights."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rag.app import App
from rag.cli import main
from rag.config import Settings, load_settings
from rag.evaluation.cases import Case, case_of, row_of
from tests.support.chat_server import ChatServer

TOWNS = ("Arl", "Brey", "Corm", "Dunmore", "Eskdale", "Farrow", "Glen", "Harrow", "Ilk", "Jarrow", "Kell", "Lorn")
PAID = (
    "by the miller's youngest daughter each Sunday",
    "in silver and never in copper or bread",
    "at noon beneath the crooked lantern",
    "only while herring ran past the point",
    "twice over after a moonless night",
    "to a clerk who wrote nothing down",
    "before any anchor touched the mud",
    "with a barrel of pitch as surety",
    "unless fog hid the northern steeple",
    "half of it for mending nets",
    "under oath on the ferryman's book",
    "through a slot in an oak door",
)
FILLER = (
    "The council met on Tuesdays and spoke of lamps, of ropes, of the price of tar and of the mud in the lanes. " * 6
)


def toll(town: str) -> str:
    at = TOWNS.index(town)
    return f"The harbour toll of {town} was {100 + at} shillings, paid {PAID[at]}."


def pages() -> list[dict[str, str]]:
    return [
        {
            "url": f"https://{town.lower()}.example/harbour",
            "title": f"{town} harbour",
            "lang": "en",
            "text": f"{FILLER}\n\n{toll(town)}\n\n{FILLER}",
        }
        for town in TOWNS
    ]


def town_cases() -> list[Case]:
    """Return questions about four towns each, too many for three passages, and two that no page answers."""
    rows = []
    for at in range(len(TOWNS)):
        four = [TOWNS[(at + step) % len(TOWNS)] for step in (0, 1, 3, 6)]
        evidence = [{"url": f"https://{town.lower()}.example/harbour", "quote": toll(town)} for town in four]
        question = f"What was the harbour toll of {', '.join(four[:3])} and {four[3]}?"
        rows.append({"id": f"t{at}", "question": question, "lang": "en", "evidence": evidence, "tags": ["tolls"]})
    left = {"answerable": False, "without": ["https://lorn.example/harbour"], "lang": "en"}
    rows += [
        {"id": "n1", "question": "Who discovered penicillin?", **left},
        {"id": "n2", "question": "Which zeppelin crossed the Atlantic in 1928?", **left},
    ]
    return [case_of(row) for row in rows]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Return the settings of a library of the towns."""
    base = tmp_path_factory.mktemp("evaluation")
    (base / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages()))
    (base / "set.jsonl").write_text("".join(json.dumps(row_of(case)) + "\n" for case in town_cases()))
    assert main(["--data-dir", str(base / "data"), "import", str(base / "pages.jsonl")]) == 0
    return load_settings(None, rag_data_dir=base / "data", qdrant_url="", llm_model="", llm_base_url="")


def with_model(settings: Settings, server: ChatServer, **more: Any) -> App:
    """Open an app whose chat model is on this server."""
    return App(settings.model_copy(update={"llm_base_url": server.base_url, "llm_model": "test", **more}))


@pytest.fixture
def app(settings: Settings) -> Iterator[App]:
    opened = App(settings)
    yield opened
    opened.close()
