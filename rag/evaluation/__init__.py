"""Whether a change helped: sets of questions, runs over them, metrics, and what they can be trusted to say.

`metrics` scores one answered question by `evidence`, words and `support`; `statistics` compares runs. `sets` keeps
questions, `runs` asks them, `comparison` puts runs side by side, and `gate` says whether too much was lost.
"""
