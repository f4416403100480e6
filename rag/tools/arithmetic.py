"""Arithmetic in both languages: read into a syntax tree, and worked out to 34 digits; never `eval`.

Decimal numbers (IEEE 754 decimal128, exponents up to 9999) keep each step short, whatever is asked: 9**9**9**9
overflows at once. The tree comes from operator precedence parsing (Pratt, 1973).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, localcontext
from typing import Any, Final

from rag.errors import ToolError
from rag.text import chinese_number
from rag.tools.units import NONE, UNITS, Quantity, Unit, unit_named

LONGEST: Final = 500
"""Characters of an expression."""
DEEPEST: Final = 60
CONTEXT: Final = Context(prec=34, Emax=9999, Emin=-9999, traps=[Overflow, DivisionByZero, InvalidOperation])

_HAN: Final = "〇零一二两三四五六七八九十百千万亿"
_NUMBER: Final = rf"(?:(?<![\d.,])\d[\d.,]*+|(?<![{_HAN}])[{_HAN}]++)"
_HAN_UNITS: Final = "|".join(sorted((name for name in UNITS if not re.search("[a-z°]", name, re.I)), key=len)[::-1])
# What is said in words, as the signs that it stands for.
_SIGNS: Final = tuple(
    (re.compile(words, re.IGNORECASE), sign)
    for words, sign in (
        (rf"百分之({_NUMBER})", r"\1%"),
        (rf"({_NUMBER})分之({_NUMBER})", r"(\2/\1)"),
        (rf"的({_NUMBER})次[方幂]", r"**\1"),
        (rf"({_NUMBER})的平方根", r"sqrt \1"),
        (rf"({_NUMBER})的立方根", r"cbrt \1"),
        (r"\b(?:the )?square root of\b|根号|√", "sqrt "),
        (r"\b(?:the )?cube root of\b", "cbrt "),
        (r"\bhalf of\b|半(?=[个公千平立]?[米斤克里升吨磅码时分天周小])", "0.5 * "),
        (r"\ban? (?=[a-z])", "1 "),
        (r" ?\bto the (?:power of|power)\b|\^", "**"),
        (r" ?\bsquared\b|的平方", "**2"),
        (r" ?\bcubed\b|的立方", "**3"),
        (r" ?\bfactorial\b|的?阶乘", "!"),
        (r" ?\bper ?cent\b", "%"),
        (r"% of\b|%的", "% *"),
        (rf"的(?={_NUMBER}(?:%|倍))", " *"),
        (r"倍(?!的)|再(?=[加减乘除])", ""),
        (r"\b(?:multiplied by|times)\b|乘以|乘|倍的|[×·✕]|(?<=\d) ?x ?(?=\d)", "*"),
        (r"\bdivided by\b|除以|[÷⁄]|(?<=[米里])每", "/"),
        (r"\bplus\b|加上|加", "+"),
        (r"\bminus\b|减去|减|[−–]", "-"),
    )
)
_TOKEN: Final = re.compile(
    r"\s*+(?:(?P<number>(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?:[eE][+-]?\d++)?|\.\d++)"
    rf"|(?P<word>(?:square |cubic |degrees? )?[A-Za-zπ°]++|(?:平方|立方)?(?:{_HAN_UNITS}))"
    rf"|(?P<han>[{_HAN}]++(?:点[{_HAN}]++)?)"
    r"|(?P<sign>\*\*|[-+*/()%!,]))\s*+"
)
_INFIX: Final = {"+": 10, "-": 10, "*": 20, "/": 20, "mod": 20, "**": 40}
_NEGATED: Final = 30
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

Node = tuple[Any, ...]
"""A sign, "number", "unit" or the name of a function, and what it is of."""


class Expression:
    """A text read as arithmetic. Raises ValueError for one that is none as a whole; RecursionError for too deep a one.

    `units` are those that it names, `shown` is how it is written, and `works` says whether there is anything to work
    out in it.
    """

    def __init__(self, text: str) -> None:
        self.units: list[Unit] = []
        self._tokens = list(_tokens(text))
        self._at = 0
        self.tree = self._expression(0, 0)
        self.works = self.tree[0] not in ("number", "unit", "%") and self.tree != ("-", ("number", self.tree[-1]))
        if self._at < len(self._tokens):
            raise ValueError(text)

    @property
    def shown(self) -> str:
        """In one form, whatever language it came in."""
        written = " ".join(said for _, said in self._tokens)
        written = re.sub(r"(?<=[(]) | (?=[%!),])|(?<=\b[a-z]{3}) (?=\()|(?<=sqrt) (?=\()", "", written)
        return re.sub(r"(?<![^(])([-+]) ", r"\1", re.sub(r" ?\*\* ?", "^", written))

    def value(self) -> Quantity:
        """What it comes to. Raises ToolError."""
        with localcontext(CONTEXT):
            try:
                found = _value(self.tree)
                return Quantity(+found.value, found.dimension)
            except (Overflow, OverflowError) as error:
                raise ToolError("expression_large") from error
            except (DivisionByZero, ZeroDivisionError) as error:
                raise ToolError("expression_by_zero") from error
            except (DecimalException, ValueError, TypeError) as error:
                raise ToolError("expression_undefined") from error

    def _next(self) -> tuple[str, str]:
        return self._tokens[self._at] if self._at < len(self._tokens) else ("", "")

    def _take(self) -> tuple[str, str]:
        self._at += 1
        return self._tokens[self._at - 1]

    def _expression(self, power: int, depth: int) -> Node:
        """As much as binds more tightly than `power`."""
        if depth > DEEPEST:
            raise RecursionError
        left = self._operand(depth)
        while self._at < len(self._tokens):
            kind, said = self._next()
            if said in ("%", "!"):
                self._take()
                left = (said, left)
            elif said in _INFIX and _INFIX[said] > power:
                self._take()
                right = self._expression(_INFIX[said] - (said == "**"), depth + 1)
                left = (said, left, right)
            elif said in _INFIX or said in (")", ",") or (kind != "word" and left[0] != "unit" and said != "("):
                break
            else:
                left = self._beside(left, depth)
        return left

    def _beside(self, left: Node, depth: int) -> Node:
        """What stands beside it without a sign: its unit, the next part of a measure, or a factor."""
        kind, said = self._next()
        if unit := unit_of(said) if kind == "word" else None:
            self._take()
            self.units.append(unit)
            return ("unit", left, unit)
        return ("+" if left[0] == "unit" and kind == "number" else "*", left, self._expression(_NEGATED, depth + 1))

    def _operand(self, depth: int) -> Node:
        if self._at >= len(self._tokens):
            raise ValueError
        before = self._tokens[self._at - 1][1] if self._at else ""
        kind, said = self._take()
        if kind == "number":
            return ("number", Decimal(said.replace(",", "")))
        if said == "(":
            inner = self._expression(0, depth + 1)
            if self._next()[1] != ")":
                raise ValueError(said)
            self._take()
            return ("()", inner)
        if said in ("-", "+"):
            return (said, self._expression(_NEGATED, depth + 1))
        if said in _FUNCTIONS and (said != "min" or self._next()[1] == "("):
            return (said, *self._arguments(depth))
        if said in _CONSTANTS:
            return ("number", Decimal(_CONSTANTS[said]))
        if before in ("*", "/") and (unit := unit_of(said)):
            self.units.append(unit)
            return ("unit", ("number", Decimal(1)), unit)
        raise ValueError(said)

    def _arguments(self, depth: int) -> list[Node]:
        if self._next()[1] != "(":
            return [self._expression(_NEGATED, depth + 1)]
        given = []
        while self._take()[1] in ("(", ","):
            given.append(self._expression(0, depth + 1))
            if self._at >= len(self._tokens):
                raise ValueError
        return given


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > LONGEST or not text.strip():
        raise ValueError(text)
    text = unicodedata.normalize("NFKC", text.replace("²", "^2").replace("³", "^3"))
    for words, sign in _SIGNS:
        text = words.sub(sign, text)
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError(text[place:])
        kind, said = ("number" if token["han"] else str(token.lastgroup)), token[0].strip()
        if token["han"] and found and found[-1][0] == "number" and not set(said) - set("百千万亿"):  # 3万
            times = math.prod(chinese_number(f"一{one}") for one in said)
            said = f"{Decimal(found.pop()[1].replace(',', '')) * times:f}"
        elif token["han"]:
            said = str(_han_value(said))
        found.append((kind, said.lower() if said.lower() in _NAMES else said))
        place = token.end()
    return found


def unit_of(said: str) -> Unit | None:
    """A unit by its name, its square or cube ("square metres"), one for another ("km/h"), or per cent."""
    if said == "%":
        return Unit("%", Quantity(Decimal("0.01")))
    one, by, other = said.replace("每", "/").partition("/")
    unit, per = unit_named(one.split()[-1]) if one.split() else None, unit_named(other)
    if by and unit and per:
        return Unit(
            f"{unit.symbol}/{per.symbol}", Quantity(unit.size.value / per.size.value, unit.size.times(per.size, -1))
        )
    han = {"平方": 2, "立方": 3}.get(one[:2]) if unit is None and not by else None
    unit = unit_named(one[2:]) if han else unit
    power = han or ({"square": 2, "cubic": 3}.get(one.split()[0].lower()) if unit else None)
    if by or unit is None or power is None:
        return None if by else unit
    return Unit(f"{unit.symbol}{'²' if power == 2 else '³'}", _power(unit.size, Quantity(Decimal(power))))


def _han_value(said: str) -> Decimal:
    whole, _, part = said.partition("点")
    digits = "".join(str(chinese_number(one)) for one in part)
    return Decimal(f"{chinese_number(whole)}.{digits}" if digits else chinese_number(whole))


def _value(node: Node) -> Quantity:
    kind, *given = node
    if kind == "number":
        return Quantity(given[0])
    if kind == "unit":
        return _in_unit(_value(given[0]), given[1])
    if kind == "()":
        return _value(given[0])
    if len(given) == 2 and kind in _INFIX:
        return _joined(kind, *given)
    values = [_value(one) for one in given]
    if kind in "+-":
        return Quantity(-values[0].value if kind == "-" else values[0].value, values[0].dimension)
    if kind == "sqrt" and values[0].dimension != NONE:
        return _power(values[0], Quantity(Decimal("0.5")))
    plain = [_plain(one) for one in values]
    if kind == "%":
        return Quantity(plain[0] / 100)
    return Quantity(_factorial(plain[0]) if kind == "!" else +_FUNCTIONS[kind](*plain))


def _in_unit(value: Quantity, unit: Unit) -> Quantity:
    if unit.zero:
        return Quantity((_plain(value) * unit.size.value) + unit.zero, unit.size.dimension)
    return Quantity(value.value * unit.size.value, value.times(unit.size))


def _joined(sign: str, first: Node, second: Node) -> Quantity:
    left, right = _value(first), _value(second)
    if sign in "+-":
        if second[0] == "%":  # 240 + 15%
            right = Quantity(left.value * right.value, left.dimension)
        if left.dimension != right.dimension:
            raise ToolError("expression_units")
        return Quantity(left.value + right.value if sign == "+" else left.value - right.value, left.dimension)
    if sign == "*":
        return Quantity(left.value * right.value, left.times(right))
    if sign == "/":
        return Quantity(left.value / right.value, left.times(right, -1))
    if sign == "**":
        return _power(left, right)
    by = _plain(right)
    return Quantity(_plain(left) - by * (left.value / by).to_integral_value("ROUND_FLOOR"))


def _power(base: Quantity, power: Quantity) -> Quantity:
    exponent = _plain(power)
    if base.dimension == NONE:
        return Quantity(base.value**exponent)
    dimension = tuple(one * exponent for one in base.dimension)
    if any(one % 1 for one in dimension) or abs(exponent) > 9:
        raise ToolError("expression_units")
    return Quantity(base.value**exponent, tuple(map(int, dimension)))


def _plain(quantity: Quantity) -> Decimal:
    if quantity.dimension != NONE:
        raise ToolError("expression_units")
    return quantity.value


def _factorial(value: Decimal) -> Decimal:
    if value != value.to_integral_value() or value < 0:
        raise InvalidOperation
    if value > 3000:
        raise Overflow
    return +Decimal(math.factorial(int(value)))
