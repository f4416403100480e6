from __future__ import annotations

import pytest

from rag.checking.statements import declines, extract_claim, find_statements, is_about_sources, is_remark, is_statement

ON_SOURCES = [
    "The passages do not mention its height.",
    "The pages don't say when it opened.",
    "None of the sources cover this.",
    "Neither passage mentions it.",
    "The documents make no mention of it.",
    "Nothing in the sources answers this.",
    "The answer is not in the pages.",
    "This is not covered in the passages provided.",
    "Based on the passages, it is impossible to say.",
    "I could not find that.",
    "I do not have enough information.",
    "段落中没有提到它的高度。",
    "资料未说明价格。",
    "这些来源都没有提及游泳池。",
    "网页里没有相关信息。",
    "根据提供的资料，无法确定。",
    "抱歉，我无法找到答案。",
    "无法根据这些段落回答。",
    "不能从网页中得知。",
]
WITHOUT_SUBJECT = [
    "There is no information about this.",
    "Not mentioned.",
    "No information.",
    "No information on prices was found.",
    "没有找到相关信息。",
    "无法回答该问题。",
    "未提及。",
]
DENIALS = [
    "No, it does not include breakfast.",
    "They do not give refunds.",
    "The plan doesn't cover dental care.",
    "The hotel does not offer a pool.",
    "We do not ship abroad.",
    "We cannot find a cure yet.",
    "There is no information desk.",
    "There is no answer key.",
    "科学家无法从骨骼判断其年代。",
    "房价不包含早餐。",
    "该方案不涉及牙科。",
    "科学家无法确定其年代。",
    "他们找不到水源。",
    "考古学家没有找到墓葬。",
    "酒店没有游泳池。",
]


@pytest.mark.parametrize(
    "text",
    [
        "## Results",
        "**Results:**",
        "In summary:",
        "总之：",
        "以下是要点：",
        "What does it mean?",
        "这意味着什么？",
        "---",
        "The passages do not mention its height.",
        "段落中没有提到它的高度。",
        "See",
        "…",
        "Yes.",
    ],
)
def test_what_states_nothing(text: str) -> None:
    assert not is_statement(text)


@pytest.mark.parametrize(
    "text",
    [
        "It opened in 1932.",
        "1932",
        "Paris.",
        "杭州。",
        "- Mount Aso erupted",
        "桥于一九三二年通车。",
        "It costs: 30 dollars.",
    ],
)
def test_what_states_something(text: str) -> None:
    assert is_statement(text)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        (
            "It was so [1]. Then it rained.[2][3] 后来下雨了【1，4】。",
            [("It was so.", (1,)), ("Then it rained.", (2, 3)), ("后来下雨了。", (1, 4))],
        ),
        (  # a full stop within code ends nothing
            "Use `syntax: basic (BRE). In GNU` always. [1] Then `a` stops.",
            [("Use `syntax: basic (BRE). In GNU` always.", (1,)), ("Then `a` stops.", ())],
        ),
        ("[2] It was so.", [("It was so.", (2,))]),
    ],
)
def test_marks_belong_to_the_sentence_before_them(text: str, sentences: list[tuple[str, tuple[int, ...]]]) -> None:
    found = find_statements(text)
    assert [(one.bare, one.marks) for one in found] == sentences
    assert found[0].start == 0


def test_a_heading_of_several_sentences_is_one_to_its_end() -> None:
    text = "## Name the risks. Then explain what AMD changed in 2024.\n\nIt was so in 2023. [1]"
    assert [one.bare for one in find_statements(text) if one.is_statement or one.may_be_remark] == [
        "It was so in 2023."
    ]


def test_tables_state_in_their_rows_and_code_states_nothing() -> None:
    text = "| Name | Opened |\n| --- | --- |\n| Bridge | 1932 |\n\n```\nprint(1953)\n```\n"
    assert [one.bare for one in find_statements(text) if one.is_statement] == ["| Bridge | 1932 |"]


def test_a_mark_makes_a_statement_of_a_line_in_bold() -> None:
    for text in ("**1994** [1]", "**1994 [1]**", "__1994__[1]", "**The limit is 30 days.** [1]"):
        (stated,) = find_statements(text)
        assert stated.is_statement, text
        assert stated.marks == (1,)
    for text in (
        "**Opening hours**\n\nIt opens at 9.",
        "## Overview\n\nIt opens at 9.",
        "**Results:** [1]\n\nIt is so.",
    ):
        heading = find_statements(text)[0]
        assert not heading.is_statement, text
        assert not heading.may_be_remark, text


@pytest.mark.parametrize(
    "text", ["Please bring a passport", "We will open in Rome", "请带护照", "They do not mention tea farms"]
)
def test_what_names_a_passage_is_a_statement_however_it_opens(text: str) -> None:
    (stated,) = find_statements(f"{text} [1].")
    assert stated.is_statement


def test_a_remark_on_the_sources_counts_only_where_they_bear_it_out() -> None:
    (stated,) = find_statements("The article does not cover damage by water [1].")
    assert (stated.is_statement, stated.may_be_remark) == (False, True)


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("No, it does not.", "it does not."),
        ("**No**, it does not.", "it does not."),
        ("No. The price does not.", "The price does not."),
        ("Yes – dogs are allowed.", "dogs are allowed."),
        ("不，房价不含早餐。", "房价不含早餐。"),
        ("不包含，房价不包含早餐。", "房价不包含早餐。"),
        ("No. 5 is the bridge.", "No. 5 is the bridge."),
        ("No dogs are allowed.", "No dogs are allowed."),
        ("没有预约，不能入场。", "没有预约，不能入场。"),
        ("会员免费。", "会员免费。"),
        *[("1. Opened", "Opened"), ("- (2) It", "It"), ("> x", "x"), ("3.5 m", "3.5 m")],
        ("来源2提到，票价", " 提到，票价"),
    ],
)
def test_what_only_leads_to_a_claim_is_taken_off(text: str, rest: str) -> None:
    assert extract_claim(text) == rest


def test_a_sentence_that_never_ends_is_not_read() -> None:
    (stated,) = find_statements("word " * 3_000)
    assert stated.is_statement


@pytest.mark.parametrize("text", ON_SOURCES)
def test_what_speaks_of_the_sources(text: str) -> None:
    assert is_about_sources(text)
    assert is_remark(text)
    assert declines(text)


@pytest.mark.parametrize("text", WITHOUT_SUBJECT)
def test_a_refusal_needs_no_subject(text: str) -> None:
    assert declines(text)


@pytest.mark.parametrize("text", DENIALS)
def test_a_denial_is_no_refusal(text: str) -> None:
    assert not is_about_sources(text)
    assert not declines(text)


@pytest.mark.parametrize("text", ["I hope this helps.", "Please let me know.", "请告诉我更多。", "希望对您有帮助。"])
def test_courtesies(text: str) -> None:
    assert is_remark(text)
    assert not declines(text)


@pytest.mark.parametrize("text", ["We will open in Berlin in 2027.", "希望小学建于1990年。", "We found gold."])
def test_openings_alone_make_no_remark(text: str) -> None:
    assert not is_remark(text)
