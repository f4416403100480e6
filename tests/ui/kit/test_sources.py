from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from rag.ingest.pipeline import Ingestor
from rag.ingest.sources import file_sources
from rag.types import Answer, PageVersion, Passage
from rag.ui.kit.sources import (
    SourceSpan,
    _chip,
    _crop,
    anchor_of,
    answer_of,
    excerpt,
    find_source_text,
    live_url,
    tooltip_text,
    version_line,
)
from tests.support.lighthouse import ENGLISH, make_citation, make_page, make_passage
from tests.support.storing import store_page

PAGE = make_page(1, "Keeping a lighthouse", ENGLISH, "en")
QUOTE = "The lamp was wound every four hours, day and night."
SOURCE = SourceSpan(1, "main", make_citation(PAGE, QUOTE), make_passage(PAGE, QUOTE))


def version(number: int, text: str, until: str = "") -> PageVersion:
    return PageVersion(PAGE.url_hash, number, PAGE.title, text, str(number), "2026-01-02T03:04:00+00:00", until)


def test_a_source_is_read_in_the_text_that_it_was_cited_from() -> None:
    other = "Other " + ENGLISH
    for texts, number in (((ENGLISH,), 1), ((ENGLISH, other), 1), ((other, ENGLISH), 2), ((ENGLISH, ENGLISH), 2)):
        read = find_source_text(SOURCE, [version(n, text) for n, text in enumerate(texts, 1)])
        assert read.version is not None
        assert (read.version.number, read.text[slice(*read.span)]) == (number, QUOTE)


def test_of_a_page_that_is_gone_its_passage_is_left_or_the_quote() -> None:
    for source in (SOURCE, replace(SOURCE, passage=None)):
        read = find_source_text(source, [version(1, "Other " + ENGLISH)])
        assert read.version is None
        assert read.text[slice(*read.span)] == QUOTE
    assert read.text == QUOTE


def test_a_long_page_is_cut_around_the_place_at_its_lines() -> None:
    long_page = make_page(1, "Long", "Many words.\n" * 1500 + QUOTE + "\nMany words." * 1500, "en")
    read = find_source_text(SourceSpan(1, "main", make_citation(long_page, QUOTE)), [version(1, long_page.text)])
    text, span = _crop(read)
    assert text[slice(*span)] == QUOTE
    assert text.startswith("…\nMany")
    assert text.endswith("words.\n…")
    assert len(text) < 17_000


def test_the_tooltip_of_a_source_has_no_markdown() -> None:
    assert tooltip_text("### Loans\n- **Students** may borrow 20 books.") == "Loans Students may borrow 20 books."
    assert tooltip_text("| tea | water |\n| --- | --- |\n| green | 80 |") == "tea · water green · 80"


def test_which_text_it_is_and_what_became_of_the_page_is_told() -> None:
    now = find_source_text(SOURCE, [version(2, ENGLISH)])
    assert version_line(SOURCE, PAGE, now, "en") == "Version 2 · 2026-01-02 03:04"
    past = find_source_text(SOURCE, [version(1, ENGLISH, "2026-02-03T04:05:00+00:00"), version(2, "Other")])
    assert "replaced 2026-02-03 04:05" in version_line(SOURCE, PAGE, past, "en")
    assert "Newer version" in version_line(SOURCE, PAGE, past, "en")
    assert "已不在资料库" in version_line(SOURCE, None, find_source_text(SOURCE, []), "zh")
    web = replace(SOURCE, passage=replace(make_passage(PAGE, QUOTE), fetched_at="2026-02-03T04:05:00+00:00"))
    assert "来自网络" in version_line(web, None, find_source_text(web, []), "zh")


def test_a_chip_names_the_marks_of_its_page_and_what_became_of_it() -> None:
    for others, marks in (((3,), "1 3"), ((2, 4, 5), "1 2 4 5"), ((2, 3, 5, 6, 7), "1–3 5–7")):
        chip = f'[**{marks}** Keeping a lighthouse](#source-a-1 "{QUOTE}")'
        assert _chip("source-a", [SOURCE, *(replace(SOURCE, n=n) for n in others)], "en") == chip
    assert "有新版本" in _chip("source-a", [replace(SOURCE, state="newer")], "zh")


def test_anchors_hold_nothing_but_letters_and_digits() -> None:
    assert anchor_of('x"><img src=y>-0123456789abcdef') == "source-456789abcdef"


def test_the_live_address_is_built_from_the_best_text_there_is() -> None:
    citation, passage = make_citation(PAGE, QUOTE), make_passage(PAGE, QUOTE)
    expected = f"{citation.url}#:~:text=The%20lamp%20was%20wound%20every%20four%20hours%2C%20day%20and%20night"
    changed = make_page(1, "Keeping a lighthouse", "Other " + ENGLISH, "en")
    for page, found in ((PAGE, passage), (changed, passage), (None, passage), (None, None)):
        assert live_url(citation, page, found) == expected


def test_a_repeated_sentence_is_told_apart_by_the_whole_page() -> None:
    twice = make_page(1, "Twice", f"First. {QUOTE}\n\nSecond, the night watch. {QUOTE}", "en")
    citation = replace(make_citation(twice, QUOTE), start=twice.text.rindex(QUOTE), end=len(twice.text))
    assert "text=Second%2C%20the%20night%20watch.-,The%20lamp" in live_url(citation, twice, None)


def test_a_row_of_a_table_is_shown_whole_or_not_at_all() -> None:
    rows = "\n".join(f"| Plan {n} | {n} euros for each person and month | {n} devices |" for n in range(30))
    shown = excerpt(f"{'All prices are in euros. ' * 12}\n{rows}", "euros per person")
    assert "|" not in shown
    assert shown.startswith("…") and shown.endswith(" devices")


TEXT = "\n\n".join(f"Section {n} tells of lamp number {n}, which burns {n} hours. " * 12 for n in range(6))


def take_in(ingestor: Ingestor, text: str) -> list[Passage]:
    (source,) = file_sources("lamps.txt", text.encode())
    store_page(ingestor, ingestor.read(source, lambda _: None), lambda _: None)
    return ingestor.library.chunks(ingestor.key(source))


def shown(ingestor: Ingestor, *passages: Passage) -> list[str]:
    answer = Answer("q", "fast", "not_in_pages", "", passages=tuple(replace(one, text="") for one in passages))
    app: Any = SimpleNamespace(library=lambda _: ingestor.library)
    turn: Any = SimpleNamespace(run_id="", state="done", answer=answer)
    found = answer_of(app, "main", turn)
    assert found is not None
    return [one.text for one in found.passages]


def test_a_merged_passage_is_restored(ingestor: Ingestor) -> None:
    first, second, third, *_ = take_in(ingestor, TEXT)
    merged = replace(first, end=second.end)
    page = ingestor.library.page(first.url_hash)
    assert page is not None
    assert shown(ingestor, merged, third) == [page.text[first.start : second.end], third.text]


def test_what_changed_is_not_made_up(ingestor: Ingestor) -> None:
    first, *_ = take_in(ingestor, TEXT)
    take_in(ingestor, TEXT.replace("lamp", "bell"))
    assert shown(ingestor, first) == []
    ingestor.library.clear()
    assert shown(ingestor, first) == []
