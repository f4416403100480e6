"""Read the values of a text: numbers with sign, bound and unit, dates, times, ratios, versions and identifiers.

`numerals` turns digits and words into numbers, `units` knows measures and currencies, `values` finds what a text says.
"""
