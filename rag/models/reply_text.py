"""Extraction of the answer from a model's reply.

Models and servers wrap an answer in many ways: reasoning before it; tags, JSON or a code fence around it; end-of-turn
tokens or a list of sources after it. All are recognised by their position, since an answer may mention such a tag.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from rag.patterns import lazy_regex

_REASONING_NAME: Final = lazy_regex(
    r"think|thought|reason|analy|reflect|scratch|plan|monolog|tool|function|detail", re.IGNORECASE
)
_ANSWER_NAME: Final = lazy_regex(r"answer|response|final|output|result|reply|text|content|sentence|statement", re.I)
_HTML: Final = frozenset(
    "a b blockquote br cite code dd del div dl dt em h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q s section"
    " small span strong sub sup table tbody td th thead tr u ul".split()
)
_LEAD: Final = lazy_regex(
    r"\s*+(?:<(?P<tag>[a-z_][\w:-]{0,30})(?:\s[^<>\n]{0,200})?>|\[(?P<square>[A-Z][A-Z_]{2,20})\]|◁(?P<triangle>\w{2,20})▷)",
    re.IGNORECASE,
)
_OPEN: Final = lazy_regex(r"<(?:think|thinking|thought)>", re.IGNORECASE)
_CLOSE: Final = lazy_regex(r"</(?:think|thinking|thought)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
_CHANNELS: Final = lazy_regex(r"\s*+(?:<\|start\|>assistant)?(?:<\|channel\|>|(?:analysis|commentary)(?=[A-Z]))")
_FINAL: Final = lazy_regex(r"<\|channel\|>\s*+final[^<]{0,40}<\|message\|>|(?<!\w)assistant\s?final(?=\W|[A-Z])")
_SPECIAL_TOKEN: Final = lazy_regex(
    r"<[|｜][^<>|｜\n]{1,40}[|｜]>|</s>|<(?:end|start)_of_\w{1,20}>|<eos>|\[/?(?:INST|TOOL_CALLS)\]"
)
_REASONING_LABELS: Final = (
    "thinking",
    "thoughts",
    "thought process",
    "reasoning",
    "analysis",
    "思考过程",
    "思考",
    "推理",
)
_ANSWER_LABELS: Final = ("final answer", "answer", "response", "最终答案", "答案", "回答")
_LABELLED_REASONING: Final = lazy_regex(
    rf"[*#_\s]*+(?:{'|'.join(_REASONING_LABELS)})(?: process)?[*_]*+\s?(?:[:：]|\.{{3}}|…)[*_]*+\s", re.IGNORECASE
)
_ANSWER_LABEL: Final = rf"[*#_ ]*+(?:{'|'.join(_ANSWER_LABELS)})[*_]*+(?:\s?[:：][*_]*+[ \t]*+|[ \t]*+\n)"
_ANSWER_START: Final = lazy_regex(rf"\s*+{_ANSWER_LABEL}\s*+(?=\S)", re.IGNORECASE)
_REASONING_END: Final = lazy_regex(rf"\.{{3}}done thinking\.?|^{_ANSWER_LABEL}", re.IGNORECASE | re.MULTILINE)
_FENCED: Final = lazy_regex(r"\s*+(?P<marks>`{3,}+|~{3,}+)(?P<language>[\w+-]{0,20})[ \t]*+\n(?P<inner>.*)", re.DOTALL)
_PROSE: Final = frozenset({"markdown", "md", "text", "txt", "plaintext"})
_CITES: Final = lazy_regex(r"\[\d{1,2}\]")
_WORD: Final = lazy_regex(r"\w")
_TAIL: Final = lazy_regex(
    r"\n[ \t]*+(?:#{1,6}[ \t]|[*_]{2})?[ \t]*+(?:references|sources|citations|footnotes|bibliography|works cited"
    r"|参考(?:文献|资料|来源)?|(?:资料)?来源|引用(?:来源)?|出处)[ \t]*+[*_]*+[ \t]*+[:：]?[*_]*+[ \t]*+"
    r"(?P<entries>(?:(?:\n|^|\[)[^\n]*)*+)\Z",
    re.IGNORECASE,
)
_ENTRY: Final = lazy_regex(r"\s*(?:[-*•–]|\[\^?\d|\(?\d{1,3}[.)\]]|https?:|【|<http)|\s*\Z")
_LINK_LINE: Final = lazy_regex(r"[ \t]*+(?:\[\^?\d{1,2}\]|\d{1,2}\.)")
_OPEN_TAG: Final = lazy_regex(r"(?:<(?:[/|｜a-z_][^<>\n]{0,60})?|\[/?[A-Z_]{0,20}|◁[^▷\n]{0,20})\Z", re.IGNORECASE)
_OPENERS: Final = tuple("\"'“‘「『《`*(（[【")
_ENDINGS: Final = tuple("\r\n.!?…。！？")
_CLOSERS: Final = tuple('.!?…。！？]】)）}>"”’*_')
_MENTION: Final = lazy_regex(
    r"(?:标[签记志识]|符号|字[样符]|[和与及或以用由到在是为的叫写现])$"
)  # Chinese has no spaces


def answer_text(reply: str, *, whole: bool = True) -> str:
    """Return the answer in a reply, which is partial if not `whole`; empty if the answer has not started yet."""
    text = _cut_at_turn_end(drop_reasoning(reply.lstrip("\ufeff"), whole=whole))
    if not whole and _may_be_label(text):
        return ""
    text = _unwrap(text, whole)
    text = text[start.end() :] if (start := _ANSWER_START.match(text)) else text
    text = _drop_sources(text)
    return text if whole else _OPEN_TAG.sub("", text)


def drop_reasoning(reply: str, *, whole: bool = True) -> str:
    """Return the reply without the reasoning before it; an unclosed block extends to the end."""
    text = _final_channel(reply)
    has_reasoning = False
    while lead := _LEAD.match(text):
        following = _skip_block(text, lead, whole)
        if following is None:
            break
        text, has_reasoning = following, True
    if label := _LABELLED_REASONING.match(text):
        end = _REASONING_END.search(text, label.end())
        if end:
            return text[end.end() :].lstrip()
        return text if whole else ""
    return text if has_reasoning else _drop_unopened_reasoning(text, whole)


def _final_channel(reply: str) -> str:
    if not _CHANNELS.match(reply):
        return reply
    channels = list(_FINAL.finditer(reply))
    return reply[channels[-1].end() :] if channels else ""


def _skip_block(text: str, lead: re.Match[str], whole: bool) -> str | None:
    """Return the text after its leading block, or inside it if that is the answer; None if there is no block."""
    name = next(filter(None, lead.groups()))
    if name.lower() in _HTML or (lead["square"] and not (_REASONING_NAME.search(name) or _ANSWER_NAME.search(name))):
        return None
    shut = f"</{name}>" if lead["tag"] else f"[/{name}]" if lead["square"] else f"◁/{name}▷"
    closing = re.compile(re.escape(shut), re.IGNORECASE).search(text, lead.end())
    is_answer = bool(_ANSWER_NAME.search(name))
    if closing is None:
        is_reasoning = _REASONING_NAME.search(name) or not (whole or is_answer)
        return "" if is_reasoning and not is_answer else text[lead.end() :]
    inner, rest = text[lead.end() : closing.start()], text[closing.end() :]
    if is_answer:
        return inner
    return rest if _REASONING_NAME.search(name) or rest.strip() else inner if whole else ""


def _drop_unopened_reasoning(text: str, whole: bool) -> str:
    """Drop reasoning whose opening tag the server swallowed, up to a closing tag that is more than a mention."""
    opening = _OPEN.search(text)
    for tag in _CLOSE.finditer(text, 0, opening.start() if opening else len(text)):
        ends = _ends_reasoning(text[: tag.start()], text[tag.end() :], whole)
        if ends is None:
            return text[: tag.start()]
        if ends:
            return text[tag.end() :]
    return text


def _ends_reasoning(before: str, after: str, whole: bool) -> bool | None:
    """True if a closing tag between these ends the reasoning, False if it is a mention; None to wait for more text."""
    lead, following = before.rstrip(" \t"), after.lstrip(" \t")
    if _is_quoted(before):
        return False
    is_mention = bool(lead) and not lead.endswith(_ENDINGS) and (lead != before or bool(_MENTION.search(lead)))
    if not is_mention or (whole and not following):
        return True
    return following[0] in "\r\n" if following else None


def _is_quoted(before: str) -> bool:
    """True if text after `before` is in quotes or inline code."""
    return before.rstrip(" \t").endswith(_OPENERS) or before.rpartition("\n")[2].count("`") % 2 == 1


def _is_ended(text: str) -> bool:
    """True if an answer can end after this text: at the end of a sentence or a line."""
    stripped = text.rstrip()
    return not stripped or stripped.endswith(_CLOSERS) or "\n" in text[len(stripped) :]


def _cut_at_turn_end(text: str) -> str:
    """Return the text up to its end-of-turn token."""
    begin = 0
    for token in _SPECIAL_TOKEN.finditer(text):
        before = text[begin : token.start()]
        if not before.strip():
            begin = token.end()
        elif not _is_quoted(before) and (_is_ended(before) or not text[token.end() :].strip()):
            return before
    return text[begin:]


def _may_be_label(text: str) -> bool:
    """True if the start of an answer may turn out to be a label before it, such as "Answer:"."""
    start = text.strip("*#_ \n.…:：").lower()
    return any(label.startswith(start) for label in (*_REASONING_LABELS, *_ANSWER_LABELS))


def _unwrap(text: str, whole: bool) -> str:
    """Return an answer without the JSON or fence that contains all of it."""
    if text.lstrip()[:1] == "{" or re.match(r"\s*\[\s*[{\"]", text):
        return _from_json(text, whole)
    if not (fenced := _FENCED.match(text)):
        return "" if not whole and re.fullmatch(r"\s*[`~]{1,}[\w+-]*", text) else text
    inner, _, rest = fenced["inner"].partition(f"\n{fenced['marks']}")
    if rest.strip():
        return text
    if re.match(r"\s*[{\[]", inner) and fenced["language"].lower() in ("", "json"):
        answer = _from_json(inner, whole)
        return text if answer == inner else answer
    prose = fenced["language"].lower() in _PROSE or (not fenced["language"] and _CITES.search(inner))
    if prose:
        return inner
    return text if whole or fenced["language"] else ""


def _from_json(text: str, whole: bool) -> str:
    """Return the answer in a JSON reply, empty if it calls a tool. Other text is unchanged."""
    try:
        value, _ = json.JSONDecoder(strict=False).raw_decode(text.strip())
    except (ValueError, RecursionError):
        return text if whole else ""
    return _json_text(value) if isinstance(value, dict | list) else text


def _json_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return " ".join(filter(None, map(_json_text, value)))
    if not isinstance(value, dict) or ("name" in value and {"arguments", "parameters"} & set(value)):
        return ""
    texts = {key: text for key, item in value.items() if (text := _json_text(item).strip())}
    text = next((texts[key] for key in texts if _ANSWER_NAME.search(key)), max(texts.values(), key=len, default=""))
    numbers = [] if not text or _CITES.search(text) else list(_integers(value))
    return text + "".join(f" [{number}]" for number in numbers[:5])


def _integers(value: Any) -> Iterator[int]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _integers(item)
    elif isinstance(value, int) and not isinstance(value, bool) and 0 < value < 100:
        yield value


def _drop_sources(text: str) -> str:
    """Drop a list of sources after the answer, since its sentences cite them."""
    for tail in _TAIL.finditer(text):
        if all(_ENTRY.match(line) for line in tail["entries"].split("\n")) and _WORD.search(text[: tail.start()]):
            return text[: tail.start()]
    return _drop_link_lines(text)


def _drop_link_lines(text: str) -> str:
    """Drop a final paragraph of numbered links."""
    lines = text.rstrip().split("\n")
    begin = len(lines)
    while begin and _LINK_LINE.match(lines[begin - 1]) and re.search("https?://", lines[begin - 1]):
        begin -= 1
    behind_blank = 2 <= begin < len(lines) and not lines[begin - 1].strip()
    return "\n".join(lines[:begin]).rstrip() if behind_blank else text
