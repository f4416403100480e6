"""Evaluation of changes: question sets, runs over them, metrics, and how certain their results are.

`metrics` scores one answered question by `evidence`, words and `support`; `statistics` compares runs. `sets` stores
questions, `runs` asks them, `comparison` compares runs with each other, and checks limits on losses.
"""
