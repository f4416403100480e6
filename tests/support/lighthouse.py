"""A page in English and one in Chinese about keeping a lighthouse, with search results and the steps of a run."""

from __future__ import annotations

from dataclasses import replace

from rag.types import Candidate, Citation, Page, Passage, Retrieval, Step
from rag.web.urls import url_hash

ENGLISH = """# Keeping a lighthouse

A keeper's day began at dusk.

## The lamp

The lamp was wound every four hours, day and night. A keeper who slept through a winding lost a week's pay.
Oil was carried up in cans of ten litres.

## The fog bell

- In fog the bell rang twice a minute.
- In snow it rang once a minute."""
CHINESE = """# 灯塔的看守

看守的一天从黄昏开始。

## 灯

灯每四个小时上一次发条，昼夜不停。错过一次就扣一周的工钱。灯油用十升的桶背上去。

## 雾钟

- 大雾时每分钟敲两次钟。
- 下雪时每分钟敲一次。"""
ENGLISH_QUOTES = ("The lamp was wound every four hours, day and night.", "In fog the bell rang twice a minute.")
CHINESE_QUOTES = ("灯每四个小时上一次发条，昼夜不停。", "大雾时每分钟敲两次钟。")


def make_page(number: int, title: str, text: str, language: str, site: str = "lighthouse.example") -> Page:
    """Return a page that was added on 5 March 2026."""
    return Page(
        url=f"https://{site}/{number}",
        url_hash=f"{number:032x}",
        title=title,
        language=language,
        site=site,
        text=text,
        text_hash=f"{number}",
        source="web",
        chunks=2,
        characters=len(text),
        added_at="2026-03-05T09:30:00+00:00",
        updated_at="2026-03-05T09:30:00+00:00",
    )


_PAGES = (
    make_page(1, "Keeping a lighthouse", ENGLISH, "en"),
    make_page(2, "灯塔的看守", CHINESE, "zh", "灯塔.example"),
)
_SECTIONS = {"en": ("The lamp",), "zh": ("灯",)}
LIGHTHOUSE = {page.language: replace(page, url_hash=url_hash(page.url)) for page in _PAGES}
"""Both pages, by language, with the hashes of their addresses."""


def make_passage(page: Page, quote: str) -> Passage:
    """Return the paragraph of `page` that contains `quote`."""
    place = page.text.index(quote)
    start = page.text.rfind("\n", 0, place) + 1
    end = page.text.find("\n", place)
    end = len(page.text) if end < 0 else end
    return Passage(
        f"{page.url_hash}:{start}", page.url, page.url_hash, page.title, page.site, page.language,
        _SECTIONS[page.language], page.text[start:end], start, end,
    )  # fmt: skip


def make_citation(page: Page, quote: str, number: int = 1) -> Citation:
    """Return a citation of `quote` in `page`."""
    start, section = page.text.index(quote), _SECTIONS[page.language]
    return Citation(number, page.url, page.url_hash, page.title, quote, start, start + len(quote), section)


def make_search(question: str, page: Page) -> Retrieval:
    """Return a search that used one passage and dropped a similar one; for Chinese it has no dense leg."""
    quotes = CHINESE_QUOTES if page.language == "zh" else ENGLISH_QUOTES
    legs = ("sparse",) if page.language == "zh" else ("dense", "sparse")
    found = [
        replace(
            make_passage(page, quote),
            score=1.0 / rank,
            ranks=dict.fromkeys((*legs, "fused"), rank),
            scores={leg: 12.345 / rank if leg == "sparse" else 0.71 / rank for leg in (*legs, "fused")},
        )
        for rank, quote in enumerate(quotes, 1)
    ]
    candidates = (Candidate(found[0], 1), Candidate(found[1], None, found[0].id, 0.93))
    notes = {"why": {"code": "auto_exact", "params": {"words": "![x](https://evil.example)"}}}
    return Retrieval(question, "mmr", (found[0],), candidates, legs, {"search": 12.0, "choose": 3.0}, notes, 0.87)


def make_steps(question: str, page: Page) -> tuple[Step, ...]:
    first, second = make_search(question, page).candidates
    grades = [{"id": first.passage.id, "relevant": True}, {"id": second.passage.id, "relevant": False}]
    return (
        Step("enter", 0.1, {}),
        Step("agent", 2.0, {"decision": "search", "queries": [question]}),
        Step("retrieve", 14.0, {"queries": [question], "passages": 10, "new": 10}),
        Step("grade", 6.0, {"decision": "graded", "relevant": 3, "of": 10, "grades": grades}),
        Step("generate", 1250.0, {"decision": "answered", "passages": 3, "citations": 2}),
    )
