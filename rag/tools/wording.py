"""Arithmetic in English and Chinese words, rewritten with operators: "240 的 15%" as `240 * 15%`.

The words are those for the four operations, fractions, powers and relative changes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from rag.patterns import lazy_regex
from rag.quantities.numerals import SCALES, WORDS, simplify

HAN_NUMERALS: Final = "〇零一二两三四五六七八九十百千万亿"
NUMBER: Final = (
    rf"(?:\([^()]*\)|(?<![\d.,])(?:\d{{1,3}}(?:,\d{{3}})++(?!\d)|\d++)(?:\.\d++)?(?: ?%|[万亿])?"
    rf"|(?<![点{HAN_NUMERALS}])[{HAN_NUMERALS}]++(?:点[{HAN_NUMERALS}]++)?%?)"
)
_SCALES: Final = {word: SCALES[word] for word in ("hundred", "thousand", "million", "billion", "trillion")}
_NUMERAL: Final = rf"(?:{'|'.join(sorted((*WORDS, *_SCALES), key=len, reverse=True))})"
_NUMERALS: Final = lazy_regex(
    rf"(?<![\w-]){_NUMERAL}(?:(?:[ -]| and ){_NUMERAL}\b)*"
    rf"(?: point(?P<digits>(?: (?:{'|'.join(WORDS)})\b)+))?(?![\w-])",
    re.IGNORECASE,
)
_FRACTIONS: Final = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "hundredth": 100,
}  # fmt: skip
MONEY_CODES: Final = "usd|eur|gbp|cny|rmb"
_MONEY: Final = lazy_regex(
    rf"[$€£¥]|(?<=[\d{HAN_NUMERALS}])(?:(?:美|欧|日|港)?元|英镑|人民币|块钱?)"
    rf"|(?<=\d) (?:dollar|euro|{MONEY_CODES})s?\b",
    re.IGNORECASE,
)
_POWER: Final = lazy_regex(
    r"(?<![A-Za-z])(?:(?P<word>sq|cu)\.? ?)?(?P<unit>[ck]?m|ft|feet|in|yd|mi)(?(word)|\^?(?P<digit>[23]))\b", re.I
)
_FINANCIAL: Final = str.maketrans("壹贰叁肆伍陆柒捌玖拾佰仟", "一二三四五六七八九十百千")
_RISE: Final = "(?:增长|增加|增多|上涨|上升|上浮|上调|提高|加价|涨价|涨)"
_FALL: Final = "(?:减少|下降|下跌|下浮|下调|降低|降价|减价|跌|降)"
_TERMS: Final = {
    "PERCENT": "per ?cent(?:age)?",
    "SHARE": "(?:百分之(?:几|多少)?|百分比|多少百分比)",
    "RISE": _RISE,
    "FALL": _FALL,
}


def _compile(form: str) -> re.Pattern[str]:
    """Return the pattern of a form, in which A and B are numbers."""
    numbers = {"A": f"(?P<a>{NUMBER})", "B": f"(?P<b>{NUMBER})"}
    return lazy_regex(re.sub(r"\b[AB]\b|(?<![A-Za-z])[AB](?![A-Za-z])", lambda one: numbers[one[0]], form), re.I)


# Messages that ask for one number as a percentage of another, or for a relative change.
RATIOS: Final = tuple(
    (_compile(re.sub("|".join(_TERMS), lambda term: _TERMS[term[0]], form)), signs)
    for form, signs in (
        (r"A (?:is what|as an?) PERCENT of B", r"\g<a> / \g<b>"),
        (r"A out of B (?:in %|is what PERCENT)", r"\g<a> / \g<b>"),
        (r"what PERCENT of B is A", r"\g<a> / \g<b>"),
        (r"what PERCENT is A (?:out )?of B", r"\g<a> / \g<b>"),
        (r"(?:\w+ ){0,3}from A to B,? (?:by )?(?:how (?:much|many)|what) PERCENT(?: \w+)*", r"(\g<b> - \g<a>) / \g<a>"),
        (r"(?:the )?PERCENT (?:increase|rise|growth|change) from A to B", r"(\g<b> - \g<a>) / \g<a>"),
        (r"(?:the )?PERCENT (?:decrease|drop|fall|reduction) from A to B", r"(\g<a> - \g<b>) / \g<a>"),
        (r"A[占是]B的?SHARE", r"\g<a> / \g<b>"),
        (r"A比B[多高大][了出]?SHARE", r"(\g<a> - \g<b>) / \g<b>"),
        (r"A比B[少低小]了?SHARE", r"(\g<b> - \g<a>) / \g<b>"),
        (r"从?A(?:RISE)?[到至]B,?RISE了?SHARE", r"(\g<b> - \g<a>) / \g<a>"),
        (r"从?A(?:FALL)?[到至]B,?FALL了?SHARE", r"(\g<a> - \g<b>) / \g<a>"),
    )
)

Write = Callable[[re.Match[str]], str]


def _fraction(match: re.Match[str]) -> str:
    return f"({match[1] or 1}/{_FRACTIONS[match[2].lower()]})"


def _discount(match: re.Match[str]) -> str:
    """Return the factor of a discount: 八折 is eight tenths, 八五折 and 85折 are 85 hundredths."""
    digits = "".join(
        str(HAN_NUMERALS[1:].replace("两", "").find(digit)) if digit in HAN_NUMERALS else digit
        for digit in match[1].replace(".", "")
    )
    return f" * 0.{digits}"


def _list_operation(sign: str) -> Write:
    """Return a function that joins the numbers of a list by `sign`; without a sign, it averages them."""

    def write(match: re.Match[str]) -> str:
        numbers = re.findall(NUMBER, match[1])
        joined = f" {sign or '+'} ".join(numbers)
        return f"({joined})" if sign else f"(({joined}) / {len(numbers)})"

    return write


def _change(sign: str) -> Write:
    """Return a function that adds or subtracts a number; a fraction, like a percentage, is of the first number."""

    def write(match: re.Match[str]) -> str:
        amount = f"{match['a']} * {match['b']}" if match["b"].startswith("(") else match["b"]
        return f"{match['a']} {sign} {amount}"

    return write


def _series(match: re.Match[str]) -> str:
    """Return the formula for the sum of all integers from one number to another."""
    first, last = match["a"], match["b"]
    return f"(({first} + {last}) * ({last} - {first} + 1) / 2)"


_SEVERAL: Final = (
    ("sum|total", "总?和", "+"),
    ("product", "乘?积", "*"),
    ("quotient|ratio", "商|比值", "/"),
    ("average|avg|mean", "平均[数值]?|均值", ""),
)
_FORMS: Final[tuple[tuple[str, str | Write], ...]] = (
    (rf"百分之({NUMBER})", r"\1%"),
    (rf"({NUMBER})分之({NUMBER})", r"(\2/\1)"),
    (r" ?\bper ?cent\b", "%"),
    (r"A and a half\b", r"(\g<a> + 0.5)"),
    (rf"\b(?:({NUMBER})|an?) ({'|'.join(_FRACTIONS)})s?\b(?! (?:an?|past)\b)", _fraction),
    (r"\bhalf of\b", "0.5 * "),
    (rf"({NUMBER})个半", r"(\1 + 0.5)"),
    (rf"({NUMBER})([米斤克升吨磅码天周]|公[里斤]|英[里尺寸]|小时)半", r"(\1 + 0.5) \2"),
    (r"半(?=[个公千平立]?[米斤克里升吨磅码时分天周小])", "0.5 * "),
    (rf"([华摄]氏)([零负]?下?-?{NUMBER})度", r"\2\1度"),
    (rf"(?:零下|负)(?={NUMBER})", "-"),
    (rf"({NUMBER})开(?:平方|根号)", r"sqrt \1"),
    (r"的一半", " * 0.5"),
    *(
        (rf"\b(?:the )?(?:{english}) of ({NUMBER}(?:(?:, ?|,? and ){NUMBER})++)", _list_operation(sign))
        for english, _, sign in _SEVERAL
    ),
    *(
        (
            rf"(?<![、,])({NUMBER}(?:(?:[、,]{NUMBER})++(?:[和与跟及]{NUMBER})?|[和与跟及]{NUMBER}))"
            rf"(?:这[{HAN_NUMERALS}几]个数)?的(?:{chinese})",
            _list_operation(sign),
        )
        for _, chinese, sign in _SEVERAL
    ),
    (r"\b(?:the )?difference between A and B", r"(\g<a> - \g<b>)"),
    (r"A[和与跟]B的差值?", r"(\g<a> - \g<b>)"),
    (rf"\badd(?: up)? ({NUMBER}(?:, ?{NUMBER})*,? (?:and|to|with) {NUMBER})", _list_operation("+")),
    (r"\b(?:the )?sum of (?:all )?(?:the )?(?:(?:whole )?numbers |integers )?(?:from )?A to B", _series),
    (r"从?A(?:一直)?加?[到至]B(?:的总?和)?", _series),
    (r"\b(?:subtract|deduct|take(?: away)?) A (?:from|off) B", r"\g<b> - \g<a>"),
    (r"\bmultiply A (?:by|with|and) B", r"\g<a> * \g<b>"),
    (r"\bdivide A (?:by|into) B(?: (?:equal )?parts)?", r"\g<a> / \g<b>"),
    (r"\b(?:increase|raise) A by B", _change("+")),
    (r"\b(?:decrease|reduce|lower|cut) A by B", _change("-")),
    (r"A (?:is )?(?:increased|raised) by B", _change("+")),
    (r"A (?:is )?(?:decreased|reduced|lowered|cut) by B", _change("-")),
    (r"A off(?: of)? B", r"\g<b> - \g<a>"),
    (r"从A[里中]?减[去掉]?B", r"\g<a> - \g<b>"),
    (r"(?<=\d%)的?(?:小费|服务费|税费?)|\b(?:tip|discount|tax) (?:of )?(?=\d[\d.]*%)", ""),
    (r"\ban? (?=\d)|(?<=\d) (?:bill|check|tab|dinner|lunch|meal|purchase)\b", ""),
    (r"A,?(?: with| at| after| minus| less)? (?:an? )?B (?:off|discount)", r"\g<a> - \g<b>"),
    (r"A,? (?:with|plus|and|including|\+) (?:an? )?B (?:tip|tax|vat|gst|service(?: charge)?)", r"\g<a> + \g<b>"),
    (r"(?<![\d.])(\d+) (\d+)[/⁄](\d+)(?![\d/])", r"(\1 + \2 / \3)"),
    (r"(?<![\d./])(\d+)[/⁄](\d+)(?= ?(?!x\b)[a-z])", r"(\1 / \2)"),
    (rf"({NUMBER}) ?(?:'|′|ft|feet|foot) ?({NUMBER})(?: ?[\"”]|''|′′)?(?! ?[\w'\"])", r"\1 ft \2 in"),
    (r"\bsplit A (?:by|between|among) B(?: ways| people)?", r"\g<a> / \g<b>"),
    (r"A(?:平均|平)?分(?:成|给)B(?:个人|[份个人])", r"\g<a> / \g<b>"),
    (r"A除(?!以)B", r"\g<b> / \g<a>"),
    (rf"A{_RISE}了?B(?:之?后)?", _change("+")),
    (rf"A{_FALL}了?B(?:之?后)?", _change("-")),
    (
        rf"(?:,?打完?了?|[,的]|(?<=\d)(?!\d))([{HAN_NUMERALS[2:12]}\d]{{1,2}}|\d\.\d)折(?:之?后)?",
        _discount,
    ),
    (rf"的({NUMBER})次[方幂]", r"**\1"),
    (rf"({NUMBER})的平方根", r"sqrt \1"),
    (rf"({NUMBER})的立方根", r"cbrt \1"),
    (r"\b(?:the )?square root of\b|根号下?|√", "sqrt "),
    (r"\b(?:the )?cube root of\b", "cbrt "),
    (rf"\b(?:the )?(\d+)(?:st|nd|rd|th) power of ({NUMBER})", r"\2**\1"),
    (r" ?\bto the (?:power of )?(\d+)(?:st|nd|rd|th)?(?: power)?\b", r"**\1"),
    (r" ?\bto the power(?: of)?\b|\^", "**"),
    (r"\b(?:twice|double)\b", "2 *"),
    (r"\bthrice|triple\b", "3 *"),
    (r"\ban? (?=[a-z])", "1 "),
    (r" ?\bsquared\b|的平方", "**2"),
    (r" ?\bcubed\b|的立方", "**3"),
    (r" ?\bfactorial\b|的?阶乘", "!"),
    (r"(?:\b(?:an?|the) )?(?<![\d.,])(\d[\d.,]*+%) (?:(?:\w+ ){1,2}on|of|on)\b", r"\1 *"),
    (r"%的", "% *"),
    (r"(?<=\)) ?of\b", " *"),
    (rf"[里中]?的(?={NUMBER}(?:%|倍)|\(|\d[\d.,]*%|百分之)", " *"),
    (r"倍(?!的)|再(?=[加减乘除])", ""),
    (r"\b(?:multiplied by|times)\b|乘以|乘上|乘|倍的|[×·✕]|(?<=\d) ?x ?(?=\d)", "*"),
    (r"\bdivided by\b|除以|[÷⁄]|(?<=[米里])每", "/"),
    (r"\bper (?=[a-z]+ ?\*)", "/ "),
    (r"\bplus\b|加上|加(?!仑)", "+"),
    (r"\bminus\b|减去|减|[−–]", "-"),
)
_RULES: Final = tuple((_compile(form), signs) for form, signs in _FORMS)
_NEEDLESS: Final = lazy_regex(r"(?<=[\u4e00-\u9fff]) (?!in )|(?<! in) (?=[\u4e00-\u9fff])|(?<=\d) (?=%)")


def normalise_expression(text: str) -> str:
    """Normalise characters and spaces, and remove the currency if there is only one."""
    text = _NEEDLESS.sub("", " ".join(_normalise_signs(text).split())).rstrip(" ?.")
    text = re.sub(r" as an? per ?cent(?:age)?$|[化换转]?[成为]百分[数比]$", " in %", text, flags=re.IGNORECASE)
    text = re.sub("(?<=[是于为合])([华摄]氏)(?:(?:多少|几)?度)?$", r"多少\1度", text)
    text = re.sub(r"(?<=[a-z]) per (?=(?:hour|second|minute|day|litre|liter|gallon|kg|pound)\b)", "/", text)
    if len({one.strip().lower() for one in _MONEY.findall(text)}) <= 1:  # 372块5个人 are two numbers
        text = _MONEY.sub(lambda one: " " * (one[0] > "一" and text[one.end() : one.end() + 1].isnumeric()), text)
    return _NUMERALS.sub(lambda one: _numeral(one[0], one["digits"] or ""), text)


def _normalise_signs(text: str) -> str:
    """Write one character for each sign and Chinese word, and ² or ³ for the squares and cubes of units."""
    text = re.sub("[¼-¾⅐-⅞]", lambda one: f" {one[0]}", text.replace("²", "^2").replace("³", "^3").replace("’", "'"))
    text = simplify(unicodedata.normalize("NFKC", text)).translate(_FINANCIAL)
    return _POWER.sub(lambda one: one["unit"] + ("²" if one["word"] == "sq" or one["digit"] == "2" else "³"), text)


def money_format(text: str) -> str:
    """Return the format of amounts in the currency of a text, as "${}" or "{} 元"; "" unless it names one amount."""
    text = _normalise_signs(text)
    found = _MONEY.findall(text) or re.findall("(?<=多少)钱|几块", text)
    sign = re.sub("几?块钱?|钱", "元", found[0].strip()) if len(found) == 1 else ""
    sign = {"dollar": "$", "euro": "€"}.get(sign.lower().removesuffix("s"), sign)
    return sign and (f"{sign}{{}}" if sign in "$€£¥" else f"{{}} {sign}")


def replace_words(text: str) -> str:
    """Replace the words of a normalised text by operators."""
    for form, signs in _RULES:
        text = form.sub(signs, text)
    return text


def _numeral(text: str, digits: str) -> str:
    """Return an English number in digits."""
    whole = section = 0.0
    for word in re.findall(r"[a-z]+", text.lower().removesuffix(digits.lower()).removesuffix(" point")):
        scale = _SCALES.get(word, 0)
        if scale == 100:
            section = max(section, 1) * 100
        elif scale:
            whole, section = whole + max(section, 1) * scale, 0
        else:
            section += WORDS.get(word, 0)
    part = "".join(f"{WORDS[word.lower()]}" for word in digits.split())
    return f"{whole + section:.0f}{f'.{part}' if part else ''}"
