"""Runs a question through a graph of steps: decide, search, grade, rewrite, answer.

`runs.Runs` starts runs, keeps them and hands out their events; `reasoner.Reasoner` is what thinks in
them; `modes.MODES` has a row for each way to answer, a `run.Mode`. The first is in `loop/`.
"""
