"""Near-duplicates are found, similar pages are not, and the cost is bounded."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from rag.store.qdrant.library import Library
from rag.store.values import Signature, jaccard_similarity, sign, similarity
from tests.store.support import draft

LETTERS = "abcdefghijklmnopqrstuvwxyz"
HAN = [chr(code) for code in range(0x4E00, 0x4E00 + 2500)]
FOOTERS = [
    "All rights reserved. Contact the editors about mistakes in this text at any time.",
    "Printed from the archive of the society. Reproduction needs the consent of the authors.",
]
DATES = ["Published on 5 March 2024. ", "Published on 19 November 2025. "]


def english(seed: int, sentences: int = 40) -> str:
    chance = random.Random(seed)
    words = ["".join(chance.choices(LETTERS, k=chance.randint(2, 9))) for _ in range(1500)]
    lines = [" ".join(chance.choices(words, k=chance.randint(8, 18))).capitalize() + "." for _ in range(sentences)]
    return "\n\n".join(" ".join(lines[at : at + 5]) for at in range(0, sentences, 5))


def chinese(seed: int, sentences: int = 40) -> str:
    chance = random.Random(seed)
    return "".join("".join(chance.choices(HAN, k=chance.randint(12, 30))) + "。" for _ in range(sentences))


LANGUAGES: dict[str, Callable[[int, int], str]] = {"en": english, "zh": chinese}


def near_copies(text: str, seed: int, language: str) -> list[str]:
    """Return variants of the same page: a new date, another footer, one more paragraph, a reworded sentence."""
    write = LANGUAGES[language]
    cut = text.index("。" if language == "zh" else ".") + 1
    return [
        DATES[1] + text + "\n" + FOOTERS[0],
        DATES[0] + text + "\n" + FOOTERS[1],
        DATES[0] + text + "\n\n" + write(seed + 90_000, 2) + "\n" + FOOTERS[0],
        DATES[0] + write(seed + 80_000, 1) + text[cut:] + "\n" + FOOTERS[0],
    ]


def add(library: Library, key: str, text: str) -> None:
    given = draft(key, chunks=0)
    replace(given, page=replace(given.page, text=text, text_hash=str(hash(text)))).commit(library)


def found(library: Library, text: str) -> list[str]:
    signature = sign(text)
    return [page.title for page, _ in library.similar_pages(signature)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_near_copies_are_found_and_other_pages_are_not(library: Library, language: str) -> None:
    pages = 30
    texts = [DATES[0] + LANGUAGES[language](seed, 40) + "\n" + FOOTERS[0] for seed in range(pages)]
    for number, text in enumerate(texts):
        add(library, f"p{number}", text)
    hits = misses = wrong = 0
    for number, text in enumerate(texts):
        for copy in near_copies(text.removeprefix(DATES[0]).rsplit("\n", 1)[0], number, language):
            titles = found(library, copy)
            hits += f"Page p{number}" in titles
            misses += f"Page p{number}" not in titles
            wrong += len([title for title in titles if title != f"Page p{number}"])
    assert hits / (hits + misses) >= 0.97, (hits, misses)
    assert wrong == 0


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_that_share_their_furniture_are_different_pages(library: Library, language: str) -> None:
    """Half of each page is common to all, like a shop's conditions or a manual's introduction."""
    furniture = LANGUAGES[language](999, 20)
    for number in range(30):
        add(library, f"p{number}", furniture + "\n" + LANGUAGES[language](number, 20))
    for number in range(30):
        text = furniture + "\n" + LANGUAGES[language](number, 20)
        assert found(library, text) == [f"Page p{number}"]


def test_the_estimate_is_close_to_what_is_counted() -> None:
    errors = []
    for seed in range(20):
        text = english(seed)
        copies = near_copies(text, seed, "en")
        errors += [similarity(sign(text), sign(copy)) - jaccard_similarity(text, copy) for copy in copies]
    assert float(np.std(errors)) < 0.045  # sqrt(s (1 - s) / 128) is 0.032 at 0.85
    assert abs(float(np.mean(errors))) < 0.02


def test_case_punctuation_and_markup_do_not_count() -> None:
    text = english(1)
    assert sign(text) == sign("# " + text.upper().replace(".", " !").replace("\n\n", "\n- "))
    assert sign(chinese(1)) == sign(chinese(1).replace("。", "！\n"))


def test_a_short_text_has_no_signature() -> None:
    assert sign("A few words only.") == Signature()
    words = [f"w{number}" for number in range(43)]  # 40 runs of four
    assert sign(" ".join(words)) != Signature() == sign(" ".join(words[1:]))
    assert sign("") == Signature()
    assert similarity(Signature(), Signature()) == 0.0
    assert jaccard_similarity("A few words only.", "A few words only!") == 1.0
    assert jaccard_similarity("", "") == 1.0
    assert jaccard_similarity("one", "two") == 0.0


def test_a_long_page_is_signed_quickly() -> None:
    texts = [english(1, 260)[:20_000], chinese(1, 1000)[:20_000]]
    for text in texts:
        assert len(text) == 20_000
        sign(text)
        seconds = []
        for _ in range(7):
            began = time.thread_time()
            sign(text)
            seconds.append(time.thread_time() - began)
        assert min(seconds) < 0.05  # 3 to 8 ms of this thread
