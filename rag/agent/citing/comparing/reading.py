"""A sentence as what is compared: its tokens, and the sets and pairs of them that comparisons look into."""

from __future__ import annotations

import re
from functools import cached_property

from rag import text as script
from rag.agent.citing.comparing import bounds, english
from rag.agent.citing.comparing.letters import plain, squash, without_markdown
from rag.agent.citing.comparing.tokens import HAN_SIGN, WORD, Token, Tokenizer, lowered

__all__ = ["Reading", "Token", "squash"]

_DOTTED = re.compile(r"\b(?:[A-Z]\.){2,}")


class Reading:
    """The tokens of `text`; `negated` are the places in `tokens` before which a negation stands.

    `forbidden` are those of them where something is prohibited: by a word that may stand behind it, too.
    Each is made when it is first asked for: most passages are never looked at beyond their sentences.
    """

    def __init__(self, text: str) -> None:
        self._given = text

    @cached_property
    def text(self) -> str:
        return _prepared(self._given)

    @cached_property
    def _read(self) -> Tokenizer:
        return Tokenizer(self.text)

    @cached_property
    def tokens(self) -> list[Token]:
        return self._read.tokens

    @cached_property
    def negated(self) -> list[int]:
        return self._read.negated

    @cached_property
    def forbidden(self) -> set[int]:
        return self._read.forbidden

    @cached_property
    def keys(self) -> frozenset[str]:
        return frozenset(token.key for token in self.tokens)

    @cached_property
    def groups(self) -> frozenset[str]:
        return frozenset(mark for token in self.tokens for mark in token.groups)

    @cached_property
    def by_beginning(self) -> dict[str, list[Token]]:
        """Latin words by their first four letters, for those that may be forms of each other."""
        found: dict[str, list[Token]] = {}
        for token in self.tokens:
            if token.kind in ("name", "word") and len(token.key) >= 4:
                found.setdefault(token.key[:4], []).append(token)
        return found

    @cached_property
    def numbers(self) -> list[Token]:
        return [token for token in self.tokens if token.kind == "number"]

    @cached_property
    def pairs(self) -> frozenset[str]:
        """Neighbouring Chinese signs, function words left out."""
        following = zip(self.tokens, self.tokens[1:], strict=False)
        return frozenset(a.key + b.key for a, b in following if a.kind == b.kind == "han")

    @cached_property
    def unbound(self) -> str:
        """The text without the words that bound its numbers."""
        return bounds.BOUND.sub(" ", self.text)

    @cached_property
    def lowered(self) -> frozenset[str]:
        """Stems of all Latin words, function words too."""
        return frozenset(english.stem(lowered(word.group())) for word in WORD.finditer(self.unbound))

    @cached_property
    def is_chinese(self) -> bool:
        return script.is_chinese(self.text)

    @cached_property
    def has_han(self) -> bool:
        return bool(HAN_SIGN.search(self.text))

    @cached_property
    def line(self) -> str:
        """The keys of the tokens, one behind the other."""
        return "".join(token.key for token in self.tokens)


def _prepared(text: str) -> str:
    """Without Markdown and compatibility forms; U.S. becomes US."""
    return _DOTTED.sub(lambda match: match.group().replace(".", ""), without_markdown(plain(text)))
