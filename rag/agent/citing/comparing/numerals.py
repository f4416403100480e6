"""English words that are numbers: cardinals, ordinals, scales and months."""

from __future__ import annotations

from types import MappingProxyType

NUMBER_WORDS = MappingProxyType(
    {
        word: float(value)
        for value, word in enumerate(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen".split()
        )
        if value != 1
    }
    | {
        word: 10.0 * place
        for place, word in enumerate("twenty thirty forty fifty sixty seventy eighty ninety".split(), 2)
    }
    | {
        word: float(place)
        for place, word in enumerate(
            (
                "third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth "
                "sixteenth seventeenth eighteenth nineteenth twentieth".split()
            ),
            3,
        )
    }
    | {"twice": 2.0, "thrice": 3.0, "double": 2.0, "triple": 3.0}
)
SCALES = MappingProxyType(
    {"dozen": 12.0, "hundred": 1e2, "thousand": 1e3, "million": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
)
MONTHS = MappingProxyType(
    {
        name: number
        for number, names in enumerate(
            "january jan|february feb|march|april apr|may|june jun|july jul|august aug|september sept sep|october oct"
            "|november nov|december dec".split("|"),
            1,
        )
        for name in names.split()
    }
)
