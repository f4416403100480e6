import urllib.error
import urllib.request

import pytest
from playwright.sync_api import Page, expect

from rag.locales import Language, label
from rag.ui.serving.protection import security_headers
from tests.e2e.conftest import OpenTab, ask
from tests.support.chat_protocol import Reply, Request
from tests.support.chat_server import ChatServer, rules
from tests.ui.kit.test_markdown import HOSTILE


def hostile(request: Request) -> Reply:
    """A model whose answers are hostile."""
    reply = rules(request)
    if reply.tool_calls or request.body.get("response_format"):
        return reply
    return Reply("\n\n".join([reply.text, *HOSTILE]))


def test_every_response_carries_the_headers(address: str) -> None:
    for path in ("/", "/add", "/_stcore/health", "/no/such/page"):
        try:
            with urllib.request.urlopen(address + path) as response:
                headers = response.headers
        except urllib.error.HTTPError as error:
            headers = error.headers
        for name, value in security_headers():
            assert headers.get_all(name.decode()) == [value.decode()], path


@pytest.mark.usefixtures("samples")
def test_nothing_of_a_hostile_answer_comes_alive(open_tab: OpenTab, address: str) -> None:
    with ChatServer(hostile) as server:
        page = open_tab("en", "/settings")
        connect(page, server)
        ask(page, "How long does a deleted file stay in the bilge?")
        answer = page.locator("[class*='st-key-answer-']")
        expect(answer).to_contain_text("evil.example")
        page.wait_for_timeout(1000)
        # The only SVG is the copy button of a code block.
        for tag in ("img", "svg:not(button svg)", "iframe", "script", "video", ".katex", "[role=img]"):
            assert answer.locator(tag).count() == 0, tag
        for kind in ("ColoredText", "ColoredBackground", "Badge"):
            assert answer.locator(f".stMarkdown{kind}").count() == 0, kind
        links = answer.locator("a").evaluate_all("links => links.map(link => link.getAttribute('href'))")
        assert links
        assert all(link.startswith("#source-") for link in links)
        elsewhere = [url for url in page.requests if not url.startswith((address, "data:", "blob:"))]  # type: ignore[attr-defined]
        assert elsewhere == []


def connect(page: Page, server: ChatServer, language: Language = "en") -> None:
    """Connect the server as this session's chat model, and open the chat."""
    page.get_by_label(label("chat_base_url", language)).fill(server.base_url)
    page.get_by_role("textbox", name=label("chat_model_name", language), exact=True).fill("test")
    page.get_by_role("button", name=label("chat_use", language)).click()
    expect(page.get_by_text(label("chat_in_use", language, model="test"))).to_be_visible()
    page.get_by_role("link", name=label("nav_chat", language)).click()


def test_the_policy_holds_where_a_renderer_would_fail(open_tab: OpenTab) -> None:
    page = open_tab("en")
    page.locator("h1, h3").first.wait_for()
    blocked = page.evaluate(
        """() => new Promise(resolve => {
            document.addEventListener('securitypolicyviolation', event => resolve(event.effectiveDirective));
            const image = document.createElement('img');
            image.src = 'https://evil.example/x.png';
            document.body.append(image);
            setTimeout(() => resolve(''), 5000);
        })"""
    )
    assert blocked == "img-src"
