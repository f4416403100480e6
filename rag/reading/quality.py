"""Quality gate that tells a page's content from an interstitial, such as a login or a bot check.

`find_signals` inspects the tree in the parser's child process, `check_quality` the text afterwards. Each page flagged
for review costs the user a decision, so every rule needs several matching signs, and long texts pass.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import regex

from rag.reading.interstitials import INTERSTITIALS, TITLES, Interstitial
from rag.reading.parser import ExtractedDocument
from rag.text import clean_line, lazy_regex, weigh
from rag.types import Notice

# UTF-8 read as Latin-1 or Windows-1252: a lead byte, then one or more continuation bytes.
_AS_LATIN = lazy_regex(
    "[\u00c2-\u00df][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]"
    "|[\u00e0-\u00ef][\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ]{1,2}"
)
# GBK read as Latin-1: runs of non-ASCII letters, which mostly occur singly in European words.
_GBK_AS_LATIN = lazy_regex("[\u00a1-\u00ff]{4,}")
_FILLER = lazy_regex("锟斤拷|锟斤|斤拷|烫烫烫|屯屯屯|\ufffd")
_HAN = lazy_regex("[\u4e00-\u9fff]")
_WIDE = lazy_regex("[^\x00-\u00ff]+")
_SAMPLE_SIZE = 20_000
_MIN_MATCH = 6
_LATIN_SHARE = 0.03
_GBK_SHARE = 0.4
_FILLER_SHARE = 0.02
_LETTERS = regex.compile(r"[\p{L}\p{M}]{2,}")
_BEGINNING = 3000
_MIN_LETTERS = 40
"""Min. letters of a script; fewer are not judged."""
_VOWELS = {
    "LATIN": frozenset("aeiouyıæøœəɑ"),
    "GREEK": frozenset("αεηιουω"),
    "CYRILLIC": frozenset("аеиоуыэюяієѣўәөү"),
}
_VOWEL_SHARE = (0.24, 0.68)
_MIXED_SHARE = 0.35
_COMMON_SHARE = 0.85
_EAST_ASIAN = frozenset(["CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"])
# The range of first bytes of each standard's level 1, which has its common characters.
_COMMON_BYTES = {"gb2312": (0xB0, 0xD7), "big5": (0xA4, 0xC6), "euc_jp": (0xB0, 0xCF)}
_HANGUL = lazy_regex("[\uac00-\ud7a3]")


def find_mojibake(text: str) -> str:
    """Return a sample of `text` if it was decoded wrongly or is in no language, else "".

    For files whose fonts may map to wrong letters; web pages are only checked by `find_wrong_decoding`.
    """
    return find_wrong_decoding(text) or (text[:60] if _is_no_language(text[:_BEGINNING]) else "")


def find_wrong_decoding(text: str) -> str:
    """Return a sample of `text` if it was decoded with the wrong charset, else ""."""
    sample = text[:_SAMPLE_SIZE]
    for pattern, share in (
        (_FILLER, _FILLER_SHARE),
        (_AS_LATIN, _LATIN_SHARE),
        (_GBK_AS_LATIN, _LATIN_SHARE * 5),
    ):
        matches = list(pattern.finditer(sample))
        covered = sum(len(match[0]) for match in matches)
        if covered >= _MIN_MATCH and covered >= share * len(sample):
            start = max(0, matches[0].start() - 10)
            return sample[start : start + 60]
    return sample[:60] if _is_utf8_as_gbk(sample) else ""


def _is_utf8_as_gbk(sample: str) -> bool:
    """Return whether the text, encoded as GBK, is Chinese in UTF-8, as only misdecoded text is."""
    raw = b"".join(run.encode("gb18030", "ignore") for run in _WIDE.findall(sample))
    recovered = 3 * len(_HAN.findall(raw.decode("utf-8", "ignore")))
    return recovered >= 3 * _MIN_MATCH and recovered >= _GBK_SHARE * len(raw)


def _is_no_language(sample: str) -> bool:
    """Return whether letters look random: mixed scripts within words, odd vowel shares, rare characters."""
    words = _LETTERS.findall(sample)
    letters = [letter for word in words for letter in word]
    if len(letters) < _MIN_LETTERS:
        return False
    # Chinese and Japanese put no space next to Latin letters.
    mixed = sum(len({_find_script(letter) for letter in word} - {"", "CJK"}) > 1 for word in words)
    return mixed > _MIXED_SHARE * len(words) or _has_odd_vowels(words) or _has_rare_characters(letters)


def _has_odd_vowels(words: Sequence[str]) -> bool:
    """Return whether words have far fewer or more vowels than any language of their script."""
    scripts = Counter(script for word in words for script in map(_find_script, word) if script)
    main = scripts.most_common(1)[0][0] if scripts else ""
    if main not in _VOWELS:
        return False
    # Short words are often abbreviations, and capitals often codes.
    full_words = [word for word in words if len(word) > 2 and not word.isupper()] or words
    # Decomposed, so that accents, which belong to no script, are dropped.
    letters = [
        letter for letter in unicodedata.normalize("NFD", "".join(full_words).lower()) if _find_script(letter) == main
    ]
    lowest, highest = _VOWEL_SHARE
    share = sum(letter in _VOWELS[main] for letter in letters) / max(1, len(letters))
    return len(letters) >= _MIN_LETTERS and not lowest <= share <= highest


def _has_rare_characters(letters: Sequence[str]) -> bool:
    """Return whether too many Chinese characters or Korean syllables are uncommon ones."""
    han = "".join(letter for letter in letters if _HAN.match(letter))
    hangul = "".join(letter for letter in letters if _HANGUL.match(letter))
    common = max(_count_common(han, encoding, *bounds) for encoding, bounds in _COMMON_BYTES.items())
    return (len(han) >= _MIN_LETTERS and common < _COMMON_SHARE * len(han)) or (
        len(hangul) >= _MIN_LETTERS and _count_common(hangul, "euc_kr", 0xB0, 0xC8) < _COMMON_SHARE * len(hangul)
    )


def _count_common(characters: str, encoding: str, first: int, last: int) -> int:
    """Count the two-byte characters of an encoding whose first byte is from `first` to `last`."""
    codes = [character.encode(encoding, "ignore") for character in characters]
    return sum(len(code) == 2 and first <= code[0] <= last for code in codes)


@lru_cache(maxsize=4096)
def _find_script(letter: str) -> str:
    """Return a letter's script, with "CJK" for all East Asian ones; "" for marks and symbols."""
    name = unicodedata.name(letter, "")
    script = name.partition(" ")[0].partition("-")[0]
    return "CJK" if script in _EAST_ASIAN else script if " LETTER " in f"{name} " else ""


_MARKS = "//script/@src|//iframe/@src|//form/@action|//div/@id|//div/@class|//section/@id|//section/@class"
_APP_ROOTS = "//div[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @id='application' or @id='main-app']"
_REFRESHES = "//meta[translate(@http-equiv,'REFSH','refsh')='refresh']"
_CAPTCHAS = lazy_regex(
    r"challenges\.cloudflare\.com|challenge-platform|cf[-_]chl|cf-turnstile|hcaptcha|recaptcha|g-recaptcha|geetest"
    r"|captcha-delivery|px-captcha|_incapsula_|funcaptcha|arkoselabs|nc_wrapper|tcaptcha|vaptcha|awswaf|captcha",
    re.IGNORECASE,
)
_CONSENTS = lazy_regex(
    r"onetrust|cookiebot|didomi|qc-cmp|sp_message|usercentrics|trustarc|truste|cookie-?(?:consent|wall|banner|notice)"
    r"|consent-?(?:banner|wall|form|modal|page)|gdpr|cmp-?container|iubenda|klaro",
    re.IGNORECASE,
)
# Video and audio players, except background videos; and metadata for pages about a video.
_PLAYERS = (
    "//video[not(@muted and @loop and not(@controls))]|//audio[@src or source]"
    "|//iframe[@allowfullscreen or contains(@allow,'autoplay') or contains(@allow,'encrypted-media')]"
    "|//meta[@property='og:type'][starts-with(@content,'video')]|//meta[@name='twitter:card'][@content='player']"
)
_MANY_LINKS = 15
_SHORT_PAGE = 120.0
_MAX_TITLED_INTERSTITIAL = 4000.0
_BRIEF_PAGE = 400.0
_LETTER = lazy_regex(r"[^\W\d_]")
# Scripts without spaces, which keyword search cannot split into words.
_UNSEGMENTED = lazy_regex("[\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u0f00-\u0fff]")
_UNSEGMENTED_SHARE = 0.5
_SCRIPT_SAMPLE_SIZE = 4000
_FOOTER_LINE = lazy_regex(
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
_PARTS = lazy_regex(r"\n|\s[|·•›»/]\s|(?<=[.。])\s+")
_MAX_FOOTER = 900.0
_FOOTER_SHARE = 0.75
_MAX_FOOTER_LINE = 160.0
_SENTENCE = lazy_regex(r"[^\n.!?。！？；]+(?:[.!?。！？；]+|\n|$)")
_MARK = lazy_regex(r"^[\s#>*|•+-]+|\s*\|\s*$")


def find_signals(tree: Any, text: str) -> tuple[str, ...]:
    """Return the signals of an lxml tree for `check_quality`; `text` is its extracted text.

    These are "html" (always), "scripts", "app_root" (the empty root of an application), "password", "captcha",
    "consent", "refresh" (a redirect), "player" (of video or audio), and "page_chrome" (little text among scripts, links
    or images). The tree must still have its scripts.
    """
    marks = " ".join(tree.xpath(_MARKS))[:200_000]
    evidence = {
        "html": True,
        "scripts": tree.find(".//script") is not None,
        "app_root": any(not node.text_content().strip() for node in tree.xpath(_APP_ROOTS)),
        "password": tree.xpath("//input[translate(@type,'PASWORD','pasword')='password']"),
        "captcha": _CAPTCHAS.search(marks),
        "consent": _CONSENTS.search(marks),
        "refresh": any("url" in meta.get("content", "").lower() for meta in tree.xpath(_REFRESHES)),
        "player": has_player(tree),
        "page_chrome": weigh(text[:1000]) < _SHORT_PAGE and _has_page_chrome(tree),
    }
    return tuple(signal for signal, found in evidence.items() if found)


def check_quality(extracted: ExtractedDocument, *, can_read: Callable[[str], bool], status: int = 200) -> Notice | None:
    """Return why a page needs review, or None if it passes.

    `can_read` tells whether the embedding model supports the language of a text; `status` is the HTTP status. Files
    other than HTML are only checked for mojibake and unsupported scripts.
    """
    text = extracted.text
    notice = _check_letters(text, can_read)
    if notice or "html" not in extracted.signals:
        return notice
    if len(text) > _MAX_TITLED_INTERSTITIAL:
        return None
    size = weigh(text)
    for interstitial in INTERSTITIALS:
        if evidence := _find_interstitial_text(interstitial, extracted, size, status):
            return Notice(interstitial.code, {"seen": clean_line(evidence, 80)})
    if size < _SHORT_PAGE and "player" in extracted.signals:
        return Notice("gate_player", {"seen": clean_line(text, 80)})
    if size <= _MAX_FOOTER and (footer := _find_footer(text)):
        return Notice("gate_boilerplate", {"seen": clean_line(footer, 80)})
    if size < _SHORT_PAGE and "page_chrome" in extracted.signals:
        return Notice("gate_short", {"characters": len(text.strip()), "seen": clean_line(text, 80)})
    return None


def has_player(tree: Any) -> bool:
    """Return whether a page has a video or audio player, or the metadata of a video page."""
    return bool(tree.xpath(_PLAYERS))


def _find_interstitial_text(interstitial: Interstitial, extracted: ExtractedDocument, size: float, status: int) -> str:
    """Return the text that identifies a page as `interstitial`, or ""."""
    titles = TITLES.get(interstitial.code)
    has_title = bool(titles and titles.fullmatch(extracted.title.strip())) or (
        interstitial.code == "gate_not_found" and status in (404, 410)
    )
    if size > (_MAX_TITLED_INTERSTITIAL if has_title else interstitial.max_length):
        return ""
    text = f"{extracted.title}\n{extracted.text}" if has_title else extracted.text
    share, sentence = match_interstitial(interstitial, text)
    if has_title and (size <= _BRIEF_PAGE or (sentence and share >= interstitial.share / 2)):
        return sentence or extracted.title
    has_signal = interstitial.signal in extracted.signals
    if has_signal and size <= _BRIEF_PAGE and share >= interstitial.share:
        return sentence or extracted.title or extracted.text
    needed = interstitial.share / 2 if has_signal else interstitial.share
    return sentence if sentence and size <= interstitial.max_length and share >= needed else ""


def match_interstitial(interstitial: Interstitial, text: str) -> tuple[float, str]:
    """Return the share of a text that matches an interstitial (0 to 1), and its first sentence with a strong phrase."""
    total = matched = 0.0
    strongest = ""
    for match in _SENTENCE.finditer(text):
        sentence = _MARK.sub("", match[0]).strip()
        size = weigh(sentence)
        if size < 2:
            continue
        total += size
        lower = sentence.lower()
        is_strong = interstitial.strong.search(lower) is not None
        if is_strong or interstitial.weak.search(lower):
            matched += size
        if is_strong and not strongest:
            strongest = sentence
    return (matched / total if total else 0.0), strongest


def _check_letters(text: str, can_read: Callable[[str], bool]) -> Notice | None:
    """Return a notice if the text is mojibake, or in a script that neither search method supports."""
    if sample := find_wrong_decoding(text):
        return Notice("gate_mojibake", {"seen": clean_line(sample, 60)})
    sample = text[:_SCRIPT_SAMPLE_SIZE]
    letters = _LETTER.findall(sample)
    unsegmented = sum(1 for letter in letters if _UNSEGMENTED.match(letter))
    if letters and unsegmented >= _UNSEGMENTED_SHARE * len(letters) and not can_read(sample):
        return Notice("gate_language", {"seen": clean_line(sample, 60)})
    return None


def _find_footer(text: str) -> str:
    """Return the first menu or footer line of a text that consists mainly of them, or ""."""
    lines = [line for part in _PARTS.split(text) if (line := part.strip(" -#*|•>"))]
    footer_lines = [line for line in lines if weigh(line) <= _MAX_FOOTER_LINE and _FOOTER_LINE.search(line)]
    is_footer = sum(map(weigh, footer_lines)) >= _FOOTER_SHARE * sum(map(weigh, lines))
    return footer_lines[0] if is_footer and len(set(footer_lines)) > 1 else ""


def _has_page_chrome(tree: Any) -> bool:
    """Return whether a page has scripts, menus or pictures around its text, unlike bare documents."""
    links = len(tree.xpath("//a[@href]"))
    return links >= _MANY_LINKS or (tree.find(".//script") is not None and len(tree.xpath("//div|//img|//nav")) > 3)
