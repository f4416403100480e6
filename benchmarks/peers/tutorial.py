"""The pipeline of `benchmarks/tutorial.py` with questions, ten passages for each: PAGES QUESTIONS RUN."""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

from benchmarks import tutorial

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        tutorial.main(sys.argv[1], folder, *sys.argv[2:4])
