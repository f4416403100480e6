"""Research beyond the library: a search service over HTTP, pages through the guard and the parser, nothing kept."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest

from rag.app import App, Question, RunOptions
from rag.config import load_settings
from rag.types import Answer
from tests.support.page_server import PageServer
from tests.web.test_search import Service, service

__all__ = ["service"]

PAGE = (
    "<html lang='en'><head><title>Lanterns of Kalvik</title></head><body><article><h1>Lanterns of Kalvik</h1>"
    "<p>Kalvik is a fishing village in the far north. Its harbour freezes in January.</p>"
    "<p>The keeper of the Kalvik lantern is Ingrid Solheim, who has lit it each evening since 1987.</p>"
    "<p>Visitors may climb the tower on Sundays, when the keeper tells how the lamp works.</p></article></body></html>"
)
QUESTION = "Who is the keeper of the Kalvik lantern?"


def ask(app: App, *, web: bool) -> Answer:
    question = Question(QUESTION, ("main",), "research", options=RunOptions(web="allowed" if web else ""))
    return app.wait(app.ask(question), 120)


@pytest.mark.parametrize("forbidden", ["", "main"])
def test_the_web_is_read_only_where_it_is_allowed(
    tmp_path: Path, service: Service, page_server: PageServer, forbidden: str
) -> None:
    url = page_server.add("/kalvik", PAGE)
    refused = "http://169.254.169.254/latest/meta-data"
    service.body = json.dumps(
        {"results": [{"url": refused, "title": "", "content": ""}, {"url": url, "title": "Kalvik"}]}
    ).encode()
    settings = load_settings(
        None,
        rag_data_dir=tmp_path,
        qdrant_url="",
        llm_model="",
        llm_base_url="",
        searxng_url=service.address,
        web_search_except=forbidden,
        fetch_allow_private_hosts=f"{page_server.pair[0]}:{page_server.pair[1]}",
    )
    with closing(App(settings)) as app:
        assert ask(app, web=False).outcome == "not_in_pages" and not service.asked
        answer = ask(app, web=True)
        if forbidden:
            assert answer.outcome == "not_in_pages" and not service.asked
            return
        assert "Ingrid Solheim" in answer.text
        assert answer.citations[0].url == url
        assert [one["source"] for one in answer.trail["ledger"]] == ["web"] * len(answer.trail["ledger"])
        assert len(app.library().pages()) == 0
