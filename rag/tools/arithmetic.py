"""Arithmetic in both languages: parsed into a syntax tree, and calculated to 34 digits; never `eval`.

Decimal numbers (IEEE 754 decimal128, exponents up to 9999) keep each step short for any input: 9**9**9**9 overflows
immediately. The parser is an operator precedence parser (Pratt, 1973).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, localcontext
from typing import Any, Final

from rag.errors import ToolError
from rag.patterns import lazy_regex
from rag.quantities.numerals import parse_chinese
from rag.quantities.units import NONE, UNITS, Quantity, Unit, find_compound_unit
from rag.tools.wording import HAN_NUMERALS, normalise, replace_words

LONGEST: Final = 500
"""Maximum characters of an expression."""
DEEPEST: Final = 60
CONTEXT: Final = Context(prec=34, Emax=9999, Emin=-9999, traps=[Overflow, DivisionByZero, InvalidOperation])

_HAN_UNITS: Final = "|".join(sorted((name for name in UNITS if not re.search("[a-z°]", name, re.I)), key=len)[::-1])
_TOKEN: Final = lazy_regex(
    r"\s*+(?:(?P<number>(?:\d{1,3}(?:,\d{3})++(?!\d)|\d++)(?:\.\d++)?(?:[eE][+-]?\d++)?|\.\d++)"
    rf"|(?P<word>(?:square |cubic |degrees? )?[A-Za-zπ°]++|(?:平方|立方)?(?:{_HAN_UNITS}))"
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

Node = tuple[Any, ...]
"""A sign, "number", "unit" or the name of a function, and its operands."""


class Expression:
    """A text parsed as arithmetic. Raises ValueError if it is not one as a whole, RecursionError if it is too deep.

    `units` are those it names, `notation` is its normalised form, `is_formula` is whether it needs calculation.
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
        text = re.sub(r"(?<=[(]) | (?=[%!),])|(?<=\b[a-z]{3}) (?=\()|(?<=sqrt) (?=\()", "", text)
        return re.sub(r"(?<![^(])([-+]) ", r"\1", re.sub(r" ?\*\* ?", "^", text))

    def value(self) -> Quantity:
        """Return the result. Raises ToolError."""
        with localcontext(CONTEXT):
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

    def _parse(self, power: int, depth: int) -> Node:
        """Parse as much as binds more tightly than `power`."""
        if depth > DEEPEST:
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

    def _parse_adjacent(self, left: Node, depth: int) -> Node:
        """Parse what follows without a sign: a unit, the next part of a measure, or a factor."""
        kind, symbol = self._peek()
        if unit := find_compound_unit(symbol) if kind == "word" else None:
            self._advance()
            self.units.append(unit)
            return ("unit", left, unit)
        return ("+" if left[0] == "unit" and kind == "number" else "*", left, self._parse(_NEGATION, depth + 1))

    def _parse_operand(self, depth: int) -> Node:
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
            return (symbol, self._parse(_NEGATION, depth + 1))
        if symbol in _FUNCTIONS and (symbol != "min" or self._peek()[1] == "("):
            return (symbol, *self._parse_arguments(depth))
        if symbol in _CONSTANTS:
            return ("number", Decimal(_CONSTANTS[symbol]))
        if previous in ("*", "/") and (unit := find_compound_unit(symbol)):
            self.units.append(unit)
            return ("unit", ("number", Decimal(1)), unit)
        raise ValueError(symbol)

    def _parse_arguments(self, depth: int) -> list[Node]:
        if self._peek()[1] != "(":
            return [self._parse(_NEGATION, depth + 1)]
        arguments = []
        while self._advance()[1] in ("(", ","):
            arguments.append(self._parse(0, depth + 1))
            if self._at >= len(self._tokens):
                raise ValueError
        return arguments


def _tokens(text: str) -> list[tuple[str, str]]:
    if len(text) > LONGEST or not text.strip():
        raise ValueError(text)
    text = replace_words(normalise(text))
    tokens: list[tuple[str, str]] = []
    position = 0
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            raise ValueError(text[position:])
        kind, symbol = ("number" if token["han"] else str(token.lastgroup)), token[0].strip()
        if token["han"] and tokens and tokens[-1][0] == "number" and not set(symbol) - set("百千万亿"):  # 3万
            symbol = f"{parse_chinese(tokens.pop()[1].replace(',', '') + symbol).normalize():f}"
        elif token["han"]:
            symbol = f"{parse_chinese(symbol):f}"
        tokens.append((kind, symbol.lower() if symbol.lower() in _NAMES else symbol))
        position = token.end()
    return tokens


def _evaluate(node: Node) -> Quantity:
    kind, *operands = node
    if kind == "number":
        return Quantity(operands[0])
    if kind == "unit":
        return _apply_unit(_evaluate(operands[0]), operands[1])
    if kind == "()":
        return _evaluate(operands[0])
    if len(operands) == 2 and kind in _INFIX:
        return _calculate(kind, *operands)
    values = [_evaluate(one) for one in operands]
    if kind in "+-":
        return Quantity(-values[0].value if kind == "-" else values[0].value, values[0].dimension)
    if kind == "sqrt" and values[0].dimension != NONE:
        return _power(values[0], Quantity(Decimal("0.5")))
    numbers = [_as_number(one) for one in values]
    if kind == "%":
        return Quantity(numbers[0] / 100)
    return Quantity(_factorial(numbers[0]) if kind == "!" else +_FUNCTIONS[kind](*numbers))


def _apply_unit(value: Quantity, unit: Unit) -> Quantity:
    if unit.zero:
        return Quantity((_as_number(value) * unit.size.value) + unit.zero, unit.size.dimension)
    return Quantity(value.value * unit.size.value, value.multiply_dimension(unit.size))


def _calculate(sign: str, first: Node, second: Node) -> Quantity:
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
