"""Follow-ups become questions that stand alone, and questions that stand alone stay as they are."""

from __future__ import annotations

import pytest

from rag.agent.condensing.condense import Exchange, by_rules, needs_context

ENGLISH = [
    (["What does the Team plan cost?", "What about the Business plan?"], "What does the Business plan cost?"),
    (
        ["How long does a deleted file stay in the bilge?", "How do I bring it back?"],
        "How do I bring the deleted file back?",
    ),
    (["What is the hotel limit per night in London?", "And in Paris?"], "What is the hotel limit per night in Paris?"),
    (
        ["What is the capital of France?", "And Germany?", "How many people live there?"],
        "How many people live in Germany?",
    ),
    (["When was Nikola Tesla born?", "What did his father do?"], "What did Nikola Tesla's father do?"),
    (["When did Mount Aso erupt?", "Why?"], "Why did Mount Aso erupt?"),
    (["When was version 4.4.0 published?", "And 4.3.0?", "What was removed in it?"], "What was removed in 4.3.0?"),
    (["How many guests may a team have?", "Do they cost anything?"], "Do the guests cost anything?"),
    (["How many guests may a team have?", "What rights can they have?"], "What rights can the guests have?"),
    (["What causes rainforest destruction?", "Can it be stopped?"], "Can rainforest destruction be stopped?"),
    (
        ["What is the speed limit on the motorway?", "What is the fine for exceeding it?"],
        "What is the fine for exceeding the speed limit?",
    ),
]
CHINESE = [
    (["一级系统多久做一次演练？", "那二级系统呢？"], "二级系统多久做一次演练？"),
    (["一级系统多久做一次演练？", "那二级系统呢？", "它的最长恢复时间是多少？"], "二级系统的最长恢复时间是多少？"),
    (["每周最多可以远程办公几天？", "那试用期员工呢？", "实习生呢？"], "实习生每周最多可以远程办公几天？"),
    (["地铁一日票多少钱？", "三日票呢？"], "地铁三日票多少钱？"),
    (["2 号线的末班车几点发车？", "4 号线呢？"], "4 号线的末班车几点发车？"),
    (["绿茶应该用多少度的水来泡？", "红茶呢？", "这种茶可以存放多久？"], "红茶可以存放多久？"),
    (["古城墙夜市共有多少个摊位？", "怎么去那里？"], "怎么去古城墙夜市？"),
    (["夜市的皮影戏几点开演？", "票价是多少？"], "夜市的皮影戏的票价是多少？"),
    (["华沙的人口是多少？", "那克拉科夫呢？"], "克拉科夫的人口是多少？"),
    (["图书馆周末几点开门？", "工作日呢？"], "图书馆工作日几点开门？"),
    (["特斯拉是哪一年出生的？", "他在哪里上的大学？"], "特斯拉在哪里上的大学？"),
]
COMPLETE = [
    "How much does storage beyond the plan cost?",
    "How long does it take to install Skiff?",
    "Is it possible to pay by card?",
    "When the outage began, how long did it last?",
    "How did Tesla finance his work?",
    "Skiff pricing",
    "图书逾期了，它怎么收费？",
    "绿茶怎么泡？",
    "什么是量子计算？",
    "加那利群岛在哪个大陆沿岸？",
    "特斯拉是如何资助他的工作的？",
    "远程办公的申请应当提前几天提交？",
]


def _condensed(questions: list[str], answer: str = "") -> str:
    history: list[Exchange] = []
    for question in questions[:-1]:
        history.append(Exchange(question, answer, by_rules(question, history)))
    return by_rules(questions[-1], history)


@pytest.mark.parametrize(("questions", "meant"), [*ENGLISH, *CHINESE], ids=lambda value: str(value)[-40:])
def test_what_is_left_out_is_filled_in(questions: list[str], meant: str) -> None:
    assert _condensed(questions) == meant


@pytest.mark.parametrize("question", COMPLETE)
def test_a_question_that_stands_alone_stays_as_it_is(question: str) -> None:
    assert not needs_context(question)
    for before in ("What does the Team plan cost?", "一日票多少钱？"):
        assert _condensed([before, question]) == question


def test_an_answer_tells_who_and_which() -> None:
    assert _condensed(["Who wrote Hamlet?", "When was he born?"], "Hamlet is by William Shakespeare.") == (
        "When was William Shakespeare born?"
    )
    assert _condensed(["Which plan is needed for a rewind?", "What does it cost?"], "It needs the Team plan.") == (
        "What does the Team plan cost?"
    )


def test_history_without_what_was_meant_is_understood_from_its_beginning() -> None:
    pairs = [Exchange("What does the Team plan cost?", "9 euros"), Exchange("And the Business plan?", "15 euros")]
    assert by_rules("How many people does it begin at?", pairs) == "How many people does the Business plan begin at?"


def test_small_talk_between_is_passed_over() -> None:
    talk = [Exchange("地铁一日票多少钱？", "18 元"), Exchange("谢谢！", "不客气")]
    assert by_rules("三日票呢？", talk) == "地铁三日票多少钱？"


def test_the_first_question_has_nothing_to_point_back_to() -> None:
    assert by_rules("And in Paris?", []) == "And in Paris?"


def test_the_languages_may_change() -> None:
    assert "冷泡茶" in _condensed(["冷泡茶要放几个小时？", "How much caffeine does it have?"])
    assert "Skiff" in _condensed(["How large is Skiff?", "它多少钱？"])


@pytest.mark.parametrize(
    ("before", "answer", "question", "meant"),
    [
        ("Who wrote Dune?", "Frank Herbert wrote Dune.", "他是哪国人？", "Frank Herbert 是哪国人？"),
        ("谁写了《红楼梦》？", "曹雪芹。", "Where was he born?", "Where was 曹雪芹 born?"),
        ("What is the difference between TCP and UDP?", "", "哪个更快？", "TCP and UDP 哪个更快？"),
        ("What is the difference between TCP and UDP?", "", "后者可靠吗？", "UDP 可靠吗？"),
        (
            "Docker 和 Podman 有什么区别？",
            "",
            "Which one is faster?",
            "Which one is faster, Docker or Podman?",
        ),
        ("How long is the Nile?", "", "然后呢？", "How long is the Nile?"),
        ("龙井茶产于哪里？", "", "And?", "龙井茶产于哪里？"),
        ("How long is the Nile?", "", "亚马逊河呢？", "亚马逊河呢？"),
    ],
)
def test_another_language_asks_on(before: str, answer: str, question: str, meant: str) -> None:
    assert by_rules(question, [Exchange(before, answer)]) == meant


def test_mostly_latin_letters_may_ask_in_chinese() -> None:
    history = [Exchange("Redis 支持持久化吗？", "支持。")]
    assert by_rules("那 Memcached 呢？", history) == "Memcached 支持持久化吗？"
    assert by_rules("ThinkPad X1 Carbon Gen 11 怎么样？", history) == "ThinkPad X1 Carbon Gen 11 怎么样？"


def test_a_question_without_an_answer_is_pointed_back_to() -> None:
    assert by_rules("And in Paris?", [Exchange("How tall is the bridge in London?", "")]) == (
        "How tall is the bridge in Paris?"
    )


def test_a_long_question_says_enough() -> None:
    question = f"What does it do with {'a very long list of things ' * 30}?"
    assert not needs_context(question)
    assert by_rules(question, [Exchange("How long is the Nile?", "")]) == question
    assert by_rules("And the Amazon?", [Exchange("it " * 1_300, "it " * 9_000)])
