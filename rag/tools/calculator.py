"""Arithmetic and units: whether a message is that as a whole, and what it comes to."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, localcontext
from typing import Final

from rag.errors import ToolError
from rag.quantities.units import BASES, Quantity, Unit, compound_unit
from rag.tools.arithmetic import CONTEXT, LONGEST, Expression
from rag.tools.tool import Result, Tool, Work
from rag.tools.wording import RATIOS, tidied

_DIGITS: Final = Context(prec=12)
_UNIT: Final = r"(?P<unit>(?:square |cubic |degrees? )?[A-Za-z°%\u4e00-\u9fff]{1,16}(?:/[A-Za-z\u4e00-\u9fff]{1,16})?)"
_LEAD: Final = re.compile(
    r"(?:(?:please|(?:can|could|would|will) you|tell me|请问?|麻烦|帮我|给我|你|原价)[, ，]*+)*+"
    r"(?P<asks>what do (?:you|i) get (?:if|when) (?:you|i)|what(?:'?s| is| are| does)|how (?:much|many) (?:is|are)"
    r"|calculate|compute|evaluate|work out|solve|convert|计算|换算|算|求|把|将|=)?(?:一?算|一下|出)*+[ :：]*+"
    r"(?:the (?:value|result) of )?",
    re.IGNORECASE,
)
_TAIL: Final = re.compile(
    r"(?<!\s)\s*+(?P<asks>=|\bequals?(?: to)?|的?结果(?:是|为)?|\bcomes? to|\bis how much|等于|得|是|为)?"
    r" ?(?:what|多少钱?|几)?(?:,? ?please|呢|啊)?\Z",
    re.IGNORECASE,
)
_INTO: Final = (
    re.compile(rf"\Ahow many {_UNIT} (?:are (?:there )?in|is|are|in|equals?|makes?) (?P<of>.+)", re.IGNORECASE),
    re.compile(rf"\A(?P<of>.+) (?:in|to|into|as) {_UNIT}", re.IGNORECASE),
    re.compile(
        rf"\A(?P<of>[^是等合为有换转折化相]+)(?:(?:换算|转换|换|转|折合|化)[成为到]?|相?[是等于合为有当]{{0,3}}(?:多少|几)个?){_UNIT}"
    ),
    re.compile(
        r"\A(?P<of>[^是等合为换转]+)(?:相当于|等于|是|为|合|换算?成?|转换?成?)(?P<unit>[华摄]氏)(?:多少度|几度|度)?\Z"
    ),
)
# A date, a range, a number of a telephone or a version: what is so written is to be worked out only if that is said.
_OTHERWISE: Final = re.compile(
    r"(?:the )?difference between (?:\d{4} and \d{4}|\d+\.\d+ and \d+(?:\.\d+)?)|(?:19|20)\d\d[\u4e00-\u9fff]+[\d.]+%"
    r"|\d{4}(?:-\d\d?){2}\b.*|[1-9]\d?/[1-9]\d?|\d{4,}-\d+|\d+-(?:0\d*|\d{4,})|\d+(?:-\d+){2,}|\d{1,4}(?:/\d{1,4}){2,}"
)
_PARTS: Final = re.compile(
    r"(?:[\d\s.,+*/()%!×÷^-]|\b(?:plus|minus|times|of|divided by|percent)\b|[加减乘除以的]){3,}+"
)
_CUT: Final = re.compile(r"[+*/%×÷^加减乘除以]|-\s|(?:plus|minus|times|of|divided)\b")
"""What an expression begins with whose first number stands before it, in words."""
_BARE: Final = re.compile(r"[\d\s.,()%!×÷^*/+-]*+")


def expression_of(text: str) -> str | None:
    """The arithmetic or conversion that a message is as a whole, apart from what asks for it; None for any other.

    What is nothing but digits and signs counts however long or deep it is: `calculate` says what is wrong with it.
    """
    if len(text) > LONGEST:
        return text if _BARE.fullmatch(text) and re.search(r"\d\s*[-+*/^×÷]", text) else None
    body, said_so = _unframed(tidied(text))
    for of, unit in _readings(body):
        try:
            found = Expression(of)
        except ValueError:
            continue
        except RecursionError:
            return body
        if unit or (found.works and (said_so or not _OTHERWISE.fullmatch(of))):
            return f"{found.shown} in {unit}" if unit else found.shown
    return None


def _unframed(text: str) -> tuple[str, bool]:
    """Without what asks to work it out, and whether that is said in so many words; "what is" asks for anything."""
    lead = _LEAD.match(text)
    start = lead.end() if lead else 0
    text = text.rstrip(" ?？。.")
    tail = _TAIL.search(text, start)
    asks = [one["asks"] for one in (lead, tail) if one and one["asks"]]
    return text[start : tail.start() if tail else len(text)], any(not one.lower().startswith("what") for one in asks)


def _readings(body: str) -> Iterator[tuple[str, str]]:
    """What is to be worked out, and the unit that it is to come to; as it stands comes last."""
    for ratio, signs in RATIOS:
        if found := ratio.fullmatch(body):
            yield found.expand(signs), "%"
    for into in _INTO:
        if (found := into.fullmatch(body)) and compound_unit(found["unit"]):
            yield found["of"], found["unit"]
    yield body, ""


def calculate(said: str, _: Work) -> Result:
    """What an expression, or the longest in a text, comes to. Raises ToolError."""
    shown = expression_of(said) or _within(said)
    if shown is None:
        raise ToolError("expression_unreadable")
    if len(shown) > LONGEST:
        raise ToolError("expression_long", limit=LONGEST)
    of, joint, wanted = shown.rpartition(" in ")
    if not joint or compound_unit(wanted) is None:
        of, wanted = shown, ""
    try:
        expression = Expression(of)
    except RecursionError as error:
        raise ToolError("expression_deep") from error
    except ValueError as error:
        raise ToolError("expression_unreadable") from error
    with localcontext(CONTEXT):
        number, unit = _measured(expression.value(), expression.units, wanted)
        written, exact = _written(number)
    text = f"{shown} {'=' if exact else '≈'} {written}{unit if unit == '%' else f' {unit}'.rstrip()}"
    return Result(text, {"expression": shown, "value": written, "unit": unit})


def _within(said: str) -> str | None:
    """The longest expression that stands in a text, by the words around it."""
    parts = _PARTS.findall(said[: 4 * LONGEST])
    parts = [part.strip(" .,?的").removesuffix(" of") for part in parts]
    found = [one for part in parts if not _CUT.match(part) and (one := expression_of(part))]
    return max(found, key=len, default=None)


def _measured(value: Quantity, units: Sequence[Unit], wanted: str) -> tuple[Decimal, str]:
    """The number of a quantity and its unit: the one that is wanted, else the first that fits, else made of those."""
    unit = (
        compound_unit(wanted) if wanted else next((one for one in units if one.size.dimension == value.dimension), None)
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
    over = "".join(f"/{name}{_raised(-power)}" for name, power in names if power < 0)
    return value.value / size, "·".join(f"{name}{_raised(power)}" for name, power in names if power > 0) + over


def _raised(power: int) -> str:
    return "" if power == 1 else "²³"[power - 2] if power in (2, 3) else f"^{power}"


def _written(number: Decimal) -> tuple[str, bool]:
    """To twelve digits, and whether that is all of it; whole numbers to 34."""
    whole = number == number.to_integral_value()
    short = number if whole and abs(number) < Decimal("1e34") else _DIGITS.plus(number)
    plain = short == 0 or Decimal("1e-9") <= abs(short) < Decimal("1e34")
    text = f"{short:f}" if plain else f"{short.normalize():e}".replace("e+", "e")
    return text.rstrip("0").rstrip(".") if plain and "." in text else text, short == number


TOOL: Final = Tool(
    "calculator",
    "Works out arithmetic exactly, with percent (15% * 240, 240 + 15%), functions (sqrt, ln, log, sin, round) and units"
    " (5 km in miles). It knows no prices and no facts.",
    "expression",
    "such as (3 + 4) * 2, 15% * 240, sqrt(2), 5 km in miles",
    2.0,
    calculate,
)
