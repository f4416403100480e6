"""The command-line interface: `python -m rag [--data-dir DIR] [--library NAME] COMMAND …`.

Results go to stdout, as JSON lines with --json; logs and errors to stderr. Exit status: 0 success,
1 failure, 2 usage error.
"""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from datetime import datetime
from io import TextIOWrapper
from typing import Any, Final, get_args

from rag import __version__
from rag.config import CHUNKERS, STRATEGIES, Settings, load_settings
from rag.errors import ConfigError, RagError
from rag.process import configure_logging
from rag.text import replace_surrogates, strip_controls
from rag.types import RunMode

Command = Callable[[Settings, argparse.Namespace], int]

_WITHOUT_DATABASE: Final = frozenset(
    ("questions.check", "questions.route", "pages.extract", "pages.chunk", "doctor.doctor")
)
"""Commands that need no database, or report on it themselves."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # prints "?" for characters that the terminal cannot show
    parser = _build_parser()
    options = parser.parse_args(arguments)
    level = logging.INFO if options.verbose else logging.ERROR
    configure_logging(stream=sys.stderr, level=level, format="%(levelname)s %(name)s: %(message)s")
    warnings.simplefilter("ignore", DeprecationWarning)
    if len(options.library) > 1 and options.run not in ("questions.search", "questions.ask"):
        parser.error("only search and ask accept several libraries")
    overrides = {"rag_data_dir": options.data_dir, "chunker": getattr(options, "chunker", None)}
    overrides["rag_library"] = options.library[0][0] if options.library else None
    try:
        settings = load_settings(**{name: value for name, value in overrides.items() if value})
        if settings.qdrant_url and options.run not in _WITHOUT_DATABASE:
            _load_command("doctor.wait")(settings, options)
        return _load_command(options.run)(settings, options)
    except ConfigError as error:
        return _print_error(error, 2)
    except RagError as error:
        return _print_error(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _load_command(name: str) -> Command:
    """Import a command's function from `rag.commands`, lazily, so that --help does not load the app."""
    module, _, function = name.partition(".")
    command: Command = getattr(importlib.import_module(f"rag.commands.{module}"), function)
    return command


def _print_error(error: RagError, status: int) -> int:
    logging.getLogger(__name__).debug("details", exc_info=error)
    print(f"error: {strip_controls(str(error))}", file=sys.stderr)
    return status


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rag", description="Collect web pages and ask questions about them."
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--data-dir", metavar="DIR", help="data folder (default: RAG_DATA_DIR)")
    text = "library (default: RAG_LIBRARY); search and ask accept several, each NAME or NAME=WEIGHT"
    parser.add_argument("--library", metavar="NAME", type=_parse_library, action="append", default=[], help=text)
    parser.add_argument("--verbose", action="store_true", help="log progress")
    text = "how long to wait for a database that does not answer (default: 60)"
    parser.add_argument("--wait", metavar="SECONDS", type=float, default=60.0, help=text)
    actions = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_ingestion(actions)
    _add_questions(actions)
    _add_evaluation(actions)
    _add_inspection(actions)
    return parser


def _add(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    return parser


def _add_ingestion(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ingest = _add(actions, "ingest", "pages.ingest", "Add web pages and files.")
    ingest.add_argument("sources", nargs="*", metavar="SOURCE", help="a link, file, zip or folder")
    ingest.add_argument("--from-file", metavar="LIST", help="a file with links, in any text")
    ingest.add_argument("--anyway", action="store_true", help="also add duplicates and pages that need review")
    records = _add(actions, "import", "pages.import_records", "Add pages from a JSONL file.")
    records.add_argument("pages", metavar="PAGES.jsonl", help='{"url", "title", "lang"?, "text"|"html"|"markdown"}')
    site = _add(actions, "site", "pages.site", "Add the pages of a website or feed.")
    site.add_argument("start", metavar="URL", help="start URL")
    by_text = "find pages by sitemap, links or feed (default: sitemap)"
    site.add_argument("--by", choices=("sitemap", "crawl", "feed"), default="sitemap", help=by_text)
    site.add_argument("--prefix", default="", metavar="PATH", help="only paths starting with this")
    site.add_argument("--pages", type=_positive, default=200, metavar="N", help="max. pages (default: 200)")
    site.add_argument("--depth", type=_positive, default=3, metavar="N", help="link depth (default: 3)")
    for parser in (ingest, site):
        parser.add_argument("--force", action="store_true", help="refetch pages already in the library")
    for parser in (ingest, records, site):
        _add_chunker(parser)
    _add_bulk(actions)
    recheck = _add(actions, "recheck", "pages.recheck", "Re-check pages from the web (default: all).")
    recheck.add_argument("urls", nargs="*", metavar="URL")
    recheck.add_argument("--site", metavar="NAME", help="only pages of this site or host")
    remove = _add(actions, "remove", "pages.remove", "Delete pages.")
    remove.add_argument("urls", nargs="+", metavar="URL")


def _add_bulk(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    bulk = _add(actions, "bulk", "pages.bulk", "Add pages from large JSONL files, web archives and sitemaps.")
    text = "files (a quoted pattern works too), sitemap links, or .txt files that list them"
    bulk.add_argument("--input", nargs="+", required=True, metavar="INPUT", help=text)
    text = "this process, several, or a Ray cluster (default: several with QDRANT_URL, else this one)"
    bulk.add_argument("--runner", choices=("here", "processes", "ray"), help=text)
    text = "processes or Ray actors (default: one for every two processors)"
    bulk.add_argument("--workers", type=_positive, metavar="N", help=text)
    bulk.add_argument("--gpus", type=float, default=0.0, metavar="N", help="GPUs for each Ray actor (default: 0)")
    text = "pages per batch; after a crash, a batch is repeated as a whole (default: 500)"
    bulk.add_argument("--batch", type=_positive, default=500, metavar="N", help=text)
    bulk.add_argument("--anyway", action="store_true", help="also add duplicates and pages that need review")


def _add_questions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    search = _add(actions, "search", "questions.search", "Find passages.")
    search.add_argument("-k", type=_positive, default=10, metavar="N", help="number of passages (default: 10)")
    search.add_argument("--explain", action="store_true", help="print every candidate and why it was used or not")
    ask = _add(actions, "ask", "questions.ask", "Answer questions from the pages.")
    ask.add_argument("--mode", choices=get_args(RunMode), default="fast", help="default: fast")
    web_text = "let research search the web with SEARXNG_URL or TAVILY_API_KEY, which get the question"
    ask.add_argument("--web", action="store_true", help=web_text)
    limit_text = "max. searches in research and judge mode (default: 12, without a model 6)"
    ask.add_argument("--max-searches", type=_positive, metavar="N", help=limit_text)
    route = _add(actions, "route", "questions.route", "Print the routes of messages, without a chat model.")
    for parser in (search, ask, route):
        if parser is not route:
            _add_filters(parser)
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("question", nargs="?", metavar="QUESTION", type=_decode)
        source.add_argument("--questions", metavar="FILE.jsonl", help='{"id", "question", "history"?} per line')

    check = _add(actions, "check", "questions.check", "Check sentences against their sources.")
    text = check.add_mutually_exclusive_group(required=True)
    text.add_argument("file", nargs="?", metavar="FILE.md", help="a text to check against the library")
    text.add_argument("--cases", metavar="FILE.jsonl", help='{"id", "passages": [text], "text"} per line; no library')
    check.add_argument("--rules", action="store_true", help="use rules, even if a model is connected")


def _add_evaluation(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "Run a question set and score the answers (see docs/evaluation.md)."
    evaluate = _add(actions, "evaluate", "evaluating.evaluate", text)
    source = evaluate.add_mutually_exclusive_group(required=True)
    source.add_argument("set", nargs="?", metavar="SET", help="a question set, or a file: JSONL, CSV, RAGAS's columns")
    source.add_argument("--resume", metavar="RUN", help="resume a stopped run")
    multi: dict[str, Any] = {"action": "append", "default": []}
    modes = get_args(RunMode)
    evaluate.add_argument("--mode", choices=modes, help="one of %(choices)s; repeatable, as the next three", **multi)
    evaluate.add_argument("--strategy", choices=STRATEGIES, metavar="NAME", help="one of %(choices)s", **multi)
    evaluate.add_argument("--model", metavar="NAME", help="a model of the configured service; none for quotes", **multi)
    evaluate.add_argument("--in", dest="within", metavar="LIBRARY", help="another library to run on", **multi)
    text = "also run the baseline: Fast with the strategy classic, k = 10 of 20"
    evaluate.add_argument("--classic", action="store_true", help=text)
    evaluate.add_argument("--judge", action="store_true", help="judge statements with the chat model")
    evaluate.add_argument("--limit", type=_positive, metavar="N", help="only the first N questions")
    evaluate.add_argument("--baseline", metavar="RUN", help="compare with a run: its id, last, or a --json file")
    evaluate.add_argument(
        "--gate", metavar="LIMITS", help="allowed losses, such as recall@4000:-0.01,faithfulness:0,calls:+0"
    )
    evaluate.add_argument("--junit", metavar="FILE.xml", help="write the results of --gate as JUnit XML")


def _add_filters(parser: argparse.ArgumentParser) -> None:
    text = "one of %(choices)s (default: STRATEGY)"
    parser.add_argument("--strategy", metavar="NAME", choices=STRATEGIES, help=text)
    filters = parser.add_argument_group("filters", "Options of one kind can be repeated.")
    multi: dict[str, Any] = {"action": "append", "default": []}
    filters.add_argument("--page", metavar="URL", type=_decode, help="only this page", **multi)
    filters.add_argument("--site", metavar="NAME", type=_decode, help="only pages of this site or host", **multi)
    filters.add_argument("--language", metavar="TAG", help="only pages in this language, such as en or zh", **multi)
    filters.add_argument("--heading", metavar="TEXT", type=_decode, help="only under this exact heading", **multi)
    filters.add_argument("--since", metavar="DATE", type=_check_date, help="only pages added on or after, YYYY-MM-DD")
    filters.add_argument("--until", metavar="DATE", type=_check_date, help="only pages added on or before, YYYY-MM-DD")


def _add_inspection(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    extract = _add(actions, "extract", "pages.extract", "Print the extracted text of pages.")
    extract.add_argument("sources", nargs="+", metavar="FILE|URL", help="a file (may be gzipped) or a URL")
    chunk = _add(actions, "chunk", "pages.chunk", "Print the passages of a file.")
    chunk.add_argument("file", metavar="FILE")
    _add_chunker(chunk)
    _add(actions, "pages", "pages.pages", "List the pages of the library.")
    export = _add(actions, "export", "pages.export", "Export the library to a file, with its vectors.")
    restore = _add(actions, "restore", "pages.restore", "Create the library from an exported file.")
    for parser in (export, restore):
        parser.add_argument("file", metavar="FILE.zip")
    move = _add(actions, "move-library", "pages.move_library", "Move the library to another embedding model.")
    target = move.add_mutually_exclusive_group()
    target.add_argument("--model", default="", metavar="NAME", help="a built-in model (default: EMBEDDING_MODEL)")
    target.add_argument("--back", action="store_true", help="go back to the previous model, within 7 days")
    reranker = _add(actions, "reranker", "evaluating.reranker", "Show, compare or switch the reranker.")
    reranker.add_argument("--compare", action="store_true", help="compare it on the library's questions")
    switch = reranker.add_mutually_exclusive_group()
    switch.add_argument("--on", action="store_const", const=True, dest="switch", help="use it, after a comparison")
    switch.add_argument("--off", action="store_const", const=False, dest="switch", help="order candidates without it")
    feedback = _add(actions, "feedback", "pages.feedback", "Write rated answers as test cases.")
    feedback.add_argument("folder", metavar="FOLDER", help="receives questions.jsonl and pages.jsonl")
    doctor = _add(actions, "doctor", "doctor.doctor", "Test the database and models, and show what is in use.")
    doctor.add_argument("--deep", action="store_true", help="also repair pages that lack passages, and replicas")


def _add_chunker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunker", metavar="NAME", choices=CHUNKERS, help="one of %(choices)s (default: CHUNKER)")


def _decode(text: str) -> str:
    """Decode an argument as UTF-8 if the locale could not: terminals send UTF-8 even if the locale is ASCII."""
    if replace_surrogates(text) == text:
        return text
    return os.fsencode(text).decode("utf-8", "replace")


def _check_date(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("must be a date such as 2026-01-31") from error
    return text


def _parse_library(text: str) -> tuple[str, float]:
    """Parse NAME or NAME=WEIGHT; the weight, relative to other libraries, defaults to 1."""
    name, _, weight = text.partition("=")
    try:
        value = float(weight or 1.0)
    except ValueError:
        value = -1.0
    if not 0.0 <= value < float("inf"):
        raise argparse.ArgumentTypeError("must be NAME or NAME=WEIGHT, such as docs=0.5")
    return name, value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value
