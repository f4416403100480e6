"""The calculator for arithmetic and units: recognises messages that are calculations as a whole, and evaluates them.

An operator precedence parser (Pratt, 1973) builds a syntax tree, which is evaluated to 34 digits without `eval`.
Decimals (IEEE 754 decimal128, exponents up to 9999) keep each step short for any input: 9**9**9**9 overflows at once.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Context, Decimal, DecimalException, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from itertools import combinations
from typing import Any, Final

from rag.errors import ToolError
from rag.patterns import lazy_regex
from rag.quantities.numerals import parse_chinese
from rag.quantities.units import (
    BASES,
    NONE,
    UNITS,
    Quantity,
    Unit,
    find_compound_unit,
    find_unit,
    load_currencies,
    raise_symbol,
)
from rag.tools.readings import find_readings, find_target_units, strip_request
from rag.tools.tool import Tool, ToolResources, ToolResult
from rag.tools.wording import HAN_NUMERALS, MONEY_CODES, money_format, normalise_expression, replace_words

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
    return ToolResult(f"{expression.notation} {'=' if is_exact else '≈'} {result}", {"expression": notation})


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
    text = replace_words(normalise_expression(text))
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
        return _apply_unit(_evaluate(operands[0]), operands[1])
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


def _apply_unit(value: Quantity, unit: Unit) -> Quantity:
    if unit.zero:
        return Quantity((_as_number(value) * unit.size.value) + unit.zero, unit.size.dimension)
    return Quantity(value.value * unit.size.value, value.multiply_dimension(unit.size))


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
