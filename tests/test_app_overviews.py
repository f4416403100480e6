"""The overview of newly saved pages: a sentence quoted from each, and only questions that the pages answer."""

from __future__ import annotations

import pytest

from rag.app import App
from rag.errors import StoreUnavailableError
from rag.reasoning.extractive import ExtractiveReasoner
from tests.support.apps import add_files
from tests.support.hashed_model import HashedBuiltin

FAQ = """# Parking at the harbour

Welcome, and thank you for your interest.

This page explains where visitors park at the harbour and what a space costs.

## How much does a space at the harbour cost?

A space costs four euros a day, and ten euros for a weekend.

**Can I park a caravan?**

Caravans park on the northern quay only, for eight euros a day.

## How does it work?

Take a ticket at the barrier, and pay before you leave the car park.

## Opening hours

The car park is open from six in the morning until midnight.
"""
PLAIN = "# 灯塔\n\n灯塔建于一八七四年，由三位看守轮流值守，每晚点灯。\n\n灯塔每周三对游客开放。\n"


def save(app: App, *files: tuple[str, str]) -> dict[str, str]:
    """Save these files; return the pages' hashes by title."""
    add_files(app, *files)
    return {page.title: page.url_hash for page in app.library("main").pages()}


def test_pages_are_told_by_a_sentence_of_their_own_and_asked_by_their_own_questions(app: App) -> None:
    pages = save(app, ("parking.md", FAQ), ("lighthouse.md", PLAIN))
    hashes = [pages["Parking at the harbour"], pages["灯塔"]]
    made = app.overviews.get("main", hashes, app.reasoner("main"), "en").result(60)
    said = {page.title: sentence for page, sentence in made.pages}
    assert said["Parking at the harbour"] == FAQ.splitlines()[4]
    assert said["灯塔"] == "灯塔建于一八七四年，由三位看守轮流值守，每晚点灯。"
    assert set(made.questions) == {"How much does a space at the harbour cost?", "Can I park a caravan?"}
    assert app.overviews.get("main", hashes, app.reasoner("main"), "en").done()


def test_nothing_is_asked_about_excluded_pages(app: App) -> None:
    pages = save(app, ("parking.md", FAQ))
    app.library("main").set_excluded([*pages.values()], True)
    made = app.overviews.get("main", [*pages.values()], app.reasoner("main"), "en").result(60)
    assert len(made.pages) == 1 and made.questions == ()


def test_a_page_without_questions_offers_none(app: App) -> None:
    pages = save(app, ("lighthouse.md", PLAIN))
    made = app.overviews.get("main", [pages["灯塔"], "0" * 32], app.reasoner("main"), "zh").result(60)
    assert [page.title for page, _ in made.pages] == ["灯塔"]
    assert made.questions == ()


def test_the_sentences_of_new_pages_are_encoded_before_anybody_asks(app: App) -> None:
    pages, reasoner = save(app, ("parking.md", FAQ)), app.reasoner("main")
    for language in ("en", "zh"):  # the second is generated once all work for the first is done
        app.overviews.get("main", [*pages.values()], reasoner, language).result(60)
    model = app.models.embedding
    assert isinstance(model, HashedBuiltin)
    assert isinstance(reasoner, ExtractiveReasoner)
    model.encoded.clear()
    chunks = app.library("main").chunks(pages["Parking at the harbour"])
    assert [*reasoner.select("Where does a caravan park?", chunks)]
    assert model.encoded == []


def test_so_are_those_of_a_small_library_once_the_app_has_started(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = save(app, ("parking.md", FAQ))
    prepared: list[list[str]] = []
    monkeypatch.setattr(app.overviews, "prepare", lambda name, hashes, _: prepared.append([name, *hashes]))
    app._warm()
    monkeypatch.setattr("rag.app._FEW_PAGES", 0)
    app._warm()
    assert prepared == [["main", *pages.values()]]


def test_a_database_that_is_away_at_the_start_costs_only_that(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str) -> None:
        raise StoreUnavailableError("store_away", since="12:03")

    monkeypatch.setattr(app, "library", away)
    app._warm()
