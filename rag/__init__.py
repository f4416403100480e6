"""Question answering over collected web pages, with every statement checked against its source."""

import os

# Matrix products are small here: a second BLAS thread gains nothing, and its busy-waiting used as much CPU time as the
# search itself. numpy reads the variable on import.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
