"""Imports only go down, heavy libraries load lazily, and each third-party library has one place."""

from __future__ import annotations

import ast
import functools
import importlib.metadata
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from benchmarks.code_metrics import _imports_in, _name

ROOT = Path(__file__).resolve().parent.parent

# From the UI down to plain values. Packages on one line do not import each other.
LEVELS: tuple[tuple[str, ...], ...] = (
    ("main", "pages", "rag.__main__"),
    ("rag.ui", "rag.cli"),
    ("rag.commands",),
    ("rag.bulk",),
    ("rag.app",),
    ("rag.evaluation", "rag.routing"),
    ("rag.conversations",),
    ("rag.graphs",),
    ("rag.runs",),
    ("rag.reasoning",),
    ("rag.tools",),
    ("rag.checking", "rag.ingest", "rag.retrieval"),
    ("rag.reading", "rag.store"),
    ("rag.models", "rag.prompts", "rag.web"),
    ("rag.dates",),
    ("rag.quantities",),
    ("rag.access", "rag.background", "rag.config", "rag.process", "rag.tracing"),
    ("rag.text",),
    ("rag.errors",),
    ("rag.locales",),
    ("rag.text", "rag.types"),
)
LEVEL_OF = {room: level for level, rooms in enumerate(LEVELS) for room in rooms}

HEAVY = (
    "torch",
    "FlagEmbedding",
    "transformers",
    "sentence_transformers",
    "trafilatura",
    "langchain",
    "langgraph",
)

# The only packages that may import a third-party library.
PLACES: dict[str, tuple[str, ...]] = {
    "streamlit": ("rag.ui", "pages", "main"),
    "argparse": ("rag.cli", "rag.commands", "rag.__main__"),
    "markdown_it": ("rag.ui", "rag.conversations.export"),
    "langgraph": ("rag.graphs", "rag.runs", "rag.conversations"),
    "langchain_core": (
        *("rag.reasoning", "rag.graphs", "rag.models", "rag.retrieval"),
        *("rag.store.qdrant.vector_store", "rag.store.qdrant.library"),  # langchain-qdrant's store and its inputs
        *("rag.conversations.saver", "rag.app.chat_models"),  # for the types of langgraph's saver and of a chat model
    ),
    "httpx2": ("rag.models", "rag.web"),
    "httpcore": ("rag.web",),
    "trafilatura": ("rag.reading",),
    "bs4": ("rag.reading",),
    "langchain_experimental": ("rag.ingest",),
    "sqlite3": ("rag.reading", "rag.store.sql"),
    "psycopg": ("rag.store.sql.postgres",),
    "ray": ("rag.bulk.runs",),
    "warcio": ("rag.bulk.batches",),
    "psycopg_pool": ("rag.store.sql.postgres",),
    "qdrant_client": ("rag.store.qdrant",),
    "qdrant_edge": ("rag.store.qdrant", "rag.models"),
    "langchain_qdrant": ("rag.store.qdrant", "rag.retrieval.langchain"),
    "openai": ("rag.models",),
    "FlagEmbedding": ("rag.models",),
    "huggingface_hub": ("rag.models",),
    "torch": ("rag.models",),
    "transformers": ("rag.models",),
    "pydantic_settings": ("rag.config",),
    "babel": ("rag.quantities.values", "rag.tools.calendar_day"),
}


def python_files() -> list[Path]:
    found = [ROOT / "main.py", *(ROOT / "pages").rglob("*.py"), *(ROOT / "rag").rglob("*.py")]
    return [path for path in found if path.exists() and "__pycache__" not in path.parts]


@functools.cache
def trees() -> dict[str, ast.Module]:
    """Parse every module, once."""
    return {_name(path): ast.parse(path.read_text(encoding="utf-8")) for path in python_files()}


PACKAGES = {_name(path) for path in python_files() if path.name == "__init__.py"}


def room_of(module: str) -> str:
    """Return its package: `rag.store.qdrant.edge.client` -> `rag.store`, `pages.chat` -> `pages`, `rag` -> `rag`."""
    return ".".join(module.split(".")[: 2 if module.startswith("rag.") else 1])


def imported(node: ast.AST, module: str) -> Iterator[str]:
    """Yield the absolute names that an import statement imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = module.split(".")
            keep = len(parents) - node.level + (1 if module in PACKAGES else 0)
            base = ".".join([*parents[:keep], *filter(None, [base])])
        yield from (f"{base}.{alias.name}" for alias in node.names)


@functools.cache
def names_in(tree: ast.Module, module: str) -> frozenset[str]:
    return frozenset(name for node in ast.walk(tree) for name in imported(node, module))


def all_imports(module: str) -> frozenset[str]:
    return names_in(trees()[module], module)


def imports_at_import(module: str) -> set[str]:
    return {name for node in _imports_in(trees()[module], late=False) for name in imported(node, module)}


def loaded_by(name: str) -> set[str]:
    """Return our modules that importing `name` runs: it and its parent packages."""
    parts = name.split(".")
    return {".".join(parts[:end]) for end in range(1, len(parts) + 1)} & set(trees())


def reachable(starts: set[str]) -> set[str]:
    seen: set[str] = set()
    waiting = set(starts)
    while waiting:
        module = waiting.pop()
        seen.add(module)
        found = {hit for name in imports_at_import(module) for hit in loaded_by(name)}
        waiting |= found - seen
    return seen


def violations(room_of: Callable[[str], str] = room_of, level_of: Mapping[str, int] = LEVEL_OF) -> list[str]:
    """Return the imports by a room from another one that is not below it."""
    found = []
    for module in trees():
        for name in all_imports(module):
            own, other = room_of(module), room_of(name)
            if own in level_of and other in level_of and own != other and level_of[own] >= level_of[other]:
                found.append(f"{module} imports {name}")
    return sorted(found)


def test_every_module_belongs_to_a_room() -> None:
    homeless = [module for module in trees() if module != "rag" and room_of(module) not in LEVEL_OF]
    assert not homeless, f"give these a place in LEVELS, or put them into a room: {homeless}"


def test_imports_only_go_down() -> None:
    assert not violations()


@pytest.mark.parametrize(
    ("room", "statement", "other"),
    [
        ("store", "def f():\n    import rag.retrieval.retriever", "retrieval.retriever"),
        ("ingest", "from ..retrieval import retriever", "retrieval.retriever"),
        *[
            (room, f"import rag.{other}", other)
            for room, other in (
                ("reading", "ingest.pipeline"),
                ("web", "reading.parser"),
                ("web", "ingest.sources"),
                ("runs", "graphs.answer.graph"),
                ("graphs", "conversations.conversations"),
                ("reasoning", "runs.run"),
                ("checking", "reasoning.chat"),
                ("conversations", "evaluation.judge"),
            )
        ],
    ],
)
def test_an_upward_import_is_seen(monkeypatch: pytest.MonkeyPatch, room: str, statement: str, other: str) -> None:
    monkeypatch.setitem(trees(), f"rag.{room}.probe", ast.parse(statement))
    assert violations() == [f"rag.{room}.probe imports rag.{other}"]


# Packages of rag/ui import the common ones below them, but not each other; the shell puts them together.
WINGS = ("chat", "evaluation", "imports", "library", "settings")
WING_LEVELS = {"shell": 0, **dict.fromkeys(WINGS, 1), "serving": 2, "kit": 3}


def wing_violations() -> list[str]:
    return violations(lambda name: name.split(".")[2] if name.startswith("rag.ui.") else "", WING_LEVELS)


def test_the_wings_of_the_screens_stand_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert {name.split(".")[2] for name in trees() if name.startswith("rag.ui.")} == set(WING_LEVELS)
    assert not wing_violations()
    monkeypatch.setitem(trees(), "rag.ui.kit.probe", ast.parse("from rag.ui.chat import asking"))
    monkeypatch.setitem(trees(), "rag.ui.chat.probe", ast.parse("from rag.ui.library import page_list"))
    assert wing_violations() == [
        "rag.ui.chat.probe imports rag.ui.library.page_list",
        "rag.ui.kit.probe imports rag.ui.chat.asking",
    ]


def test_only_the_app_loads_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others may only import the type of a library: the first page is drawn before Qdrant is imported."""

    def strays() -> set[str]:
        others = {module for module in trees() if room_of(module) not in ("rag.app", "rag.store")}
        loads = {(module, name) for module in others for name in imports_at_import(module)}
        names = {(module, name) for module in others for name in all_imports(module)}
        names = {(module, name) for module, name in names if name != "rag.store.qdrant.library.Library"}
        return {module for module, name in loads | names if name.startswith("rag.store.qdrant")}

    assert not strays()
    for probe in ("from rag.store.qdrant.library import Library", "def f():\n    import rag.store.qdrant.client"):
        monkeypatch.setitem(trees(), "rag.ingest.probe", ast.parse(probe))
        assert strays() == {"rag.ingest.probe"}


@pytest.mark.parametrize("library", PLACES)
def test_an_outside_library_has_one_place(library: str) -> None:
    strays = [
        module
        for module in trees()
        if not f"{module}.".startswith(tuple(f"{place}." for place in PLACES[library]))
        and any(name.split(".")[0] == library for name in all_imports(module))
    ]
    assert not strays, f"{library} belongs to {PLACES[library]}, and is imported by {strays}"


def test_tables_are_drawn_in_one_place() -> None:
    """There, no cell can become a formula in an exported file."""
    drawn = re.compile(r"\bst\.(?:dataframe|data_editor|table)\(")
    found = {_name(path) for path in python_files() if drawn.search(path.read_text("utf-8"))}
    assert found == {"rag.ui.kit.parts"}


def test_addresses_are_taken_apart_by_what_never_raises() -> None:
    """Stored addresses may be malformed, and urlsplit raises ValueError for some; settings and forms need the error."""
    may = ("rag.web.", "rag.config", "rag.app.chat_models", "rag.models.http_clients")
    raising = {f"urllib.parse.{name}" for name in ("urlsplit", "urlparse", "urljoin")}
    strays = [module for module in trees() if not f"{module}.".startswith(may) and all_imports(module) & raising]
    assert not strays, f"rag.web.urls has split_url and join_url for these: {strays}"


def test_the_server_answers_before_the_app_is_imported() -> None:
    assert not {module for module in reachable({"main"}) if room_of(module) == "rag.app"}


def test_nothing_heavy_at_import_of_the_pages() -> None:
    starts = {module for module in trees() if room_of(module) in ("main", "pages", "rag.__main__")}
    heavy = [
        f"{module} imports {name}"
        for module in reachable(starts)
        for name in imports_at_import(module)
        if name.split(".")[0].startswith(HEAVY)
    ]
    assert not heavy, f"import these inside the function that needs them: {heavy}"


def test_the_app_starts_without_the_heavy_libraries() -> None:
    """The sources can't show a light library that loads a heavy one."""
    code = f"import sys, rag.app, main; print([name for name in sys.modules if name.startswith({HEAVY!r})])"
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip().splitlines()[-1] == "[]"


def test_every_room_says_what_it_is_for() -> None:
    silent = [package for package in PACKAGES if trees()[package].body and not ast.get_docstring(trees()[package])]
    assert not silent, f"a docstring of about three lines belongs into these packages: {silent}"


def pinned() -> set[str]:
    files = (ROOT / "requirements.txt", *ROOT.glob("requirements-[bop]*.txt"))  # including optional ones
    lines = [line for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    names = (re.split(r"[\[=#]", line)[0].strip() for line in lines)
    return {name.lower().replace("_", "-") for name in names if name}


def test_every_outside_library_is_pinned() -> None:
    distributions = importlib.metadata.packages_distributions()
    ours = {"main", "pages", "rag"}
    missing = {}
    for module in trees():
        for top in {name.split(".")[0] for name in all_imports(module)} - ours - sys.stdlib_module_names:
            names = {name.lower().replace("_", "-") for name in distributions.get(top, [top])}
            if not names & pinned():
                missing[top] = module
    assert not missing, f"add these to requirements.txt with an exact version and a reason: {missing}"


DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "benchmarks/README.md"]
SOURCES = [*python_files(), *(ROOT / "benchmarks").rglob("*.py")]
FILE = re.compile(r"(?:[\w.-]+/)*[\w-]+\.(?:py|md|js|css|toml|ya?ml)|(?:[\w.-]+/)+")
DOTTED = re.compile(r"(?:rag|benchmarks)(?:\.[a-z]\w*)+(?:\.[A-Z]\w*)?")
MADE = (".venv/", ".streamlit/", "data/", "benchmarks/out/", "sets/", "../shared/")  # generated by users


@functools.cache
def own_names() -> frozenset[str]:
    """Return the names of this repository's files and folders."""
    ours = [ROOT / room for room in ("rag", "pages", "docs", "tests", "benchmarks", "scripts", "examples")]
    inside = (path for room in ours for path in room.rglob("*") if "out" not in path.parts)
    return frozenset(path.name for path in (*ROOT.iterdir(), *ours, *inside))


def is_there(word: str, document: Path) -> bool:
    """Return whether a word that looks like a file, a folder or a module of ours refers to an existing one."""
    if "NAME" in word or word.startswith(MADE):
        return True
    if not FILE.fullmatch(word):
        parts = [part for part in word.split(".") if part.islower()]
        return any(
            (ROOT / "/".join(parts[:end])).with_suffix(".py").exists() for end in (len(parts), len(parts) - 1)
        ) or (ROOT.joinpath(*parts).is_dir())
    name = word.rstrip("/")
    above = (ROOT, ROOT / "rag", ROOT / "docs", document.parent)
    return any((folder / name).exists() for folder in above) or ("/" not in name and name in own_names())


def without_braces(word: str) -> list[str]:
    """Expand `a/{b,c}.py` as a shell does: `a/b.py` and `a/c.py`."""
    before, _, rest = word.partition("{")
    inside, closed, after = rest.partition("}")
    return [f"{before}{one}{after}" for one in inside.split(",")] if closed else [word]


def strays_in(text: str, document: Path) -> list[str]:
    """Return the names in backticks and the links of a text that don't exist."""
    spans = re.findall(r"`([^`\n]+)`", text)
    words = [one for span in spans for word in span.split() for one in without_braces(word.strip(",;:()"))]
    named = [word for word in words if FILE.fullmatch(word) or DOTTED.fullmatch(word)]
    links = re.findall(r"\]\(([^)\s#]+)", text) if document.suffix == ".md" else []
    files = [link for link in links if "://" not in link and not link.startswith("mailto:")]
    gone = [link for link in files if not (document.parent / link).exists()]
    return [*(word for word in named if not is_there(word, document)), *gone]


def test_documents_and_comments_name_what_exists() -> None:
    texts = {document: document.read_text("utf-8") for document in (*DOCUMENTS, *SOURCES)}
    missing = {str(one.relative_to(ROOT)): gone for one, text in texts.items() if (gone := strays_in(text, one))}
    assert not missing, f"these name files that are not there: {missing}"


@pytest.mark.parametrize(
    ("text", "gone"),
    [
        ("see `space.py`", ["space.py"]),
        ("see `rag/store/gone/`, and `rag/store/`", ["rag/store/gone/"]),
        ("see `rag/store/{values,gone}.py`", ["rag/store/gone.py"]),
        ("see `store/qdrant/library.py` and `library.py`", []),
        ("`PYTHONPATH=. python scripts/nothing.py out`", ["scripts/nothing.py"]),
        ("`rag.reading.nothing` beside `rag.reading.parser` and `rag.reading.parser.Parser`", ["rag.reading.nothing"]),
        (
            "[decision 99](docs/decisions/0099-nothing.md), [a site](https://example.org/x.md)",
            ["docs/decisions/0099-nothing.md"],
        ),
    ],
)
def test_a_name_of_what_is_gone_is_seen(text: str, gone: list[str]) -> None:
    assert strays_in(text, ROOT / "README.md") == gone


def anchors_of(document: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    text = re.sub(r"^```.*?^```", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def lost_anchors(text: str, document: Path) -> list[str]:
    """Return the links of `text` whose document has no such heading."""
    links = re.findall(r"\]\(([^)\s#:]*\.md)?#([^)\s]+)\)", text)
    found = ((f"{file}#{name}", document.parent / (file or document.name), name) for file, name in links)
    return [link for link, target, name in found if name not in anchors_of(target)]


def test_links_lead_to_headings_that_exist() -> None:
    lost = {one.name: gone for one in DOCUMENTS if (gone := lost_anchors(one.read_text("utf-8"), one))}
    assert not lost, f"these link to headings that are not there: {lost}"


def test_a_link_to_a_heading_that_is_gone_is_seen() -> None:
    text = "[a](docs/guide.md#modes) [b](docs/guide.md#gone) [c](#start) [d](#stop) [e](https://example.org/x.md#y)"
    assert lost_anchors(text, ROOT / "README.md") == ["docs/guide.md#gone", "#stop"]


@pytest.mark.parametrize("name", ["README.md", "README.zh.md"])
def test_the_readme_is_short_and_names_the_two_commands(name: str) -> None:
    lines = (ROOT / name).read_text("utf-8").splitlines()
    assert len(lines) <= 90
    assert {"make run", "make test"} <= {line.partition("  ")[0] for line in lines}


def test_decisions_have_numbers_of_their_own() -> None:
    titles = {path.name: path.read_text("utf-8").splitlines()[0] for path in (ROOT / "docs/decisions").glob("*.md")}
    numbers = [int(name[:4]) for name in sorted(titles)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert all(title.startswith(f"# {int(name[:4])}. ") for name, title in titles.items())


def used_names() -> frozenset[str]:
    """Return every name in the app's code, except in strings."""
    nodes = [node for tree in trees().values() for node in ast.walk(tree)]
    return frozenset(
        [node.id for node in nodes if isinstance(node, ast.Name)]
        + [node.attr for node in nodes if isinstance(node, ast.Attribute)]
    )


def test_protocols_are_few_and_asked_for() -> None:
    """A protocol with a single implementation only hides it: use the class."""
    protocols = {
        node.name
        for tree in trees().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    }
    assert len(protocols) <= 12
    assert not protocols - used_names(), "nothing takes what these promise"


def test_a_class_name_has_one_meaning() -> None:
    classes = [node.name for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef)]
    repeated = {name for name in classes if not name.startswith("_") and classes.count(name) > 1}
    assert not repeated, f"several classes have the name {repeated}"
