from __future__ import annotations

import re

import pytest

from rag.ui.kit.passages import best_window, passage_markdown, term_spans
from tests.ui.kit.test_markdown import HOSTILE, as_shown, outside_code

TABLE = "| tea | water |\n| --- | --- |\n| green | 80 °C |\n| black | 95 °C |"
CODE = "Run this:\n```bash\n# all of it\n  make | tee `log`\n```\n# After"


def test_a_passage_shows_as_text_with_its_quote_highlighted() -> None:
    text = "## The lamp\n\nWound [every](https://x.example) four hours. Then oil.\n- In fog"
    start = text.index("Then")
    shown = passage_markdown(text, (start, start + len("Then oil.")))
    assert shown.split("\n\n")[0] == "**The lamp**"
    assert ":yellow-background[Then oil.]" in shown
    assert shown.endswith("• In fog")
    assert "href" not in as_shown(shown)


def test_a_highlight_over_several_lines_is_marked_in_each() -> None:
    text = "one\ntwo\nthree"
    assert passage_markdown(text, (1, 9)).count(":yellow-background[") == 3


def test_a_former_price_is_struck_through() -> None:
    text = "Watch: ~~$499.00~~ $199.00, ~~[a](https://x.example)~~, ~~~ and ~~ or ~~~~"
    shown = passage_markdown(text, (0, 5))
    assert r"~~\$499.00~~ \$199.00" in shown
    html = as_shown(shown)
    assert html.count("<s>") == 2 and "<s>$499.00</s>" in html and "href" not in html
    assert "~~~ and ~~ or ~~~~" in html
    assert passage_markdown("~~$499~~", (2, 4)).count("~~") == 0


@pytest.mark.parametrize("text", HOSTILE)
def test_page_text_is_never_markup(text: str) -> None:
    html = as_shown(passage_markdown(text))
    tags = {"p", "strong", "blockquote", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
    assert set(re.findall(r"<([a-z0-9]+)", html)) <= tags
    assert not re.search(r":[\w+-]+:", outside_code(passage_markdown(text)))


def test_code_shows_as_code_and_its_remarks_are_no_headings() -> None:
    html = as_shown(passage_markdown(CODE))
    assert '<pre><code class="language-text"># all of it\n  make | tee `log`\n</code></pre>' in html
    assert "<strong>After</strong>" in html and "```" not in re.sub("<pre>.*</pre>", "", html, flags=re.DOTALL)


def test_code_that_is_cut_or_highlighted_shows_without_its_fences() -> None:
    start = CODE.index("make")
    shown = passage_markdown(CODE, (start, start + 4))
    assert ":yellow-background[make]" in shown and "```" not in shown and "**" not in shown.partition("After")[0][:-2]
    ends, begins = passage_markdown(CODE[: start + 4] + "…"), passage_markdown("…" + CODE[start:])
    assert as_shown(ends).count("<pre>") == as_shown(begins).count("<pre>") == 1
    assert "<strong>After</strong>" in as_shown(begins)


def test_a_quotation_shows_as_one_and_a_comparison_as_text() -> None:
    text = "> This command erases the disk.\n>\n> - all of it\n\n> 5 kg is too much"
    shown = passage_markdown(text, (2, 14))
    assert "> :yellow-background[This command]" in shown
    html = as_shown(shown)
    assert html.count("<blockquote>") == 2 and "• all of it" in html
    assert "<p>&gt; 5 kg" in html and html.count("&gt;") == 1


def test_rows_of_dashes_are_rows() -> None:
    html = as_shown(passage_markdown(f"{TABLE}\n| - | - |\n| --- | --- |"))
    assert (html.count("<tr>"), html.count("<td>-</td>"), html.count("<td>---</td>")) == (5, 2, 2)
    assert as_shown(passage_markdown("| - | - |\n| - | - |")).count("<th>-</th>") == 2
    assert as_shown(passage_markdown("| --- | --- |\n| green | 80 |")) == "<p>green · 80</p>\n"
    assert passage_markdown("| --- | --- |") == ""


def test_a_table_shows_as_a_table_with_its_quote_highlighted() -> None:
    row = TABLE.index("| black")
    shown = passage_markdown(f"Before\n{TABLE}\nafter", (7 + row, 7 + row + len("| black | 95 °C |")))
    html = as_shown(shown)
    assert html.count("<td>") == 4
    assert "<th>water</th>" in html
    assert ":yellow-background[black]" in shown
    assert ":yellow-background[95 °C]" in shown
    assert ":yellow-background[green]" not in shown


def test_rows_cut_from_a_table_show_as_lines() -> None:
    assert passage_markdown("| green | 80 °C |\n| black | 95 °C |") == "green · 80 °C\n\nblack · 95 °C"


def test_cells_hold_text_only() -> None:
    shown = passage_markdown("| ![x](https://evil.example/x.png) | :smile: |\n| --- | --- |\n| $x$ | <b> |")
    assert "![" not in shown
    assert ":smile:" not in shown
    assert "<b>" not in as_shown(shown)


@pytest.mark.parametrize("start", range(0, len(TABLE), 3))
def test_every_highlight_shows_the_letters_it_covers(start: int) -> None:
    end = min(len(TABLE), start + 9)
    marked = "".join(re.findall(r":yellow-background\[([^\]]*)\]", passage_markdown(TABLE, (start, end))))
    wanted = re.sub(r"[|\s-]", "", TABLE[start:end])
    assert re.sub(r"\s", "", marked) == wanted


def marked(question: str, text: str) -> list[str]:
    return [text[start:end] for start, end in term_spans(question, text)]


def test_content_words_are_found_with_their_endings() -> None:
    text = "Deleted files stay; a file deletes nothing. Profile. The bilge."
    found = marked("How long does a deleted file stay in the bilge?", text)
    assert found == ["Deleted", "files", "stay", "file", "deletes", "bilge"]


def test_words_that_touch_are_one_mark() -> None:
    assert marked("异地 机房", "异地机房") == ["异地机房"]


def test_chinese_pairs_run_together_and_common_ones_are_left_out() -> None:
    found = marked("异地机房与主机房的距离至少是多少？", "异地机房与主机房的距离不小于 300 公里。")
    assert found == ["异地机房", "主机房", "距离"]


def test_signs_of_a_pattern_are_plain_text() -> None:
    assert marked("C++ (2.0) [x] 4.4.0", "C++ 4.4.0, 4 x 4") == ["4.4.0"]


def test_a_number_is_found_as_a_whole() -> None:
    text = "A ticket for 6 is £6.20, for 16 £12.00, in 1,600 days at 6:30. Line 6."
    assert marked("Is it 6?", text) == ["6", "6"]
    assert marked("Who pays £6.20 and 1,600.", text) == ["6.20", "1,600"]
    assert marked("6 天", "第6章，16页，6.5 元") == ["6"]


def test_a_window_begins_with_a_sentence_and_holds_the_words() -> None:
    text = "Nothing here. " * 40 + "The lamp was wound. " + "Nothing here. " * 40
    left, right = best_window(text, term_spans("wound lamp", text), 100)
    assert text[left:].startswith("The lamp was wound.")
    assert right - left <= 110
    assert best_window("short", [], 100) == (0, 5)


def test_a_window_holds_the_words_of_a_long_sentence() -> None:
    text = "On and on, " * 40 + "the lamp was wound, " + "on and on, " * 40
    left, right = best_window(text, term_spans("wound lamp", text), 100)
    assert text[left:right].startswith("lamp was wound")


def test_several_spans_are_highlighted() -> None:
    text = "## The lamp\n- wound daily, wound nightly"
    shown = passage_markdown(text, *term_spans("wound lamp", text))
    assert shown.count(":yellow-background[wound]") == 2
    assert ":yellow-background[lamp]" in shown


def test_the_lines_of_an_item_are_one_paragraph() -> None:
    text = "- Ann:\n  Today.\n- Ben:\n\n  Tomorrow.\n  - at nine\nThat is all."
    paragraphs = ["• Ann\\:\\\nToday.", "• Ben\\:", "Tomorrow.", "• at nine", "That is all."]
    assert passage_markdown(text).split("\n\n") == paragraphs
