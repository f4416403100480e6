"""README's table of packages is true: a default run needs only those of "always", and an option loads its own."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

from tests.support.tiny_model import build_tiny_model

ROOT = Path(__file__).resolve().parent.parent
MODULES = {"beautifulsoup4": "bs4", "python-dotenv": "dotenv"}
ROW = re.compile(r"^\| ([a-zA-Z0-9-]+) \| [^|]+ \| ([^|:：]+?)(?:[:：][^|]*)? \|$", re.MULTILINE)
BLOCK = """
    class Blocked:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in {blocked}:
                raise ImportError(name)
    sys.meta_path.insert(0, Blocked())
"""
RUN = """
    from pathlib import Path
    from rag.app import App
    from rag.config import load_settings
    from rag.ingest.sources import example_sources
    from rag.runs.run import Question, RunOptions
    import main
    Path(".env").write_text("{settings}")
    app = App(load_settings(rag_data_dir=Path("data"), qdrant_url=""))
    job = app.imports.jobs.submit(example_sources()[:1], library="main")
    while app.imports.jobs.job(job).state == "running":
        time.sleep(0.1)
    question = Question("How are deleted files restored?", ("main",), options=RunOptions(strategy="{strategy}"))
    assert app.wait(app.ask(question), 60).passages
    app.close()
"""
OTHER_CHAT_MODEL = """
    from rag.errors import ModelError
    from rag.models.chat import build_chat_model
    try:
        build_chat_model(load_settings(None, llm_model="anthropic:any", llm_api_key="k"))
    except ModelError:
        pass
"""
LOADED = """
    print(*sorted({name.partition(".")[0] for name in sys.modules}))
"""


def packages(readme: str = "README.md") -> dict[str, str]:
    """Return when each package of the table is used, by its module: always, an option, or else."""
    text = (ROOT / readme).read_text(encoding="utf-8")
    return {
        MODULES.get(name, name.replace("-", "_")): when
        for name, when in ROW.findall(text)
        if when.strip("- ") not in ("", "When", "何时用到")
    }


def loaded(at: Path, *parts: str, **values: object) -> set[str]:
    """Return the modules loaded by a separate process in the folder `at`."""
    script = (
        "import sys, time\n"
        + "".join(textwrap.dedent(part.format(**values)) for part in parts)
        + textwrap.dedent(LOADED)
    )
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(Path.home()), "PYTHONPATH": str(ROOT), "LLM_MODEL": ""}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=at, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2_000:]
    return set(done.stdout.splitlines()[-1].split())


def test_both_tables_have_the_same_packages() -> None:
    english, chinese = packages(), packages("README.zh.md")
    assert len(english) == 9 and list(english) == list(chinese)
    words = {"always": "始终", "option": "可选"}
    assert [words.get(when, "") for when in english.values()] == [
        when if when in words.values() else "" for when in chinese.values()
    ]


def options() -> set[str]:
    return {name for name, when in packages().items() if when == "option"}


def test_a_default_run_needs_no_package_of_an_option(tmp_path: Path) -> None:
    assert options() == {"FlagEmbedding", "langchain", "langchain_experimental", "langchain_qdrant"}
    found = loaded(tmp_path, BLOCK, RUN, blocked=options(), settings="", strategy="")
    assert {name for name, when in packages().items() if when == "always"} <= found


def test_options_load_their_packages(tmp_path: Path) -> None:
    settings = f"CHUNKER=breakpoints\\nEMBEDDING_MODEL={build_tiny_model(tmp_path / 'model')}"
    assert options() <= loaded(tmp_path, RUN, OTHER_CHAT_MODEL, settings=settings, strategy="classic")
