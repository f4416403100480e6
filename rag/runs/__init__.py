"""Background runs: start, drive, stream, limit, stop and store them.

`runs.Runs` depends on no graph: a `run.Mode` provides one with its input, and makes an answer from its final state.
"""
