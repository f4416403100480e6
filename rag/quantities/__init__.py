"""Values in text: numbers with sign, bound and unit, dates, times, ratios, versions and identifiers.

`values` has numbers, units and currencies, and compares values; `detection` finds them.
"""
