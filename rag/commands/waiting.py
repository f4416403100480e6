"""Waiting for the database before a command starts."""

from __future__ import annotations

import argparse
import sys

from rag.app import wait_for_database
from rag.config import Settings
from rag.locales import say


def wait(settings: Settings, options: argparse.Namespace) -> int:
    """Return once the database answers. Raises StoreAwayError after `--wait` seconds."""
    wait_for_database(settings, options.wait, lambda notice: print(say(notice, "en"), file=sys.stderr, flush=True))
    return 0
