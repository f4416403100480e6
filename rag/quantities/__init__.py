"""Values in texts: numbers with sign, bound and unit, dates, times, ratios, versions and identifiers.

`numerals` parses digits and number words, `units` has measures and currencies, `reading` finds the values of a text,
and `values` compares them.
"""
