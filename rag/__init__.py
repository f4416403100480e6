"""Collect web pages, ask questions about them, check every statement of the answer."""

import os

# numpy's matrix products are small here. A second thread does not speed them up, and its busy waiting took
# as much processor time as the search itself. Read when numpy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

__version__ = "0.1.0"
