import json

from starlette.applications import Starlette
from starlette.routing import Route
from starlette.testclient import TestClient

from rag.ui.kit.navigation import SHARE_PARAMS
from rag.ui.serving.first_load import manifest


def test_what_a_phone_shares_reaches_the_page_that_adds_links() -> None:
    app = Starlette(routes=[Route("/manifest.webmanifest", manifest)])
    answer = TestClient(app).get("/manifest.webmanifest")
    assert answer.headers["content-type"] == "application/manifest+json"
    shares = json.loads(answer.text)["share_target"]
    assert shares["method"] == "GET"  # it opens a page, and changes nothing
    assert set(shares["params"].values()) == set(SHARE_PARAMS)
