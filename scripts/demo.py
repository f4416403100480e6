"""Load the sample pages into a separate folder, ask eight questions, and print the cited answers.

PYTHONPATH=. .venv/bin/python scripts/demo.py

Needs no network: the embedded database, the built-in embedding model, answers quoted from the pages.
"""

from __future__ import annotations

import logging
import sys
import tempfile
import time

from rag.app import App, JobView, Question
from rag.config import load_settings
from rag.locales import say
from rag.text import is_chinese
from rag.types import Answer

QUESTIONS = {
    "How long was the Skiff outage?": "3 hours and 42 minutes",
    "What does the Business plan cost?": "15 euros",
    "how long do you keep my files after I delete them?": "30 days",
    "can I get my money back if I am not happy?": "within 45 days",
    "境外办公一年最多多少天？": "二十个工作日",
    "学校有折扣吗？": "half the price",
    "What temperature should the water be for green tea?": "80 到 85℃",
    "Who won the 2022 World Cup?": "",
}
"""Questions in people's words, some across languages, with the required text of the answer; "" if no page answers."""
TIMEOUT = 300.0  # seconds


def show(line: str = "") -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def open_app(folder: str) -> App:
    """Open the app with its defaults, regardless of .env and the environment."""
    return App(
        load_settings(
            None,
            rag_data_dir=folder,
            rag_library="demo",
            qdrant_url="",
            embedding_model="builtin",
            llm_model="",
            llm_base_url="",
        )
    )


def load_pages(app: App) -> JobView:
    job_id = app.imports.add_examples(library="demo")
    end = time.monotonic() + TIMEOUT
    while (job := app.imports.jobs.job(job_id)).state == "running":
        if time.monotonic() > end:
            raise TimeoutError("the sample pages did not go in")
        time.sleep(0.1)
    return job


def ask(app: App, question: str) -> Answer:
    return app.wait(app.ask(Question(question, ("demo",))), TIMEOUT)


def show_answer(answer: Answer, language: str) -> None:
    show(f"? {answer.question}")
    for line in filter(None, (answer.text or "-").splitlines()):
        show(f"  {line}")
    for citation in answer.citations:
        show(f"      [{citation.n}] {citation.title}, {citation.url}")
    if answer.notice:
        show(f"  ({say(answer.notice, language)})")
    show(f"  {answer.outcome}, {answer.seconds:.2f} s\n")


def run(app: App) -> bool:
    """Return whether every page was added and every question was answered correctly, with a citation."""
    began = time.monotonic()
    show("Loading the sample pages; the first use loads the embedding model, too ...")
    job = load_pages(app)
    results = [item.result for item in job.items if item.result]
    for result in results:
        show(f"  {result.status:<8} {result.chunks:>3} passages  {result.url}")
    show(f"{len(results)} pages in {time.monotonic() - began:.1f} s\n")
    answers = {question: ask(app, question) for question in QUESTIONS}
    for question, answer in answers.items():
        show_answer(answer, "zh" if is_chinese(question) else "en")
    return all(result.status == "added" for result in results) and all(
        is_right(answers[question], expected) for question, expected in QUESTIONS.items()
    )


def is_right(answer: Answer, expected: str) -> bool:
    if not expected:
        return answer.outcome == "not_in_pages"
    return expected in answer.text and bool(answer.citations)


def main() -> int:
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="pagelight-demo-", ignore_cleanup_errors=True) as folder:
        app = open_app(folder)
        try:
            return 0 if run(app) else 1
        finally:
            app.close()


if __name__ == "__main__":
    raise SystemExit(main())
