"""The pipeline of `benchmarks/tutorial.py`, asked questions: PAGES QUESTIONS RUN. It takes ten passages, as shown."""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

from benchmarks import tutorial

if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        tutorial.main(sys.argv[1], folder, *sys.argv[2:4])
