"""Sentences said in other words, and sentences made false, by rules: what a checker of citations must tell apart.

`reword(text, language, random)` keeps what is said; `falsify(text, language, random, names)` changes one
number, denial or name, and says which.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

_ENGLISH_WORDS = {
    "began": "started", "located in": "situated in", "such as": "like", "because": "since", "many": "numerous",
    "also": "additionally", "large": "big", "used": "employed", "built": "constructed", "important": "significant",
    "about": "around", "however": "nevertheless", "while": "whereas", "known as": "called", "became": "turned into",
    "near": "close to", "although": "though", "famous": "renowned", "shows": "demonstrates", "helped": "assisted",
    "gave up": "surrendered", "received": "got", "created": "produced", "required": "needed", "main": "primary",
    "led": "headed", "made": "produced", "includes": "contains", "often": "frequently", "won": "claimed",
    "in order to": "to", "as well as": "and", "several": "a number of", "began to": "started to", "due to": "owing to",
}  # fmt: skip
_CHINESE_WORDS = {
    "位于": "坐落于", "成为": "变成", "因为": "由于", "许多": "很多", "使用": "采用", "开始": "着手", "拥有": "具有",
    "获得": "取得", "但是": "然而", "并且": "而且", "大约": "约", "称为": "叫做", "包括": "包含", "建立": "创立",
    "建造": "修建", "认为": "觉得", "导致": "造成", "著名": "知名", "主要": "首要", "帮助": "协助", "和": "与",
    "为了": "以便", "虽然": "尽管", "之后": "以后", "例如": "比如", "通常": "一般", "完成": "达成", "所有": "全部",
    "发现": "找到", "如果": "倘若", "贡献": "作出", "仅": "只", "由于": "因为", "非常": "十分",
}  # fmt: skip
_ADVERBS = re.compile(
    r"\b(?:also|just|only|very|quite|usually|often|generally|primarily|mainly|approximately|originally|currently|"
    r"finally|eventually|previously|especially|particularly|significantly|respectively|however|typically)\s",
    re.IGNORECASE,
)
_CHINESE_ADVERBS = re.compile("已经|也|还|都|非常|十分|特别|尤其|通常|一般|主要|曾经|一直|仍然|正在|其实|确实|同时|就")
_CHINESE_DIGITS = "零一二三四五六七八九"
_SMALL = "zero one two three four five six seven eight nine ten".split()

Rule = Callable[[str], str]


def _exchanged(words: dict[str, str], text: str, boundary: str) -> str:
    for word, other in words.items():
        text = re.sub(f"{boundary}{re.escape(word)}{boundary}", other, text, count=1)
    return text


def _clauses(text: str, mark: str, end: str, joint: str) -> str:
    """The first clause last."""
    parts = [part.strip() for part in text.rstrip("。.!！").split(mark)]
    if len(parts) < 2 or min(map(len, parts)) < 4:
        return text
    rest = joint.join(parts[1:])
    rest = rest[:1].upper() + rest[1:] if end == "." else rest
    return f"{rest}{joint}{parts[0]}{end}"


def _english_numbers(text: str) -> str:
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)
    text = re.sub(r"(\d)\s?%", r"\1 percent", text) if "%" in text else re.sub(r"(\d) percent\b", r"\1%", text)
    text = re.sub(r"\b(\d)(\d{3})(?= (?:people|men|km|miles|students|members|soldiers))", r"\1,\2", text)
    return re.sub(r"(?<![\d.,$-])\b([2-9]|10)\b(?![\d.,%:–-])", lambda m: _SMALL[int(m[1])], text)


def _chinese_numbers(text: str) -> str:
    text = re.sub(r"(?<=\d),(?=\d{3})", "", text)
    if "百分之" in text:
        return re.sub(r"百分之\s?(\d+(?:\.\d+)?)", r"\1%", text)
    text = re.sub(r"(\d+(?:\.\d+)?)\s?%", r"百分之\1", text)
    return re.sub(r"(?<![\d.½])([2-9])(?= ?[个次名位])", lambda m: _CHINESE_DIGITS[int(m[1])], text)


def _passive(text: str) -> str:
    """Who did it moves to the front of the clause: `was led by X` becomes `X was the one that led`."""
    text = re.sub(r"\b(?:which|that) (was|were) (\w+ed)\b", r"\2", text, count=1)
    return re.sub(r"\b(\w+ed) by\b", r"\1 through", text, count=1) if " was " not in text else text


ENGLISH_RULES: tuple[Rule, ...] = (
    lambda text: _exchanged(_ENGLISH_WORDS, text, r"\b"),
    lambda text: _clauses(text, ", ", ".", ", "),
    lambda text: _ADVERBS.sub("", text),
    _english_numbers,
    _passive,
    lambda text: re.sub(r"[;–—]", ",", text).replace('"', "").replace("(", "").replace(")", ""),
    lambda text: re.sub(r"^The ", "This ", text),
    lambda text: "According to the page, " + text[:1].lower() + text[1:],
)
CHINESE_RULES: tuple[Rule, ...] = (
    lambda text: _exchanged(_CHINESE_WORDS, text, ""),
    lambda text: _clauses(text, "，", "。", "，"),
    lambda text: _CHINESE_ADVERBS.sub("", text),
    _chinese_numbers,
    lambda text: re.sub("(?<=[\u4e00-\u9fff])[的了](?=[\u4e00-\u9fff])", "", text),
    lambda text: re.sub("于(.{2,12}?)(成立|出生|建成|完成|开始|去世)", r"是于\1\2的", text, count=1),
    lambda text: text.replace("；", "，").replace("“", "").replace("”", "").replace("（", "(").replace("）", ")"),
    lambda text: "根据资料，" + text,
)


def reword(text: str, language: str, chance: random.Random) -> str:
    """Say `text` in other words by two to four of the rules."""
    rules = CHINESE_RULES if language == "zh" else ENGLISH_RULES
    for rule in chance.sample(rules, chance.randint(2, 4)):
        text = rule(text)
    return text


def falsify(text: str, language: str, chance: random.Random, names: Sequence[str]) -> list[tuple[str, str]]:
    """What contradicts `text`, as (kind, sentence): a number changed, a denial put in or taken out, a name exchanged.

    `names` are (parts of) other sentences that can stand in the place of one that occurs in `text`; the first
    of them that does is exchanged.
    """
    made = [("number", _number_changed(text, chance)), ("negation", _denied(text, language))]
    inside = [name for name in names if name in text]
    others = [name for name in names if name not in text]
    if inside and others:
        made.append(("name", text.replace(inside[0], chance.choice(others), 1)))
    return [(kind, false) for kind, false in made if false and false != text]


def _number_changed(text: str, chance: random.Random) -> str:
    numbers = list(re.finditer(r"(?<![\d.,])\d+(?![\d.,]*\d)", text))
    if not numbers:
        return ""
    one = chance.choice(numbers)
    other = str(int(one.group()) + chance.choice([-7, -3, -1, 1, 2, 5, 10, 100]))
    return text[: one.start()] + other.replace("-", "1") + text[one.end() :]


def _denied(text: str, language: str) -> str:
    if language == "zh":
        if re.search("没有|并不|不是|并非|从未", text):
            return re.sub("没有|并不|从未", "", text, count=1) if "不是" not in text else text.replace("不是", "是", 1)
        denied = re.sub("(?<![的就都还也但只总或])是(?!否|的|非)", "不是", text, count=1)
        verbs = "成为|获得|开始|使用|包括|位于|拥有|可以|能够|发现|允许|支持|导致"
        return denied if denied != text else re.sub(f"(?<=.{{4}})({verbs})", r"没有\1", text, count=1)
    if re.search(r"\b(?:not|never)\b", text):
        return re.sub(r"\b(?:not|never) ", "", text, count=1)
    return re.sub(r"\b(was|were|is|are|has|have|had|can|could|will|would)\b(?! not)", r"\1 not", text, count=1)
