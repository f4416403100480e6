"""Compares a statement with a sentence: `support.judge` says whether the one bears the other out.

`reading` turns text into comparable tokens: words by their stems, numbers with their units (`quantities`, `measures`),
times (`moments`), names. `coverage` tells what of a statement stands in the sentence; `contradictions` what stands
against it: amounts, denials, stances, roles, and what was exchanged.
"""
