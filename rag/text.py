"""Pure functions on text: sentences, language, terms, cleaning; and regular expressions compiled on first use.

All offsets are in code points and must mean the same everywhere. Text that a reader cannot see must not reach a model.
Markdown links keep their text, but not their targets. Patterns are lazy as in Bazaar (`breezy.lazy_regex`): compiling
all of them takes a tenth of the time to the first page, which needs only a few.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import takewhile
from math import ceil
from typing import Any, AnyStr, Final, NamedTuple, cast

import regex

_NAMES: Final = (
    *("match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"),
    *("flags", "groups", "groupindex"),
)
_patterns: list[LazyPattern] = []


def lazy_regex(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a lazy `re.compile(pattern, flags)` for module-level constants; invalid patterns fail on first use."""
    lazy = LazyPattern(pattern, flags)
    _patterns.append(lazy)
    return cast("re.Pattern[AnyStr]", lazy)


def compile_all() -> None:
    """Compile all patterns created so far, so that no question waits for it."""
    for lazy in _patterns:
        if _NAMES[-1] not in vars(lazy):
            lazy.compile()


class LazyPattern:
    """A pattern that is compiled on first access to one of its methods."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle probe for special methods
            raise AttributeError(name)
        return getattr(self.compile(), name)

    def compile(self) -> re.Pattern[Any]:
        """Compile the pattern and return it; concurrent calls are harmless, since `re` caches the result."""
        compiled = re.compile(self.pattern, self._flags)
        for name in _NAMES:
            setattr(self, name, getattr(compiled, name))
        return compiled


_CJK = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_KANA_HANGUL = lazy_regex("[\u3040-\u30ff\uac00-\ud7af]")
_HAN = lazy_regex(f"[{_CJK}]")
_WORD = lazy_regex(f"[{_CJK}]+|[^\\W_{_CJK}]+")
_ASCII_WORD = lazy_regex("[a-z0-9]+")
_LOWER, _UPPER = string.ascii_lowercase.encode(), string.ascii_uppercase.encode()
_LETTER = lazy_regex(r"[^\W\d_]")
_SURROGATE = lazy_regex("[\ud800-\udfff]")

_HAN_RUN = lazy_regex(f"[{_CJK}]+")
_CHINESE_ASKS = lazy_regex(
    "什么|啥|怎|如何|为何|多少|多[久大长高快]|哪|谁|几|吗|呢|何时|是否|[能会要有可]不|能否|有没有|是不是|区别|差别|不同"
    "|请|帮|介绍|解释|说明|比较|对比|推荐|总结|列出|查"
)
_CHINESE_JOINS = lazy_regex(f"{_CHINESE_ASKS.pattern}|[的是和与跟或有在从到用对被把比了吧能会要]|支持|可以|应该|需要")
_ENGLISH_FRAME = lazy_regex(
    r"^\W*(?:what|who|when|where|why|which|how)(?:'s|’s)?\s+(?:many |much |long |old |often )?"
    r"(?:is|are|was|were|do|does|did|can|could|should|would|will|has|have|the)\b"
    r"|^\W*(?:can|could|is|are|was|were|do|does|did|should|would|will|please|tell)\s+[a-z]"
    r"|^\W*(?:explain|translate|define|describe|pronounce|meaning|pinyin)\b",
    re.IGNORECASE,
)
_ENGLISH_JOINS = lazy_regex(  # lower case only, since titles capitalise them
    r"\b(?:the|an?|is|are|was|were|of|and|or|in|on|at|to|for|with|from|by|it|its|this|that|what|which|who|when|where"
    r"|why|how|does|do|did|can|has|have|be|mean|means|between)\b"
)

_WIDE = lazy_regex("[\u2e80-\u2fff\u3001-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
WIDE_WEIGHT = 2.0
"""Number of Latin characters that a Chinese one counts as, for search and token budgets."""

# Characters that belong to the preceding punctuation mark: closing quotes and combining characters.
_CLOSERS = re.escape("\"'”’」』）)】》〉]*_`~") + "\u0300-\u036f\u200d\ufe00-\ufe0f"
_CLUSTER = regex.compile(r"\X")
# A run of marks within a word is matched as a whole, so that the search does not restart at each mark.
_END = lazy_regex(
    rf"(?P<zh>[。！？｡]+|…{{2,}}|[!?](?=[{_CJK}]))[{_CLOSERS}]*"
    rf"|(?P<en>[.!?…]++)[{_CLOSERS}]*+(?:(?=\s|$|[{_CJK}])|(?P<within>))"
    r"|(?P<line>\n)"
)
_ELLIPSIS = lazy_regex(rf"…{{2,}}[{_CLOSERS}]*")
_ABBREVIATIONS = frozenset(
    "mr mrs ms dr prof sr jr st mt vs etc e.g i.e cf al fig figs no nos vol pp p ed eds inc ltd co corp dept univ "
    "approx gen col lt sgt capt rev hon gov sen rep jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k "
    "u.n a.m p.m ca".split()
)
_INITIALS = lazy_regex(r"(?:[^\W\d_]\.)+[^\W\d_]")
_MEASURE = lazy_regex(r"\d\s?[a-z]{1,4}\Z")  # "1 lb. 13 oz."
_BEFORE_WORD = lazy_regex(r"[\s(\[\"“']")
_NEVER_INITIAL = frozenset("–—,;:)%")
"""Characters that never begin a sentence after a full stop on the same line."""
HEADING = lazy_regex(r"#{1,6}\s+")
_TITLE_OR_ROW = lazy_regex(r"#{1,6}\s+|\|[^\n]{0,400}\|[ \t]*+$", re.MULTILINE)
_BLOCK_LINE = lazy_regex(r"[ \t]*(?:#{1,6} |[-*+•] |\d{1,3}[.)、] |[|>]|```|~~~)")
_FENCE = lazy_regex(r"^[ \t]*+(?P<marks>`{3,}+(?=[^`\n]*+$)|~{3,}+)(?P<info>[^\n]*+)$", re.MULTILINE)
_NEWLINE = lazy_regex(r"\n")
_STRUCK = lazy_regex(r"(?<!~)~~(?![~\s])(?:[^~\n]++|~(?!~))++~~(?!~)")
UNSURE = "[?]"
"""The marker after a line that OCR is unsure of."""
_INVALID = lazy_regex(rf"{_STRUCK.pattern}|^[^\n]*\[\?\](?= ?\||$)[^\n]*$", re.MULTILINE)
_CLOSE_UP = tuple(" ,.;:!?)]，。；：！？）、")
_CONTROLS = lazy_regex("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_FORMULA = lazy_regex(r"'*+[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")  # including full-width signs
_CITATION_MARK = lazy_regex(r"(?<!\s)\s*+\[\d+\]")
_NARROW_TOKENS = 0.27  # tokens per Latin and per wide character, according to vendors' guides:
_WIDE_TOKENS = 0.7  # about 0.25-0.3 and 0.6-0.8 with any tokenizer


def to_plain_line(text: str) -> str:
    """Return a title or name on one line, without control characters (see `strip_controls`)."""
    return " ".join(strip_controls(" ".join(text.split())).split())


def strip_controls(text: str) -> str:
    """Remove control characters, except line ends and tabs, and characters that change the text direction.

    Directional formatting characters (UAX #9) can make one name look like another.
    """
    return _CONTROLS.sub("", text)


def escape_formula(cell: str) -> str:
    """Return a table cell that spreadsheets treat as text: a possible formula gets a leading apostrophe.

    This follows OWASP ("CSV Injection"); `unescape_formula` removes the apostrophe.
    """
    return f"'{cell}" if _FORMULA.match(cell) else cell


def unescape_formula(cell: str) -> str:
    """Undo `escape_formula`."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


def is_chinese(text: str) -> bool:
    """Return whether `text` is Chinese: at least a fifth of its letters are Han characters, without kana or hangul.

    A question full of Latin names may have fewer; then its other words decide.
    """
    if text.isascii():
        return False
    language = detect_language(text)
    return language == "zh" or (
        language in ("en", "") and _is_chinese_sentence(unicodedata.normalize("NFKC", text[:20_000]))
    )


def question_language(text: str) -> str:
    """Return the language as `detect_language` does, but treat a Chinese sentence with Latin names as Chinese.

    Full-width Latin letters count as Latin.
    """
    return "zh" if is_chinese(text) else detect_language(unicodedata.normalize("NFKC", text))


def _is_chinese_sentence(text: str) -> bool:
    """Return whether mostly Latin text is a Chinese sentence with names, not an English one with a Chinese word.

    Its question and function words decide, and the language at its beginning and end.
    """
    if len(_HAN.findall(text)) < 2 or _KANA_HANGUL.search(text) or _ENGLISH_FRAME.search(text):
        return False
    runs, english = _HAN_RUN.findall(text), len(_ENGLISH_JOINS.findall(text))
    first, last = (bool(_CHINESE_ASKS.search(run)) for run in (runs[0], runs[-1]))
    begins, ends = text.lstrip().startswith(runs[0]), text.rstrip(" \n\t?？!！。").endswith(runs[-1])
    named = ends and not english and len(runs[-1]) > 1
    return named or (ends and last) or (begins and first) or len(_CHINESE_JOINS.findall(text)) > english


def detect_language(text: str) -> str:
    """Guess the language from the script: `zh`, `ja`, `ko`, `en` (Latin script), or an empty string.

    Only scripts are distinguished; a page's `lang` attribute is more precise and takes precedence.
    """
    sample = text[:20_000]
    letters = len(_LETTER.findall(sample))
    if not letters:
        return ""
    han, kana_hangul = len(_HAN.findall(sample)), len(_KANA_HANGUL.findall(sample))
    if kana_hangul * 10 >= letters:
        return "ko" if re.search("[\uac00-\ud7af]", sample) else "ja"
    if han * 5 >= letters:
        return "zh"
    latin = sum(map("\u0250".__gt__, _LETTER.findall(sample)))
    return "en" if latin * 2 >= letters else ""


def weigh(text: str) -> float:
    """Return the length of `text`, with wide characters counted as WIDE_WEIGHT Latin ones."""
    return len(text) + (WIDE_WEIGHT - 1) * len(_WIDE.findall(text))


def split_sentences(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the spans of the sentences of `text[start:end]`, in order, without surrounding white space.

    Sentences end at 。！？ and . ! ? with their closing quotes, and at line ends, except where a wrapped line continues
    in lower case. A heading or table row is one sentence, unless the row is long. Fenced code is split into lines.
    Every non-white-space character is in exactly one span.
    """
    stop = len(text) if end is None else end
    spans: list[tuple[int, int]] = []
    begin = start
    for code_start, code_end in fenced_blocks(text, start, stop):
        spans += _split_at(text, begin, code_start, _find_sentence_ends(text, begin, code_start))
        lines = (newline.end() for newline in _NEWLINE.finditer(text, code_start, code_end))
        spans += _split_at(text, code_start, code_end, lines)
        begin = code_end
    return [*spans, *_split_at(text, begin, stop, _find_sentence_ends(text, begin, stop))]


def fenced_blocks(text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
    """Return the spans of fenced code in `text[start:end]`, including fences; an unclosed block runs to the end.

    A passage may begin inside code: if the fences do not pair up, a closing fence at the start ends a block there.
    """
    stop = len(text) if end is None else end
    if "```" not in text and "~~~" not in text:
        return []
    fences = list(_FENCE.finditer(text, start, stop))
    blocks, open_fence = _pair_fences(fences)
    if open_fence and _is_lone_closing_fence(text, start, fences[0]):
        blocks, open_fence = _pair_fences(fences[1:])
        blocks = [(start, fences[0].end()), *blocks]
    return [*blocks, (open_fence.start(), stop)] if open_fence else blocks


def strip_struck(text: str, start: int = 0, end: int | None = None) -> str:
    """Return `text[start:end]` without struck-through parts (`~~…~~`), which are visible but no longer valid.

    Lines marked `UNSURE` are removed too, since OCR may have misread them.
    """
    stop = len(text) if end is None else end
    if "~~" not in text and UNSURE not in text:
        return text[start:stop]
    result, at = "", start
    for match in _INVALID.finditer(text):
        if match.end() <= at or match.start() >= stop:
            continue
        result += text[at : max(at, match.start())]
        at = min(stop, match.end())
        result = result.rstrip(" ") if text[at : at + 1] in _CLOSE_UP else result
    return result + text[at:stop]


def describe_struck(text: str, template: str) -> str:
    """Replace each struck-through part with `template`, formatted with the part, for readers of plain text."""
    return _STRUCK.sub(lambda match: template.format(match[0][2:-2]), text)


def cluster_end(text: str, start: int, end: int) -> int:
    """Return the end of the last whole grapheme cluster (UAX #29) in `text[start:end]`; `end` if there is none."""
    whole = end
    for match in _CLUSTER.finditer(text, start, end + 1):  # the next code point decides whether a cluster ends
        if match.end() > end:
            break
        whole = match.end()
    return whole


def _pair_fences(fences: Sequence[re.Match[str]]) -> tuple[list[tuple[int, int]], re.Match[str] | None]:
    """Return the blocks between fences, and the unclosed fence, if any."""
    blocks: list[tuple[int, int]] = []
    open_fence: re.Match[str] | None = None
    for fence in fences:
        if open_fence is None:
            open_fence = fence
        elif fence["marks"].startswith(open_fence["marks"]) and not fence["info"].strip():
            blocks.append((open_fence.start(), fence.end()))
            open_fence = None
    return blocks, open_fence


def _is_lone_closing_fence(text: str, start: int, fence: re.Match[str]) -> bool:
    """Return whether a fence directly follows code and is followed by none."""
    before = text[start : fence.start()].rstrip(" \t")
    after = text[fence.end() : fence.end() + 80].lstrip(" \t")
    blank_after = not after or after.startswith("\n\n") or after == "\n"
    return not fence["info"].strip() and before.endswith("\n") and before[-2:] not in ("\n\n", "\n") and blank_after


def _split_at(text: str, start: int, end: int, cuts: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield the spans between the cuts, without surrounding white space; none for white space alone."""
    begin = start
    for cut in (*cuts, end):
        piece = text[begin:cut]
        if piece and not piece.isspace():
            yield cut - len(piece.lstrip()), begin + len(piece.rstrip())
        begin = cut


@lru_cache(maxsize=4096)
def sentence_spans(text: str) -> tuple[tuple[int, int], ...]:
    """Return the spans of `split_sentences`, cached, since each question needs a passage's spans several times."""
    return tuple(split_sentences(text))


def _find_sentence_ends(text: str, start: int, stop: int) -> Iterator[int]:
    cased = _is_cased(text[start : min(stop, start + 20_000)])
    is_whole = _TITLE_OR_ROW.match(text, start)  # "### 5. Prune hard", "| Weight (approx.) | 7 kg |"
    for match in _END.finditer(text, start, stop):
        at = match.end()
        if match["line"]:
            is_whole = _TITLE_OR_ROW.match(text, at)
            if _ends_at_newline(text, start, match.start(), at, stop):
                yield at
        elif is_whole:
            continue
        elif match["within"] is not None:
            yield from (ellipsis.end() for ellipsis in _ELLIPSIS.finditer(text, match.start(), at))
        elif match["zh"] or not _is_inner_period(text, start, match, cased):
            yield at


def _is_cased(sample: str) -> bool:
    """Return whether sentences normally begin with a capital; some corpora are all lower case."""
    if sample.isascii():  # ten times faster
        plain = sample.encode()
        lower, upper = (len(plain) - len(plain.translate(None, letters)) for letters in (_LOWER, _UPPER))
        return upper * 200 >= lower
    return sum(map(str.isupper, sample)) * 200 >= sum(map(str.islower, sample))


def _ends_at_newline(text: str, start: int, newline: int, after: int, stop: int) -> bool:
    """Return whether a newline ends a sentence, which it does unless the next line continues wrapped text."""
    following = text[after : min(after + 80, stop)].lstrip(" \t")
    if not following or following[0] == "\n" or _BLOCK_LINE.match(following):
        return True
    line_start = max(text.rfind("\n", start, newline) + 1, start)
    if _BLOCK_LINE.match(text, line_start) and text[line_start : line_start + 1] in "#|":
        return True
    wraps = newline - line_start >= 50 and text[newline - 1] not in ".!?。！？:："
    return not (
        following[0].islower() or (wraps and not _HAN.match(following[0]) and text[line_start] not in "-*+•|#>")
    )


def _is_inner_period(text: str, start: int, match: re.Match[str], cased: bool) -> bool:
    """Return whether a full stop belongs to an abbreviation, initial or list number, not to the end of a sentence."""
    following = text[match.end() : match.end() + 3].lstrip()[:1]
    if match["en"] != ".":
        return cased and match["en"].endswith((".", "…")) and following.islower()
    if (cased and following.islower()) or following in _NEVER_INITIAL:
        return True
    before = _BEFORE_WORD.split(text[max(start, match.start() - 24) : match.start()])[-1]
    if before.isdigit():
        number = match.start() - len(before)
        line_start = max(start, text.rfind("\n", start, number) + 1)
        if not text[line_start:number].strip(" \t"):
            return True
    measured = _MEASURE.search(text, max(start, match.start() - 8), match.start())
    if following.isdigit() and (measured or before.lower() in ("max", "min")):
        return True
    if before.lower() in _ABBREVIATIONS or (cased and _INITIALS.fullmatch(before)):
        return True
    return cased and len(before) == 1 and before.isupper() and before != "I"


def terms(text: str) -> list[str]:
    """Return the words in lower case, Chinese as overlapping character pairs, after NFKC normalisation."""
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    words: list[str] = []
    for run in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if _HAN.match(run[0]) and len(run) > 1:
            words.extend(run[i : i + 2] for i in range(len(run) - 1))
        else:
            words.append(run)
    return words


def unique_terms(question: str) -> tuple[str, ...]:
    """Return the distinct words of a question, sorted."""
    return tuple(sorted(set(terms(question))))


def replace_surrogates(text: str) -> str:
    """Replace each lone surrogate with U+FFFD, since surrogates can be neither stored nor printed."""
    return _SURROGATE.sub("\ufffd", text)


_MARKDOWN_SYNTAX = lazy_regex(
    r"[\\`*~<>\[\]|$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)|(?<=\s)#+$|^[-+#=]|(?<=^\d)[.)](?=\s)|(?<=^\d\d)[.)](?=\s)"
)


def escape_markdown(text: str) -> str:
    """Return a title or name as one line of Markdown that renders literally."""
    return _MARKDOWN_SYNTAX.sub(r"\\\g<0>", " ".join(text.split()))


def strip_citations(answer: str) -> str:
    """Return an answer without its citation marks."""
    return _CITATION_MARK.sub("", answer)


_ENDS = lazy_regex(r"(?:[。！？!?…]|(?<!\d)[.])['\"”’)）」』*_]*$")
_ENDS_WITH_MARKS = lazy_regex(r"[。！？!?….]['\"”’)）」』*_]*(?:\s?\[\d{1,3}\])+")


def trim_to_sentences(text: str) -> str:
    """Trim interrupted text to its last complete sentence, row or line, including its citation marks."""
    spans = split_sentences(text)
    if not spans:
        return ""
    start, end = spans[-1]
    whole = text[end:].startswith("\n") or _ENDS.search(text, start, end)
    complete = text[: max([end if whole else start, *(match.end() for match in _ENDS_WITH_MARKS.finditer(text))])]
    lines = complete.rstrip().split("\n")
    while lines and re.match(r"\s*(?:#{1,6}(?:\s|$)|[-*+>]\s*$|$)", lines[-1]):  # headings without text, empty items
        lines.pop()
    return "\n".join(lines)


def truncate(text: str, limit: int = 160) -> str:
    """Return `text` on one line, cut to `limit` characters with an ellipsis, not within a word if there is a space."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    head = flat[: limit - 1]
    is_in_word = all(one.isalnum() and not _WIDE.match(one) for one in flat[limit - 2 : limit])
    whole = head.rpartition(" ")[0] if is_in_word else head
    return f"{(whole or head).rstrip()}…"


def first_sentence(text: str, limit: int = 240) -> str:
    """Return the first sentence of an answer without its marks, up to `limit` characters; "" if there is none."""
    bare = strip_citations(text).strip()
    spans = split_sentences(bare)
    return bare[spans[0][0] : spans[0][1]][:limit] if spans else ""


def estimate_tokens(text: str) -> int:
    """Estimate the number of tokens of `text` without a tokenizer."""
    wide = len(_WIDE.findall(text))
    return ceil((len(text) - wide) * _NARROW_TOKENS + wide * _WIDE_TOKENS)


def make_encodable(text: str) -> str:
    """Replace each lone surrogate in `text` with `?`."""
    return text.encode("utf-8", "replace").decode("utf-8")


def join_surrogates(text: str) -> str:
    """Combine surrogate pairs; a lone surrogate becomes U+FFFD, since files and pages cannot contain it.

    Servers that split their chunks by UTF-16 code units send some characters in two halves.
    """
    if not _SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def white_space_before(text: str, start: int) -> str:
    """Return the white space that ends at `start`, up to 200 characters."""
    before = text[max(0, start - 200) : start]
    return before[len(before.rstrip()) :]


def number_ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    """Return the first and last number of each run of consecutive numbers, which are sorted."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        first = ranges.pop()[0] if ranges and number == ranges[-1][1] + 1 else number
        ranges.append((first, number))
    return ranges


_LIST_ITEM = lazy_regex(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")
INTRODUCTION = lazy_regex(r"[:：][*_\s]*$")
_LONGEST_LEAD = 100


class ListPlace(NamedTuple):
    """The `start` of the list that a sentence is in, and the number of its item from 1; -1 and 0 outside of lists.

    `lead` is the heading or introduction of the list, if the sentence begins an item.
    """

    lead: str = ""
    start: int = -1
    item: int = 0


NO_LIST: Final = ListPlace()


def find_list_places(text: str, spans: Iterable[tuple[int, int]]) -> list[ListPlace]:
    """Return the place of each sentence in the lists of a text.

    Only text between its items ends a list, indented no more than the item above it. An introduction is that of the
    items below it, up to a blank line after items on adjacent lines; an indented one, of items indented as much.
    """
    places, lead, inner_lead, before = list[ListPlace](), "", "", 0
    list_start = item = floor = margin = inner_margin = 0
    is_introduced = is_tight = False
    for start, end in spans:
        sentence, line = text[start:end], text[text.rfind("\n", 0, start) + 1 : start]
        is_first, indent = not line.strip(), len(line) - len(line.lstrip())
        is_item = is_first and _LIST_ITEM.match(sentence) is not None
        if is_item:
            if inner_lead and indent >= inner_margin:
                lead, item, is_introduced, is_tight = inner_lead, 0, True, False
            elif item and indent < floor:
                lead, item, is_introduced, is_tight = "", 0, False, False
            is_apart = text.find("\n\n", before, start) >= 0
            list_start, item, floor = (list_start, item + 1, floor) if item else (start, 1, indent)
            lead, is_tight = ("" if is_apart and is_tight else lead), is_introduced and not is_apart
            margin = indent
        elif is_first and indent <= margin:
            item = 0
        own_lead = lead if is_item and len(lead) <= _LONGEST_LEAD else ""
        places.append(ListPlace(own_lead, list_start, item) if item else NO_LIST)
        before, inner_lead = end, ""
        if heading := HEADING.match(sentence):
            lead, is_introduced, is_tight = sentence[heading.end() :].strip(), False, False
        elif INTRODUCTION.search(sentence):
            if is_item or line[:1].isspace():
                inner_lead, inner_margin = sentence.strip(), indent + is_item
            else:
                lead, is_introduced, is_tight = sentence.strip(), True, False
        elif not line and not is_item:
            lead = ""
    return places


_ENTRY_LINE = lazy_regex(r"^(?P<indent>[ \t]*)(?P<line>[^\s][^\n]*)", re.MULTILINE)
_ATTRIBUTE = lazy_regex(r"[$€£¥￥₩]\s?\d|\d\s?(?:元|USD|EUR|GBP)\b|^[(（]?\d|^[^\n:：]{1,40}[:：][ \t]*+[^\s/]")
_ENDS_CLAUSE = lazy_regex(r"[.!?。！？;；…,，:：][\"”’)）*_]*$")
_LONGEST_ENTRY_LINE, _LONGEST_PHRASE, _LONGEST_ENTRY, _LONGEST_LABEL = 160, 60, 600, 24

Span = tuple[int, int]


class Entry(NamedTuple):
    """An entry of a listing, such as a product: the spans of its heading, or title, or both, and of its attributes."""

    heading: Span | None
    title: Span | None
    attributes: list[Span]

    @property
    def start(self) -> int:
        return (self.title or self.attributes[0])[0]

    @property
    def end(self) -> int:
        return self.attributes[-1][1]


def find_entries(text: str, start: int = 0, end: int | None = None) -> list[Entry]:
    """Return the entries of listings in `text[start:end]`, in order: without its title, an attribute says nothing.

    An entry is a list item with indented lines, or a heading or short line with the short lines below it that have a
    label, a price, or a number first. A title of up to two words may be a label, such as "Price", so its entry also has
    the heading of its section. `start` and `end` exclude the heading.
    """
    stop = len(text) if end is None else end
    edges = [start, *(edge for block in fenced_blocks(text, start, stop) for edge in block), stop]
    found = (entry for a, b in zip(edges[::2], edges[1::2], strict=True) for entry in _find_entries(text, a, b))
    return [entry for entry in found if entry.end - entry.start <= _LONGEST_ENTRY]


def may_be_label(title: str) -> bool:
    """Return whether the title of an entry may be a label, such as "Price", instead of a name."""
    return len(title.split()) <= 2 and weigh(title) <= _LONGEST_LABEL


@lru_cache(maxsize=4096)
def unit_spans(text: str) -> tuple[Span, ...]:
    """Return the spans of sentences, each entry of a listing as one."""
    entries = deque(find_entries(text))
    spans: list[Span] = []
    for start, end in sentence_spans(text):
        while entries and entries[0].end <= start:
            entries.popleft()
        if entries and entries[0].start < end:
            start, end = min(start, entries[0].start), max(end, entries[0].end)
            if spans and spans[-1][1] > start:
                start = spans.pop()[0]
        spans.append((start, end))
    return tuple(spans)


def _find_entries(text: str, start: int, end: int) -> Iterator[Entry]:
    heading: Span | None = None
    is_near = in_item = False  # whether the entry directly follows its heading, and is a list item
    title: Span | None = None
    attributes: list[Span] = []
    for match in _ENTRY_LINE.finditer(text, start, end):
        line, span, is_indented = match["line"], match.span("line"), bool(match["indent"])
        is_item = _LIST_ITEM.match(line) is not None
        is_heading = HEADING.match(line) is not None and not is_indented
        is_line = len(line) <= _LONGEST_ENTRY_LINE and line[0] not in "|>#" and not is_item and is_indented == in_item
        is_detail = is_line and ((in_item and len(line) <= _LONGEST_PHRASE) or not _ENDS_CLAUSE.search(line))
        if (title or heading) and is_detail and (in_item or _ATTRIBUTE.search(line)):
            attributes.append(span)
            continue
        if is_item and is_indented and attributes and INTRODUCTION.search(text, *attributes[-1]):
            attributes.pop()  # it introduces the list below
        if attributes:
            is_shown = not in_item and (is_near or title is None or may_be_label(text[slice(*title)]))
            yield Entry(heading if is_shown else None, title, attributes)
        if attributes or is_heading or is_item or not is_detail:
            heading, is_near, title, attributes = (span if is_heading else heading), is_heading, None, []
        in_item = is_item and not is_indented and len(line) <= _LONGEST_ENTRY_LINE
        if in_item or (is_detail and not _ATTRIBUTE.search(line)):
            title = span
    if attributes:
        is_shown = not in_item and (is_near or title is None or may_be_label(text[slice(*title)]))
        yield Entry(heading if is_shown else None, title, attributes)


_LINE_ENDS = lazy_regex(r"\r\n?|[\u0085\u2028\u2029\x0b\x0c]")
_INVISIBLE = lazy_regex(
    r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    r"\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\ue000-\uf8ff"
    r"\U000e0000-\U000e0fff\U000f0000-\U0010ffff]+"
)
# Joiners shape Persian and Indic words; next to an ASCII letter or a space they only hide text.
_STRAY_JOINER = lazy_regex(r"(?<![^\x00-\x7f])[\u200c\u200d]+|[\u200c\u200d]+(?![^\x00-\x7f])")
_SPACES = lazy_regex(r"[\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000]")
# Only letters with combining marks: NFC would also replace whole ideographs with look-alikes.
_DECOMPOSED = lazy_regex(r".[\u0300-\u036f\u1ab0-\u1aff\u20d0-\u20ff\u3099\u309a]+")
_TRAILING = lazy_regex(r"(?<![ \t])[ \t]++$", re.MULTILINE)
_BLANK_LINES = lazy_regex(r"\n{3,}")
_CODE = lazy_regex(r"^ {0,3}(`{3,}+|~{3,}+)[^\n]*+\n.*?(?:^ {0,3}\1[^\n]*$|\Z)|`[^`\n]+`", re.MULTILINE | re.DOTALL)
_COMMENT = lazy_regex(r"<!--(?:[^<-]++|-(?!->)|<(?!!--))*+-->")
_LINK = lazy_regex(
    r"!?\[(?P<words>[^\[\]]{0,1000})\]"
    r"(?:\(\s*+(?:<[^<>\n]*>|(?:[^()\s]|\([^()\s]*\)){0,2000}+)(?:\s++(?:\"[^\"]*\"|'[^']*'))?\s*+\)|\[[^\[\]\n]{0,200}\])"
)
_DEFINITION = lazy_regex(r"^ {0,3}\[[^\]\n]{1,200}\]:[ \t]+\S[^\n]*\n?", re.MULTILINE)
_AUTOLINK = lazy_regex(r"<((?:https?://|mailto:)[^<>\s]+)>")
_HEADING = lazy_regex(r"^(#{1,6}) +([^ \n].*)$", re.MULTILINE)
_FRONT_MATTER = lazy_regex(r"\A---\n(.*?)\n(?:---|\.\.\.)(?:\n|\Z)", re.DOTALL)
_TITLE = lazy_regex(r"^title:(.*)$", re.MULTILINE)


def clean_text(text: str) -> str:
    """Remove invisible characters, repeated blank lines, and space around the text or at line ends."""
    text = _LINE_ENDS.sub("\n", text)
    text = _STRAY_JOINER.sub("", _INVISIBLE.sub("", text))
    text = _DECOMPOSED.sub(lambda match: unicodedata.normalize("NFC", match[0]), text)
    text = _TRAILING.sub("", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip("\n").rstrip()


def clean_line(text: str, limit: int = 300) -> str:
    """Return `text` as one line of up to `limit` characters, for titles and names."""
    line = collapse_spaces(clean_text(text))
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def collapse_spaces(text: str) -> str:
    """Return `text` on one line, with single spaces."""
    return " ".join(text.split())


def strip_link_targets(text: str) -> str:
    """Replace links and images outside code with their text; remove comments and link definitions."""
    output, at = [], 0
    for code in _CODE.finditer(text):
        output += [_strip_markup(text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*output, _strip_markup(text[at:])])


def front_matter_title(text: str) -> tuple[str, str]:
    """Return the title in a YAML header at the start of `text`, or "", and the text after the header."""
    header = _FRONT_MATTER.match(text)
    if not header:
        return "", text
    title = _TITLE.search(header[1])
    return (title[1].strip().strip("\"'").strip() if title else ""), text[header.end() :]


def letters_and_digits(text: str) -> str:
    """Return the letters and digits of a text in lower case, to compare titles and sentences."""
    return re.sub(r"[\W_]+", "", text).casefold()


def first_heading(text: str) -> str:
    """Return the text of the first heading in Markdown, or "" if there is none."""
    match = _HEADING.search(text)
    return _heading_title(match) if match else ""


def find_section(text: str, section: Sequence[str], position: int) -> tuple[str, ...]:
    """Return the heading path at a position of a text in Markdown; `section` is the path of most of the text.

    The headings above the text are known only from `section`, so the path may lack its outermost parts.
    """
    code = list(fenced_blocks(text))
    headings = [one for one in _HEADING.finditer(text) if not any(a <= one.start() < b for a, b in code)]
    path: list[tuple[int, str]] = []
    for heading in headings:
        if heading.start() <= position:
            path = [
                *(above for above in path if above[0] < len(heading[1])),
                (len(heading[1]), _heading_title(heading)),
            ]
    titles = [title for _, title in path]
    if not titles:
        below = set(map(_heading_title, headings))
        return tuple(takewhile(lambda part: part not in below, section))
    return (*section[: section.index(titles[0])], *titles) if titles[0] in section else tuple(titles)


def _heading_title(match: re.Match[str]) -> str:
    return clean_line(match[2].rstrip(" #"))


def _strip_markup(text: str) -> str:
    text = _DEFINITION.sub("", _COMMENT.sub("", text))
    text = _LINK.sub(r"\g<words>", _LINK.sub(r"\g<words>", text))  # twice: a link around an image
    return _AUTOLINK.sub(r"\1", text)
