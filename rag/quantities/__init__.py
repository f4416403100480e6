"""Values in text: numbers with sign, bound and unit, dates, times, ratios, versions and identifiers.

`numerals` parses digits and words, `units` has measures and currencies, `detection` finds values, `values` compares
them.
"""
