"""Arithmetic in both languages: read into a syntax tree, and worked out to 34 digits; never `eval`.

Decimal numbers (IEEE 754 decimal128, exponents up to 9999) keep each step short, whatever is asked: 9**9**9**9
overflows at once. The tree comes from operator precedence parsing (Pratt, 1973).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, localcontext
from typing import Any, Final

from rag.errors import ToolError
from rag.quantities.numerals import chinese_number
from rag.quantities.units import NONE, UNITS, Quantity, Unit, compound_unit
from rag.tools.wording import HAN_NUMERALS, in_signs, tidied

LONGEST: Final = 500
"""Characters of an expression."""
DEEPEST: Final = 60
CONTEXT: Final = Context(prec=34, Emax=9999, Emin=-9999, traps=[Overflow, DivisionByZero, InvalidOperation])

_HAN_UNITS: Final = "|".join(sorted((name for name in UNITS if not re.search("[a-z°]", name, re.I)), key=len)[::-1])
_TOKEN: Final = re.compile(
    r"\s*+(?:(?P<number>(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?:[eE][+-]?\d++)?|\.\d++)"
    rf"|(?P<word>(?:square |cubic |degrees? )?[A-Za-zπ°]++|(?:平方|立方)?(?:{_HAN_UNITS}))"
    rf"|(?P<han>[{HAN_NUMERALS}]++(?:点[{HAN_NUMERALS}]++)?)"
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
        tokens = self._tokens[1:-1] if self.tree[0] == "()" else self._tokens
        written = " ".join(said for _, said in tokens)
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
        if unit := compound_unit(said) if kind == "word" else None:
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
        if before in ("*", "/") and (unit := compound_unit(said)):
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
    text = in_signs(tidied(text))
    found: list[tuple[str, str]] = []
    place = 0
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise ValueError(text[place:])
        kind, said = ("number" if token["han"] else str(token.lastgroup)), token[0].strip()
        if token["han"] and found and found[-1][0] == "number" and not set(said) - set("百千万亿"):  # 3万
            said = f"{chinese_number(found.pop()[1].replace(',', '') + said).normalize():f}"
        elif token["han"]:
            said = f"{chinese_number(said):f}"
        found.append((kind, said.lower() if said.lower() in _NAMES else said))
        place = token.end()
    return found


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
