"""The contract of every chunker: verbatim, in order, complete, within the maximum, no split sentence that would fit."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import regex
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rag.config import CHUNKERS as CHUNKER_NAMES
from rag.ingest.chunking import CHUNKERS, embedding_text, get_chunker, split_units
from rag.models.transformer import hash_characters
from rag.text import split_sentences, weigh
from rag.types import Chunk

ENGLISH = "\n\n".join(
    f"## Part {n}\n\n"
    + " ".join(f"Sentence {i} of part {n} says something about topic {n * 7 + i}." for i in range(12))
    for n in range(8)
)
CHINESE = "\n\n".join(
    "".join(f"第{n}部分的第{i}句话谈到了主题{n * 7 + i}的一些内容。" for i in range(15)) for n in range(8)
)
TABLE = "# Prices\n\n| Plan | Price |\n| --- | --- |\n" + "\n".join(
    f"| Plan number {i} | {i} euros a month |" for i in range(90)
)
CODE = (
    "# Usage\n\nRun this.\n\n```python\n"
    + "\n".join(f"value_{i} = compute({i})" for i in range(12))
    + "\n```\n\nDone. " * 3
)
HUGE = "word " * 2000 + "\n\n" + "字" * 3000
TEXTS = {"english": ENGLISH, "chinese": CHINESE, "table": TABLE, "code": CODE, "huge": HUGE}
CLUSTERS = {
    "thai": "ท่าเรือเปิดทุกวันตั้งแต่เจ็ดโมงเช้าและปิดเวลาสองทุ่มค่าธรรมเนียมสำหรับเรือลำเล็กคือสี่สิบบาท" * 40,
    "devanagari": "यहबंदरगाहप्रतिदिनखुलताहैऔरशुल्कचालीसरुपयेहै" * 70,
    "emoji": ("👨\u200d👩\u200d👧\u200d👦" * 40 + "👍🏽" * 60 + "❤\ufe0f\u200d🔥" * 50) * 4,
    "flags": "🇹🇭🇩🇪🇨🇳" * 400,
    "accents": "e\u0301a\u0308\u0323" * 500,
    "jamo": "\u1112\u1161\u11ab" * 800,
    "sentences": "港口今天关闭。\ufe00船长说好!\ufe0f " * 200,
    "table": "| " + "ที่ " * 300 + "|\n| --- |\n" + "| ที่นี่ |\n" * 90,
    "heading": "# " + "นี้" * 100 + "\n\nOpen all day. " * 90,
}


def vectors(texts: Sequence[str]) -> NDArray[np.float32]:
    return hash_characters(texts)


@pytest.fixture(params=sorted(CHUNKERS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def check(text: str, chunks: list[Chunk], maximum: float) -> None:
    assert [c.index for c in chunks] == list(range(len(chunks)))
    covered: set[int] = set()
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text.strip()
        assert chunk.text == chunk.text.lstrip("\n").rstrip()  # a line of code keeps its indentation
        assert weigh(chunk.text) <= maximum
        covered |= set(range(chunk.start, chunk.end))
    assert all(one.end <= two.start for one, two in itertools.pairwise(chunks))
    assert all(i in covered or c.isspace() for i, c in enumerate(text))


@pytest.mark.parametrize("kind", sorted(TEXTS))
def test_chunks_are_verbatim_complete_and_bounded(name: str, kind: str) -> None:
    chunker = get_chunker(name)
    check(TEXTS[kind], chunker.split(TEXTS[kind], vectors), chunker.maximum)


@pytest.mark.parametrize("kind", ["english", "chinese"])
def test_no_sentence_is_cut(name: str, kind: str) -> None:
    text = TEXTS[kind]
    ends = {b for _, b in split_sentences(text)}
    assert all(chunk.end in ends for chunk in get_chunker(name).split(text, vectors))


@pytest.mark.parametrize("kind", sorted(CLUSTERS))
def test_no_character_of_several_code_points_is_cut(name: str, kind: str) -> None:
    text = CLUSTERS[kind]
    chunks = get_chunker(name).split(text, vectors)
    check(text, chunks, get_chunker(name).maximum)
    ends = {match.end() for match in regex.finditer(r"\X", text)} | {0}
    assert len(chunks) > 1
    assert all(chunk.start in ends and chunk.end in ends for chunk in chunks)
    for part in {part for chunk in chunks for part in (chunk.context, *chunk.section) if part}:
        assert text.index(part) + len(part) in ends


def test_one_character_that_is_longer_than_a_chunk_is_cut(name: str) -> None:
    text = "e" + "\u0301" * 3000
    check(text, get_chunker(name).split(text, vectors), get_chunker(name).maximum)


def test_heading_path_is_known(name: str) -> None:
    text = "# Guide\n\nIntro text here.\n\n## Install\n\n" + "Run the installer now. " * 60
    chunks = get_chunker(name).split(text, vectors)
    assert chunks[-1].section == ("Guide", "Install")


def test_no_chunk_ends_with_a_heading_alone(name: str) -> None:
    long = "\n\n".join(f"## Part {n}\n\n" + f"A sentence about topic {n}, of some length. " * 40 for n in range(6))
    for text in (ENGLISH, long):
        for chunk in get_chunker(name).split(text, vectors):
            assert not chunk.text.splitlines()[-1].startswith("#")


def test_table_pieces_know_their_header(name: str) -> None:
    chunks = get_chunker(name).split(TABLE, vectors)
    later = [chunk for chunk in chunks if "| Plan | Price |" not in chunk.text]
    assert later
    assert all("| Plan | Price |" in chunk.context for chunk in later)
    assert all("| Plan | Price |" in embedding_text("Prices", chunk) for chunk in later)


def test_code_block_that_fits_stays_whole(name: str) -> None:
    block = CODE[CODE.index("```python") : CODE.index("```\n\nDone") + 3]
    assert any(block in chunk.text for chunk in get_chunker(name).split(CODE, vectors))


def test_settings_know_every_chunker() -> None:
    assert set(CHUNKER_NAMES) == set(CHUNKERS)
    assert all(get_chunker(known).name == known for known in CHUNKERS)


def test_empty_text(name: str) -> None:
    assert get_chunker(name).split("", vectors) == []
    assert get_chunker(name).split(" \n\n ", vectors) == []


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="abc .!?。！\n#|-`，字\t", max_size=400))
def test_any_text(name: str, text: str) -> None:
    chunker = get_chunker(name)
    check(text, chunker.split(text, vectors), chunker.maximum)


def test_units_fit_a_small_maximum() -> None:
    for text in TEXTS.values():
        assert all(unit.size <= 80 for unit in split_units(text, 80))


def test_embedded_text_carries_title_and_path_once() -> None:
    chunk = Chunk(0, "Body text.", 0, 10, ("Guide", "Install"))
    assert embedding_text("Guide", chunk) == "Guide › Install\nBody text."
    headed = Chunk(0, "## Install\n\nBody text.", 0, 10, ("Guide", "Install"))
    assert embedding_text("Guide", headed) == "Guide\n## Install\n\nBody text."
