from __future__ import annotations

from rag.checking.rules import read_terms, stem


def test_content_words_by_their_stems_and_numbers_by_their_amount() -> None:
    terms = read_terms("The guilds' bridges of Anvil were opened on 7 March 1932.").terms
    assert [term.key for term in terms] == ["guild", "bridg", "anvil", "open", "#307date", "#1932"]
    assert [term.kind for term in terms if term.kind == "name"] == ["name"]
    assert [term.is_explicit for term in terms if term.kind == "number"] == [True, True]


def test_tokens_are_all_that_means_anything() -> None:
    assert [token.letters for token in read_terms("**pH** < 5, as it’s said: a → b.").tokens] == [
        *("ph", "#5<", "as", "it", "said", "a", "→", "b")
    ]
    quoted, plain = (read_terms(text).tokens for text in ("> A quote of 5 %", "A quote of 5%"))
    assert [token.letters for token in quoted] == [token.letters for token in plain]


def test_clauses_and_what_they_open_with() -> None:
    terms = read_terms("The Grey Tower of Anvil is high, and the guild left.").terms
    assert [(term.key, term.clause) for term in terms if term.is_opening] == [
        ("grey", 0), ("tower", 0), ("guild", 2), ("left", 2),
    ]  # fmt: skip


def test_a_bound_is_no_denial() -> None:
    assert not read_terms("It takes no more than 5 days.").negations
    assert not read_terms("吃水不超过3米").negations


def test_denials_are_counted() -> None:
    assert [read_terms(text).negations for text in ("It isn't, and never was.", "没有开放。", "It is.", "非常好")] == [
        2,
        1,
        0,
        0,
    ]


def test_inflections_share_a_stem() -> None:
    assert len({stem(word) for word in ("stop", "stops", "stopped", "stopping")}) == 1
