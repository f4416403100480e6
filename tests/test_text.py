"""Sentences, languages, terms."""

from __future__ import annotations

import html
import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from rag.text import (
    clean_line,
    clean_text,
    describe_struck,
    detect_language,
    escape_markdown,
    fenced_blocks,
    find_entries,
    find_list_places,
    find_section,
    is_chinese,
    join_surrogates,
    question_language,
    replace_surrogates,
    split_sentences,
    strip_controls,
    strip_struck,
    terms,
    to_plain_line,
    trim_to_sentences,
    truncate,
    unit_spans,
)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Two\n lines", 20, "Two lines"),
        ("The ferry leaves at nine", 15, "The ferry…"),
        ("The ferry leaves", 11, "The ferry…"),
        ("无人值守的灯塔每天点亮两次", 8, "无人值守的灯塔…"),
        ("x" * 30, 10, "x" * 9 + "…"),
    ],
)
def test_a_long_text_is_cut_between_words(text: str, limit: int, expected: str) -> None:
    assert truncate(text, limit) == expected


def sentences(text: str) -> list[str]:
    return [text[a:b] for a, b in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("他来了。她走了！为什么？", ["他来了。", "她走了！", "为什么？"]),
        ("他说：“我来了。”然后走了。", ["他说：“我来了。”", "然后走了。"]),
        ('He said "Stop." Then he left.', ['He said "Stop."', "Then he left."]),
        (
            "Dr. Smith met J. Doe at 3.5 p.m. on the U.S. coast.",
            ["Dr. Smith met J. Doe at 3.5 p.m. on the U.S. coast."],
        ),
        ("Born in Chicago, Ill. – a big city. He left.", ["Born in Chicago, Ill. – a big city.", "He left."]),
        ("See e.g. Table 3. It is short.", ["See e.g. Table 3.", "It is short."]),
        ("Wait... what? Yes.", ["Wait... what?", "Yes."]),
        ("It weighs 1 lb. 13 oz. Take it.", ["It weighs 1 lb. 13 oz.", "Take it."]),
        ("# Title\nFirst line.\n\nSecond.", ["# Title", "First line.", "Second."]),
        ("- one\n- two\n1. three", ["- one", "- two", "1. three"]),
        (
            "all lower case here. the next one too. and a third.",
            ["all lower case here.", "the next one too.", "and a third."],
        ),
        ("价格是3.5元。Very cheap. 好。", ["价格是3.5元。", "Very cheap.", "好。"]),
        ("| a | b |\n| 1 | 2 |", ["| a | b |", "| 1 | 2 |"]),
        ("See .net or v1...x of it. Yes.", ["See .net or v1...x of it.", "Yes."]),
        ("So……”he said. Yes……no. And..……so!……x", ["So……”", "he said.", "Yes……", "no.", "And..……", "so!……", "x"]),
        ("“Really?!” Yes…” No...他说.好", ["“Really?!”", "Yes…”", "No...", "他说.", "好"]),
        ("…. Well. a….b ……. C", ["….", "Well. a….b ……", ".", "C"]),
        (
            "Install it:\n\n```sh\n./install.sh --here\nskiff status\nrm -rf ~/tmp\n```\nThen begin. It is quick.",
            [
                "Install it:",
                "```sh",
                "./install.sh --here",
                "skiff status",
                "rm -rf ~/tmp",
                "```",
                "Then begin.",
                "It is quick.",
            ],
        ),
        ("~~~\nx = 1. y = 2!\n  z = 3\n\n```\n~~~", ["~~~", "x = 1. y = 2!", "z = 3", "```", "~~~"]),
        (
            "先安装：\n```\npip install x\npip check\n```\n完成。好。",
            ["先安装：", "```", "pip install x", "pip check", "```", "完成。", "好。"],
        ),
        ("```\nnever closed\nskiff go", ["```", "never closed", "skiff go"]),
        ("second line\nthird line\n```\n\nOut of it. Now.", ["second line", "third line", "```", "Out of it.", "Now."]),
        ("Inline ```code``` stays. Yes.", ["Inline ```code``` stays.", "Yes."]),
        (
            "This line is long enough to have been wrapped by a program\nand it goes on in lower case. Next.",
            ["This line is long enough to have been wrapped by a program\nand it goes on in lower case.", "Next."],
        ),
        ("", []),
        (" \n\t ", []),
        ("### 5. Hard Pruning\n\nCut low. Feed.", ["### 5. Hard Pruning", "Cut low.", "Feed."]),
        ("# How fast? Top speeds\nBody. More.", ["# How fast? Top speeds", "Body.", "More."]),
        ("## 第七条。标题\n正文。第二句。", ["## 第七条。标题", "正文。", "第二句。"]),
        (
            "Rugs stay dry with D.R.I. (Dry Rug Intelligence). Good.",
            ["Rugs stay dry with D.R.I. (Dry Rug Intelligence).", "Good."],
        ),
    ],
)
def test_sentence_ends(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet='ab .!?。！\n"”#-|A1，', max_size=60))
def test_spans_cover_everything_but_white_space(text: str) -> None:
    spans = split_sentences(text)
    assert all(a < b for a, b in spans)
    assert all(one[1] <= two[0] for one, two in itertools.pairwise(spans))
    covered = {i for a, b in spans for i in range(a, b)}
    assert all(i in covered or c.isspace() for i, c in enumerate(text))


def test_part_of_a_text() -> None:
    text = "One. Two. Three."
    assert split_sentences(text, 5, 9) == [(5, 9)]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The quick brown fox", "en"),
        ("今天天气很好", "zh"),
        ("使用 Python 编写的检索系统", "zh"),
        ("これは日本語の文章です", "ja"),
        ("이것은 한국어입니다", "ko"),
        ("Это русский текст", ""),
        ("123 456", ""),
        ("", ""),
    ],
)
def test_language_by_script(text: str, language: str) -> None:
    assert detect_language(text) == language
    assert is_chinese(text) == (language == "zh")


def test_terms_fold_width_and_case() -> None:
    assert terms("ＡＢＣ abc") == ["abc", "abc"]
    assert terms("知识库 RAG") == ["知识", "识库", "rag"]


def test_fenced_blocks_hold_their_fences() -> None:
    text = "One.\n````md\n```\ninner\n```\n````\nTwo.\n  ~~~\nx"
    assert [text[a:b] for a, b in fenced_blocks(text)] == ["````md\n```\ninner\n```\n````", "  ~~~\nx"]
    assert fenced_blocks("No code `here` at all.") == []
    assert fenced_blocks(text, 0, 4) == []


@pytest.mark.parametrize(
    "question",
    [
        "Kubernetes StatefulSet 和 Deployment 有什么区别？",
        "ThinkPad X1 Carbon Gen 11 怎么样？",
        "Attention Is All You Need 的作者是谁？",
        "How to Win Friends and Influence People 讲了什么？",
        "请问 Visual Studio Code Insiders 怎么安装 Python extension",
        "ChatGPT Enterprise Edition 支持 Single Sign-On 吗",
        "Microsoft Visual Studio Code 下载地址",
        "介绍 Amazon Simple Storage Service",
        "Kubernetes StatefulSet PersistentVolumeClaim 扩容。",
        "ＰｏｓｔｇｒｅＳＱＬ　Ｅｎｔｅｒｐｒｉｓｅ 怎么安装？",
    ],
)
def test_a_chinese_question_about_latin_names_is_chinese(question: str) -> None:
    assert is_chinese(question) and question_language(question) == "zh"


@pytest.mark.parametrize(
    "question",
    [
        "What does the phrase 为什么 mean?",
        "How do I say 谢谢 in Chinese?",
        "Difference between 的 and 得 in written Mandarin",
        "What is the meaning of the word 什么?",
        "Where is Longjing tea (龙井) grown?",
        "the restaurant named 外婆家 in Hangzhou opening hours",
        "How much does the Team plan cost?",
        "ＴＥＡＭ　ｐｌａｎ cost?",
    ],
)
def test_an_english_question_about_chinese_words_is_english(question: str) -> None:
    assert not is_chinese(question) and question_language(question) == "en"


@pytest.mark.parametrize(("question", "language"), [("東京タワーの高さは？", "ja"), ("도쿄 타워", "ko"), ("42", "")])
def test_other_scripts_keep_their_language(question: str, language: str) -> None:
    assert question_language(question) == language and not is_chinese(question)


def test_the_language_of_a_page_is_told_by_its_letters_alone() -> None:
    assert detect_language("Kubernetes StatefulSet 和 Deployment 有什么区别？") == "en"


def test_what_a_terminal_or_a_list_would_obey_goes() -> None:
    assert to_plain_line("\x1b]0;title\x07 a\u202egpj\u2066 b\x9b2J\n c\t\ufeff") == "]0;title agpj b2J c"
    assert to_plain_line("家\u200d族 नमस्\u200dते 👩\u200d🚀") == "家\u200d族 नमस्\u200dते 👩\u200d🚀"
    assert strip_controls("one\n\ttwo\r\x1b[0m") == "one\n\ttwo[0m"


def test_without_surrogates() -> None:
    assert replace_surrogates("a\ud83db\udc00 😀") == "a\ufffdb\ufffd 😀"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain 灯塔 😀", "plain 灯塔 😀"),
        ("\ud83d\ude00", "😀"),
        ("a\ud83d", "a\ufffd"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
    ],
)
def test_halves_of_characters_are_joined(text: str, expected: str) -> None:
    assert join_surrogates(text) == expected


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("A ~~b~~ c", "A c"),
        ("A ~~b~~, c", "A, c"),
        ("~~a~~ b ~~c~~", " b "),
        ("a ~~ b ~~ c", "a ~~ b ~~ c"),
        ("a ~~b", "a ~~b"),
        ("~~~\ncode\n~~~", "~~~\ncode\n~~~"),
        ("~~a\nb~~", "~~a\nb~~"),
    ],
)
def test_what_is_struck_out_is_taken_away(text: str, valid: str) -> None:
    assert strip_struck(text) == valid


def test_a_part_of_what_is_struck_out() -> None:
    text = "~~One is shut. Two is shut.~~ Three is open."
    assert [strip_struck(text, a, b).strip() for a, b in split_sentences(text)] == ["", "", "Three is open."]
    assert describe_struck("A ~~b~~ c", "(not: {})") == "A (not: b) c"


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("It opens at nine. It closes at", "It opens at nine."),
        ("It opens at nine.[1] It clo", "It opens at nine.[1]"),
        ("It was in 1953.[2]", "It was in 1953.[2]"),
        ("It costs 3.", ""),
        ("夜市六点开门。[1]地铁票", "夜市六点开门。[1]"),
        ("他说：“好。” 然后", "他说：“好。”"),
        ("It opens.\n\n## Prices\n\nA ticket cos", "It opens."),
        ("- one\n- two\n- thr", "- one\n- two"),
        ("No end yet", ""),
        ("", ""),
        ("Whole. And **whole too.** [1]", "Whole. And **whole too.** [1]"),
    ],
)
def test_what_broke_off_ends_with_a_whole_sentence(written: str, whole: str) -> None:
    assert trim_to_sentences(written) == whole


@pytest.mark.parametrize(
    "title",
    ["*args*", "snake_case __init__", "<b>a</b> &amp; b", "Learn C #", "# no heading", "1. First", "a|b [1](x)"],
)
def test_a_literal_title_is_read_as_it_stands(title: str) -> None:
    for before in ("", "## ", "- "):
        shown = MarkdownIt().render(before + escape_markdown(title))
        assert html.unescape(re.sub(r"</?(?:p|h2|ul|li)>|\n", "", shown)) == title


class TestClean:
    @pytest.mark.parametrize(
        ("text", "cleaned"),
        [
            ("a\u200bb\u00adc\ufeff", "abc"),
            ("a\u202eb\u2066c\u2069", "abc"),
            ("safe\U000e0049\U000e0067", "safe"),
            ("a\x00b\x1bc", "abc"),
            ("a\u00a0b\u3000c", "a b c"),
            ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
            ("a \n\n\n\nb", "a\n\nb"),
            ("e\u0301te\u0301", "été"),
            ("か\u3099", "が"),
            ("\uf900", "\uf900"),
            ("ﬁ", "ﬁ"),
            ("می\u200cخواهم", "می\u200cخواهم"),
            ("a\u200cb \u200d", "ab"),
            ("icon \ue123", "icon"),
            ("\ud800x", "x"),
        ],
    )
    def test_characters(self, text: str, cleaned: str) -> None:
        assert clean_text(text) == cleaned

    @given(st.text(max_size=300))
    def test_result_is_visible_and_stays_as_it_is(self, text: str) -> None:
        cleaned = clean_text(text)
        assert clean_text(cleaned) == cleaned
        assert cleaned.encode("utf-8").decode("utf-8") == cleaned
        assert not any(unicodedata.category(c) == "Cc" and c not in "\n\t" for c in cleaned)

    def test_one_line(self) -> None:
        assert clean_line(" a\n b\t c ") == "a b c"
        assert len(clean_line("x" * 900)) == 300


LISTING = """Arms for every desk.

M10 Single Monitor Arm

For monitors: 20-48 lbs

Starting at $459

- Sitka 140 Kayak
  $2,499.00
  Length:
  13 ft. 9 in.
- Sky 100 Kayak

## Power Tank

oversized fit

价格：30 元
"""


def test_an_entry_is_a_title_and_its_attributes() -> None:
    entries = [
        [LISTING[slice(*span)] for span in (entry.heading, entry.title, *entry.attributes) if span]
        for entry in find_entries(LISTING)
    ]
    assert entries == [
        ["M10 Single Monitor Arm", "For monitors: 20-48 lbs", "Starting at $459"],
        ["- Sitka 140 Kayak", "$2,499.00", "Length:", "13 ft. 9 in."],
        ["## Power Tank", "oversized fit", "价格：30 元"],
    ]


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (
            "View:\n\n- 30 results\n- 90. Or more.\n\n- Boots\n- Shoes",
            [("", 0, 0), ("View:", 1, 1), ("View:", 1, 2), ("", 1, 2), ("", 1, 3), ("", 1, 4)],
        ),
        ("Never:\n\n- swim\n\n- dive", [("", 0, 0), ("Never:", 1, 1), ("Never:", 1, 2)]),
        (
            "## Boots\n\n- low\n- high\n\n- warm\n\nText.\n\n- x",
            [("", 0, 0), ("Boots", 1, 1), ("Boots", 1, 2), ("Boots", 1, 3), ("", 0, 0), ("", 2, 1)],
        ),
        (
            "- Plans vary.\n  A few. Ours:\n  - cats\n  - dogs\n  Theirs:\n  - birds\n- Rates\n- Dates",
            [
                *[("", 1, 1)] * 3,
                *[("Ours:", 2, 1), ("Ours:", 2, 2), ("", 0, 0), ("Theirs:", 3, 1)],
                *[("", 4, 1), ("", 4, 2)],
            ],
        ),
        ("- Ann:\n  Yes.\n- Ben:\n  - No.", [("", 1, 1), ("", 1, 1), ("", 1, 2), ("- Ben:", 2, 1)]),
        ("- Arm\n  - Width:\n  - 20 cm", [("", 1, 1), ("", 1, 2), ("", 1, 3)]),
    ],
)
def test_an_introduction_is_that_of_one_list(text: str, places: list[tuple[str, int, int]]) -> None:
    found = find_list_places(text, split_sentences(text))
    starts = sorted({place.start for place in found} | {-1})
    assert [(place.lead, starts.index(place.start), place.item) for place in found] == places


@pytest.mark.parametrize(
    "text",
    [
        "The arm costs $459.\n\nIt holds 48 lbs.",
        "Why we do it:\n- it is 20% cheaper\n- 12 people asked",
        "- An item\n  May not ship to Bulgaria. Read the description, or ask the seller for other options.",
        "Price: $4",
        "Setup\n\n```\nname: demo\nport: 80\n```",
        "| Plan | Price |\n|---|---|\n| Team | $79 |",
        "- " + "A long text. " * 20 + "\n  Ours:\n  - cats",
        "A title\n\n" + "\n\n".join(f"{number} {'x' * 60}" for number in range(10)),
    ],
)
def test_other_text_has_no_entries(text: str) -> None:
    assert find_entries(text) == []


@given(st.text(alphabet="ab1$:.#-|` \n", max_size=200))
def test_entries_are_in_order_and_apart(text: str) -> None:
    spans = [(entry.start, entry.end) for entry in find_entries(text)]
    assert all(start < end for start, end in spans)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(spans))


def test_a_table_row_is_one_sentence_unless_it_is_long() -> None:
    text = "| Size (approx.) | 5 cu. in. Or more. |\n| " + "One. Two. " * 60 + "|"
    assert sentences(text)[:2] == ["| Size (approx.) | 5 cu. in. Or more. |", "| One."]


def test_an_entry_is_one_span_among_sentences() -> None:
    spans = [LISTING[start:end] for start, end in unit_spans(LISTING)]
    assert spans[:2] == [
        "Arms for every desk.",
        "M10 Single Monitor Arm\n\nFor monitors: 20-48 lbs\n\nStarting at $459",
    ]
    assert spans[2].startswith("- Sitka") and spans[2].endswith("13 ft. 9 in.")
    assert spans[3:] == ["- Sky 100 Kayak", "## Power Tank", "oversized fit\n\n价格：30 元"]


@given(st.text(alphabet="ab1$:.#-|` \n", max_size=200))
def test_units_cover_what_sentences_cover(text: str) -> None:
    units = unit_spans(text)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(units))
    assert all(any(a <= start and end <= b for a, b in units) for start, end in split_sentences(text))


@pytest.mark.parametrize(
    ("before", "section", "path"),
    [
        ("Oak", ("Boats", "Hull"), ("Boats",)),
        ("Ribs", ("Boats", "Hull"), ("Boats", "Hull")),
        ("Two coats", ("Boats", "Hull"), ("Boats", "Hull", "Paint")),
        ("One mast", ("Boats", "Hull"), ("Sails",)),
        ("One mast", ("Boats", "Sails"), ("Boats", "Sails")),
        ("Oak", (), ()),
    ],
)
def test_the_section_of_a_sentence_is_that_of_the_heading_above_it(
    before: str, section: tuple[str, ...], path: tuple[str, ...]
) -> None:
    text = "Oak.\n\n## Hull\n\nRibs.\n\n```\n# no heading\n```\n\n### Paint\n\nTwo coats.\n\n## Sails\n\nOne mast."
    assert find_section(text, section, text.index(before)) == path
