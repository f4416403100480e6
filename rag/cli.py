"""The command line: `python -m rag [--data-dir DIR] [--library NAME] COMMAND …`.

Results go to stdout, as JSON lines with --json; logs and errors to stderr. Exit status: 0 all well,
1 something failed, 2 wrong usage.
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
from typing import Any, get_args

from rag import __version__
from rag.config import CHUNKERS, STRATEGIES, Settings, load_settings
from rag.errors import ConfigError, RagError
from rag.text import without_controls
from rag.types import RunMode

Command = Callable[[Settings, argparse.Namespace], int]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    _log_to_stderr(options.verbose)
    if len(options.library) > 1 and options.run not in ("questions.search", "questions.ask"):
        parser.error("only search and ask take several libraries")
    overrides = {"rag_data_dir": options.data_dir, "chunker": getattr(options, "chunker", None)}
    overrides["rag_library"] = options.library[0][0] if options.library else None
    try:
        settings = load_settings(**{name: value for name, value in overrides.items() if value})
        return _loaded(options.run)(settings, options)
    except ConfigError as error:
        return _complain(error, 2)
    except RagError as error:
        return _complain(error, 1)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader, such as `head`, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _loaded(name: str) -> Command:
    """The function of `rag.commands`, whose module is imported now: what only shows help loads nothing of the app."""
    module, _, function = name.partition(".")
    command: Command = getattr(importlib.import_module(f"rag.commands.{module}"), function)
    return command


def _complain(error: RagError, status: int) -> int:
    logging.getLogger(__name__).debug("details", exc_info=error)
    print(f"error: {without_controls(str(error))}", file=sys.stderr)
    return status


def _log_to_stderr(verbose: bool) -> None:
    logging.basicConfig(
        stream=sys.stderr,
        level=logging.INFO if verbose else logging.ERROR,
        format="%(levelname)s %(name)s: %(message)s",
    )
    warnings.simplefilter("ignore", DeprecationWarning)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m rag", description="Collect web pages and ask questions about them."
    )
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--data-dir", metavar="DIR", help="the data folder, instead of RAG_DATA_DIR")
    text = "the library, instead of RAG_LIBRARY; search and ask take several, each NAME or NAME=WEIGHT"
    parser.add_argument("--library", metavar="NAME", type=_weighed, action="append", default=[], help=text)
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    actions = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    _add_ingestion(actions)
    _add_questions(actions)
    _add_evaluation(actions)
    _add_inspection(actions)
    return parser


def _command(
    actions: argparse._SubParsersAction[argparse.ArgumentParser], name: str, run: str, text: str
) -> argparse.ArgumentParser:
    parser = actions.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    parser.add_argument("--json", action="store_true", help="print JSON lines")
    return parser


def _add_ingestion(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    ingest = _command(actions, "ingest", "pages.ingest", "Take in web pages and files.")
    ingest.add_argument("sources", nargs="*", metavar="SOURCE", help="an address, a file, a zip or a folder")
    ingest.add_argument("--from-file", metavar="LIST", help="a file with addresses, separated by anything")
    ingest.add_argument("--anyway", action="store_true", help="keep also what would be held back, and duplicates")
    records = _command(actions, "import", "pages.import_records", "Take in pages from a JSONL file.")
    records.add_argument("pages", metavar="PAGES.jsonl", help='{"url", "title", "lang"?, "text"|"html"|"markdown"}')
    site = _command(actions, "site", "pages.site", "Take in the pages of a site, or of a feed.")
    site.add_argument("start", metavar="URL", help="where to begin")
    by = "by its sitemap, by following links, or the entries of a feed (default: sitemap)"
    site.add_argument("--by", choices=("sitemap", "crawl", "feed"), default="sitemap", help=by)
    site.add_argument("--prefix", default="", metavar="PATH", help="only pages whose path begins with this")
    site.add_argument("--pages", type=_positive, default=200, metavar="N", help="how many at most (default 200)")
    site.add_argument("--depth", type=_positive, default=3, metavar="N", help="how many links away (default 3)")
    for parser in (ingest, site):
        parser.add_argument("--force", action="store_true", help="fetch again what is known")
    for parser in (ingest, records, site):
        _add_chunker(parser)
    recheck = _command(actions, "recheck", "pages.recheck", "Look again at pages from the web, by default at all.")
    recheck.add_argument("urls", nargs="*", metavar="URL")
    recheck.add_argument("--site", metavar="NAME", help="only at pages of this site or host")
    remove = _command(actions, "remove", "pages.remove", "Remove pages.")
    remove.add_argument("urls", nargs="+", metavar="URL")


def _add_questions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    search = _command(actions, "search", "questions.search", "Find passages.")
    search.add_argument("-k", type=_positive, default=10, metavar="N", help="how many passages (default 10)")
    search.add_argument("--explain", action="store_true", help="print every candidate and what became of it")
    ask = _command(actions, "ask", "questions.ask", "Answer questions from the pages.")
    ask.add_argument("--mode", choices=get_args(RunMode), default="fast", help="default: fast")
    web = "let research search the web too: the question goes to the service of SEARXNG_URL or TAVILY_API_KEY"
    ask.add_argument("--web", action="store_true", help=web)
    most = "searches that research and judge make at most (default 12, without a model 6)"
    ask.add_argument("--max-searches", type=_positive, metavar="N", help=most)
    route = _command(actions, "route", "questions.route", "Say which way messages go, without a chat model.")
    for parser in (search, ask, route):
        if parser is not route:
            _add_where(parser)
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("question", nargs="?", metavar="QUESTION")
        what.add_argument("--questions", metavar="FILE.jsonl", help='many: {"id", "question", "history"?} a line')

    check = _command(actions, "check", "checking.check", "Hold statements against their sources.")
    text = check.add_mutually_exclusive_group(required=True)
    text.add_argument("file", nargs="?", metavar="FILE.md", help="a text of your own, held against the library")
    text.add_argument("--cases", metavar="FILE.jsonl", help='{"id", "passages": [text], "text"} a line; no library')
    check.add_argument("--rules", action="store_true", help="by rules alone, also where a model is connected")


def _add_evaluation(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    text = "Ask the questions of a set, and say what the answers are worth: see docs/evaluation.md."
    evaluate = _command(actions, "evaluate", "evaluating.evaluate", text)
    what = evaluate.add_mutually_exclusive_group(required=True)
    what.add_argument("set", nargs="?", metavar="SET", help="a stored set, or a file: JSONL, CSV, RAGAS's columns")
    what.add_argument("--resume", metavar="RUN", help="go on with a run that was stopped")
    many: dict[str, Any] = {"action": "append", "default": []}
    modes = get_args(RunMode)
    evaluate.add_argument("--mode", choices=modes, help="one of %(choices)s; all of these may be given again", **many)
    evaluate.add_argument("--strategy", choices=STRATEGIES, metavar="NAME", help="one of %(choices)s", **many)
    evaluate.add_argument("--model", metavar="NAME", help="of the service in the settings; none for quotes", **many)
    evaluate.add_argument("--in", dest="within", metavar="LIBRARY", help="such as one with another chunker", **many)
    evaluate.add_argument(
        "--shallow", action="store_true", help="also as tutorials do: dense, three passages, unchecked"
    )
    evaluate.add_argument("--judge", action="store_true", help="let the chat model judge statements, not rules")
    evaluate.add_argument("--limit", type=_positive, metavar="N", help="only the first N questions")
    evaluate.add_argument("--baseline", metavar="RUN", help="compare with a run: its id, last, or a file of --json")
    evaluate.add_argument(
        "--gate", metavar="LIMITS", help="what may be lost: recall@4000:-0.01,faithfulness:0,calls:+0"
    )
    evaluate.add_argument("--junit", metavar="FILE.xml", help="write what the gate found as JUnit XML")


def _add_where(parser: argparse.ArgumentParser) -> None:
    how = "instead of STRATEGY: one of %(choices)s"
    parser.add_argument("--strategy", metavar="NAME", choices=STRATEGIES, help=how)
    where = parser.add_argument_group("where to search", "Of one kind several may be given.")
    many: dict[str, Any] = {"action": "append", "default": []}
    where.add_argument("--page", metavar="URL", help="in this page", **many)
    where.add_argument("--site", metavar="NAME", help="in pages of this site or host", **many)
    where.add_argument("--language", metavar="TAG", help="in pages of this language, such as en or zh", **many)
    where.add_argument("--heading", metavar="TEXT", help="under this heading, as it stands in the page", **many)
    where.add_argument("--since", metavar="DATE", type=_moment, help="in pages added since, YYYY-MM-DD")
    where.add_argument("--until", metavar="DATE", type=_moment, help="in pages added until, that day included")


def _add_inspection(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    extract = _command(actions, "extract", "inspection.extract", "Print the text that would be kept of pages.")
    extract.add_argument("sources", nargs="+", metavar="FILE|URL", help="a file may be gzipped")
    chunk = _command(actions, "chunk", "inspection.chunk", "Print the chunks that a file would make.")
    chunk.add_argument("file", metavar="FILE")
    _add_chunker(chunk)
    _command(actions, "pages", "pages.pages", "List the pages of the library.")
    export = _command(actions, "export", "pages.export", "Write the library to a file, with its vectors.")
    restore = _command(actions, "restore", "pages.restore", "Make the library from such a file; encodes nothing.")
    for parser in (export, restore):
        parser.add_argument("file", metavar="FILE.zip")
    feedback = _command(actions, "feedback", "pages.feedback", "Write what people thought of answers as test cases.")
    feedback.add_argument("folder", metavar="FOLDER", help="gets questions.jsonl and pages.jsonl")
    doctor = _command(actions, "doctor", "inspection.doctor", "Say what is real and what is a fall-back here.")
    doctor.add_argument("--deep", action="store_true", help="look for pages without their passages, too, and repair")


def _add_chunker(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--chunker", metavar="NAME", choices=CHUNKERS, help="instead of CHUNKER: one of %(choices)s")


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError("must be a date such as 2026-01-31") from error
    return text


def _weighed(text: str) -> tuple[str, float]:
    """A library, and what it counts beside others."""
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
