"""What can be told of a question before anything is searched."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from rag.agent.small_talk import is_about_conversation, is_small_talk
from rag.text import question_language
from rag.types import Notice

__all__ = ["MAX_CHARACTERS", "is_about_conversation", "is_small_talk", "is_third_language", "question_problem"]

MAX_CHARACTERS: Final = 4_000

_WORD: Final = re.compile(r"\w")
# Evidence of another language; some of these words are English too, and articles stand in names of places.
_FOREIGN: Final = re.compile(
    r"\b(?:une|est|sont|dans|avec|trouve|quel|quelle|quels|quelles|pourquoi|quand|combien|qui|où|qu|cette"
    r"|ein|eine|ist|sind|nicht|und|für|mit|wie|warum|welche[rns]?|wer|wo|wann|wird|wurde|liegt"
    r"|una|es|qué|cuál|cuándo|cómo|por|quién|dónde|está|fue"
    r"|della|di|che|dove|trova|quanto|perché|quando|quale|sono|è|nel"
    r"|uma|não|são|como|quem|onde|quais|qual|fica|foi)\b",
    re.IGNORECASE,
)
_ARTICLES: Final = re.compile(
    r"\b(?:le|la|les|des|du|aux|der|das|den|dem|el|los|las|del|il|gli|os|as|um|da|na)\b", re.IGNORECASE
)
_ENGLISH_TOO: Final = re.compile(r"\b(?:pour|comment|son|para|con|come)\b", re.IGNORECASE)
_CAPITALS: Final = re.compile(r"\b[A-Z]{2,}\b")
_ENGLISH: Final = re.compile(
    r"\b(?:the|is|are|was|were|what|which|who|whom|when|where|why|how|does|did|of|and|in|on|at|to|with|it|its|this"
    r"|that|these|from|by|an|can|has|have|had|be|been|much|many|you|your|my|we|our|they|their|for|if|not|will|would"
    r"|could|should|about|there|vs)\b",
    re.IGNORECASE,
)


def question_problem(question: str) -> Notice | None:
    """Say why `question` cannot be asked: it is empty, or longer than MAX_CHARACTERS code points."""
    if not _WORD.search(question):
        return Notice("question_empty")
    if len(question) > MAX_CHARACTERS:
        return Notice("question_long", {"characters": len(question), "limit": MAX_CHARACTERS})
    return None


def is_third_language(question: str) -> bool:
    """Whether the question seems neither English nor Chinese, by its script, then by its function words."""
    language = question_language(question)
    if language != "en":
        return language != "zh" and any(map(str.isalpha, question))
    plain = unicodedata.normalize("NFKC", question)
    if any(map(str.islower, plain)):
        plain = _CAPITALS.sub(" ", plain)  # what is in capitals is a name there
    foreign, articles, english_too, english = (
        len(set(pattern.findall(plain.lower()))) for pattern in (_FOREIGN, _ARTICLES, _ENGLISH_TOO, _ENGLISH)
    )
    if not foreign:
        return bool(articles and english_too and not english)
    return foreign + articles + english_too >= 2 > english
