"""The text of a model's reply, without what its model or server put around it.

Models and servers wrap an answer in many ways: thoughts before it, tags, JSON or a fence around it, tokens that end a
turn, a list of sources behind it. All of that is told by where it stands: an answer may well speak of such a tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_THOUGHT: Final = re.compile(r"think|thought|reason|analy|reflect|scratch|plan|monolog|tool|function|detail", re.I)
_ANSWER: Final = re.compile(r"answer|response|final|output|result|reply|text|content|sentence|statement", re.I)
_HTML: Final = frozenset(
    "a b blockquote br cite code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s section"
    " small span strong sub sup table tbody td th thead tr u ul".split()
)
_LEAD: Final = re.compile(
    r"\s*+(?:<(?P<tag>[a-z_][\w:-]{0,30})(?:\s[^<>\n]{0,200})?>|\[(?P<square>[A-Z][A-Z_]{2,20})\]|◁(?P<triangle>\w{2,20})▷)",
    re.IGNORECASE,
)
_OPEN: Final = re.compile(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_CLOSE: Final = re.compile(r"</(?:think|thinking|thought)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_CHANNELS: Final = re.compile(r"\s*+(?:<\|start\|>assistant)?(?:<\|channel\|>|(?:analysis|commentary)(?=[A-Z]))")
_FINAL: Final = re.compile(r"<\|channel\|>\s*+final[^<]{0,40}<\|message\|>|(?<!\w)assistant\s?final(?=\W|[A-Z])")
_TOKEN: Final = re.compile(
    r"<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>|<(?:end|start)_of_\w{1,20}>|<eos>|\[/?(?:INST|TOOL_CALLS)\]"
)
_THINKING: Final = ("thinking", "thoughts", "thought process", "reasoning", "analysis", "思考过程", "思考", "推理")
_ANSWERS: Final = ("final answer", "answer", "response", "最终答案", "答案", "回答")
_LABELLED: Final = re.compile(
    rf"[*#_\s]*+(?:{'|'.join(_THINKING)})(?: process)?[*_]*+\s?(?:[:：]|\.{{3}}|…)[*_]*+\s", re.IGNORECASE
)
_ANSWER_LABEL: Final = rf"[*#_ ]*+(?:{'|'.join(_ANSWERS)})[*_]*+(?:\s?[:：][*_]*+[ \t]*+|[ \t]*+\n)"
_BEGINS: Final = re.compile(rf"\s*+{_ANSWER_LABEL}\s*+(?=\S)", re.IGNORECASE)
_DONE: Final = re.compile(rf"\.{{3}}done thinking\.?|^{_ANSWER_LABEL}", re.IGNORECASE | re.MULTILINE)
_FENCED: Final = re.compile(r"\s*+(?P<marks>`{3,}+|~{3,}+)(?P<language>[\w+-]{0,20})[ \t]*+\n(?P<inner>.*)", re.DOTALL)
_PROSE: Final = frozenset({"markdown", "md", "text", "txt", "plaintext"})
_CITES: Final = re.compile(r"\[\d{1,2}\]")
_WORD: Final = re.compile(r"\w")
_TAIL: Final = re.compile(
    r"\n[ \t]*+(?:#{1,6}[ \t]|[*_]{2})?[ \t]*+(?:references|sources|citations|footnotes|bibliography|works cited"
    r"|参考(?:文献|资料|来源)?|(?:资料)?来源|引用(?:来源)?|出处)[ \t]*+[*_]*+[ \t]*+[:：]?[*_]*+[ \t]*+"
    r"(?P<entries>(?:(?:\n|^|\[)[^\n]*)*+)\Z",
    re.IGNORECASE,
)
_ENTRY: Final = re.compile(r"\s*(?:[-*•–]|\[\^?\d|\(?\d{1,3}[.)\]]|https?:|【|<http)|\s*\Z")
_LINK_LINE: Final = re.compile(r"[ \t]*+(?:\[\^?\d{1,2}\]|\d{1,2}\.)")
_BEGUN: Final = re.compile(r"(?:<(?:[/|｜a-z_][^<>\n]{0,60})?|\[/?[A-Z_]{0,20}|◁[^▷\n]{0,20})\Z", re.IGNORECASE)
_OPENERS: Final = tuple("\"'“‘「『《`*(（[【")
_ENDINGS: Final = tuple("\r\n.!?…。！？")
_CLOSERS: Final = tuple('.!?…。！？]】)）}>"”’*_')
_NAMES_IT: Final = re.compile(
    r"(?:标[签记志识]|符号|字[样符]|[和与及或以用由到在是为的叫写现])$"
)  # no space tells in Chinese


def answer_text(reply: str, *, whole: bool = True) -> str:
    """What of a reply, or of its beginning where it is not `whole`, is the answer; empty where nothing is."""
    text = _within_turn(without_thoughts(reply.lstrip("\ufeff"), whole=whole))
    if not whole and _may_be_label(text):
        return ""
    text = _unwrapped(text, whole)
    text = text[begins.end() :] if (begins := _BEGINS.match(text)) else text
    text = _without_sources(text)
    return text if whole else _BEGUN.sub("", text)


def without_thoughts(reply: str, *, whole: bool = True) -> str:
    """The reply without what its model thought before it; an unclosed thought runs to the end."""
    text = _final_channel(reply)
    thought = False
    while lead := _LEAD.match(text):
        rest = _behind(text, lead, whole)
        if rest is None:
            break
        text, thought = rest, True
    if labelled := _LABELLED.match(text):
        done = _DONE.search(text, labelled.end())
        if done:
            return text[done.end() :].lstrip()
        return text if whole else ""
    return text if thought else _without_unopened(text, whole)


def _final_channel(reply: str) -> str:
    """What a reply in channels says in the last of them."""
    if not _CHANNELS.match(reply):
        return reply
    found = list(_FINAL.finditer(reply))
    return reply[found[-1].end() :] if found else ""


def _behind(text: str, lead: re.Match[str], whole: bool) -> str | None:
    """What stands behind the block that opens a text, or in it where that is the answer; None where it opens none."""
    name = next(filter(None, lead.groups()))
    if name.lower() in _HTML or (lead["square"] and not (_THOUGHT.search(name) or _ANSWER.search(name))):
        return None
    shut = f"</{name}>" if lead["tag"] else f"[/{name}]" if lead["square"] else f"◁/{name}▷"
    closing = re.compile(re.escape(shut), re.IGNORECASE).search(text, lead.end())
    answers = bool(_ANSWER.search(name))
    if closing is None:
        thinks = _THOUGHT.search(name) or not (whole or answers)
        return "" if thinks and not answers else text[lead.end() :]
    inner, rest = text[lead.end() : closing.start()], text[closing.end() :]
    if answers:
        return inner
    return rest if _THOUGHT.search(name) or rest.strip() else inner if whole else ""


def _without_unopened(text: str, whole: bool) -> str:
    """Some servers swallow the tag that opens thoughts: one that closes them where a text could end tells them."""
    opened = _OPEN.search(text)
    for tag in _CLOSE.finditer(text, 0, opened.start() if opened else len(text)):
        ends = _ends_thoughts(text[: tag.start()], text[tag.end() :], whole)
        if ends is None:
            return text[: tag.start()]
        if ends:
            return text[tag.end() :]
    return text


def _ends_thoughts(before: str, after: str, whole: bool) -> bool | None:
    """Whether a closing tag between these ends thoughts, as against being spoken of; None if what follows must tell."""
    shown, follows = before.rstrip(" \t"), after.lstrip(" \t")
    if _is_quoted(before):
        return False
    within = bool(shown) and not shown.endswith(_ENDINGS) and (shown != before or bool(_NAMES_IT.search(shown)))
    if not within or (whole and not follows):
        return True
    return follows[0] in "\r\n" if follows else None


def _is_quoted(before: str) -> bool:
    """Whether what follows stands in quotes, or in code on its line."""
    return before.rstrip(" \t").endswith(_OPENERS) or before.rpartition("\n")[2].count("`") % 2 == 1


def _is_ended(text: str) -> bool:
    """Return whether an answer can end after this text: at the end of a sentence or a line."""
    shown = text.rstrip()
    return not shown or shown.endswith(_CLOSERS) or "\n" in text[len(shown) :]


def _within_turn(text: str) -> str:
    """The text up to the token that ends its turn."""
    begin = 0
    for token in _TOKEN.finditer(text):
        before = text[begin : token.start()]
        if not before.strip():
            begin = token.end()
        elif not _is_quoted(before) and (_is_ended(before) or not text[token.end() :].strip()):
            return before
    return text[begin:]


def _may_be_label(text: str) -> bool:
    """Whether the beginning of an answer may become a label before it."""
    said = text.strip("*#_ \n.…:：").lower()
    return any(label.startswith(said) for label in (*_THINKING, *_ANSWERS))


def _unwrapped(text: str, whole: bool) -> str:
    """An answer out of the JSON, or the fence, that holds all of it."""
    if text.lstrip()[:1] == "{" or re.match(r"\s*\[\s*[{\"]", text):
        return _of_json(text, whole)
    if not (fenced := _FENCED.match(text)):
        return "" if not whole and re.fullmatch(r"\s*[`~]{1,}[\w+-]*", text) else text
    inner, _, rest = fenced["inner"].partition(f"\n{fenced['marks']}")
    if rest.strip():
        return text
    if re.match(r"\s*[{\[]", inner) and fenced["language"].lower() in ("", "json"):
        told = _of_json(inner, whole)
        return text if told == inner else told
    prose = fenced["language"].lower() in _PROSE or (not fenced["language"] and _CITES.search(inner))
    if prose:
        return inner
    return text if whole or fenced["language"] else ""


def _of_json(text: str, whole: bool) -> str:
    """The answer in a reply that is JSON; none where it calls a tool. Text that is none stays as it is."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.strip())
    except (ValueError, RecursionError):
        return text if whole else ""
    return _told(value) if isinstance(value, dict | list) else text


def _told(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(_told, value)))
    if not isinstance(value, dict) or ("name" in value and {"arguments", "parameters"} & set(value)):
        return ""
    told = {key: said for key, one in value.items() if (said := _told(one).strip())}
    said = next((told[key] for key in told if _ANSWER.search(key)), max(told.values(), key=len, default=""))
    numbers = [] if not said or _CITES.search(said) else list(_integers(value))
    return said + "".join(f" [{number}]" for number in numbers[:5])


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _integers(one)
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100:
        yield value


def _without_sources(text: str) -> str:
    """Without the list of sources behind the answer: it cites them in its sentences."""
    for tail in _TAIL.finditer(text):
        if all(_ENTRY.match(line) for line in tail["entries"].split("\n")) and _WORD.search(text[: tail.start()]):
            return text[: tail.start()]
    return _without_link_lines(text)


def _without_link_lines(text: str) -> str:
    """Drop a last paragraph of numbered links."""
    lines = text.rstrip().split("\n")
    begin = len(lines)
    while begin and _LINK_LINE.match(lines[begin - 1]) and re.search("https?://", lines[begin - 1]):
        begin -= 1
    behind_blank = 2 <= begin < len(lines) and not lines[begin - 1].strip()
    return "\n".join(lines[:begin]).rstrip() if behind_blank else text
