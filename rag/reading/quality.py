"""Whether what was extracted is a page's content, or a wall that stood before it.

`page_signals` looks at the tree in the process that parses, `judge` at the text afterwards. A page that is held
back costs a person a decision, so each rule needs several signs that agree, and long texts are let through.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import regex

from rag.reading.extraction.clean import clean_line
from rag.reading.parser import Extracted
from rag.reading.walls import TITLES, WALLS, Wall
from rag.text import weigh
from rag.types import Notice

# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then one or more bytes of continuation.
_AS_LATIN = re.compile(
    "[\u00c2-\u00df][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
    "|[\u00e0-\u00ef][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{1,2}"
)
# GBK read as Latin-1: runs of its upper half, where European words have one such letter at a time.
_GBK_AS_LATIN = re.compile("[\u00a1-\u00ff]{4,}")
_FILLER = re.compile("锟斤拷|锟斤|斤拷|烫烫烫|屯屯屯|\ufffd")
_HAN = re.compile("[\u4e00-\u9fff]")
_WIDE = re.compile("[^\x00-\u00ff]+")
_LOOKED_AT = 20_000
_LEAST = 6
_LATIN_SHARE = 0.03
_GBK_SHARE = 0.4
_FILLER_SHARE = 0.02
_LETTERS = regex.compile(r"[\p{L}\p{M}]{2,}")
_BEGINNING = 3000
_FEWEST = 40
"""Letters of a script from which how they are used can be judged."""
_VOWELS = {
    "LATIN": frozenset("aeiouyıæøœəɑ"),
    "GREEK": frozenset("αεηιουω"),
    "CYRILLIC": frozenset("аеиоуыэюяієѣўәөү"),
}
_VOWEL_SHARE = (0.24, 0.68)
_MIXED_SHARE = 0.35
_COMMON_SHARE = 0.85
_EAST_ASIAN = frozenset(["CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"])
# The characters in common use of each standard: the first bytes of its levels sorted by reading or by strokes.
_COMMON = {"gb2312": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "euc_jp": (0xB0, 0xCF)}
_HANGUL = re.compile("[\uac00-\ud7a3]")


def find_mojibake(text: str) -> str:
    """A piece of `text` that shows it was decoded wrong, or that no language is written so, or "" when neither is.

    For files whose fonts may say wrong letters. A web page of random letters is what it is.
    """
    return find_wrong_decoding(text) or (text[:60] if _is_no_language(text[:_BEGINNING]) else "")


def find_wrong_decoding(text: str) -> str:
    """A piece of `text` that shows it was decoded with the wrong table, or "" when it was not."""
    sample = text[:_LOOKED_AT]
    for pattern, share in (
        (_FILLER, _FILLER_SHARE),
        (_AS_LATIN, _LATIN_SHARE),
        (_GBK_AS_LATIN, _LATIN_SHARE * 5),
    ):
        found = list(pattern.finditer(sample))
        covered = sum(len(match[0]) for match in found)
        if covered >= _LEAST and covered >= share * len(sample):
            start = max(0, found[0].start() - 10)
            return sample[start : start + 60]
    return sample[:60] if _is_utf8_as_gbk(sample) else ""


def _is_utf8_as_gbk(sample: str) -> bool:
    """Whether the bytes that the characters are in GBK make Chinese in UTF-8, as those of real text do not."""
    raw = b"".join(run.encode("gb18030", "ignore") for run in _WIDE.findall(sample))
    recovered = 3 * len(_HAN.findall(raw.decode("utf-8", "ignore")))
    return recovered >= 3 * _LEAST and recovered >= _GBK_SHARE * len(raw)


def _is_no_language(sample: str) -> bool:
    """Whether letters are used as no language uses them."""
    words = _LETTERS.findall(sample)
    letters = [letter for word in words for letter in word]
    if len(letters) < _FEWEST:
        return False
    # Chinese and Japanese stand beside Latin letters without a space.
    mixed = sum(len({_script(letter) for letter in word} - {"", "CJK"}) > 1 for word in words)
    return mixed > _MIXED_SHARE * len(words) or _has_odd_vowels(words) or _has_rare_characters(letters)


def _has_odd_vowels(words: Sequence[str]) -> bool:
    """Whether a text of words has far fewer or more vowels than any language that is written with them."""
    scripts = Counter(script for word in words for script in map(_script, word) if script)
    main = scripts.most_common(1)[0][0] if scripts else ""
    if main not in _VOWELS:
        return False
    # Short words are abbreviations as often as not, and capitals letters of codes.
    spoken = [word for word in words if len(word) > 2 and not word.isupper()] or words
    letters = [letter for letter in _base("".join(spoken)) if _script(letter) == main]
    lowest, highest = _VOWEL_SHARE
    share = sum(letter in _VOWELS[main] for letter in letters) / max(1, len(letters))
    return len(letters) >= _FEWEST and not lowest <= share <= highest


def _has_rare_characters(letters: Sequence[str]) -> bool:
    """Whether Chinese characters or Korean syllables are mostly ones that hardly anyone writes."""
    han = "".join(letter for letter in letters if _HAN.match(letter))
    hangul = "".join(letter for letter in letters if _HANGUL.match(letter))
    common = max(_common(han, encoding, *bounds) for encoding, bounds in _COMMON.items())
    return (len(han) >= _FEWEST and common < _COMMON_SHARE * len(han)) or (
        len(hangul) >= _FEWEST and _common(hangul, "euc_kr", 0xB0, 0xC8) < _COMMON_SHARE * len(hangul)
    )


def _common(characters: str, encoding: str, first: int, last: int) -> int:
    """How many characters an encoding writes with a first byte from `first` to `last`."""
    codes = [character.encode(encoding, "ignore") for character in characters]
    return sum(len(code) == 2 and first <= code[0] <= last for code in codes)


def _base(text: str) -> str:
    """Letters in lower case without their accents."""
    return "".join(letter for letter in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(letter))


@lru_cache(maxsize=4096)
def _script(letter: str) -> str:
    """The script of a letter, one for all that Chinese, Japanese and Korean mix; "" for marks and signs."""
    name = unicodedata.name(letter, "")
    script = name.partition(" ")[0].partition("-")[0]
    return "CJK" if script in _EAST_ASIAN else script if " LETTER " in f"{name} " else ""


_APP_ROOTS = "//div[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='application' or @id='main-app']"
_REFRESHES = "//meta[translate(@http-equiv,'REFSH','refsh')='refresh']"
_CAPTCHAS = re.compile(
    r"challenges\.cloudflare\.com|challenge-platform|cf[-_]chl|cf-turnstile|hcaptcha|recaptcha|g-recaptcha|geetest"
    r"|captcha-delivery|px-captcha|_incapsula_|funcaptcha|arkoselabs|nc_wrapper|tcaptcha|vaptcha|awswaf|captcha",
    re.IGNORECASE,
)
_CONSENTS = re.compile(
    r"onetrust|cookiebot|didomi|qc-cmp|sp_message|usercentrics|trustarc|truste|cookie-?(?:consent|wall|banner|notice)"
    r"|consent-?(?:banner|wall|form|modal|page)|gdpr|cmp-?container|iubenda|klaro",
    re.IGNORECASE,
)
# What plays a video or a sound, but for films that run in the background; and pages that say they are about one.
_PLAYERS = (
    "//video[not(@muted and @loop and not(@controls))]|//audio[@src or source]"
    "|//iframe[@allowfullscreen or contains(@allow,'autoplay') or contains(@allow,'encrypted-media')]"
    "|//meta[@property='og:type'][starts-with(@content,'video')]|//meta[@name='twitter:card'][@content='player']"
)
_MANY_LINKS = 15
_SHORT = 120.0
_LONG_WALL = 4000.0
_BRIEF = 400.0
_LETTER = re.compile(r"[^\W\d_]")
# Scripts written without spaces that the keyword search does not cut into words.
_UNCUT = re.compile("[\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff]")
_UNCUT_SHARE = 0.5
_SAMPLE = 4000
_FOOT_LINE = re.compile(
    r"all rights reserved|^(?:©|copyright|\(c\))|^(?:privacy|cookie|legal) (?:policy|notice|statement"
    r"|settings)|^terms\b|^conditions\W*$"
    r"|^(?:home|about(?: us)?|contact(?: us)?|help|faq|sitemap|careers|blog|news(?:letter)?|login|log in"
    r"|sign in|search|menu"
    r"|subscribe|follow us|share|skip to (?:main )?content|back to top|next|previous|more|products?|services"
    r"|support|shop"
    r"|cart|my account|facebook|twitter|x|instagram|linkedin|youtube|english|中文)\W*$"
    r"|版权所有|版權所有|隐私(?:政策|声明|权)|用户协议|服务条款|使用条款|ICP[备證证]|公网安备|关于我们"
    r"|联系我们|网站地图|友情链接|返回顶部"
    r"|^(?:首页|登录|注册|搜索|更多|下一页|上一页|分享|帮助中心|意见反馈|加入我们)\W*$",
    re.IGNORECASE,
)
_PARTS = re.compile(r"\n|\s[|·•›»/]\s|(?<=[.。])\s+")
_FOOT_LONGEST = 900.0
_FOOT_SHARE = 0.75
_FOOT_LINE_LONGEST = 160.0
_SENTENCE = re.compile(r"[^\n.!?。！？；]+(?:[.!?。！？；]+|\n|$)")
_MARK = re.compile(r"^[\s#>*|•+-]+|\s*\|\s*$")


@dataclass(frozen=True, slots=True)
class _Seen:
    """How much of a text is of a wall's kind (0 to 1), and the first sentence that only such a wall says."""

    share: float
    sentence: str


def page_signals(tree: Any, text: str) -> tuple[str, ...]:
    """What an lxml tree shows that the gate should know of; `text` is what was extracted from it.

    Of "html" (always), "scripts", "app_root" (an application's empty place), "password", "captcha",
    "consent", "refresh" (it names an address to go on to), "player" (of a video or a sound), "furniture" (much more was
    on the page than its text).
    The tree must still hold its scripts.
    """
    marks = _marks(tree)
    signals = ["html"]
    if tree.find(".//script") is not None:
        signals.append("scripts")
    if any(not node.text_content().strip() for node in tree.xpath(_APP_ROOTS)):
        signals.append("app_root")
    if tree.xpath("//input[translate(@type,'PASWORD','pasword')='password']"):
        signals.append("password")
    if _CAPTCHAS.search(marks):
        signals.append("captcha")
    if _CONSENTS.search(marks):
        signals.append("consent")
    if any("url" in meta.get("content", "").lower() for meta in tree.xpath(_REFRESHES)):
        signals.append("refresh")
    if has_player(tree):
        signals.append("player")
    if weigh(text[:1000]) < _SHORT and _has_furniture(tree):
        signals.append("furniture")
    return tuple(signals)


def judge(extracted: Extracted, *, can_read: Callable[[str], bool], status: int = 200) -> Notice | None:
    """Why the page should be held back until the person decides, or None when it is good.

    `can_read` tells whether the embedding model knows the language of a text; `status` is the HTTP one.
    What stands in a file of text is taken at its word; only its letters are judged.
    """
    text = extracted.text
    found = _letters(text, can_read)
    if found or "html" not in extracted.signals:
        return found
    if len(text) > _LONG_WALL:
        return None
    size = weigh(text)
    for wall in WALLS:
        if seen := _is_wall(wall, extracted, size, status):
            return Notice(wall.code, {"seen": clean_line(seen, 80)})
    if size < _SHORT and "player" in extracted.signals:
        return Notice("gate_player", {"seen": clean_line(text, 80)})
    if size <= _FOOT_LONGEST and (line := _foot(text)):
        return Notice("gate_boilerplate", {"seen": clean_line(line, 80)})
    if size < _SHORT and "furniture" in extracted.signals:
        return Notice("gate_short", {"characters": len(text.strip()), "seen": clean_line(text, 80)})
    return None


def has_player(tree: Any) -> bool:
    """Whether a page plays a video or a sound, or says that it is about one."""
    return bool(tree.xpath(_PLAYERS))


def _is_wall(wall: Wall, extracted: Extracted, size: float, status: int) -> str:
    """The words by which the page is such a wall, or ""."""
    is_titled = _titled(wall, extracted.title) or (wall.code == "gate_not_found" and status in (404, 410))
    if size > (_LONG_WALL if is_titled else wall.longest):
        return ""
    seen = look_for(wall, f"{extracted.title}\n{extracted.text}" if is_titled else extracted.text)
    if is_titled and (size <= _BRIEF or (seen.sentence and seen.share >= wall.share / 2)):
        return seen.sentence or extracted.title
    is_marked = bool(wall.signals.intersection(extracted.signals))
    if is_marked and size <= _BRIEF and seen.share >= wall.share:
        return seen.sentence or extracted.title or extracted.text
    needed = wall.share / 2 if is_marked else wall.share
    return seen.sentence if seen.sentence and size <= wall.longest and seen.share >= needed else ""


def look_for(wall: Wall, text: str) -> _Seen:
    """Compare a text's sentences with a wall's."""
    total = matched = 0.0
    strongest = ""
    for match in _SENTENCE.finditer(text):
        sentence = _MARK.sub("", match[0]).strip()
        size = weigh(sentence)
        if size < 2:
            continue
        total += size
        lower = sentence.lower()
        is_strong = wall.strong.search(lower) is not None
        if is_strong or wall.weak.search(lower):
            matched += size
        if is_strong and not strongest:
            strongest = sentence
    return _Seen(matched / total if total else 0.0, strongest)


def _titled(wall: Wall, title: str) -> bool:
    """Whether a page's title is that of such a wall."""
    pattern = TITLES.get(wall.code)
    return bool(pattern and pattern.fullmatch(title.strip()))


def _letters(text: str, can_read: Callable[[str], bool]) -> Notice | None:
    """Whether the text's characters are wrong, or of a script that neither leg of the search reads."""
    if sample := find_wrong_decoding(text):
        return Notice("gate_mojibake", {"seen": clean_line(sample, 60)})
    sample = text[:_SAMPLE]
    letters = _LETTER.findall(sample)
    uncut = sum(1 for letter in letters if _UNCUT.match(letter))
    if letters and uncut >= _UNCUT_SHARE * len(letters) and not can_read(sample):
        return Notice("gate_language", {"seen": clean_line(sample, 60)})
    return None


def _foot(text: str) -> str:
    """The first line of a text that is little but a site's menu and foot, or ""."""
    lines = [line.strip(" -#*|•>") for line in _PARTS.split(text)]
    lines = [line for line in lines if line]
    feet = [line for line in lines if weigh(line) <= _FOOT_LINE_LONGEST and _FOOT_LINE.search(line)]
    size = sum(map(weigh, lines))
    return feet[0] if len(set(feet)) > 1 and sum(map(weigh, feet)) >= _FOOT_SHARE * size else ""


def _marks(tree: Any) -> str:
    """Where the page's scripts and frames come from, and the names of its parts, as one text."""
    found = tree.xpath(
        "//script/@src|//iframe/@src|//form/@action|//div/@id|//div/@class|//section/@id|//section/@class"
    )
    return " ".join(found)[:200_000]


def _has_furniture(tree: Any) -> bool:
    """Whether a page has scripts, menus or pictures around its text, as sites have and bare documents do not."""
    links = len(tree.xpath("//a[@href]"))
    return links >= _MANY_LINKS or (tree.find(".//script") is not None and len(tree.xpath("//div|//img|//nav")) > 3)
