"""From bytes to text: byte order mark, header, meta element, then detection.

A declaration (`rag.web.declared_charset`) is believed only when the bytes agree with it, since servers often
declare one charset for pages written in another.

Single bytes are judged by whether the letters they would make form words: every byte is some letter in each of these
charsets, but in a wrong one capitals stand inside words, signs stand between letters, and the letters are not those of
the languages that the charset is for. East Asian charsets are judged by what they would say: a wrong one gives rare
characters. The standards put the common characters of each language in blocks of their own (level 1 of GB 2312, Big5
and JIS X 0208, the syllables of KS X 1001), so no table of frequencies is needed for those; the few hundred most
frequent characters, half of any text, then tell apart charsets with the same layout.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from rag.web.declared_charset import codec_of, declared_in, unmarked_utf16

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NOT_ASCII = re.compile(rb"(?:[\x80-\xff][\x30-\xff]?)+")
_WORDS = re.compile(rb"(?<![A-Za-z])[A-Za-z]*+[\x80-\xff][A-Za-z\x80-\xff]*")
_WEAK = "cp1252"
_SAMPLE = 65536
_BEFORE = 40
_MAX_WRONG = 0.002
_SURE_BYTES = 3
_CYRILLIC = ("оеаинтсрвлкмдпуяы", "ьгзбчйхжшюцщэфъёіїєґў")
# Frequent letters and the others; in the order of use on the web, which decides between equal readings.
_LETTERS = {
    "cp1252": ("éèêëàâäáãåæçíîïñóôöõøœúùûüß", "ìòÿýþðªº"),
    "cp1251": _CYRILLIC,
    "cp1250": ("áąăćčďéęěíłńňóőřśšşťţůűýžż", "äâçđëîĺľôöŕúüźß"),
    "cp1254": ("çğıöşüiâî", "ûéàèêä"),
    "cp1253": ("αοιετσνηυρπκμλςόίάέή", "θδγχφωβώύξζψϊϋΐΰ"),
    "cp1256": ("اليمونترعبدفهسكقةء", "حجشصخضزثطذىغئأؤظآإپچژگ"),
    "cp1255": ("יוהלאתרשמבנםעד", "חקכפצטגזסןךףץ"),
    "koi8-r": _CYRILLIC,
    "cp866": _CYRILLIC,
}
_LATIN = frozenset(["cp1252", "cp1250", "cp1254"])
_WORD = re.compile(r"[^\W\d_]+")
_SIGNS = re.compile(r"(?<=[^\W\d_])[^\w\s\x00-\x7f“”‘’–—…·](?=[^\W\d_])|\ufffd|[\x80-\x9f]")
_MIN = 0.6
_OTHER = 0.5
CODECS = ("gb18030", "big5hkscs", "euc-jp", "cp932", "cp949")
# Of a text of twelve characters or more the right reading scores 0.5 to 0.8, a wrong one below 0.2.
CLEAR = 0.28
DOUBTFUL = 0.2
_FREQUENT, _COMMON, _MARK, _RARE, _WRONG = 1.0, 0.3, 0.2, -0.6, -2.0
_TRAIL = range(0xA1, 0xFF)
_BIG5_TRAIL = (*range(0x40, 0x7F), *range(0xA1, 0xFF))
_SIMPLIFIED = (
    "的一是不了在人有我他这个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之年过发后作里用道行所然家种事成"
    "方多经么去法学如都同现当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工"
    "使情明性知全三又关点正业外将两高间由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表"
    "化老给世位次度门任常先海通教儿原东声提立及比员解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结"
    "反受目太量再感建务做接必场件计管期市直德资命山金指克许统区保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且"
    "权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共确传师观清今切院让识候带导争运网页版首页您请册登录搜索关注友情链接联系版权"
)
_TRADITIONAL = (
    "的一是不了在人有我他這個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自之年過發後作裡用道行所然家種事成"
    "方多經麼去法學如都同現當沒動面起看定天分還進好小部其些主樣理心她本前開但因只從想實日軍者意無力它與長把機十民第公此已工"
    "使情明性知全三又關點正業外將兩高間由問很最重並物手應戰向頭文體政美相見被利什二等產或新己制身果加西斯月話合回特代內信表"
    "化老給世位次度門任常先海通教兒原東聲提立及比員解水名真論處走義各入幾口認條平系氣題活爾更別打女變四神總何電數安少報才結"
    "反受目太量再感建務做接必場件計管期市直德資命山金指克許統區保至隊形社便空決治展馬科司五基眼書非則聽白卻界達光放強即像難且"
    "權思王象完設式色路記南品住告類求據程北邊死張該交規萬取拉格望覺術領共確傳師觀清今切院讓識候帶導爭運網頁版您請臺灣香港嘅喺哋唔係佢咁冇註冊登入搜尋關聯絡"
)
_KOREAN = (
    "이다는의에을가지고하로한기사서은도를대리자인나어시있아해그수정부일스제라으니장전보상주조여원국성공구들과동관경된와신게"
    "치문년안용비연생만민선계우적무교오유위물방개실세중면요드진영회심발행학트저법했음것할입니습까"
)
_JAPANESE_KANJI = (
    "日本人年大出中学生国会時事自社者分行年場上見的同東方前間手新今後業問題体地高部発思言入作用員話書電語文京都"
)


def decode(body: bytes, declared: str | None = None) -> str:
    """The text of `body`, without its byte order mark; `declared` is the charset of the header, if any.

    Never fails: what no charset explains comes out with replacement characters.
    """
    for mark, codec in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(codec, "replace")
    if unmarked := unmarked_utf16(body, declared):
        return body.decode(unmarked, "replace")
    if _is_utf8(body):
        return body.decode("utf-8")
    best: tuple[float, str] | None = None
    for codec in _candidates(body, declared):
        text = body.decode(codec, "replace")
        wrong = text.count("\ufffd") / max(1, len(text))
        if wrong <= _MAX_WRONG:
            return text
        if best is None or wrong < best[0]:
            best = (wrong, text)
    return best[1] if best else body.decode("utf-8", "replace")


def _is_utf8(body: bytes) -> bool:
    """Whether `body` is UTF-8 beyond doubt: other charsets make no three characters of it by accident."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return len(body) - len(text) >= _SURE_BYTES and b"\x1b" not in body


def _candidates(body: bytes, declared: str | None) -> Iterator[str]:
    """Codecs in the order of trust. Latin-1 fits any bytes and is what servers say unasked, so it waits."""
    told = _told(body[:_SAMPLE], declared)
    strong = [codec for codec in told if codec != _WEAK and not codec.startswith("utf-16")]
    pieces = b" ".join(_NOT_ASCII.findall(_sample(body)))
    share, found = best_codec(pieces) if pieces else (0.0, _WEAK)
    if strong and share >= CLEAR and found not in strong[:1] and _is_doubtful(pieces, strong[0]):
        yield from (codec for codec in strong if codec == "utf-8")
        yield found
    yield from dict.fromkeys(strong)
    if "utf-8" not in strong:
        yield "utf-8"
    yield from (codec for codec in told if codec.startswith("utf-16"))
    if share >= CLEAR:
        yield found
    elif _WEAK not in told and (detected := _detect(body)):
        yield detected
    yield _WEAK


def _told(head: bytes, declared: str | None) -> list[str]:
    """The codecs that the header and the start of the document declare."""
    found = (codec_of(label) for label in (declared, declared_in(head)) if label)
    return [codec for codec in found if codec]


def _is_doubtful(pieces: bytes, codec: str) -> bool:
    """Whether a declared charset makes nothing sensible of the text: East Asian noise, or single bytes."""
    if codec not in CODECS:
        return True
    return score(pieces.decode(codec, "replace"), codec) < DOUBTFUL


def _detect(body: bytes) -> str | None:
    sample = _sample(body)
    if found := likely_codec(b" ".join(_WORDS.findall(sample))):
        return found
    from charset_normalizer import from_bytes

    best = from_bytes(sample, threshold=0.3).best()
    return codec_of(best.encoding.replace("_", "-")) or best.encoding if best else None


def _sample(body: bytes) -> bytes:
    """The first stretch that is not ASCII, from where the text begins to differ between charsets."""
    match = re.search(rb"[\x80-\xff]", body)
    start = max(0, match.start() - _BEFORE) if match else 0
    return body[start : start + _SAMPLE]


def likely_codec(pieces: bytes) -> str | None:
    """The charset whose reading of `pieces` (words with bytes above 127) is best, or None when none is good."""
    scores = {codec: _score(pieces.decode(codec, "replace"), codec) for codec in _LETTERS}
    best = max(scores, key=lambda codec: scores[codec])
    return best if scores[best] >= _MIN else None


def _score(text: str, codec: str) -> float:
    """The mean of the letters outside ASCII, 1 for a frequent one; less for words and signs that cannot be."""
    frequent, others = _LETTERS[codec]
    total = count = 0.0
    for word in _WORD.findall(text):
        marked = [letter.lower() if letter != "İ" else "i" for letter in word if letter >= "\x80"]
        count += len(marked)
        if _is_possible(word, len(marked), codec in _LATIN):
            total += sum(1.0 if letter in frequent else _OTHER if letter in others else -1.0 for letter in marked)
        else:
            total -= len(marked)
    signs = len(_SIGNS.findall(text))
    return (total - signs) / (count + signs) if count else 0.0


def _is_possible(word: str, marked: int, is_latin: bool) -> bool:
    """Whether a word is cased as words are, and of one alphabet; a Latin one is not all accents."""
    if any(left.islower() and right.isupper() for left, right in pairwise(word)):
        return False
    return marked <= (len(word) + 1) // 2 if is_latin else marked in (0, len(word))


@dataclass(frozen=True, slots=True)
class _Script:
    """The characters of a language that its charset is for."""

    frequent: frozenset[str]
    common: frozenset[str]


def score(text: str, codec: str) -> float:
    """How much `text`, decoded as `codec`, is written as its language is: at most 1, negative for noise.

    Only what is not ASCII counts. 0.0 when there is no such character.
    """
    script, total, count = _script(codec), 0.0, 0
    for character in text:
        if character < "\x80":
            continue
        count += 1
        if character in script.frequent:
            total += _FREQUENT
        elif character in script.common:
            total += _COMMON
        else:
            total += _other(character)
    return total / count if count else 0.0


def best_codec(body: bytes) -> tuple[float, str]:
    """The charset of CODECS whose reading of `body` scores best, and that score."""
    return max((score(body.decode(codec, "replace"), codec), codec) for codec in CODECS)


def _other(character: str) -> float:
    if "\u3000" <= character <= "\u303f" or "\uff01" <= character <= "\uff5e" or character in "“”‘’—…·《》":
        return _MARK
    if "\u3040" <= character <= "\u9fff" or "\uac00" <= character <= "\ud7a3":
        return _RARE
    return _WRONG


@cache
def _script(codec: str) -> _Script:
    if codec == "gb18030":
        return _Script(frozenset(_SIMPLIFIED + _TRADITIONAL), _block("gb2312", range(0xB0, 0xD8), _TRAIL))
    if codec == "big5hkscs":
        return _Script(frozenset(_TRADITIONAL), _block("big5", range(0xA4, 0xC7), _BIG5_TRAIL))
    if codec == "cp949":
        return _Script(frozenset(_KOREAN), _block("euc-kr", range(0xB0, 0xC9), _TRAIL))
    hiragana = frozenset(map(chr, range(0x3041, 0x3094)))
    kanji, katakana = _block("euc-jp", range(0xB0, 0xD0), _TRAIL), frozenset(map(chr, range(0x30A1, 0x30FF)))
    return _Script(hiragana | frozenset(_JAPANESE_KANJI), kanji | katakana)


def _block(codec: str, leads: range, trails: range | tuple[int, ...]) -> frozenset[str]:
    return frozenset(bytes((lead, trail)).decode(codec, "ignore") for lead in leads for trail in trails) - {""}
