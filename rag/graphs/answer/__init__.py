"""The adaptive loop: search, look at what was found, search again in other words, answer.

`mode.LoopMode` hands on the two graphs, fast and deep.
"""
