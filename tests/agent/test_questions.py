from __future__ import annotations

import pytest

from rag.agent.questions import MAX_CHARACTERS, is_small_talk, is_third_language, question_problem


@pytest.mark.parametrize("question", ["", " ", "？", "...", "\u200b"])
def test_a_question_without_a_word_is_empty(question: str) -> None:
    problem = question_problem(question)
    assert problem and problem.code == "question_empty"


def test_the_limit_is_exact() -> None:
    assert question_problem("茶" * MAX_CHARACTERS) is None
    problem = question_problem("茶" * (MAX_CHARACTERS + 1))
    assert problem and problem.params == {"characters": MAX_CHARACTERS + 1, "limit": MAX_CHARACTERS}


@pytest.mark.parametrize(
    "text",
    [
        "Hi",
        "hello there!",
        "Thank you so much, that was very helpful",
        "How are you doing today?",
        "What can you do?",
        "What was my first question?",
        "你好",
        "谢谢你，太棒了",
        "你能做什么？",
        "我刚才问了什么？",
        "好的，明白了",
    ],
)
def test_small_talk(text: str) -> None:
    assert is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Hello, when did Mount Aso erupt?",
        "Thanks. And how wide is the crater?",
        "How do you install it on Debian?",
        "Who said that the earth is round?",
        "pricing",
        "谢谢，那么龙井茶产于哪里？",
        "明前茶",
        "你好，请问退货政策是什么？",
    ],
)
def test_what_needs_a_page_is_no_small_talk(text: str) -> None:
    assert not is_small_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Quelle est la hauteur de la tour ?",
        "Wie hoch ist der Turm und wer hat ihn gebaut?",
        "¿Cuál es la altura de la torre?",
        "東京タワーの高さは？",
        "도쿄 타워의 높이는?",
        "Какова высота башни?",
        "Combien coûte le billet ?",
        "Wo ist der Bahnhof?",
        "Où se trouve le musée ?",
        "Quando è stato costruito il ponte?",
    ],
)
def test_third_languages(text: str) -> None:
    assert is_third_language(text)


@pytest.mark.parametrize(
    "text",
    [
        "How high is the tower?",
        "Tower height",
        "Who wrote Les Misérables and Notre-Dame de Paris?",
        "What is the Der Spiegel affair?",
        "塔有多高？",
        "BGE-M3 的维度是多少",
        "42",
        "Los Angeles vs El Paso",
        "las vegas vs los angeles",
        "Come as you are lyrics",
        "Del Mar to Los Gatos by train",
        "La Paz del Sur hotel",
        "MIT vs UND",
        "Ｐｒｏ　ｐｌａｎ price",
        "Ｄｏｃｋｅｒ 怎么安装？",
        "Kubernetes Ingress Controller 多少钱",
    ],
)
def test_english_and_chinese_are_not_third(text: str) -> None:
    assert not is_third_language(text)
