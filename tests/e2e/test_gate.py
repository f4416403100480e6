"""Access control of the served app, and what it reveals before sign-in."""

import http.client
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from rag.locales import label, say
from rag.types import Notice
from rag.ui.kit.browser import COOKIE
from tests.e2e.conftest import LOCALES, OpenTab, ask, wait_until_idle

HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}
WATCH = """
    window.violations = [];
    addEventListener('securitypolicyviolation', ({violatedDirective: rule, blockedURI: what}) =>
        violations.push(rule + ' ' + what));
"""


def get(address: str, path: str, headers: dict[str, str]) -> tuple[int, str]:
    """Return status and text of the response to these headers; no text for an opened WebSocket."""
    connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=30)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, "" if answer.status == 101 else answer.read().decode()
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("", "", 101),
        ("evil.example", "http://evil.example", 403),
        ("", "http://127.0.0.1:1", 403),
        ("", "http://localhost", 403),
    ],
)
def test_a_session_needs_an_allowed_name_and_its_own_origin(address: str, host: str, origin: str, status: int) -> None:
    asked = {"Host": host or urlsplit(address).netloc, "Origin": origin or address}
    assert get(address, "/_stcore/stream", {**HANDSHAKE, **asked})[0] == status


def test_a_page_under_a_foreign_name_says_what_to_set(address: str) -> None:
    status, text = get(address, "/", {"Host": "evil.example"})
    assert status == 403
    assert "ALLOWED_HOSTS" in text


def test_nothing_is_told_before_a_session(address: str) -> None:
    assert get(address, "/_stcore/metrics", {})[0] == 404
    assert get(address, "/_stcore/agent/openapi.json", {})[0] == 404
    assert '"allowedOrigins":[]' in get(address, "/_stcore/host-config", {})[1]


def violations(page: Page) -> list[str]:
    found: list[str] = page.evaluate("window.violations")
    return found


@pytest.mark.usefixtures("samples")
def test_the_content_security_policy_suffices_for_all_pages_and_blocks_injected_scripts(
    browser: Browser, address: str
) -> None:
    page = browser.new_page(locale=LOCALES["en"])  # its own, as the script stays
    page.add_init_script(WATCH)
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    for path in ("/add", "/library", "/search", "/settings", "/"):
        page.goto(address + path)
        wait_until_idle(page)
        expect(page.get_by_test_id("stSidebar")).to_be_visible()
        assert violations(page) == [], path
    ask(page, "How long does a deleted file stay in the bilge?")
    wait_until_idle(page)
    assert violations(page) == []
    assert [line for line in said if "Content Security Policy" in line] == []

    page.evaluate(
        "const script = document.createElement('script'); script.textContent = 'window.slipped = true';"
        "document.body.append(script)"
    )
    assert violations(page) == ["script-src-elem inline"]
    assert page.evaluate("window.slipped") is None
    page.close()


def test_the_id_of_a_browser_is_out_of_reach_of_scripts(open_tab: OpenTab) -> None:
    page = open_tab()
    wait_until_idle(page)
    (cookie,) = (one for one in page.context.cookies() if one["name"] == COOKIE)
    assert cookie["httpOnly"] and cookie["sameSite"] == "Lax" and cookie["expires"] == -1
    assert COOKIE not in page.evaluate("document.cookie")


def test_an_address_makes_no_library_and_one_that_is_removed_comes_back(open_tab: OpenTab) -> None:
    page = open_tab("en", "/library?library=nowhere")
    expect(page.get_by_text(say(Notice("library_unknown", {"library": "nowhere"}), "en"))).to_be_visible()
    page.wait_for_url(lambda url: "nowhere" not in url)
    page.get_by_role("button", name=label("library_new", "en")).click()
    page.get_by_label(label("library_new_name", "en"), exact=True).last.fill("My Second Library")
    page.get_by_role("button", name=label("library_create", "en"), exact=True).click()
    page.wait_for_url("**/library?library=my-second-library")
    wait_until_idle(page)
    expect(page.get_by_role("button", name=label("library_create", "en"), exact=True)).to_be_hidden()
    page.get_by_role("button", name=label("library_remove", "en"), exact=True).click()
    page.locator(".st-key-library-remove-go button").click()
    restore = page.get_by_role("button", name=label("library_restore", "en"))
    expect(restore).to_be_visible()
    page.wait_for_url(lambda url: "my-second" not in url)
    restore.click()
    page.wait_for_url("**/library?library=my-second-library")
    expect(page.get_by_text(label("empty_title", "en"))).to_be_visible()
