"""The calculator: recognises messages that are arithmetic or conversions as a whole, and evaluates them.

Words in English and Chinese (the four operations, fractions, powers and relative changes) are rewritten with operators:
"240 的 15%" as `240 * 15%`. An operator precedence parser (Pratt, 1973) builds a syntax tree, which is evaluated to 34
digits without `eval`. Decimals (IEEE 754 decimal128, exponents up to 9999) keep each step short for any input:
9**9**9**9 overflows at once.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from itertools import combinations
from typing import Any, Final

from rag.errors import ToolError
from rag.quantities.values import (
    BASES,
    DENOMINATORS,
    NONE,
    UNITS,
    WORDS,
    Quantity,
    Unit,
    find_compound_unit,
    find_unit,
    load_currencies,
    parse_chinese,
    parse_english,
    raise_symbol,
    simplify,
)
from rag.text import lazy_regex
from rag.tools.tool import Tool, ToolResources, ToolResult

HAN_NUMERALS: Final = "〇零一二两三四五六七八九十百千万亿"
NUMBER: Final = (
    rf"(?:\([^()]*\)|(?<![\d.,])(?:\d{{1,3}}(?:,\d{{3}})++(?!\d)|\d++)(?:\.\d++)?(?: ?%|[万亿])?"
    rf"|(?<![点{HAN_NUMERALS}])[{HAN_NUMERALS}]++(?:点[{HAN_NUMERALS}]++)?%?)"
)
_SCALES: Final = ("hundred", "thousand", "million", "billion", "trillion")
_NUMERAL: Final = rf"(?:{'|'.join(sorted((*WORDS, *_SCALES), key=len, reverse=True))})"
_NUMERALS: Final = lazy_regex(
    rf"(?<![\w-]){_NUMERAL}(?:(?:[ -]| and ){_NUMERAL}\b)*"
    rf"(?: point(?P<digits>(?: (?:{'|'.join(WORDS)})\b)+))?(?![\w-])",
    re.IGNORECASE,
)
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
    return f"({match[1] or 1}/{DENOMINATORS[match[2].lower()]})"


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
    (rf"\b(?:({NUMBER})|an?) ({'|'.join(DENOMINATORS)})s?\b(?! (?:an?|past)\b)", _fraction),
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


def _numeral(text: str, digits: str) -> str:
    """Return an English number in digits."""
    whole = parse_english(text.lower().removesuffix(digits.lower()).removesuffix(" point"))
    part = "".join(f"{WORDS[word.lower()]}" for word in digits.split())
    return f"{whole:f}{f'.{part}' if part else ''}"


_NAME: Final = (
    r"(?:(?:square |cubic |degrees? |fl(?:uid)? )?[A-Za-z°%\u4e00-\u9fff]{1,16}[²³]?(?:/[A-Za-z\u4e00-\u9fff]{1,16})?)"
)
_UNIT: Final = rf"(?P<unit>{_NAME}(?: and {_NAME})?)"
_LEAD: Final = lazy_regex(
    r"(?:(?:please|(?:can|could|would|will) you|tell me|请问?|麻烦|帮我|给我|你|[\u4e00-\u9fff]{0,8}原价)[, ，]*+)*+"
    r"(?P<asks>what do (?:you|i) get (?:if|when) (?:you|i)|what(?:'?s| is| are| does)|how \w+ (?:is|are)"
    r"|calculate|compute|evaluate|work out|solve|convert|计算|换算|算|求|把|将|=)?(?:一?算|一下|出)*+[ :：]*+"
    r"(?:the (?:value|result) of )?",
    re.IGNORECASE,
)
_TAIL: Final = lazy_regex(
    r"(?<!\s)\s*+(?P<asks>=|\bequals?(?: to)?|的?结果(?:是|为)?|\bcomes? to|\bis how much|等于|得|是|为)?"
    r" ?(?:what|多少钱?|几)?(?:,? ?please|呢|啊)?\Z",
    re.IGNORECASE,
)
_INTO: Final = (
    lazy_regex(rf"\Ahow many {_UNIT} (?:are (?:there )?in|is|are|in|equals?|makes?) (?P<of>.+)", re.IGNORECASE),
    lazy_regex(rf"\A(?P<of>.+) (?:in|to|into|as) {_UNIT}", re.IGNORECASE),
    lazy_regex(
        rf"\A(?P<of>[^是等合为有换转折化相]+)(?:(?:换算|转换|换|转|折合|化)[成为到]?|相?[是等于合为有当]{{0,3}}(?:多少|几)个?){_UNIT}"
    ),
)
_AND: Final = lazy_regex(" and |[零又加和]?(?:多少|几)个?|和")
_BARE_DEGREE: Final = lazy_regex(r"\A([^氏]*\d) ?(?:度|°|degrees?)\Z", re.IGNORECASE)
_VOLUMES: Final = "|".join(re.escape(name) for name, unit in UNITS.items() if unit.size.dimension == (3, 0, 0, 0, 0))
_VOLUME: Final = lazy_regex(rf"(?<![A-Za-z])(?:{_VOLUMES})(?![A-Za-z])", re.IGNORECASE)
_OUNCE: Final = lazy_regex(r"(?<!fl )(?<!fluid )(?<![A-Za-z])(?=(?:oz|ounces?)\b)", re.IGNORECASE)
_SHARED: Final = lazy_regex(
    r"\bsplit\b|\bshar(?:e|ed|ing)\b(?=.*\beach\b)|平分|(?<!平)均分|平均分[给成摊]|[平均]摊|(?<![A-Za-z])AA(?![A-Za-z])",
    re.I,
)
_EACH: Final = lazy_regex(r"\b(?:each|apiece|per (?:person|head))\b|每个?人|人均", re.IGNORECASE)
_HEADS: Final = rf"(?P<heads>{NUMBER}) ?(?:个?人|位|ways\Z|(?:people|persons|friends|guys|of us)\b)"
_AMOUNT: Final = (
    rf"(?P<amount>{NUMBER})(?P<bare>(?=,|\.| (?:how\b|for\b|between\b|[\d\u4e00-\u9fff])|每|人均|平均|\Z))?"
)
_SHARES: Final = tuple(
    lazy_regex(rf"[^\d%]*{first}[^\d%]*{second}[^\d%]*", re.IGNORECASE)
    for first, second in ((_HEADS, _AMOUNT), (_AMOUNT, _HEADS))
)


def strip_request(text: str) -> tuple[str, bool]:
    """Return the text without its request, and True if this asks for a calculation; "what is" may ask for anything."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    text = text.rstrip(" ?？。.")
    tail = _TAIL.search(text, start)
    phrases = [one["asks"] for one in (lead, tail) if one and one["asks"]]
    return text[start : tail.start() if tail else len(text)], any(not one.lower().startswith("what") for one in phrases)


def find_readings(body: str) -> Iterator[tuple[str, str]]:
    """Yield possible readings, as an expression and the target's units; the text itself comes last."""
    for ratio, signs in RATIOS:
        if match := ratio.fullmatch(body):
            yield match.expand(signs), "%"
    if share := _find_share(body):
        yield share, ""
    if _VOLUME.search(body):
        body = _OUNCE.sub("fl ", body)
    for into in _INTO:
        if (match := into.fullmatch(body)) and (units := find_target_units(match["unit"])):
            scale = "°C" if units[0].symbol == "°F" else "°F" if units[0].symbol == "°C" else ""
            yield _BARE_DEGREE.sub(rf"\1{scale}", match["of"]) if scale else match["of"], match["unit"]
    yield body, ""


def _find_share(body: str) -> str:
    """Return the division of an amount among people, if a text with just these two numbers asks for it, else ""."""
    body, is_shared = re.sub(r",(?!\d{3}(?!\d))", ", ", body), _SHARED.search(body)
    if len(body) > 100 or not (is_shared or _EACH.search(body)):
        return ""
    matches = filter(None, (share.fullmatch(body) for share in _SHARES))
    return next((f"{one['amount']} / {one['heads']}" for one in matches if is_shared or one["bare"] is not None), "")


def find_target_units(name: str) -> tuple[Unit, ...]:
    """Return the units of a name, largest first, as "feet and inches" or "英尺几英寸"; () if one is unknown."""
    units = [find_compound_unit(part) for part in _AND.split(name)]
    return tuple(unit for unit in units if unit) if all(units) else ()


_MAX_CHARACTERS: Final = 500
"""Maximum characters of an expression."""
_MAX_DEPTH: Final = 60
_CONTEXT: Final = Context(prec=34, Emax=9999, Emin=-9999, traps=[Overflow, DivisionByZero, InvalidOperation])
_DIGITS: Final = Context(prec=12)
_ROUNDING: Final = Decimal("1e-30")
"""Relative error of a result that counts as exact."""
# Dates, ranges, phone numbers and versions: these are only calculated if the message asks for it.
_NOT_ARITHMETIC: Final = lazy_regex(
    r"(?:the )?difference between (?:\d{4} and \d{4}|\d+\.\d+ and \d+(?:\.\d+)?)|(?:19|20)\d\d[\u4e00-\u9fff]+[\d.]+%"
    r"|\d{4}(?:-\d\d?){2}\b.*|[1-9]\d?/[1-9]\d?|\d{4,}-\d+|\d+-(?:0\d*|\d{4,})|\d+(?:-\d+){2,}|\d{1,4}(?:/\d{1,4}){2,}"
)
_PARTS: Final = lazy_regex(
    r"(?:[\d\s.,+*/()%!×÷^-]|\b(?:plus|minus|times|of|divided by|percent)\b|[加减乘除以的]){3,}+"
)
_TRUNCATED: Final = lazy_regex(r"[+*/%×÷^加减乘除以]|-\s|(?:plus|minus|times|of|divided)\b")
"""Start of an expression whose first number is missing, because it is in words."""
_BARE: Final = lazy_regex(r"[\d\s.,()%!×÷^*/+-]*+")


def expression_of(text: str) -> str | None:
    """Return the calculation or conversion if that is the whole message, without a request such as "what is"; or None.

    Bare digits and operators count at any length or depth, since `calculate` explains what is wrong with them.
    """
    if len(text) > _MAX_CHARACTERS:
        return text if _BARE.fullmatch(text) and re.search(r"\d\s*[-+*/^×÷]", text) else None
    body, is_requested = strip_request(normalise_expression(text))
    for source, unit in find_readings(body):
        try:
            expression = _Expression(source)
        except ValueError:
            continue
        except RecursionError:
            return body
        if unit or (expression.is_formula and (is_requested or not _NOT_ARITHMETIC.fullmatch(source))):
            return f"{expression.notation} in {unit}" if unit else expression.notation
    return None


def calculate(request: str, _: ToolResources) -> ToolResult:
    """Return the result of an expression, or of the longest one in a text. Raises ToolError."""
    notation = expression_of(request) or _find_longest(request)
    if notation is None:
        raise ToolError("expression_rates" if _has_two_currencies(request) else "expression_unreadable")
    if len(notation) > _MAX_CHARACTERS:
        raise ToolError("expression_long", limit=_MAX_CHARACTERS)
    source, separator, target = notation.rpartition(" in ")
    if not separator or not find_target_units(target):
        source, target = notation, ""
    try:
        expression = _Expression(source)
    except RecursionError as error:
        raise ToolError("expression_deep") from error
    except ValueError as error:
        raise ToolError("expression_unreadable") from error
    with localcontext(_CONTEXT):
        result, is_exact = _show(expression.value(), expression.units, target, money_format(request))
    return ToolResult(f"{expression.notation} {'=' if is_exact else '≈'} {result}")


def can_calculate(text: str) -> bool:
    """True if a text has an expression, or an amount to convert into another currency, for which there is no rate."""
    return bool(expression_of(text) or _find_longest(text)) or _has_two_currencies(text)


def _has_two_currencies(text: str) -> bool:
    names = load_currencies()
    found = (names.get(name) or names.get(name.lower()) or names[name.upper()] for name in _currencies().findall(text))
    return any(first.isdisjoint(second) for first, second in combinations(found, 2))


@cache
def _currencies() -> re.Pattern[str]:
    """Return a pattern of the names, codes and symbols of currencies; only common codes may be in lower case."""
    names = sorted(load_currencies(), key=len, reverse=True)
    words = "|".join(re.escape(name) for name in names if name.isascii() and name.islower())
    rest = "|".join(re.escape(name) for name in names if not (name.isascii() and name.islower()))
    return re.compile(rf"(?<![A-Za-z])(?:(?i:{words}|{MONEY_CODES})|{rest})(?![A-Za-z])")


def _find_longest(text: str) -> str | None:
    """Return the longest expression in a text, delimited by the words around it."""
    parts = _PARTS.findall(text[: 4 * _MAX_CHARACTERS])
    parts = [part.strip(" .,?的").removesuffix(" of") for part in parts]
    expressions = [one for part in parts if not _TRUNCATED.match(part) and (one := expression_of(part))]
    return max(expressions, key=len, default=None)


def _show(value: Quantity, units: Sequence[Unit], target: str, money: str) -> tuple[str, bool]:
    """Return a result in words, in the target's units or those of the expression, and True if it is exact."""
    *larger, last = find_target_units(target) or (_choose_unit(value, units),)
    if last.size.dimension != value.dimension:
        raise ToolError("expression_units")
    number, parts = (value.value - last.zero) / last.size.value, []
    digits, is_exact = _format(number, is_measure=bool(target) and last.symbol != "%")
    if money and not last.symbol:
        return money.format(f"{number:.2f}".removesuffix(".00")), _is_close(round(number, 2), number)
    if larger:  # feet, and the inches that remain, to two places
        rest, is_exact = round(number, 2) * last.size.value, _is_close(round(number, 2), number)
        for unit in larger:
            count = rest // unit.size.value
            rest -= count * unit.size.value
            parts += [f"{count} {unit.symbol}"] * bool(count)
        digits, _ = _format(rest / last.size.value)
    is_word = target.isascii() and target.isalpha() and target.islower() and len(target) > 3 and not last.zero
    name = target if is_word and digits != "1" else last.symbol
    parts += [f"{digits}{name}" if name == "%" else f"{digits} {name}".rstrip()] * (digits != "0" or not parts)
    return " ".join(parts), is_exact


def _choose_unit(value: Quantity, units: Sequence[Unit]) -> Unit:
    """Return the first of `units` that fits the dimension of a value, else one composed of them."""
    if unit := next((one for one in units if one.size.dimension == value.dimension), None):
        return unit
    size, names = Decimal(1), []
    for place, power in enumerate(value.dimension):
        base = next((one for one in units if one.size.dimension == BASES[place][1]), None)
        if power:
            size *= base.size.value**power if base else 1
            names.append((base.symbol if base else BASES[place][0], power))
    below = "".join(f"/{raise_symbol(name, -power)}" for name, power in names if power < 0)
    symbol = "·".join(raise_symbol(name, power) for name, power in names if power > 0) + below
    return Unit(symbol, Quantity(size, value.dimension))


def _format(number: Decimal, *, is_measure: bool = False) -> tuple[str, bool]:
    """Return the number to twelve digits, or 34 for whole numbers, and True if that is exact.

    A measure has all its digits up to eight, else six.
    """
    whole = number == number.to_integral_value()
    short = number if whole and abs(number) < Decimal("1e34") else _DIGITS.plus(number)
    if is_measure and not whole and len(short.normalize().as_tuple().digits) > 8:
        short = Context(prec=max(6, number.adjusted() + 2)).plus(number)
    is_plain = short == 0 or Decimal("1e-9") <= abs(short) < Decimal("1e34")
    text = f"{short:f}" if is_plain else f"{short.normalize():e}".replace("e+", "e")
    return text.rstrip("0").rstrip(".") if is_plain and "." in text else text, _is_close(short, number)


def _is_close(rounded: Decimal, number: Decimal) -> bool:
    return abs(rounded - number) <= abs(number) * _ROUNDING


# Expressions

_HAN_UNITS: Final = "|".join(sorted((name for name in UNITS if not re.search("[a-z°]", name, re.I)), key=len)[::-1])
_TOKEN: Final = lazy_regex(
    r"\s*+(?:(?P<number>(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?:[eE][+-]?\d++)?|\.\d++)"
    rf"|(?P<word>(?:square |cubic |degrees? |fl(?:uid)? )?[A-Za-zπ°]++[²³]?|(?:平方|立方)?(?:{_HAN_UNITS}))"
    rf"|(?P<han>[{HAN_NUMERALS}]++(?:点[{HAN_NUMERALS}]++)?)"
    r"|(?P<sign>\*\*|[-+*/()%!,]))\s*+"
)
_INFIX: Final = {"+": 10, "-": 10, "*": 20, "/": 20, "mod": 20, "**": 40}
_NEGATION: Final = 30
_CONSTANTS: Final = {"pi": "3.141592653589793238462643383279503", "e": "2.718281828459045235360287471352662"}


def _by_float(function: Callable[[float], float]) -> Callable[[Decimal], Decimal]:
    return lambda value: Decimal(repr(round(function(float(value)), 15)))


_FUNCTIONS: Final[Mapping[str, Callable[..., Decimal]]] = {
    "sqrt": lambda value: value.sqrt(),
    "cbrt": lambda value: (abs(value) ** (Decimal(1) / 3)).copy_sign(value),
    "ln": lambda value: value.ln(),
    "log": lambda value: value.log10(),
    "exp": lambda value: value.exp(),
    "sin": _by_float(math.sin),
    "cos": _by_float(math.cos),
    "tan": _by_float(math.tan),
    "abs": abs,
    "round": lambda value, places=Decimal(0): round(value, int(places)),
    "min": min,
    "max": max,
}

_NAMES: Final = frozenset((*_FUNCTIONS, *_CONSTANTS, "mod"))

_Node = tuple[Any, ...]
"""An operator, "number", "unit" or the name of a function, and its operands."""


class _Expression:
    """A text parsed as arithmetic. Raises ValueError if a part of it is not, RecursionError if it is nested too deeply.

    `units` are those it names, `notation` is its normalised form, `is_formula` is true if it needs evaluation.
    """

    def __init__(self, text: str) -> None:
        self.units: list[Unit] = []
        self._tokens = list(_tokens(text))
        self._at = 0
        self.tree = self._parse(0, 0)
        self.is_formula = self.tree[0] not in ("number", "unit", "%") and self.tree != (
            "-",
            ("number", self.tree[-1]),
        )
        if self._at < len(self._tokens):
            raise ValueError(text)

    @property
    def notation(self) -> str:
        """The expression in one notation, whatever its language."""
        tokens = self._tokens[1:-1] if self.tree[0] == "()" else self._tokens
        text = " ".join(symbol for _, symbol in tokens)
        text = re.sub(r"(?<=[^\W\d]) / (?=[^\W\d])", "/", text)
        text = re.sub(r"(?<=[(]) | (?=[%!),])|(?<=\b[a-z]{3}) (?=\()|(?<=sqrt) (?=\()", "", text)
        return re.sub(r"(?<![^(])([-+]) ", r"\1", re.sub(r" ?\*\* ?", "^", text))

    def value(self) -> Quantity:
        """Return the result. Raises ToolError."""
        with localcontext(_CONTEXT):
            try:
                result = _evaluate(self.tree)
                return Quantity(+result.value, result.dimension)
            except (Overflow, OverflowError) as error:
                raise ToolError("expression_large") from error
            except (DivisionByZero, ZeroDivisionError) as error:
                raise ToolError("expression_by_zero") from error
            except (DecimalException, ValueError, TypeError) as error:
                raise ToolError("expression_undefined") from error

    def _peek(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _advance(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _parse(self, power: int, depth: int) -> _Node:
        """Parse an operand, and the operators after it that bind more tightly than `power`."""
        if depth > _MAX_DEPTH:
            raise RecursionError
        left = self._parse_operand(depth)
        while self._at < len(self._tokens):
            kind, symbol = self._peek()
            if symbol in ("%", "!"):
                self._advance()
                left = (symbol, left)
            elif symbol in _INFIX and _INFIX[symbol] > power:
                self._advance()
                right = self._parse(_INFIX[symbol] - (symbol == "**"), depth + 1)
                left = (symbol, left, right)
            elif symbol in _INFIX or symbol in (")", ",") or (kind != "word" and left[0] != "unit" and symbol != "("):
                break
            else:
                left = self._parse_adjacent(left, depth)
        return left

    def _parse_adjacent(self, left: _Node, depth: int) -> _Node:
        """Parse what follows without an operator: a unit, the next part of a measure, or a factor."""
        kind, symbol = self._peek()
        if unit := find_compound_unit(symbol) if kind == "word" else None:
            self._advance()
            self.units.append(unit)
            return ("unit", left, unit)
        return ("+" if left[0] == "unit" and kind == "number" else "*", left, self._parse(_NEGATION, depth + 1))

    def _parse_operand(self, depth: int) -> _Node:
        if self._at >= len(self._tokens):
            raise ValueError
        previous = self._tokens[self._at - 1][1] if self._at else ""
        kind, symbol = self._advance()
        if kind == "number":
            return ("number", Decimal(symbol.replace(",", "")))
        if symbol == "(":
            inner = self._parse(0, depth + 1)
            if self._peek()[1] != ")":
                raise ValueError(symbol)
            self._advance()
            return ("()", inner)
        if symbol in ("-", "+"):
            operand = self._parse(_NEGATION, depth + 1)
            is_measure = operand[0] == "unit"  # -40 °C is less than 40 °C, not the opposite of 313 K
            return ("unit", (symbol, operand[1]), operand[2]) if is_measure else (symbol, operand)
        if symbol in _FUNCTIONS and (symbol != "min" or self._peek()[1] == "("):
            return (symbol, *self._parse_arguments(depth))
        if symbol in _CONSTANTS:
            return ("number", Decimal(_CONSTANTS[symbol]))
        if previous in ("*", "/") and (unit := find_compound_unit(symbol)):
            self.units.append(unit)
            return ("unit", ("number", Decimal(1)), unit)
        raise ValueError(symbol)

    def _parse_arguments(self, depth: int) -> list[_Node]:
        if self._peek()[1] != "(":
            return [self._parse(_NEGATION, depth + 1)]
        arguments = []
        while self._advance()[1] in ("(", ","):
            arguments.append(self._parse(0, depth + 1))
            if self._at >= len(self._tokens):
                raise ValueError
        return arguments


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > _MAX_CHARACTERS or not text.strip():
        raise ValueError(text)
    text = normalise_expression(text)
    for form, signs in _RULES:
        text = form.sub(signs, text)
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(text[position:])
        kind, symbol = ("number" if token["han"] else str(token.lastgroup)), token[0].strip()
        if kind == "word" and len(symbol) <= 2 and (unit := find_unit(symbol)):  # 72 f, 500 mb
            symbol = unit.symbol
        if token["han"] and tokens and tokens[-1][0] == "number" and not set(symbol) - set("百千万亿"):  # 3万
            symbol = f"{parse_chinese(tokens.pop()[1].replace(',', '') + symbol).normalize():f}"
        elif token["han"]:
            symbol = f"{parse_chinese(symbol):f}"
        tokens.append((kind, symbol.lower() if symbol.lower() in _NAMES else symbol))
        position = token.end()
    return tokens


def _evaluate(node: _Node) -> Quantity:
    kind, *operands = node
    if kind == "number":
        return Quantity(operands[0])
    if kind == "unit":
        value, unit = _evaluate(operands[0]), operands[1]
        if unit.zero:
            return Quantity((_as_number(value) * unit.size.value) + unit.zero, unit.size.dimension)
        return Quantity(value.value * unit.size.value, value.multiply_dimension(unit.size))
    if kind == "()":
        return _evaluate(operands[0])
    if len(operands) == 2 and kind in _INFIX:
        return _apply_sign(kind, *operands)
    values = [_evaluate(one) for one in operands]
    if kind in "+-":
        return Quantity(-values[0].value if kind == "-" else values[0].value, values[0].dimension)
    if kind == "sqrt" and values[0].dimension != NONE:
        return _power(values[0], Quantity(Decimal("0.5")))
    numbers = [_as_number(one) for one in values]
    if kind == "%":
        return Quantity(numbers[0] / 100)
    return Quantity(_factorial(numbers[0]) if kind == "!" else +_FUNCTIONS[kind](*numbers))


def _apply_sign(sign: str, first: _Node, second: _Node) -> Quantity:
    left, right = _evaluate(first), _evaluate(second)
    if sign in "+-":
        if second[0] == "%":  # 240 + 15%
            right = Quantity(left.value * right.value, left.dimension)
        if left.dimension != right.dimension:
            raise ToolError("expression_units")
        return Quantity(left.value + right.value if sign == "+" else left.value - right.value, left.dimension)
    if sign == "*":
        return Quantity(left.value * right.value, left.multiply_dimension(right))
    if sign == "/":
        return Quantity(left.value / right.value, left.multiply_dimension(right, -1))
    if sign == "**":
        return _power(left, right)
    divisor = _as_number(right)
    return Quantity(_as_number(left) - divisor * (left.value / divisor).to_integral_value("ROUND_FLOOR"))


def _power(base: Quantity, power: Quantity) -> Quantity:
    exponent = _as_number(power)
    if base.dimension == NONE:
        return Quantity(base.value**exponent)
    dimension = tuple(one * exponent for one in base.dimension)
    if any(one % 1 for one in dimension) or abs(exponent) > 9:
        raise ToolError("expression_units")
    return Quantity(base.value**exponent, tuple(map(int, dimension)))


def _as_number(quantity: Quantity) -> Decimal:
    if quantity.dimension != NONE:
        raise ToolError("expression_units")
    return quantity.value


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or value < 0:
        raise InvalidOperation
    if value > 3000:
        raise Overflow
    return +Decimal(math.factorial(int(value)))


TOOL: Final = Tool(
    "calculator",
    "Calculate exactly, with percentages (15% * 240, 240 + 15%), functions (sqrt, ln, log, sin, round) and units"
    " (5 km in miles). It knows no prices and no facts.",
    "expression",
    "an expression such as (3 + 4) * 2, 15% * 240, sqrt(2), 5 km in miles",
    2.0,
    calculate,
)
