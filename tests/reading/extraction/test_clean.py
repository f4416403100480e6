"""Invisible characters are removed, except those that shape words."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.text import clean_line, clean_text


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
