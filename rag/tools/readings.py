"""The readings of a message as a calculation: an expression without the request, and the units of its result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from rag.patterns import lazy_regex
from rag.quantities.units import UNITS, Unit, find_compound_unit
from rag.tools.wording import NUMBER, RATIOS

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
