"""The command line as scripts use it: rows on stdout, sentences on stderr, exit statuses."""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rag.cli import _build_parser, _load_command, main
from rag.commands import print_row, read_text_file
from rag.config import Settings
from rag.ingest.sources import Source
from rag.text import split_sentences, strip_controls
from tests.support.tiny_model import build_tiny_verifier

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    {
        "url": "https://a.example/bridge",
        "title": "Bridge",
        "lang": "en",
        "text": "The bridge was opened in 1932. It carries eight lanes.",
    },
    {"url": "https://a.example/tea", "title": "茶", "lang": "zh", "text": "龙井茶产于杭州。炒制需要十道手法。"},
]
SCOPED_PAGES = [
    {
        "url": "https://one.example/bridge",
        "title": "Bridge",
        "lang": "en",
        "markdown": "## History\n\nThe harbour bridge was opened in 1932.\n\n## Use\n\nThe harbour bridge has lanes.",
    },
    {
        "url": "https://two.example/ferry",
        "title": "Ferry",
        "lang": "de",
        "text": "The harbour bridge has a ferry beside it.",
    },
]
QUESTIONS = [{"id": "b", "question": "When was the bridge opened?"}, {"id": "t", "question": "龙井茶产于哪里？"}]


def lines(path: Path, rows: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a data folder with two pages in each of two libraries."""
    base = tmp_path_factory.mktemp("cli")
    data = ["--data-dir", str(base / "data")]
    assert main([*data, "import", str(lines(base / "pages.jsonl", PAGES))]) == 0
    assert main([*data, "--library", "scoped", "import", str(lines(base / "scoped.jsonl", SCOPED_PAGES))]) == 0
    lines(base / "questions.jsonl", QUESTIONS)
    return base


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)


Run = Callable[..., tuple[int, list[Any]]]


@pytest.fixture
def run(folder: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command on the data in `folder` and returns its status and rows."""

    def run(*arguments: str, folder: Path = folder) -> tuple[int, list[Any]]:
        capsys.readouterr()
        status = main(["--data-dir", str(folder / "data"), *arguments, "--json"])
        return status, [json.loads(line) for line in capsys.readouterr().out.split("\n") if line]

    return run


def test_import_rows(run: Run, folder: Path) -> None:
    status, rows = run("import", str(folder / "pages.jsonl"))
    assert status == 0
    assert [row["status"] for row in rows] == ["unchanged", "unchanged"]
    assert set(rows[0]) == {"source", "url", "url_hash", "status", "reason", "message", "chunks", "seconds"}


def test_search_rows(run: Run, folder: Path) -> None:
    status, rows = run("search", "-k", "5", "--questions", str(folder / "questions.jsonl"))
    assert status == 0
    assert [row["id"] for row in rows] == ["b", "t"]
    assert [row["hits"][0]["url"] for row in rows] == [page["url"] for page in PAGES]
    hit = rows[0]["hits"][0]
    assert set(hit) == {"rank", "url", "title", "section", "text", "start", "end", "score"}
    assert hit["rank"] == 1
    assert PAGES[0]["text"][hit["start"] : hit["end"]] == hit["text"]


def test_search_explained(run: Run, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    question = QUESTIONS[0]["question"]
    status, (row,) = run("search", "--explain", question)
    assert status == 0
    plain = run("search", question)[1][0]
    assert {key: row[key] for key in plain} == plain
    assert set(row) - set(plain) == {"candidates", "strategy", "legs", "ms", "notes"}
    first = row["candidates"][0]
    assert (first["place"], first["url"]) == (1, PAGES[0]["url"])
    assert set(first["ranks"]) == set(first["scores"]) >= {"dense", "sparse", "fused"}
    assert first["fate"].startswith("kept")
    capsys.readouterr()
    assert main(["--data-dir", str(folder / "data"), "search", "--explain", question]) == 0
    printed = capsys.readouterr().out
    assert PAGES[0]["url"] in printed
    assert "dense 1 (" in printed
    assert "Used." in printed


def test_passages_are_listed_where_the_pages_do_not_answer(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    capsys.readouterr()
    question = "Who conducts the orchestra of Zanzibar's moon colony?"
    assert main(["--data-dir", str(folder / "data"), "ask", question]) == 0
    notice, heading, *passages = capsys.readouterr().out.strip().split("\n")[1:]
    assert notice.strip() == "(Found no answer in your pages.)" and heading.strip() == "Closest passages"
    assert passages[0].split()[0] == "1" and "http" in passages[0] and passages[1].strip()


def test_ask_rows(run: Run) -> None:
    status, rows = run("ask", "--mode", "deep", "When was the bridge opened?")
    assert status == 0
    (row,) = rows
    names = "id question mode outcome answer citations steps hits model_calls calls searches seconds answerable"
    assert set(row) == set(names.split())
    assert (row["mode"], row["outcome"]) == ("deep", "answered")
    assert set(row["hits"][0]) == {"rank", "url", "title", "section", "text", "start", "end", "score"}
    assert (row["calls"], row["searches"]) == (0, 1)
    citation = row["citations"][0]
    assert set(citation) == {"n", "url", "title", "quote", "start", "end"}
    assert PAGES[0]["text"][citation["start"] : citation["end"]] == citation["quote"]
    assert all({"node", "ms"} <= set(step) for step in row["steps"])


def test_pages_and_remove(run: Run, folder: Path) -> None:
    extra = lines(folder / "extra.jsonl", [{"url": "https://a.example/x", "title": "X", "text": "Some text."}])
    run("import", str(extra))
    assert len(run("pages")[1]) == 3
    url = "https://a.example/x#frag"
    assert run("remove", url) == (0, [{"url": url, "removed": True}])
    assert run("remove", "https://a.example/x")[0] == 1
    assert len(run("pages")[1]) == 2


def test_ingest_reports_each_source(run: Run, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("# Note\n\nA note about lighthouses.")
    sources = [str(tmp_path / "note.md"), "http://127.0.0.1:9/"]
    status, rows = run("--library", "notes", "ingest", *sources)
    assert status == 1
    assert {row["source"].rsplit("/")[-1]: row["status"] for row in rows} == {"note.md": "added", "": "failed"}
    blocked = next(row for row in rows if row["status"] == "failed")
    assert blocked["reason"] == "blocked"


def test_extract_and_chunk(run: Run, tmp_path: Path) -> None:
    html = f"<html><head><title>T</title></head><body><h1>T</h1><p>{'A sentence of the page. ' * 30}</p></body></html>"
    path = tmp_path / "page.html.gz"
    path.write_bytes(gzip.compress(html.encode()))
    status, (row,) = run("extract", str(path))
    assert status == 0
    assert row["title"] == "T"
    assert row["source"] == str(path)
    (tmp_path / "page.html").write_text(html)
    status, (chunks,) = run("chunk", str(tmp_path / "page.html"))
    assert status == 0
    ends = {b for _, b in split_sentences(row["text"])}
    for chunk in chunks:
        assert row["text"][chunk["start"] : chunk["end"]] == chunk["text"]
        assert chunk["end"] in ends


def test_the_chunker_is_chosen(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "guide.md"
    path.write_text("\n\n".join(f"## Step {n}\n\n{'Turn the key and wait a little. ' * 20}" for n in range(5)))

    def sections(*arguments: str) -> list[list[str]]:
        _, (chunks,) = run("chunk", *arguments, str(path))
        return [chunk["section"] for chunk in chunks]

    assert sections("--chunker", "markdown") == [[f"Step {n}"] for n in range(5)]
    assert len(sections("--chunker", "parent")) >= 10
    monkeypatch.setenv("CHUNKER", "markdown")
    assert sections() == [[f"Step {n}"] for n in range(5)]
    rows = lines(tmp_path / "pages.jsonl", [{"url": "https://a.example/guide", "text": path.read_text()}])
    taken = [
        run("--library", "cut", "import", "--chunker", name, str(rows))[1][0]
        for name in ("markdown", "parent", "parent")
    ]
    assert [row["status"] for row in taken] == ["added", "updated", "unchanged"]
    assert taken[1]["chunks"] > taken[0]["chunks"] == 5


def test_tools_tell_what_no_page_does(run: Run, capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    status, (row,) = run("ask", "--mode", "tool", "80的15%是多少？")
    assert (status, row["answer"], row["tools"][0]["name"]) == (0, "80 * 15% = 12", "calculator")
    _, (row,) = run("ask", "--mode", "tool", "How many pages do I have?")
    assert row["answer"].startswith("2 pages") and row["tools"][0]["name"] == "statistics"
    capsys.readouterr()
    assert main(["--data-dir", str(folder / "data"), "ask", "--mode", "tool", "1/0"]) == 1
    assert "Division by zero" in capsys.readouterr().out


ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_an_ascii_terminal(folder: Path, tmp_path: Path) -> None:
    """It shows what it can, accepts input, and JSON has everything."""
    page = tmp_path / "渡轮 ⛴ guide.md"
    page.write_text("# 渡轮\n\n冬季渡轮每天上午九点从南码头出发，票价四元。\n", encoding="utf-8")

    def told(*arguments: str) -> str:
        program = "import sys; from rag.cli import main; from tests.support.hashed_model import use_hashed_model\n"
        program += "use_hashed_model(); sys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "--data-dir", str(tmp_path / "data"), *arguments]
        environment = {**os.environ, **ASCII}
        done = subprocess.run(command, capture_output=True, cwd=ROOT, env=environment, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout.decode("ascii")

    assert "? guide.md  Added" in told("ingest", str(page))
    answer = json.loads(told("ask", "--json", "渡轮几点出发？"))
    assert "上午九点" in answer["answer"]
    assert answer["citations"][0]["title"] == "渡轮"


def test_doctor_tells_what_is_a_fall_back(run: Run) -> None:
    status, rows = run("doctor", "--deep")
    assert status == 0
    parts = {"settings", "database", "library", "embedding model", "chat model", "verifier", "code"}
    assert {row["part"] for row in rows} == parts
    assert all(row["fallback"] for row in rows if row["part"] in ("chat model", "verifier", "code"))


def test_doctor_tries_the_verifier_out(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nli = build_tiny_verifier(tmp_path / "nli", "Sequence", ("entailment", "neutral", "contradiction"))
    for name, works in ((str(nli), True), (str(tmp_path / "nowhere"), False)):
        monkeypatch.setenv("VERIFIER_MODEL", name)
        _, rows = run("doctor")
        (row,) = (row for row in rows if row["part"] == "verifier")
        assert (row["works"], row["fallback"]) == (works, False)
        assert name in row["text"]


@pytest.mark.parametrize(
    ("arguments", "status", "word"),
    [
        (["search"], 2, "QUESTION"),
        (["frobnicate"], 2, "invalid choice"),
        (["search", "-k", "0", "x"], 2, "1 or more"),
        (["ingest"], 2, "SOURCE"),
        (["--library", "Not Valid", "pages"], 2, "RAG_LIBRARY"),
        (["import", "/nowhere/pages.jsonl"], 2, "Can't read"),
        (["chunk", "--chunker", "random", "x.md"], 2, "invalid choice"),
        (["extract", "/nowhere/page.html"], 1, "Can't read"),
        (["search", "--since", "soon", "bridge"], 2, "must be a date"),
        (["search", "--until", "2026-13-01", "bridge"], 2, "must be a date"),
        (["search", "--strategy", "clever", "bridge"], 2, "invalid choice"),
    ],
)
def test_wrong_usage_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, arguments: list[str], status: int, word: str
) -> None:
    try:
        ended: object = main(["--data-dir", str(tmp_path / "data"), *arguments])
    except SystemExit as end:  # raised by argparse
        ended = end.code
    assert ended == status
    assert word in "".join(capsys.readouterr())


def test_as_a_process_it_says_what_is_wrong_before_it_loads_the_app(tmp_path: Path) -> None:
    program = [sys.executable, "-v", "-m", "rag", "search"]
    ran = subprocess.run(program, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert ran.returncode == 2
    assert "QUESTION" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert "import 'rag.cli'" in ran.stderr
    assert "import 'rag.app'" not in ran.stderr


def test_every_command_has_its_function() -> None:
    actions = next(action for action in _build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    assert all(callable(_load_command(parser.get_default("run"))) for parser in actions.choices.values())


def test_a_list_of_addresses_has_no_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []

    def take_in(settings: object, options: object, sources: list[Source], force: bool) -> int:
        taken.extend(source.url for source in sources)
        return 0

    monkeypatch.setattr("rag.commands.pages._ingest", take_in)
    urls = [f"https://a.example/{'x' * 2000}/{number}" for number in range(900)]
    (tmp_path / "list.txt").write_text("\n".join(urls))
    assert main(["--data-dir", str(tmp_path / "data"), "ingest", "--from-file", str(tmp_path / "list.txt")]) == 0
    assert taken == urls


@pytest.mark.parametrize("command", ["ingest", "extract"])
def test_what_cannot_be_read_fails_with_its_sentence(run: Run, tmp_path: Path, command: str) -> None:
    bad = ["~nosuchuser1/x", "x" * 300, "http://[::1/x", "https://a\u2100b.com/", "bad.html.gz", "cut.md.gz"]
    packed = gzip.compress(b"<p>Some words of a page.</p>" * 20)
    (tmp_path / "bad.html.gz").write_bytes(packed[:12] + b"\xff" * 8 + packed[20:])
    (tmp_path / "cut.md.gz").write_bytes(packed[:-9])
    (tmp_path / "good.md").write_text("# Good\n\nA note about bridges.")
    status, rows = run(command, *bad, "good.md", folder=tmp_path)
    assert status == 1
    by_source = {row["source"]: row for row in rows}
    for source in bad:
        assert len(by_source[source]["message"]) > 10
        assert by_source[source].get("status", "failed") == "failed"
    assert by_source["good.md"].get("status", "added") == "added"


def test_a_folder_with_a_name_that_is_not_utf8(run: Run, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    name = os.fsdecode(b"caf\xe9.md")
    (tmp_path / "in" / name).write_text("# Tea\n\nA note about tea.")
    status, (row,) = run("ingest", "in", folder=tmp_path)
    assert (status, row["status"], row["source"]) == (0, "added", "in/caf\ufffd.md")
    status, (row,) = run("extract", f"in/{name}", folder=tmp_path)
    assert (status, row["source"]) == (0, "in/caf\ufffd.md")


@pytest.mark.parametrize(("mark", "encoding"), [("\u2028", "utf-8"), ("\x85", "utf-8-sig")])
def test_rows_end_at_line_ends_only(run: Run, tmp_path: Path, mark: str, encoding: str) -> None:
    page = {"url": "https://a.example/rows", "title": "Rows", "text": f"The mill{mark}was built in 1850."}
    (tmp_path / "pages.jsonl").write_text(json.dumps(page, ensure_ascii=False) + "\r\n", encoding=encoding)
    status, rows = run("--library", "rows", "import", str(tmp_path / "pages.jsonl"))
    assert (status, len(rows)) == (0, 1)
    question = {"id": "m", "question": f"When was{mark}the mill built?"}
    (tmp_path / "questions.jsonl").write_text(json.dumps(question, ensure_ascii=False), encoding=encoding)
    asked = run("--library", "rows", "search", "--questions", str(tmp_path / "questions.jsonl"))
    assert [row["id"] for row in asked[1]] == ["m"]


def test_a_terminal_gets_no_orders(capsys: pytest.CaptureFixture[str]) -> None:
    row = {"title": "a\u202eb\x9b2J"}
    print_row(argparse.Namespace(json=False), row, "a\u202eb\x1b[2J\n\tc")
    assert capsys.readouterr().out == "ab[2J\n\tc\n"
    print_row(argparse.Namespace(json=True), row, "")
    shown = capsys.readouterr().out
    assert shown == strip_controls(shown)
    assert json.loads(shown) == row


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "gb18030", "utf-16"])
def test_files_of_questions_in_any_charset(tmp_path: Path, codec: str) -> None:
    text = '{"question": "冬季渡轮每天上午几点从南码头出发？"}\n{"question": "票价是多少？"}\n'
    (tmp_path / "set.jsonl").write_bytes(text.replace("\n", "\r\n").encode(codec))
    assert read_text_file(str(tmp_path / "set.jsonl")) == text


def test_the_reason_of_a_failure_names_its_file_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.gz").write_bytes(b"")
    assert main(["--data-dir", str(tmp_path / "data"), "ingest", str(tmp_path / "a.gz")]) == 1
    assert capsys.readouterr().out.count("a.gz") == 1


# Scope and strategy as options of `search` and `ask`


def test_a_question_of_a_file_is_searched_for_with_its_history(run: Run, tmp_path: Path) -> None:
    said = [{"question": "Where is the ferry?", "answer": "Beside the bridge."}, {"question": "Thanks!", "answer": ""}]
    asked = [{"id": "alone", "question": "When?"}, {"id": "after", "question": "When?", "history": said}]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    how = ("--strategy", "keyword", "--questions", str(tmp_path / "q.jsonl"))
    status, (_, after) = run("--library", "scoped", "search", *how)
    assert (status, after["question"], after["hits"][0]["title"]) == (0, "When?", "Ferry")


@pytest.mark.parametrize(
    ("options", "titles"),
    [
        ([], {"Bridge", "Ferry"}),
        (["--page", "https://one.example/bridge#top"], {"Bridge"}),
        (["--page", "https://one.example/bridge", "--page", "https://two.example/ferry"], {"Bridge", "Ferry"}),
        (["--site", "two.example"], {"Ferry"}),
        (["--language", "en"], {"Bridge"}),
        (["--heading", "History"], {"Bridge"}),
        (["--heading", "No such"], set()),
        (["--since", "2026-01-01"], {"Bridge", "Ferry"}),
        (["--until", "2020-01-01"], set()),
    ],
)
def test_where_to_search(run: Run, options: list[str], titles: set[str]) -> None:
    status, (row,) = run("--library", "scoped", "search", *options, "harbour bridge")
    assert (status, {hit["title"] for hit in row["hits"]}) == (0, titles)
    assert "History" not in options or all("History" in hit["section"] for hit in row["hits"])


@pytest.mark.parametrize("strategy", ["hyde", "multi_query", "rerank", "auto", "keyword"])
def test_how_to_search(run: Run, strategy: str) -> None:
    question = "When was the harbour bridge opened?"
    status, (row,) = run("--library", "scoped", "search", "--strategy", strategy, question)
    assert (status, row["hits"][0]["title"]) == (0, "Bridge")


def test_asking_keeps_to_them_too(run: Run) -> None:
    asked = ["ask", "--site", "two.example", "--strategy", "rerank", "What does the harbour bridge have?"]
    status, (row,) = run("--library", "scoped", *asked)
    assert (status, {citation["title"] for citation in row["citations"]}) == (0, {"Ferry"})


def test_the_setting_chooses(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATEGY", "keyword")
    status, (row,) = run("--library", "scoped", "search", "--explain", "harbour bridge")
    assert (status, row["strategy"]) == (0, "keyword")
