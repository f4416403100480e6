"""The adaptive loop: search, look at what was found, search again in other words, answer.

`graph.build_fast` and `graph.build_deep` hand on the two graphs of the modes of the same names.
"""
