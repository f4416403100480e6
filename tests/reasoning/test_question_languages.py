"""Questions that are recognised as neither English nor Chinese."""

from __future__ import annotations

import pytest

from rag.reasoning.questions import is_third_language


@pytest.mark.parametrize(
    "question",
    [
        "Los Angeles vs El Paso",
        "los angeles vs el paso",
        "Come as you are lyrics",
        "Compare Las Vegas as Los Angeles",
        "Explain Des Moines as a place",
        "Le Mans 24h winners",
        "EST time in El Paso",
        "MIT license vs BSD",
        "comment on El Paso",
        "Como hotels near Lake Como",
        "ＴＥＡＭ　ｐｌａｎ cost?",
        "Ｔｅａｍ　ｐｌａｎ",
        "Kubernetes StatefulSet 和 Deployment 有什么区别？",
    ],
)
def test_names_and_words_that_are_english_too_are_no_third_language(question: str) -> None:
    assert not is_third_language(question)


@pytest.mark.parametrize(
    "question",
    [
        "Le chat est-il noir ?",
        "Comment fonctionne le moteur ?",
        "Où se trouve la gare ?",
        "Der Turm ist hoch",
        "Warum ist der Himmel blau?",
        "Wo liegt das Museum der Stadt?",
        "Los perros son animales",
        "¿Cuál es la altura de la torre?",
        "Qual é a altura da torre?",
        "Dove si trova la torre di Pisa?",
        "ＱＵＥＬＬＥ ＥＳＴ ＬＡ ＨＡＵＴＥＵＲ",
        "Ελληνικά ερώτηση;",
    ],
)
def test_function_words_tell_another_language(question: str) -> None:
    assert is_third_language(question)
