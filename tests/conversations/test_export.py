"""An export contains the whole conversation with its sources, and no active content."""

from __future__ import annotations

import io
import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from typing import Any

import pytest
from docx import Document
from markdown_it import MarkdownIt

from rag.conversations.conversations import TurnView
from rag.conversations.export import export, file_name, plain_sources
from rag.errors import RagError
from rag.runs.run import answer_from_json
from rag.store.sql.conversation_table import Conversation
from rag.types import Answer, Citation, Notice, Statement, ToolUse
from tests.support.odd_addresses import ODD_ADDRESSES
from tests.support.tree_rows import five

EVIL = '<script>alert(1)</script><img src=x onerror="alert(2)">'


def _turn(answer: Answer | None, question: str = "When did it erupt?") -> TurnView:
    state = "done" if answer else "running"
    return TurnView("t", "c", "2026-01-01T00:00:00Z", question, state, "", answer, {"mode": "fast"}, {}, ())  # type: ignore[arg-type]


def _answer(
    text: str = "In 1953. [1]", url: str = "https://example.org/aso", title: str = "Aso", quote: str = "In 1953."
) -> Answer:
    citation = Citation(1, url, "h", title, quote, 0, 8)
    return Answer(
        "When?", "fast", "caveat", text, (citation,), notice=Notice("run_stopped"), standalone="When did Aso erupt?"
    )


def _paragraphs(content: str | bytes) -> list[Any]:
    """Return the paragraphs of a Word file."""
    assert isinstance(content, bytes)
    return list(Document(io.BytesIO(content)).paragraphs)


def _text(content: str | bytes) -> str:
    return content if isinstance(content, str) else "\n".join(one.text for one in _paragraphs(content))


TALK = Conversation("c", "main", "", "Volcanoes", "2026-01-01", "2026-01-01", 1)


class _Seen(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


@pytest.mark.parametrize(("language", "word"), [("en", "not found in the pages"), ("zh", "在网页中未找到")])
@pytest.mark.parametrize("kind", ["md", "html"])
def test_a_doubtful_statement_is_told_from_a_supported_one(kind: str, language: Any, word: str) -> None:
    text = "In 1953. [1] It sleeps. It is high. [1]"
    statements = (
        Statement(0, 8, "supported", (1,)),
        Statement(13, 23, "unsupported"),
        Statement(24, 35, "partly", (1,)),
    )
    made, _ = export(TALK, [_turn(replace(_answer(text), statements=statements))], kind, language)
    plain = re.sub(r"\\|<[^>]*>", "", made)
    assert f"In 1953. [1] It sleeps. ({word}) It is high. [1] (" in plain
    assert plain.count(word) == 1 and ("1 of 3" in plain or "3 句中 1 句" in plain)


@pytest.mark.parametrize("kind", ["md", "html", "docx"])
def test_a_mark_after_an_exclamation_mark_is_no_picture(kind: str) -> None:
    made, _ = export(TALK, [_turn(_answer("It erupted![1] **Again!**[1]"))], kind)
    html = MarkdownIt("commonmark").render(made) if kind == "md" else _text(made)
    assert "It erupted![1] Again![1]" in re.sub(r"<(?!img)[^>]*>", "", html)


def test_the_plain_sources_have_each_page_once_with_its_address() -> None:
    first, other = _answer().citations[0], Citation(2, "notes.md", "n", "Notes", "Asleep.", 0, 7, library="b")
    answer = replace(_answer(), citations=(first, other, replace(first, n=3)))
    assert plain_sources(answer) == "Sources\n[1][3] Aso https://example.org/aso\n[2] Notes (b)"
    assert plain_sources(replace(answer, citations=()), "zh") == ""


@pytest.mark.parametrize("kind", ["md", "html", "docx"])
def test_a_quote_has_no_marks_of_its_block(kind: str) -> None:
    made, _ = export(TALK, [_turn(_answer(quote="> ## Risks\n> > It erases.\n> 5 kg"))], kind)
    assert "Risks It erases. > 5 kg" in _text(made).replace("\\", "").replace("&gt;", ">")


@pytest.mark.parametrize("kind", ["md", "html", "docx", "json"])
def test_tools_that_were_called_come_along(kind: str) -> None:
    uses = (ToolUse("calculator", "15% * 240", "15% * 240 = 36"), ToolUse("python", "x", failed=Notice("code_off")))
    made, _ = export(TALK, [_turn(replace(_answer(), tools=uses))], kind)
    plain = _text(made).replace("\\", "").replace("&lt;", "<")
    assert "15% * 240 = 36" in plain and ("TOOLS_CODE" in plain or kind == "json")
    assert answer_from_json(json.loads(json.dumps(asdict(replace(_answer(), tools=uses))))).tools == uses


@pytest.mark.parametrize("kind", ["md", "html", "json"])
def test_question_answer_and_sources_are_all_there(kind: str) -> None:
    text, media = export(TALK, [_turn(_answer()), _turn(None, "And then?")], kind)
    assert kind in media or kind == "md"
    for part in (
        "Volcanoes",
        "When did it erupt?",
        "When did Aso erupt?",
        "In 1953.",
        "https://example.org/aso",
        "And then?",
    ):
        assert part in text
    if kind != "json":
        assert "Stopped. The answer is incomplete." in text.replace("\\", "")
        assert "Not finished" in text


def test_json_can_be_read_again() -> None:
    data = json.loads(export(TALK, [_turn(_answer())], "json")[0])
    assert data["turns"][0]["answer"]["citations"][0]["quote"] == "In 1953."


def test_nothing_of_a_page_or_a_model_runs_in_html() -> None:
    answer = _answer(EVIL, "javascript:alert(3)", EVIL, EVIL)
    seen = _Seen(export(Conversation("c", "m", "", EVIL, "", ""), [_turn(answer, EVIL)], "html")[0])
    assert not {tag for tag, _ in seen.tags} & {"script", "img", "iframe", "object", "form", "link"}
    assert not [name for _, attributes in seen.tags for name in attributes if name.startswith("on")]
    assert not [one for tag, one in seen.tags if tag == "a" and "javascript" in str(one.get("href"))]


def test_markdown_loads_and_runs_nothing_either() -> None:
    answer = _answer(
        f"![x](https://evil.example/p.png) {EVIL}", "javascript:alert(3)", "a](https://evil.example)", EVIL
    )
    seen = _Seen(MarkdownIt().render(export(TALK, [_turn(answer, f"# {EVIL}")], "md")[0]))
    assert not {tag for tag, _ in seen.tags} & {"script", "img", "a"}


MARKED = """## Linux

Run `apt install skiff` as **root** [1]:

- first
- second

| Plan | Price |
| --- | --- |
| Team | 9 € |

```bash
# a comment
skiff --port <n>
```"""


def test_the_markup_of_an_answer_comes_along() -> None:
    turn = _turn(_answer(MARKED, quote="## Linux\n\nRun apt."))
    made = str(export(TALK, [turn], "md")[0])
    assert "\n#### Linux\n" in made and "**root**" in made and "\n- first\n" in made and "| Team | 9 € |" in made
    assert "\n# a comment\nskiff --port <n>\n" in made
    assert "   > Linux Run apt." in made and "\\#" not in made
    seen = _Seen(str(export(TALK, [turn], "html")[0]))
    assert {"h4", "strong", "ul", "table", "pre", "code"} <= {tag for tag, _ in seen.tags}
    assert ("a", {"href": "#s1-1"}) in seen.tags
    document = Document(io.BytesIO(export(TALK, [turn], "docx")[0]))  # type: ignore[arg-type]
    styled = [(one.style.name, one.text) for one in document.paragraphs]
    assert {("Heading 2", "Linux"), ("List Bullet", "first"), ("Quote", "Linux Run apt.")} <= set(styled)
    assert [cell.text for cell in document.tables[0].rows[1].cells] == ["Team", "9 €"]
    assert "root" in [run.text for one in document.paragraphs for run in one.runs if run.bold]
    assert any("skiff --port <n>" in text for _, text in styled)


def test_code_that_is_left_open_ends_with_its_answer() -> None:
    made = str(export(TALK, [_turn(_answer("Do this:\n\n```\nrm -r x")), _turn(None, "And then?")], "md")[0])
    assert _Seen(MarkdownIt().render(made)).tags.count(("h2", {})) == 2


def test_marks_lead_to_their_source() -> None:
    html, _ = export(TALK, [_turn(_answer("In 1953. [1] Or so. [7]"))], "html")
    assert '<a href="#s1-1">[1]</a>' in html and 'id="s1-1"' in html
    assert "[7]" in html and "#s1-7" not in html


def test_chinese_words_and_file_names() -> None:
    assert "来源" in export(TALK, [_turn(_answer())], "html", "zh")[0]
    named = Conversation("c", "m", "", "绿茶 / 红茶: 多少度?", "", "")
    assert file_name(named, "md") == "绿茶-红茶-多少度.md"
    assert file_name(Conversation("c", "m", "", "???", "", ""), "html") == "conversation.html"


def test_another_format_is_refused() -> None:
    with pytest.raises(RagError, match="pdf"):
        export(TALK, [], "pdf")


def test_a_report_brings_its_ledger_and_what_is_missing() -> None:
    trail = {
        "gaps": [{"sub_question": "Who paid?", "code": "research_gap_empty", "params": {}}],
        "struck": ["It cost 9999 pounds."],
        "ledger": [{"title": "Aso", "url": "https://example.org/aso", "distilled": ["In 1953."], "fetched_at": ""}],
    }
    turn = _turn(replace(_answer("## When\n\nIn 1953. [1]"), trail=trail))
    for kind in ("md", "html"):
        text = str(export(TALK, [turn], kind, "en")[0])
        assert all(one in text for one in ("Not found", "Who paid?", "9999", "All passages read"))


def test_a_search_tree_comes_along_as_a_list() -> None:
    turn = _turn(replace(_answer(), trail={"tree": five()}))
    text = str(export(TALK, [turn], "md", "en")[0])
    lines = text.partition("**Question tree**")[2].strip().splitlines()
    assert [line.partition("- ")[0] for line in lines] == ["", "  ", "  ", "  ", "    ", "    ", "      ", "    ", "  "]
    assert lines[0].startswith("- 1. ") and lines[0].endswith("answered") and "same as 4" in lines[-1]
    assert "<script>" not in text.replace("\\<", "")
    html = str(export(TALK, [turn], "html", "zh")[0])
    assert "问题树" in html and "缺少" in html and "<script>" not in html
    paragraphs = _paragraphs(export(TALK, [turn], "docx")[0])
    assert {"List Bullet", "List Bullet 2", "List Bullet 3"} <= {one.style.name for one in paragraphs}
    rows = json.loads(export(TALK, [turn], "json")[0])["turns"][0]["answer"]["trail"]["tree"]
    assert [one["node"] for one in rows] == ["n1", "n1", "n2", "n3", "n4", "n5"]


@pytest.mark.parametrize("url", ODD_ADDRESSES)
@pytest.mark.parametrize("kind", ["md", "html", "docx", "json"])
def test_no_stored_address_or_sign_makes_an_export_fail(kind: str, url: str) -> None:
    odd = f"Aso {url} \ud83c\ufffe\uffff\x08"
    trail = {"tree": five(), "ledger": [{"title": odd, "url": url, "distilled": [odd], "fetched_at": ""}]}
    answer = replace(_answer(odd, url, odd, odd), trail=trail, tools=(ToolUse("outline", odd, odd, 0.0),))
    content, _ = export(replace(TALK, title=odd), [_turn(answer, odd)], kind)
    assert b"Aso" in _text(content).encode()


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_word_file_holds_headings_quotes_and_no_broken_sign(language: Any) -> None:
    answer = _answer("## When\n\nIn 1953. [1]\x0b\ud800\ufffe\uffff", title="阿苏\x00\ufffe", quote="In 1953.")
    content, media = export(TALK, [_turn(answer, EVIL), _turn(None)], "docx", language)
    assert media.endswith("document")
    paragraphs = [(one.style.name, one.text) for one in _paragraphs(content)]
    assert ("Heading 1", EVIL) in paragraphs and ("Heading 2", "When") in paragraphs
    assert ("Quote", "In 1953.") in paragraphs
    assert any(text.startswith("[1] 阿苏") for _, text in paragraphs)
