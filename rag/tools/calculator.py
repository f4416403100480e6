"""Arithmetic and units: recognise a message that is a calculation as a whole, and calculate it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, localcontext
from typing import Final

from rag.errors import ToolError
from rag.patterns import lazy_regex
from rag.quantities.units import BASES, Quantity, Unit, find_compound_unit
from rag.tools.arithmetic import CONTEXT, LONGEST, Expression
from rag.tools.tool import Result, Tool, Work
from rag.tools.wording import RATIOS, normalise

_DIGITS: Final = Context(prec=12)
_UNIT: Final = r"(?P<unit>(?:square |cubic |degrees? )?[A-Za-z°%\u4e00-\u9fff]{1,16}(?:/[A-Za-z\u4e00-\u9fff]{1,16})?)"
_LEAD: Final = lazy_regex(
    r"(?:(?:please|(?:can|could|would|will) you|tell me|请问?|麻烦|帮我|给我|你|原价)[, ，]*+)*+"
    r"(?P<asks>what do (?:you|i) get (?:if|when) (?:you|i)|what(?:'?s| is| are| does)|how (?:much|many) (?:is|are)"
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
    lazy_regex(
        r"\A(?P<of>[^是等合为换转]+)(?:相当于|等于|是|为|合|换算?成?|转换?成?)(?P<unit>[华摄]氏)(?:多少度|几度|度)?\Z"
    ),
)
# Dates, ranges, phone numbers and versions: these are only calculated if the message asks for it.
_NOT_ARITHMETIC: Final = lazy_regex(
    r"(?:the )?difference between (?:\d{4} and \d{4}|\d+\.\d+ and \d+(?:\.\d+)?)|(?:19|20)\d\d[\u4e00-\u9fff]+[\d.]+%"
    r"|\d{4}(?:-\d\d?){2}\b.*|[1-9]\d?/[1-9]\d?|\d{4,}-\d+|\d+-(?:0\d*|\d{4,})|\d+(?:-\d+){2,}|\d{1,4}(?:/\d{1,4}){2,}"
)
_PARTS: Final = lazy_regex(
    r"(?:[\d\s.,+*/()%!×÷^-]|\b(?:plus|minus|times|of|divided by|percent)\b|[加减乘除以的]){3,}+"
)
_TRUNCATED: Final = lazy_regex(r"[+*/%×÷^加减乘除以]|-\s|(?:plus|minus|times|of|divided)\b")
"""Start of an expression whose first number precedes it, in words."""
_BARE: Final = lazy_regex(r"[\d\s.,()%!×÷^*/+-]*+")


def expression_of(text: str) -> str | None:
    """Return the calculation or conversion that a message is as a whole, without its request; None for any other.

    Digits and signs alone count at any length or depth, since `calculate` explains what is wrong with them.
    """
    if len(text) > LONGEST:
        return text if _BARE.fullmatch(text) and re.search(r"\d\s*[-+*/^×÷]", text) else None
    body, is_requested = _strip_request(normalise(text))
    for source, unit in _readings(body):
        try:
            expression = Expression(source)
        except ValueError:
            continue
        except RecursionError:
            return body
        if unit or (expression.is_formula and (is_requested or not _NOT_ARITHMETIC.fullmatch(source))):
            return f"{expression.notation} in {unit}" if unit else expression.notation
    return None


def _strip_request(text: str) -> tuple[str, bool]:
    """Return the text without its request, and whether that asks for a calculation; "what is" may ask for anything."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    text = text.rstrip(" ?？。.")
    tail = _TAIL.search(text, start)
    phrases = [one["asks"] for one in (lead, tail) if one and one["asks"]]
    return text[start : tail.start() if tail else len(text)], any(not one.lower().startswith("what") for one in phrases)


def _readings(body: str) -> Iterator[tuple[str, str]]:
    """Yield possible readings, as an expression and a target unit; the text itself comes last."""
    for ratio, signs in RATIOS:
        if match := ratio.fullmatch(body):
            yield match.expand(signs), "%"
    for into in _INTO:
        if (match := into.fullmatch(body)) and find_compound_unit(match["unit"]):
            yield match["of"], match["unit"]
    yield body, ""


def calculate(request: str, _: Work) -> Result:
    """Return the result of an expression, or of the longest one in a text. Raises ToolError."""
    notation = expression_of(request) or _find_longest(request)
    if notation is None:
        raise ToolError("expression_unreadable")
    if len(notation) > LONGEST:
        raise ToolError("expression_long", limit=LONGEST)
    source, separator, target = notation.rpartition(" in ")
    if not separator or find_compound_unit(target) is None:
        source, target = notation, ""
    try:
        expression = Expression(source)
    except RecursionError as error:
        raise ToolError("expression_deep") from error
    except ValueError as error:
        raise ToolError("expression_unreadable") from error
    with localcontext(CONTEXT):
        number, unit = _convert(expression.value(), expression.units, target)
        digits, exact = _format(number)
    text = f"{notation} {'=' if exact else '≈'} {digits}{unit if unit == '%' else f' {unit}'.rstrip()}"
    return Result(text, {"expression": notation, "value": digits, "unit": unit})


def _find_longest(text: str) -> str | None:
    """Return the longest expression in a text, delimited by the words around it."""
    parts = _PARTS.findall(text[: 4 * LONGEST])
    parts = [part.strip(" .,?的").removesuffix(" of") for part in parts]
    expressions = [one for part in parts if not _TRUNCATED.match(part) and (one := expression_of(part))]
    return max(expressions, key=len, default=None)


def _convert(value: Quantity, units: Sequence[Unit], target: str) -> tuple[Decimal, str]:
    """Return the number of a quantity and its unit: the target, else the first that fits, else one made of `units`."""
    unit = (
        find_compound_unit(target)
        if target
        else next((one for one in units if one.size.dimension == value.dimension), None)
    )
    if unit is not None:
        if unit.size.dimension != value.dimension:
            raise ToolError("expression_units")
        return (value.value - unit.zero) / unit.size.value, unit.symbol
    size, names = Decimal(1), []
    for place, power in enumerate(value.dimension):
        base = next((one for one in units if one.size.dimension == BASES[place][1]), None)
        if power:
            size *= base.size.value**power if base else 1
            names.append((base.symbol if base else BASES[place][0], power))
    below = "".join(f"/{name}{_superscript(-power)}" for name, power in names if power < 0)
    return value.value / size, "·".join(f"{name}{_superscript(power)}" for name, power in names if power > 0) + below


def _superscript(power: int) -> str:
    return "" if power == 1 else "²³"[power - 2] if power in (2, 3) else f"^{power}"


def _format(number: Decimal) -> tuple[str, bool]:
    """Return the number to twelve digits, or 34 for whole numbers, and whether that is exact."""
    whole = number == number.to_integral_value()
    short = number if whole and abs(number) < Decimal("1e34") else _DIGITS.plus(number)
    is_plain = short == 0 or Decimal("1e-9") <= abs(short) < Decimal("1e34")
    text = f"{short:f}" if is_plain else f"{short.normalize():e}".replace("e+", "e")
    return text.rstrip("0").rstrip(".") if is_plain and "." in text else text, short == number


TOOL: Final = Tool(
    "calculator",
    "Works out arithmetic exactly, with percent (15% * 240, 240 + 15%), functions (sqrt, ln, log, sin, round) and units"
    " (5 km in miles). It knows no prices and no facts.",
    "expression",
    "such as (3 + 4) * 2, 15% * 240, sqrt(2), 5 km in miles",
    2.0,
    calculate,
)
