"""Quotes: their units, their choice, and their form."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from rag.checking.citations import check
from rag.reasoning.extractive import (
    FEATURES,
    MAX_COMMANDS,
    MAX_SENTENCES,
    MAX_SENTENCES_OF_SEVERAL,
    ExtractiveReasoner,
    as_code,
    as_prose,
    quotables,
)
from rag.types import Passage
from tests.support.answering import BRIDGE, TEA, VOLCANO, passage
from tests.support.quoting import make_quoter

PASSAGES = [passage(1, VOLCANO), passage(2, BRIDGE), passage(3, TEA)]


@pytest.fixture(scope="module")
def reasoner() -> ExtractiveReasoner:
    return make_quoter()


def answer(reasoner: ExtractiveReasoner, question: str, passages: Sequence[Passage] = PASSAGES) -> str:
    async def collect() -> str:
        return "".join([piece async for piece in reasoner.answer(question, passages)])

    return asyncio.run(collect())


def test_a_sentence_is_handed_on_before_the_next_is_chosen(
    reasoner: ExtractiveReasoner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison with the other sentences must not be needed before the first one is returned."""
    monkeypatch.setattr("rag.reasoning.extractive.letters_and_digits", pytest.fail)

    async def first() -> str:
        return await anext(reasoner.answer("How wide is the crater?", PASSAGES))

    assert asyncio.run(first()) == "Its crater is 24 kilometres wide. [1]"


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("When was the bridge opened?", "The bridge was opened in 1932. [2]"),
        ("How wide is the crater?", "Its crater is 24 kilometres wide. [1]"),
        ("龙井茶产于哪里？", "龙井茶产于杭州。 [3]"),
    ],
)
def test_the_sentence_that_answers_comes_first(reasoner: ExtractiveReasoner, question: str, first: str) -> None:
    assert answer(reasoner, question).split("\n\n")[0] == first


def test_what_a_page_says_of_the_thing_in_its_title_need_not_name_it_again(reasoner: ExtractiveReasoner) -> None:
    reports = [
        passage(
            1, "Meadow Farms Ltd. was founded in 1990. In June the company bought a mill.", title="Meadow Farms Ltd."
        ),
        passage(
            2, "Harbour Rail Inc. was founded in 1950. In May the company bought a mill.", title="Harbour Rail Inc."
        ),
    ]
    harbour = answer(reasoner, "When was the mill of Harbour Rail Inc. bought?", reports[::-1])
    meadow = answer(reasoner, "When was the mill of Meadow Farms Ltd. bought?", reports)
    assert "In May the company bought" in harbour and "In June" not in harbour
    assert "In June the company bought" in meadow and "In May" not in meadow


def test_the_better_passage_is_quoted_first_if_words_do_not_decide(reasoner: ExtractiveReasoner) -> None:
    near, far = (
        replace(passage(number, f"The {ship} left the port."), score=score)
        for number, ship, score in ((1, "ferry", 0.9), (2, "barge", 0.1))
    )
    assert answer(reasoner, "Which one left the port?", [far, near]).startswith("The ferry left the port. [2]")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("第7条规定了什么？", "第七条 大副负责登记吨位。"),
        ("第二十七条规定了什么？", "第27条 船长负责夜间巡查。"),
        ("ERR4019 是什么意思？", "ERR-4019 表示潮位计被堵塞。"),
        ("6%的是哪一种税？", "增值税率为百分之六。"),
    ],
)
def test_a_code_in_the_question_is_that_of_the_quote(
    reasoner: ExtractiveReasoner, question: str, expected: str
) -> None:
    text = (
        "第七条 大副负责登记吨位。\n\n第十七条 大副负责夜间巡查，期限为七日。\n\n第27条 船长负责夜间巡查。\n\n"
        "ERR-4018 表示灯没有电。\n\nERR-4019 表示潮位计被堵塞。\n\n关税率为百分之十二。\n\n增值税率为百分之六。"
    )
    assert answer(reasoner, question, [passage(1, text)]).startswith(expected)


def test_a_sentence_without_a_code_is_about_the_last_one(reasoner: ExtractiveReasoner) -> None:
    text = "The CS70 is easy to use.\n\nIt has 70 stitches.\n\nThe CS90 is the larger one.\n\nIt has 90 stitches."
    assert answer(reasoner, "How many stitches does the CS70 have?", [passage(1, text)]).startswith("It has 70")


@pytest.mark.parametrize(
    ("question", "missing"),
    [
        ("When was the Aurora bridge opened?", ["Aurora"]),
        ("When was the bridge of Page 2 opened?", []),
        ("When was the bridge opened?", []),
        ("Aurora大桥是什么时候开通的？", ["Aurora"]),
        ("aurora 大桥是什么时候开通的？", ["aurora"]),
        ("大桥 aurora 是什么时候开通的？", ["aurora"]),
        ("《北极光》里的大桥是什么时候开通的？", ["《北极光》"]),
        ("HTTP and SOAP: which one opened the bridge?", ["HTTP", "SOAP"]),
    ],
)
def test_what_the_question_names_and_the_passages_do_not_is_told(
    reasoner: ExtractiveReasoner, question: str, missing: list[str]
) -> None:
    assert reasoner.find_missing_names(question, [passage(2, BRIDGE)]) == missing


def test_each_feature_is_a_share_and_an_empty_question_has_none(reasoner: ExtractiveReasoner) -> None:
    for question in ("When was the bridge opened?", "?"):
        sentences, features = reasoner.score_sentences(question, PASSAGES)
        assert features.shape == (len(sentences), len(FEATURES))
        assert features.min() >= 0.0
        assert features.max() <= 1.0


def test_at_most_three_sentences_each_marked(reasoner: ExtractiveReasoner) -> None:
    many = [
        passage(1, "The bridge is red. The bridge is long. The bridge is old. The bridge is loud. The bridge is wide.")
    ]
    parts = answer(reasoner, "Tell me about the bridge", many).split("\n\n")
    assert len(parts) == MAX_SENTENCES
    assert all(part.endswith("[1]") for part in parts)


def test_nothing_is_quoted_from_irrelevant_passages(reasoner: ExtractiveReasoner) -> None:
    assert answer(reasoner, "Who invented the zeppelin airship engine?") == ""
    assert answer(reasoner, "Anything?", []) == ""


def test_headings_and_fences_are_no_answers(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "## When was the bridge opened\n\nThe bridge was opened in 1932.\n\n```\nbridge opened\n```")
    assert answer(reasoner, "When was the bridge opened?", [page]).startswith("The bridge was opened in 1932.")


def test_a_row_of_a_table_comes_with_its_header_and_is_found_in_its_page(reasoner: ExtractiveReasoner) -> None:
    rows = "| **Team** | 9 euros | 5 |\n| Solo | 4 euros | |"
    page = passage(1, f"Plans:\n\n| Plan | Price | Seats |\n| --- | ---: | --- |\n{rows}\n\nPrices hold for a year.")
    text = answer(reasoner, "What is the price of the Team plan?", [page])
    assert text.split("\n\n")[0] == "Team: 9 euros (Price) · 5 (Seats) [1]"
    checked = check(text, [page])
    assert checked.citations[0].quote == "| Plan | Price | Seats |\n| --- | ---: | --- |\n| **Team** | 9 euros | 5 |"
    assert checked.statements[0].verdict == "supported"


def test_a_list_item_is_checked_with_the_heading_of_its_list(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "## Not allowed\n\n- Bottles made of glass.\n- Dogs, except guide dogs.")
    text = answer(reasoner, "Are guide dogs allowed?", [page]).split("\n\n")[0]
    assert text == "Not allowed: Dogs, except guide dogs. [1]"
    assert check(text, [page]).statements[0].verdict == "supported"


def test_a_list_item_is_read_with_the_introduction_of_its_list(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "Dogs wait:\n\n- **15 days**\n\nCats wait:\n\n- 2 weeks\n\nMice don't wait.")
    sentences, _ = reasoner.score_sentences("How long do cats wait?", [page])
    assert [one.line([page]).text for one in sentences if not one.unit.introduces] == [
        "Dogs wait: 15 days",
        "Cats wait: 2 weeks",
        "Mice don't wait.",
    ]


def test_a_sentence_is_read_with_the_nearest_heading(reasoner: ExtractiveReasoner) -> None:
    text = "Rinse the pot.\n\n## Tea\n\nBoil the water.\n\n## **Coffee** ##\n\nGrind the beans. Wait."
    for section, first in ((("Guide", "Tea"), "Guide"), (("Guide", "Care"), "Care"), (("Coffee",), "")):
        page = replace(passage(1, text), section=section)
        sentences, _ = reasoner.score_sentences("How is coffee made?", [page])
        lines = [one.line([page]) for one in sentences if not one.unit.leads]
        assert [line.heading for line in lines] == [first, "Tea", "Coffee", "Coffee"]
        coffee = reasoner.encoder.terms("coffee")
        assert [coffee <= one.terms for one in sentences if not one.unit.leads] == [False, False, True, True]


def test_a_chinese_row_has_chinese_punctuation(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "| 车票 | 价格 | 有效期 |\n| --- | --- | --- |\n| 三日票 | 45 元 | 72 小时 |")
    assert answer(reasoner, "三日票多少钱？", [page]).startswith("三日票：45 元（价格） · 72 小时（有效期）")


def test_a_row_that_does_not_fit_its_header_reads_as_text(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "| Plan | Price |\n| --- | --- |\n| Team | 9 euros | old |")
    assert answer(reasoner, "What is the price of the Team plan?", [page]) == "Team · 9 euros · old [1]"


def test_one_good_sentence_is_a_good_answer(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, "The bridge was opened in 1932. The bridge has eight lanes. A bridge stood here before.")
    assert answer(reasoner, "When was the bridge opened?", [page]) == "The bridge was opened in 1932. [1]"


def test_two_things_that_are_asked_for_are_quoted_both(reasoner: ExtractiveReasoner) -> None:
    pages = [
        passage(1, "Aso erupted in 1953. It is high."),
        passage(2, "Fuji erupted in 1707. It is higher.", score=0.9),
    ]
    text = answer(reasoner, "When did the mountains Aso and Fuji erupt?", pages)
    assert text == "Aso erupted in 1953. [1]\n\nFuji erupted in 1707. [2]"


def test_each_of_several_questions_is_answered_in_turn(reasoner: ExtractiveReasoner) -> None:
    text = answer(reasoner, "How wide is the crater, and when was the bridge opened?")
    quotes = text.split("\n\n")
    assert quotes[0] == "Its crater is 24 kilometres wide. [1]" and "The bridge was opened in 1932. [2]" in quotes[1:3]
    repeated = answer(reasoner, "How wide is the crater? Is the crater wide?").split("\n\n")
    assert len(repeated) == len(set(repeated)) <= 2 * MAX_SENTENCES_OF_SEVERAL


def test_each_page_that_is_named_is_quoted_before_more_of_one(reasoner: ExtractiveReasoner) -> None:
    tolls = "A toll is asked of every cart. Which toll is asked is on a sign. The toll they ask is low."
    pages = [
        replace(passage(1, tolls), title="Grey Harbour"),
        replace(passage(2, "The toll: none. A sack of grain pays.", score=0.3), title="Old Mill"),
    ]
    found = [one.passage for one in reasoner.select("Which toll do Grey Harbour and Old Mill ask?", pages)]
    assert found[:2] == [0, 1]
    assert 1 not in [one.passage for one in reasoner.select("Which toll do they ask at Grey Harbour?", pages)]


def test_a_further_sentence_is_about_what_the_question_names(reasoner: ExtractiveReasoner) -> None:
    """The name is in the sentence, above it, or just before it."""
    pages = [passage(1, "The Aurora lamp burns for nine hours.")]
    pages += [passage(2, "The Borealis lamp burns for ten hours.", score=0.9)]
    question = "How many hours does the lamp of Aurora burn?"
    assert answer(reasoner, question, pages) == "The Aurora lamp burns for nine hours. [1]"


SHELL = """Set up the harbour tool:

```bash
curl -O https://example.org/harbour.tgz
harbour init \\
  --port 80
harbour status
```

Then restart the terminal."""


def test_commands_are_quoted_line_by_line_behind_what_leads_to_them(reasoner: ExtractiveReasoner) -> None:
    parts = answer(reasoner, "How do I set up the harbour tool?", [passage(1, SHELL)]).split("\n\n")
    assert parts[:4] == [
        "Set up the harbour tool: [1]",
        "`curl -O https://example.org/harbour.tgz` [1]",
        "`harbour init --port 80` [1]",
        "`harbour status` [1]",
    ]


def test_each_command_is_supported_by_its_own_lines(reasoner: ExtractiveReasoner) -> None:
    page = passage(1, SHELL)
    checked = check(answer(reasoner, "How do I set up the harbour tool?", [page]), [page])
    assert {one.verdict for one in checked.statements} == {"supported"}
    quotes = [citation.quote for citation in checked.citations]
    assert quotes[:2] == ["curl -O https://example.org/harbour.tgz", "harbour init \\\n  --port 80"]
    assert all(page.text[c.start - page.start : c.end - page.start] == c.quote for c in checked.citations)


@pytest.mark.parametrize(
    ("question", "page", "expected"),
    [
        ("Can I pay by card?", "Can I pay by card?\nYes, from 10 euros.\n", "Yes, from 10 euros. [1]"),
        ("Is there a lift?", "### Is there a lift?\n\nOnly in the north wing.\n", "Only in the north wing. [1]"),
        ("可以带狗吗？", "问：可以带狗吗？\n答：小型犬可以，需牵绳。\n", "答：小型犬可以，需牵绳。 [1]"),
        (
            "Can I pay by card?",
            "Can I pay in cash? Yes, always.\nCan I pay by card? In the summer months it is possible too.",
            "In the summer months it is possible too. [1]",
        ),
    ],
)
def test_an_answer_stands_for_its_question(
    reasoner: ExtractiveReasoner, question: str, page: str, expected: str
) -> None:
    assert answer(reasoner, question, [passage(1, page)]).split("\n\n")[0] == expected


def test_grading_is_lenient_and_by_overlap(reasoner: ExtractiveReasoner) -> None:
    grades = asyncio.run(reasoner.grade("When was the bridge opened for traffic?", PASSAGES))
    assert grades == [False, True, False]


def test_rewrites_differ_keep_key_terms_and_end(reasoner: ExtractiveReasoner) -> None:
    tried = ["When was the old harbour bridge opened?"]
    while query := asyncio.run(reasoner.rewrite(tried[0], tried, PASSAGES)):
        assert query not in tried
        assert {"harbour", "bridge", "opened", "old"} & set(query.lower().split())
        tried.append(query)
    assert 2 <= len(tried) <= 5


def test_what_was_said_is_answered_and_all_else_is_searched(reasoner: ExtractiveReasoner) -> None:
    assert asyncio.run(reasoner.decide("What was my first question?", [], [])).text
    for text in ("When was the bridge opened?", "你好", "Did we set the deadline?", "这个对话框怎么调整大小？"):
        assert asyncio.run(reasoner.decide(text, [], [])).tool_calls


def written(text: str) -> list[tuple[str, ...]]:
    return [part.lines for part in quotables(text)]


def test_sentences_stand_for_themselves() -> None:
    assert written("One is **red**. Two is blue.\n- three") == [("One is red.",), ("Two is blue.",), ("three",)]


def test_check_boxes_are_list_marks() -> None:
    assert written("- [ ] one\n- [x] two\n\n[ ] three\n\n[x] is a set.") == [
        ("one",),
        ("two",),
        ("three",),
        ("[x] is a set.",),
    ]


def test_commands_belong_together_and_to_what_leads_to_them() -> None:
    assert written("Run it:\n```\nmake all\nmake \\\n  test\n```\nDone.") == [
        ("Run it:", "`make all`", "`make test`"),
        ("Done.",),
    ]


def test_a_sentence_before_code_is_separate_unless_it_introduces_it() -> None:
    assert written("It is fast.\n~~~sh\nmake all\n~~~") == [("It is fast.",), ("`make all`",)]


def test_other_code_is_quoted_by_lines() -> None:
    indented = "```python\ndef double(n):\n    return 2 * n\n```"
    assert written(indented) == [("`def double(n):`",), ("`return 2 * n`",)]
    long = "\n".join(f"step {n}" for n in range(MAX_COMMANDS + 1))
    assert len(written(f"```\n{long}\n```")) == MAX_COMMANDS + 1


def test_headings_and_questions_are_told_apart_from_code() -> None:
    heading, question, code = quotables("# Usage\n\nIs it safe?\n\n```\n# Is it safe?\n```")
    assert heading.is_heading and heading.leads
    assert question.leads and not question.is_heading
    assert code.is_code and not code.leads and not code.is_heading


def test_code_without_words_or_end_is_no_trouble() -> None:
    assert written("```\n{\n}\n```") == []
    assert written("Run:\n```\nmake") == [("Run:", "`make`")]
    assert written("") == []


def test_table_rows_get_their_header_from_another_passage() -> None:
    table = "| Boat | 2021 | 2022 |\n|---|---|---|\n| Tern |  | 7 |\n| Auk | a\\|b | 8 |\n|  | 5 | 6 |"
    assert written(table)[2:] == [("Tern: 7 (2022)",), ("Auk: a|b (2021) · 8 (2022)",), ("5 (2021) · 6 (2022)",)]
    header = "| Boat | 2021 | 2022 |\n|---|---|---|"
    assert quotables("| Tern |  | 7 |", header)[0].lines == ("Tern: 7 (2022)",)
    assert written("|  |  |\n|---|---|\n| Height | 21 m |")[-1] == ("Height: 21 m",)


def test_a_full_stop_does_not_separate_a_cell_from_its_column() -> None:
    head = "| Key | Effect | Where |\n|---|---|---|\n"
    assert written(head + "| F2 | Opens the cell. | U.S. |")[-1] == ("F2: Opens the cell (Effect) · U.S. (Where)",)
    assert written("| 参数 | 含义 |\n|---|---|\n| -o | 打开。不打印。 |")[-1] == ("-o：打开。不打印（含义）",)


def test_rows_below_a_long_one_have_its_header() -> None:
    table = f"| Key | Effect |\n|---|---|\n| F2 | {'Opens the cell. ' * 40}|\n| F7 | Checks it |"
    assert written(table)[-1] == ("F7: Checks it (Effect)",)
    assert written(f"{table}\n\nText.\n| a | b |")[-1] == ("a · b",)


def test_a_quantity_names_its_column_and_equal_neighbours_share_a_cell() -> None:
    lessons = "| 30 minutes | 45 minutes |\n|---|---|\n| $84 a lesson | $100 a lesson |"
    assert written(lessons)[-1] == ("$84 a lesson (30 minutes) · $100 a lesson (45 minutes)",)
    assert written("|  | Price |\n|---|---|\n| 2 rooms | $100 |")[-1] == ("2 rooms: $100 (Price)",)
    assert written("| 日 | 早 | 晚 | 夜 |\n|---|---|---|---|\n| 周一 | 闭馆 | 闭馆 | 开 |")[-1] == (
        "周一：闭馆（早、晚） · 开（夜）",
    )


def test_a_heading_that_introduces_has_no_marks() -> None:
    assert written("### Fields of a feed:\n\nUse a semicolon.")[-1] == ("Fields of a feed: Use a semicolon.",)


def test_what_is_struck_out_is_not_quoted() -> None:
    assert written("A berth costs ~~99 EUR~~ 79 EUR a night.") == [("A berth costs 79 EUR a night.",)]
    assert written("~~The pier is closed. Come later.~~\n\nIt is open.") == [("It is open.",)]
    assert written("| Pier | Fee |\n|---|---|\n| A | ~~8~~ 6 |")[-1] == ("A: 6 (Fee)",)
    assert written("- ~~Boat at nine~~\n- Boat at ten") == [("Boat at ten",)]


def test_marks_of_notes_stay_behind() -> None:
    assert written("It holds 4500[^2] boats, as `[^2]` says.") == [("It holds 4500 boats, as `[^2]` says.",)]


@pytest.mark.parametrize(
    ("text", "prose"),
    [
        ("- The **blue** pass costs 9 euros.", "The blue pass costs 9 euros."),
        ("1. Open the lid", "Open the lid"),
        ("- -7 °C in winter", "-7 °C in winter"),
        ("A __bold claim__ and\nmore", "A bold claim and more"),
        ("Call `__enter__` and set `y = 4 ** 2`.", "Call `__enter__` and set `y = 4 ** 2`."),
        ("The value is 4 ** 2 here.", "The value is 4 ** 2 here."),
        ("Methods like __repr__ are called by Python.", "Methods like `__repr__` are called by Python."),
        ("Use snake__case__names freely.", "Use snake__case__names freely."),
        ("| Plan | **9 euros** |", "Plan · 9 euros"),
        ("用 `a ** b` 计算**乘方**。", "用 `a ** b` 计算乘方。"),
    ],
)
def test_prose_loses_emphasis_and_keeps_code(text: str, prose: str) -> None:
    assert as_prose(text) == prose


@pytest.mark.parametrize(
    ("line", "code"),
    [("  ls  -l ", "`ls  -l`"), ("echo `date`", "`` echo `date` ``"), ("a ``b`` c", "```a ``b`` c```")],
)
def test_code_stands_between_enough_backticks(line: str, code: str) -> None:
    assert as_code(line) == code


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("## Not paid\n\n- Fines.\n- Films.", ["## Not paid", "Not paid: Fines.", "Not paid: Films."]),
        (
            "What to bring:\n\n1. A towel.\n2. A lock.",
            ["What to bring:", "What to bring: A towel.", "What to bring: A lock."],
        ),
        ("## 不予报销\n\n- 罚款。", ["## 不予报销", "不予报销：罚款。"]),
        ("## Rules\n\nBe on time.\n\n- No dogs.", ["## Rules", "Be on time.", "No dogs."]),
        ("## What may I bring?\n\n* A dog.", ["## What may I bring?", "What may I bring? A dog."]),
        ("- No dogs.", ["No dogs."]),
        ("## Not paid\n\n- Fines. Never.\n- Films.", ["## Not paid", "Not paid: Fines.", "Never.", "Not paid: Films."]),
    ],
)
def test_a_list_item_begins_with_the_heading_or_introduction_of_its_list(text: str, lines: list[str]) -> None:
    assert [line for unit in quotables(text) for line in unit.lines] == lines


def test_an_attribute_is_quoted_with_its_title() -> None:
    listing = "M10 Monitor Arm\n\nStarting at $459\n\n- Sitka Kayak\n  Length:\n  13 ft.\n- Sky Kayak\n\n"
    units = quotables(f"{listing}## Tank\n\nPrice: ~~$40~~ $30")
    assert [unit.lines for unit in units if not unit.is_heading] == [
        ("M10 Monitor Arm · Starting at $459",),
        ("Sitka Kayak · Length: 13 ft.",),
        ("Sky Kayak",),
        ("Tank · Price: $30",),
    ]


def test_an_attribute_is_quoted_with_its_heading_even_after_a_sentence() -> None:
    course = "Explore the risks of data collection.\n\nPrice\n\n$950"
    assert quotables(f"## Data Privacy\n\n{course}")[-1].lines == ("Data Privacy · Price · $950",)
    assert quotables(course, section="Data Privacy")[-1].lines == ("Data Privacy · Price · $950",)
    assert quotables("## Not sold\n\n- Oven\n  Price $6")[-1].lines == ("Not sold: Oven · Price $6",)


def test_a_heading_is_not_added_to_the_name_of_a_product() -> None:
    text = "## Why us\n\nWe know floors. Really.\n\nRoomba Plus 405 Combo\n\n$399.99"
    assert quotables(text)[-1].lines == ("Roomba Plus 405 Combo · $399.99",)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("Can I heat milk? No. It burns. Tea is fine.", ["Can I heat milk?", "No. It burns.", "Tea is fine."]),
        ("可以退吗？不能。它会坏的。", ["可以退吗？", "不能。它会坏的。"]),
        ("Colours:\n\nRed and blue\n\nOak", ["Colours:", "Colours: Red and blue", "Oak"]),
    ],
)
def test_a_short_answer_and_an_introduction_stay_with_what_follows(text: str, lines: list[str]) -> None:
    assert [line for unit in quotables(text) for line in unit.lines] == lines


def test_an_introduction_is_not_quoted_alone() -> None:
    units = quotables("To remove a package with all that needs it:\n\nUse the remove command twice.")
    assert [unit.leads for unit in units] == [True, False]
    assert not quotables("In “A Machine to End War”, published in 1937, Tesla stated:")[-1].leads, "nothing follows it"


def test_a_label_within_an_item_does_not_introduce_the_next() -> None:
    assert [unit.lines for unit in quotables("- Arm\n  Width:\n- Desk")] == [("Arm · Width:",), ("Desk",)]
    posts = quotables("- Ann:\n  Today\n- Ben:\n  Tomorrow")
    assert [unit.lines for unit in posts] == [("Ann: Today",), ("Ben: Tomorrow",)]


LIST = """## Opening the lock

Only the keeper opens the lock. You need:

1. Lower the water. Wait for the bell.
2. Turn the wheel to the left.
3. Raise the gate by 40 centimetres.

The keeper lives in Ferry Lane."""


@pytest.mark.parametrize(
    ("question", "is_whole"),
    [
        ("What do you need for the lock?", True),
        ("By how many centimetres is the gate raised?", False),
        ("Where does the keeper live?", False),
    ],
)
def test_a_list_is_quoted_whole_if_the_question_is_about_it(
    reasoner: ExtractiveReasoner, question: str, is_whole: bool
) -> None:
    text = answer(reasoner, question, [passage(1, LIST, title="The lock")])
    whole = (
        "You need:\n\n1. Lower the water. Wait for the bell. [1]\n2. Turn the wheel to the left. [1]\n"
        "3. Raise the gate by 40 centimetres. [1]"
    )
    assert (whole in text) is is_whole
    verdicts = {one.verdict for one in check(text, [passage(1, LIST, title="The lock")]).statements}
    assert verdicts == {"supported"}


@pytest.mark.parametrize(("weight", "first"), [(1000.0, "The lock needs:"), (1.0, "The keeper takes a coat")])
def test_a_list_that_is_likelier_in_all_than_the_best_sentence_is_quoted_before_it(
    reasoner: ExtractiveReasoner, monkeypatch: pytest.MonkeyPatch, weight: float, first: str
) -> None:
    monkeypatch.setattr("rag.reasoning.extractive.LIST_WEIGHT", weight)
    text = "The keeper takes a coat to the lock.\n\nThe lock needs:\n\n- Grease.\n- Two wheels.\n- A bell."
    quotes = answer(reasoner, "What does the keeper need at the lock?", [passage(1, text, title="The lock")])
    assert quotes.startswith(first)
    assert "The keeper takes a coat to the lock. [1]" in quotes


def test_lists_before_and_after_code_are_two(reasoner: ExtractiveReasoner) -> None:
    text = LIST.partition("\n\nThe keeper")[0] + "\n\n```\nlock --open\n```\n\n4. Ring twice.\n5. Wave."
    page = passage(1, text, title="The lock")
    quoted = answer(reasoner, "What do you need for the lock?", [page])
    assert "3. Raise the gate by 40 centimetres. [1]" in quoted
    assert "Ring" not in quoted.partition("\n\n1. ")[2].partition("\n\n")[0]
    steps = "## Ringing the bell\n\n4. Ring twice for the bell.\n5. Ring the bell again."
    assert "4. Ring twice for the bell. [1]\n5. " in answer(reasoner, "How to ring the bell?", [passage(1, steps)])


def test_a_long_list_is_not_quoted_whole(reasoner: ExtractiveReasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rag.reasoning.extractive.MAX_ITEMS", 2)
    assert "1. " not in answer(reasoner, "What do you need for the lock?", [passage(1, LIST, title="The lock")])
