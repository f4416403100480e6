"""Tools for pages: search the library or the web for passages to cite, list the headings of a page, count pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

from rag.checking.rules import read_terms
from rag.dates import find_period
from rag.errors import ToolError
from rag.locales import language_name
from rag.quantities.detection import find_values, normalise
from rag.retrieval.page_names import ABOUT, find_named_pages, find_on_site, find_pages_with, slug, topic_of, words
from rag.text import escape_markdown, fenced_blocks, is_chinese, lazy_regex, to_plain_line
from rag.tools.tool import Tool, ToolResources, ToolResult
from rag.types import Page, Passage

_HEADING: Final = lazy_regex(r"^(#{1,6}) ++(.+)$", re.MULTILINE)
_MAX_HEADINGS: Final = 100
_LIST_LENGTH: Final = 10
_RANK_LENGTH: Final = 5
_MAX_LIST: Final = 100
_LATIN_WORD: Final = 6  # characters of a Latin word with its space; each Chinese character counts as a word

_HOST: Final = lazy_regex(r"\b(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}\b", re.IGNORECASE)
_LANGUAGES: Final = {
    "en": lazy_regex(r"\benglish\b|英[文语]", re.IGNORECASE),
    "zh": lazy_regex(r"\bchinese\b|[中汉][文语]", re.IGNORECASE),
}
_REQUESTS: Final = {
    name: lazy_regex(pattern, re.IGNORECASE)
    for name, pattern in (
        ("newest", r"\b(?:newest|latest|last|most recent\w*|recently)\b|最新|最近|最后"),
        ("oldest", r"\b(?:oldest|first|earliest)\b|最早|最旧|第一"),
        ("largest", r"\b(?:largest|longest|biggest)\b|最大|最长"),
        ("shortest", r"\b(?:smallest|shortest)\b|最小|最短"),
        ("languages", r"\blanguages?\b|语[言种]|english.{1,40}chinese|chinese.{1,40}english|文.{1,20}[中英]文"),
        ("sites", r"\b(?:(?:web ?)?sites?|domains?|hosts?)\b|网站|站点|域名"),
        ("average", r"\b(?:average|mean)\b|平均"),
        ("authors", r"\b(?:authors?|who wrote)\b|作者|谁写"),
        ("adder", r"\bwho (?:add|sav|stor|import|upload|put)\w*|谁(?:保存|上传|导入|添加|[加存放])的?"),
        (
            "failed",
            r"\b(?:fail\w*|errors?|(?:could|did|was|were)(?:n['’]t| not))\b|失败|出错|没[能有]?[读抓导]|[读打]不",
        ),
        (
            "added",
            r"\bwhen\b|\b(?:what|which) da(?:y|te)\b|(?:什么时候|何时|[哪几][天日号])(?:保存|导入|添加|[加存])?的?",
        ),
        ("list", r"\b(?:list|name|titles?|(?:which|what) (?:pages|documents|articles))\b|列出?|标题|哪些"),
    )
}

_ADDING: Final = lazy_regex(r"\b(?:add|sav|stor|import|collect)\w*|[添加存收导]", re.IGNORECASE)
_PUBLISHED: Final = lazy_regex(r"\bpublish\w*|发[表布]|出版", re.IGNORECASE)
_COUNTED: Final = lazy_regex(
    r"\b(?:words?|characters?|counts?|totals?|numbers?|averages?|sizes?|lengths?|shares?|percent\w*|stat\w*|imports?)\b"
    r"|\b(?:how (?:many|much|big|long)|top|know)\b|多[少大长]|几|[字词]数?|统计|总数|数量|平均|大小|长度",
    re.IGNORECASE,
)
"""Words for what is counted, which cannot name a page."""
_ABOUT: Final = lazy_regex(
    rf"{ABOUT.pattern}|\b(?:mention|deal)\w*(?: with)?\b|方面|涉及|提[到及]|[谈讲说]到|[谈讲][了过](?![些什啥哪])",
    re.IGNORECASE,
)


def retrieve(query: str, resources: ToolResources) -> ToolResult:
    return _result(resources.search(query), resources)


def search_web(query: str, resources: ToolResources) -> ToolResult:
    """Search the web. Raises ToolError if web search is off, and WebSearchError."""
    if resources.web is None:
        raise ToolError("web_tool_off")
    return _result(resources.web(query), resources)


def _result(passages: Sequence[Passage], resources: ToolResources) -> ToolResult:
    titles = dict.fromkeys(to_plain_line(one.title or one.url) for one in passages)
    text = resources.say("search_found", count=len(passages), titles=" · ".join(titles)) if passages else ""
    return ToolResult(text or resources.say("search_none"), passages)


RETRIEVE: Final = Tool(
    "retrieve",
    "Search the user's saved web pages and return the best matching passages.",
    "query",
    "a self-contained query with the key terms, names and numbers",
    60.0,
    retrieve,
)
WEB: Final = Tool(
    "web_search",
    "Search the open web, read the top results, and return passages from them. Use it for information that saved pages"
    " cannot contain.",
    "query",
    "a short search query",
    90.0,
    search_web,
)


def outline(request: str, resources: ToolResources) -> ToolResult:
    """Return the outline of the named page, or of the only one. Raises ToolError if none or several match."""
    pages = resources.pages()
    matches = find_named_pages(request, pages) or (pages if len(pages) == 1 else [])
    if len(matches) != 1:
        raise ToolError("outline_which")
    (page,) = matches
    text = resources.text(page.url_hash)
    code = fenced_blocks(text)
    headers = [one for one in _HEADING.finditer(text) if not any(start <= one.start() < end for start, end in code)]
    headings = [(len(one[1]), one[2].strip()) for one in headers[:_MAX_HEADINGS]]
    title = escape_markdown(page.title or page.url)
    if not headings:
        return ToolResult(resources.say("outline_none", title=title))
    lines = [f"{'  ' * (level - 1)}- {heading}" for level, heading in headings]
    return ToolResult("\n".join([resources.say("outline_of", title=title), "", *lines]))


OUTLINE: Final = Tool(
    "outline",
    "List the headings of one page in the user's library.",
    "page",
    "the title or URL of the page",
    10.0,
    outline,
)


def count_pages(request: str, resources: ToolResources) -> ToolResult:
    """Return the requested lists, and the counts below them."""
    pages, part, rest, is_listed = _select_pages(request, resources)
    if not pages:
        return ToolResult(resources.say("statistics_no_match", part=part) if part else resources.say("statistics_none"))
    counts = _counts(pages)
    numbers = {name: _format(value) for name, value in counts.items()}
    totals = resources.say("statistics_counts" if counts["sites"] else "statistics_counts_files", **numbers)
    requested = [name for name, pattern in _REQUESTS.items() if pattern.search(rest)] or ["list"] * is_listed
    for name in ("list", "added"):
        if len(requested) > 1 and name in requested:
            requested.remove(name)  # it refers to the other requests
    has_list = not requested or any(name in _LISTS for name in requested)
    parts = [resources.say("statistics_of", part=part)] if part and has_list and requested != ["list"] else []
    for name in requested:
        code = "statistics_of" if part and name == "list" else f"statistics_{name}"
        parts.append(resources.say(code, part=part, average=_format(counts["words"] // len(pages))))
        if name in _LISTS:
            lines = _LISTS[name](pages, resources.language)
            parts[-1] += "\n\n" + _write_list(lines, _read_limit(rest)[0], name, resources)
    return ToolResult("\n\n".join([*parts, totals]))


def _write_list(lines: Sequence[str], limit: int, name: str, resources: ToolResources) -> str:
    """Return up to `limit` lines as a list; if it is 0, as many as suit the request."""
    limit = limit or (_RANK_LENGTH if name in _RANKS else _LIST_LENGTH)
    more = len(lines) - limit if name not in _RANKS else 0
    visible = [*lines[:limit], *([resources.say("statistics_more", count=_format(more))] if more > 0 else [])]
    return "\n".join(f"- {escape_markdown(line)}" for line in visible or [resources.say("statistics_nothing")])


def _read_limit(text: str) -> tuple[int, str]:
    """Return the requested number of lines, or 0, and the text without it."""
    text = re.sub("一(?=[共下些])", "", normalise(text))
    for value in find_values(text):
        if value.number and 1 <= value.number <= _MAX_LIST and not value.has_unit:
            return int(value.number), f"{text[: value.start]} , {text[value.end :]}"
    return 0, text


def _select_pages(text: str, resources: ToolResources) -> tuple[Sequence[Page], str, str, bool]:
    """Select pages by date, site, language, name and topic. Return them, the words for these criteria, the text without
    the first three, and True if the pages should be listed.

    Dates are those of publication, where known, except in a request for added pages. Only a request for published pages
    excludes pages without that date.
    """
    pages, parts, is_counted = resources.pages(), [], _COUNTED.search(text)
    if period := find_period(text, resources.now.date()):
        since, until = (day.isoformat() if day else "" for day in (period.since, period.until))
        is_added, is_published = _ADDING.search(text), _PUBLISHED.search(text)
        dates = [
            (page, ((not is_added and page.published) or page.added_at)[:10])
            for page in pages
            if page.published or is_added or not is_published
        ]
        pages = [page for page, day in dates if since <= day and (not until or day <= until)]
        parts.append(text[period.start : period.end])
        text = f"{text[: period.start]} , {text[period.end :]}"
    if host := _HOST.search(text):
        pages = find_on_site(host[0], pages)
        parts.append(host[0])
        text = text.replace(host[0], " , ")
    languages = [(language, match[0]) for language, name in _LANGUAGES.items() if (match := name.search(text))]
    if len(languages) == 1:
        ((language, name),) = languages
        pages = [page for page in pages if page.language == language]
        parts.append(name)
        text = text.replace(name, " , ")
    matches, topic = _find_by_topic(text, pages, resources)
    return matches, " · ".join([*parts, topic] if topic else parts), text, bool(topic or (parts and not is_counted))


def _find_by_topic(text: str, pages: Sequence[Page], resources: ToolResources) -> tuple[Sequence[Page], str]:
    """Return the pages that a text names or asks about, with their topic; all pages and "" if it does neither."""
    _, text = _read_limit(text)
    for pattern in (*_REQUESTS.values(), _COUNTED):
        text = pattern.sub(" , ", text)
    if not (about := _ABOUT.search(text)):
        topic = topic_of(text)
        matches = find_named_pages(text, pages) or find_pages_with(topic, pages)
        names = words(" ".join(f"{page.title} {slug(page)} {page.site}" for page in matches))
        name = " ".join(word for word in topic.split() if words(word) & names and read_terms(word).terms)
        return (matches, name) if name else (pages, "")
    after = topic_of(text[about.end() :], shortest=1)
    topic = after or (topic_of(text[: about.start()], shortest=1) if is_chinese(text) else "")
    if not topic:
        return pages, ""
    found = {page.url_hash for page in find_pages_with(topic, pages)} | _find_about(topic, resources.search(topic))
    return [page for page in pages if page.url_hash in found], topic


def _find_about(topic: str, passages: Sequence[Passage]) -> set[str]:
    """Return the hashes of the pages whose passages have the words of a topic.

    A passage in the other language has other words. It counts if its score is half of the best one, and no passage in
    the topic's language without the words has a higher one.
    """
    texts = [f"{passage.title} {passage.text}" for passage in passages]
    has_words = [words(topic) <= words(text) or (is_chinese(topic) and topic in text) for text in texts]
    is_foreign = [is_chinese(passage.text) != is_chinese(topic) for passage in passages]
    rows = list(zip(passages, has_words, is_foreign, strict=True))
    best = max((passage.score for passage in passages), default=0.0)
    limit = max([best / 2, *(passage.score for passage, matches, foreign in rows if not matches and not foreign)])
    return {one.url_hash for one, matches, foreign in rows if matches or (foreign and one.score >= limit)}


def _counts(pages: Sequence[Page]) -> dict[str, Any]:
    return {
        "pages": len(pages),
        "sites": len({page.site for page in pages if page.site}),
        "languages": len({page.language for page in pages if page.language}),
        "chunks": sum(page.chunks for page in pages),
        "words": sum(page.characters // (1 if page.language == "zh" else _LATIN_WORD) for page in pages),
        "last": max((page.updated_at or page.added_at for page in pages), default="")[:16].replace("T", " "),
    }


def _format(value: int | str) -> str:
    """Format a number with thousands separators; return text unchanged."""
    return f"{value:,}" if isinstance(value, int) else value


def _rank_by(value: Callable[[Page], Any], *, last: bool) -> Callable[[Sequence[Page], str], list[str]]:
    """Return a function that lists pages by `value`, each with this value; the highest first if `last`."""

    def lines(pages: Sequence[Page], _: str) -> list[str]:
        ordered = sorted(pages, key=lambda page: (value(page), page.url_hash), reverse=last)
        return [f"{page.title or page.url} ({_format(value(page))[:10]})" for page in ordered[:_MAX_LIST]]

    return lines


def _tally(values: Sequence[str]) -> list[str]:
    return [f"{value} ({count:,})" for value, count in Counter(filter(None, values)).most_common()]


# Other requests are answered by a sentence.
_LISTS: Final[dict[str, Callable[[Sequence[Page], str], list[str]]]] = {
    "newest": _rank_by(lambda page: page.added_at, last=True),
    "oldest": _rank_by(lambda page: page.added_at, last=False),
    "largest": _rank_by(lambda page: page.characters, last=True),
    "shortest": _rank_by(lambda page: page.characters, last=False),
    "languages": lambda pages, language: _tally(
        [language_name(page.language, language) for page in pages if page.language]
    ),
    "sites": lambda pages, _: _tally([page.site for page in pages]),
    "authors": lambda pages, _: _tally([page.author for page in pages]),
    "added": _rank_by(lambda page: page.added_at, last=True),
    "list": lambda pages, _: [page.title or page.url for page in pages],
}
_RANKS: Final = frozenset({"newest", "oldest", "largest", "shortest"})

STATISTICS: Final = Tool(
    "statistics",
    "Count the contents of the user's library: pages, sites, languages, words, chunks and the last import; name its"
    " newest, oldest, largest and shortest pages; list its sites or pages, also those about a topic or from a period.",
    "question",
    "what to count or list, such as: number of pages; list of sites; newest page; pages about tea",
    20.0,
    count_pages,
)
