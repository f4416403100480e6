"""The answer loop: search, grade the passages, search again in other words, answer.

`mode.LoopMode` provides its two graphs, fast and deep.
"""
