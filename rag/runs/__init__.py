"""Starts runs, drives their graphs, streams, bounds and stops them, and keeps them for whoever looks on.

`runs.Runs` knows no graph: a `run.Mode` gives one with what goes into it, and makes an answer of its last state.
"""
