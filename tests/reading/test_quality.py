"""The quality gate: walls need review for the right reason, content passes, garbled text is detected.

gate_pages.jsonl has gates of real sites (bot checks, logins, consent …) in many wordings and both languages, some
rare, and pages about such things, which have no code. A body is the inside of an HTML body.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rag.errors import IngestError
from rag.locales import say
from rag.reading.extract import extract_html
from rag.reading.extraction.tree import parse
from rag.reading.interstitials import INTERSTITIALS as KINDS
from rag.reading.parser import ExtractedDocument
from rag.reading.quality import check_quality, find_mojibake, find_signals, match_interstitial
from rag.types import Notice
from tests.support.page_server import ARTICLE, CHINESE

URL = "https://example.com/page"
PAGES = [json.loads(line) for line in Path(__file__).with_name("gate_pages.jsonl").open(encoding="utf-8")]
GATES = [(one["code"], one["title"], one["body"]) for one in PAGES if "code" in one and "rare" not in one]
RARE = [(one["title"], one["body"]) for one in PAGES if "rare" in one]
CONTENT = [(one["title"], one["body"]) for one in PAGES if "code" not in one]
ROUND = '<nav><a href="/">Home</a> <a href="/b">Blog</a></nav>{}<footer><a href="/p">Privacy</a></footer>'


def verdict(title: str, body: str, **options: Any) -> Notice | None:
    html = f"<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>"
    return check_quality(extract_html(html, URL), can_read=lambda text: True, **options)


def verdict_on_text(text: str, *signals: str, can_read: bool = True) -> str:
    """Return the code of the notice about a text, or ""."""
    notice = check_quality(
        ExtractedDocument("A title", "en", "", "", text, signals=signals), can_read=lambda _: can_read
    )
    return notice.code if notice else ""


@pytest.mark.parametrize(("code", "title", "body"), GATES, ids=[f"{row[0]}-{row[1][:20]}" for row in GATES])
def test_walls_are_held(code: str, title: str, body: str) -> None:
    try:
        found = verdict(title, body)
    except IngestError as error:  # no text left to judge, which is as good
        assert (error.code, error.notice.cause) == ("empty", "scripts_only")
        return
    assert found is not None
    assert found.code == code
    assert found.params["seen"]
    assert str(found.params["seen"]) in say(found, "en") and str(found.params["seen"]) in say(found, "zh")


def test_nearly_all_walls_of_unusual_words_are_held() -> None:
    missed = []
    for title, body in RARE:
        try:
            if verdict(title, body) is None:
                missed.append(body)
        except IngestError as error:
            assert error.code == "empty"
    assert len(missed) <= 0.1 * len(RARE), missed


@pytest.mark.parametrize(("title", "body"), CONTENT, ids=[row[0] for row in CONTENT])
@pytest.mark.parametrize("around", ["{}", ROUND])
def test_content_is_let_through(title: str, body: str, around: str) -> None:
    assert verdict(title, around.format(body)) is None


@pytest.mark.parametrize("html", [ARTICLE, CHINESE.format(meta="")])
def test_articles_are_let_through(html: str) -> None:
    assert check_quality(extract_html(html, URL), can_read=lambda text: False) is None


def test_signals_of_a_page() -> None:
    html = (
        "<body><div id='root'></div><form><input type='PASSWORD'></form><div class='onetrust-pc'></div>"
        "<script src='https://challenges.cloudflare.com/turnstile/v0/api.js'></script></body>"
    )
    assert set(find_signals(parse(html), "")) >= {"html", "scripts", "app_root", "password", "captcha", "consent"}
    assert find_signals(parse("<p>One sentence.</p>"), "One sentence.") == ("html",)
    for content, signals in (("60; URL=/new", ("html", "refresh")), ("300", ("html",))):
        html = f"<meta http-equiv=Refresh content='{content}'><p>One sentence.</p>"
        assert find_signals(parse(html), "One sentence.") == signals


def test_files_of_text_are_not_taken_for_walls() -> None:
    note = "Please log in to continue. Forgot password?"
    assert verdict_on_text(note) == ""
    assert verdict_on_text(note, "html") == "gate_login"


def test_long_texts_are_never_walls() -> None:
    long = "Please log in to continue. Forgot password? " * 200
    assert verdict_on_text(long, "html", "password") == ""


def test_a_page_that_lost_its_text() -> None:
    pictures = "".join(f'<div><img src="/{n}.jpg"></div>' for n in range(30))
    held = verdict("Catalogue", f"<script>1</script>{pictures}<article><p>Our spring collection is here.</p></article>")
    assert held is not None and held.code == "gate_short"
    assert verdict("Note", "<p>Our spring collection is here.</p>") is None


PLAYERS = (
    "<video controls src='tour.mp4'></video>",
    "<video><source src='tour.webm'></video>",
    "<audio controls src='tour.ogg'></audio>",
    "<iframe src='https://video.example/embed/7' allowfullscreen></iframe>",
    "<iframe src='https://sound.example/player' allow='autoplay; encrypted-media'></iframe>",
)


@pytest.mark.parametrize("player", PLAYERS)
def test_a_page_whose_only_content_is_a_player(player: str) -> None:
    held = verdict("Harbour tour", f"<script>1</script><h1>Harbour tour</h1>{player}<p>4 minutes</p>")
    assert held is not None and held.code == "gate_player"
    assert "Harbour tour" in say(held, "en") and ".srt" in say(held, "zh")
    with pytest.raises(IngestError) as raised:
        verdict("Harbour tour", f"<script>1</script>{player}")
    assert (raised.value.code, raised.value.notice.cause) == ("empty", "player_only")


def test_a_player_beside_a_text_and_a_film_in_the_background() -> None:
    text = f"<p>{'The ferry leaves the north quay at seven each day of the summer. ' * 3}</p>"
    assert verdict("Ferries", f"{PLAYERS[0]}{text}") is None
    film = "<video autoplay muted loop src='sea.mp4'></video>"
    assert verdict("Ferries", f"{film}<p>The ferry leaves at seven.</p>") is None


@pytest.mark.parametrize("status", [404, 410])
def test_not_found_by_its_status(status: int) -> None:
    body = "<p>Nothing here any more, try the archive of last year.</p>"
    assert verdict("Example", body) is None
    held = verdict("Example", body, status=status)
    assert held is not None and held.code == "gate_not_found"


@pytest.mark.parametrize(
    "text",
    [
        "É um café — naïve façade, Übergrößenträger, smörgåsbord, garçon à la crème brûlée, œuvre, señor",
        "Łódź, Žižkov, Þórður, Ægir, Ångström, Đà Nẵng, Việt Nam, İstanbul, ığdır",
        "武汉长江大桥于一九五五年九月动工，一九五七年十月建成通车。",
        "Мост был построен в девятнадцатом веке и стоит до сих пор.",
        "The text â€™ is what an apostrophe becomes when UTF-8 is read as Windows-1252; an article may say so once, "
        "and goes on for long about encodings, tables and the history of the byte order mark in files of text.",
    ],
)
def test_right_letters(text: str) -> None:
    assert find_mojibake(text) == ""


CHINESE_TEXT = "武汉长江大桥于一九五五年九月动工，是长江上的第一座公路铁路两用桥，把中国南北的铁路连成一体。"


@pytest.mark.parametrize(
    "text",
    [
        CHINESE_TEXT.encode().decode("latin-1"),
        CHINESE_TEXT.encode().decode("cp1252", "replace"),
        CHINESE_TEXT.encode().decode("gb18030", "replace"),
        CHINESE_TEXT.encode("gbk").decode("latin-1"),
        CHINESE_TEXT.encode("gbk").decode("utf-8", "replace"),
        CHINESE_TEXT.encode("gbk").decode("utf-8", "replace").encode().decode("gb18030", "replace"),
        "Crème brûlée à la carte, déjà vu, garçon, élève, été".encode().decode("cp1252"),
        "锟斤拷锟斤拷锟斤拷 2024",
    ],
)
def test_wrong_letters(text: str) -> None:
    assert verdict_on_text(text) == "gate_mojibake"


def test_a_language_that_neither_search_reads() -> None:
    khmer = "ស្ពានត្រូវបានសាងសង់នៅសតវត្សទីដប់ប្រាំបួន និងនៅតែឈរដល់សព្វថ្ងៃ"
    assert verdict_on_text(khmer, can_read=False) == "gate_language"
    assert verdict_on_text(khmer) == ""
    readable = "Мост был построен в девятнадцатом веке.", "بني الجسر في القرن التاسع عشر", "橋は今も残っている"
    for text in (CHINESE_TEXT, *readable):
        assert verdict_on_text(text, can_read=False) == ""


def test_walls_are_known_in_any_case_by_patterns_for_lower_case() -> None:
    captcha = next(wall for wall in KINDS if wall.code == "gate_captcha")
    share, sentence = match_interstitial(captcha, "YOUR IP HAS BEEN BLOCKED. 访问过于频繁，IP 已被限制。")
    assert share == 1 and sentence.startswith("YOUR IP")
    for pattern in (one for wall in KINDS for one in (wall.strong, wall.weak)):
        literal = re.sub(r"\\[A-Z]", "", pattern.pattern)
        assert literal == literal.lower()
