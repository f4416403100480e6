"""Requests to a chat model, in the question's language, with passages delimited as quotes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final, Literal

from rag.prompts.texts import PromptText, PromptTexts
from rag.text import describe_struck, first_sentence, is_chinese, lazy_regex
from rag.types import Exchange, Passage

NOT_IN_PAGES: Final = "NOT_IN_PAGES"
"""The whole reply of a model if the passages do not answer the question."""

_MAX_LABEL = 160
MAX_PASSAGE = 4_000
"""Characters of a passage in a request."""
_TITLES = 60
_NO_LIMIT = 100_000  # characters of an answer: the caller limits it

_MAX_TOKENS: Final = {
    **dict.fromkeys(("need", "translation", "condense", "rewrite"), 100),
    **dict.fromkeys(("grade", "route", "phrasings", "search_query"), 200),
    **dict.fromkeys(("decide", "hypothetical", "suggest", "tools", "test_question", "dates", "refine", "score"), 400),
    **dict.fromkeys(("answer", "check"), 800),
    **dict.fromkeys(("report", "summary"), 2_500),
}
"""Maximum tokens of a reply, by job."""

_MARKER = lazy_regex(r"passage-[0-9a-f]{6}(?=>)")
_marker: ContextVar[str] = ContextVar("marker", default="")

Numbered = tuple[int, Passage]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The instructions and the user message of a request; `version` identifies the wording of the instructions.

    `max_tokens` is the maximum number of tokens of the reply.
    """

    system: str
    user: str
    version: str = ""
    max_tokens: int = 1_000


def _build(texts: PromptTexts, job: str, message: str, user: str, **values: object) -> Prompt:
    """Return a request with the text of a job as its instructions, in the language of `message`."""
    text = texts.for_job(job, message)
    return Prompt(text.fill(values), user, text.version, _max_tokens([text]))


def build_on_passages(
    texts: Sequence[PromptText], base: PromptText, block: str, message: str, **values: object
) -> Prompt:
    """Build a request with passages before its instructions: servers cache the prefix that a run's requests share."""
    rules = "".join(text.fill(values) for text in texts)
    version = " ".join(text.version for text in (base, *texts))
    return Prompt(base.text, f"{block}\n\n{rules}\n{message}", version, _max_tokens(texts))


def mark_run() -> None:
    """Use the same marker for all blocks of passages that this context creates from now on."""
    _marker.set(_new_marker())


def _new_marker() -> str:
    return f"passage-{secrets.token_hex(3)}"


def marker_in(prompt: Prompt) -> str:
    """Return the name of the tags around the prompt's passages; empty if it has none."""
    match = _MARKER.search(prompt.user)
    return match[0] if match else ""


def _max_tokens(texts: Sequence[PromptText]) -> int:
    return max(_MAX_TOKENS.get(text.name.partition(".")[0], 1_000) for text in texts)


def decide(texts: PromptTexts, question: str) -> Prompt:
    """Ask the model to choose between a search and small talk."""
    return _build(texts, "decide", question, question)


def route(texts: PromptTexts, message: str) -> Prompt:
    return _build(texts, "route", message, message)


def tools(texts: PromptTexts, question: str, now: str) -> Prompt:
    """Ask the model to call tools and report their results."""
    return _build(texts, "tools", question, question, now=now)


def grade(texts: PromptTexts, question: str, passages: Sequence[Passage]) -> Prompt:
    block, marker = passage_block(passages)
    base = texts.for_job("passages", question)
    return build_on_passages(
        [texts.for_job("grade", question)], base, block, _ask(question), count=len(passages), marker=marker
    )


def rewrite(texts: PromptTexts, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> Prompt:
    block, marker = passage_block(passages, limit=300)
    queries = "\n".join(f"- {_one_line(query)}" for query in tried)
    user = _TRIED[is_chinese(question)].format(question=question, queries=queries, block=block)
    return _build(texts, "rewrite", question, user, marker=marker)


def answer(texts: PromptTexts, question: str, numbered: Sequence[Numbered], *, deep: bool = False) -> Prompt:
    """Ask for the answer from numbered passages."""
    return _build_answer(texts, ["answer"], question, numbered, _ask(question), deep=deep)


def refine(
    texts: PromptTexts, question: str, numbered: Sequence[Numbered], draft: str, *, deep: bool = False
) -> Prompt:
    """Ask for an improved answer, from a draft and more passages."""
    message = _REFINE[is_chinese(question)].format(draft=draft, question=question)
    return _build_answer(texts, ["answer", "refine"], question, numbered, message, deep=deep)


def answer_scored(texts: PromptTexts, question: str, numbered: Sequence[Numbered], *, deep: bool = False) -> Prompt:
    """Ask for the answer as `answer` does, and for a score of these passages on a last line `SCORE: n`."""
    return _build_answer(texts, ["answer", "score"], question, numbered, _ask(question), deep=deep)


def _build_answer(
    texts: PromptTexts, jobs: Sequence[str], question: str, numbered: Sequence[Numbered], message: str, *, deep: bool
) -> Prompt:
    """Build a request for an answer that repeats the task after the question: small models follow what comes last."""
    block, marker = _block(numbered)
    has_several_sources = deep and len({passage.url_hash for _, passage in numbered}) > 1
    rules = [texts.for_job(job, question) for job in (*jobs, *(["dates"] if has_several_sources else []))]
    task = _TASKS[is_chinese(question), deep]
    values = {"marker": marker, "count": len(numbered), "missing": NOT_IN_PAGES}
    return build_on_passages(rules, texts.for_job("passages", question), block, f"{message}\n\n{task}", **values)


def notes(
    texts: PromptTexts, job: Literal["notes", "section_notes"], question: str, numbered: Sequence[Numbered]
) -> Prompt:
    """Ask for facts that are relevant (or, for `section_notes`, important), one per line, each with its number."""
    block, marker = _block(numbered)
    return _build(texts, job, question, _append(block, question), marker=marker, missing=NOT_IN_PAGES)


def add_memory(texts: PromptTexts, prompt: Prompt, notes: Sequence[str]) -> Prompt:
    """Add the user's memory to a request, quoted between separate tags."""
    if not notes:
        return prompt
    rule, marker = texts.for_job("remembered", prompt.system), f"note-{secrets.token_hex(6)}"
    lines = "\n".join(f"- {_one_line(note).replace('<', '‹')}" for note in notes)
    system = prompt.system + rule.fill({"marker": marker})
    user = f"{prompt.user}\n\n<{marker}>\n{lines}\n</{marker}>"
    return replace(prompt, system=system, user=user, version=f"{prompt.version} {rule.version}")


def expansion(texts: PromptTexts, job: Literal["hypothetical", "phrasings", "need"], question: str) -> Prompt:
    """Ask for a hypothetical passage that answers the question (a search query, never shown), for other phrasings of
    it or its parts, one per line, or for one word: exact, concept or facets."""
    return _build(texts, job, question, _ask(question))


def translation(texts: PromptTexts, question: str, language: str) -> Prompt:
    """Ask for the question in `language`, `en` or `zh`."""
    language_name = {"zh": "Chinese (简体中文)"}.get(language, "English")
    return _build(texts, "translation", question, _ask(question), language=language_name)


def condense(texts: PromptTexts, question: str, history: Sequence[Exchange], summary: str = "") -> Prompt:
    """Ask for a standalone version of the question, on one line."""
    chinese = is_chinese(question)
    conversation = _format_exchanges(history, chinese, _NO_LIMIT)
    before = f"{summary}\n\n" if summary else ""
    user = _CONDENSE[chinese].format(said=before + conversation, question=question)
    return _build(texts, "condense", question, user)


def summarise(texts: PromptTexts, before: str, exchanges: Sequence[Exchange], tokens: int) -> Prompt:
    """Ask for a running summary."""
    last = exchanges[-1].question
    conversation = _format_exchanges(exchanges, is_chinese(last), 1_200)
    return _build(texts, "summarise", last, f"{before}\n\n{conversation}".strip(), tokens=tokens)


def suggest(texts: PromptTexts, question: str, answer: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for three follow-up questions, one per line."""
    block, marker = passage_block(passages, limit=800)
    label = "回答" if is_chinese(question) else "Answer"
    user = f"{_append(block, question)}\n\n{label}: {first_sentence(answer, 400)}"
    return _build(texts, "suggest", question, user, marker=marker)


def plan(texts: PromptTexts, question: str, titles: Sequence[str]) -> Prompt:
    """Ask for the aspects of a question and the steps to answer it; `titles` are those of the library's pages."""
    pages = "页面" if is_chinese(question) else "Pages"
    title_lines = "\n".join(f"- {_defuse(_one_line(title), '')[:_MAX_LABEL]}" for title in titles[:_TITLES])
    return _build(texts, "plan", question, f"{pages}:\n{title_lines}\n\n{_ask(question)}")


def search_query(
    texts: PromptTexts, question: str, wanted: str, past: Sequence[str], headings: Sequence[str]
) -> Prompt:
    """Ask for the search query of a step."""
    past_label, headings_label = (
        ("已找到", "页面的标题") if is_chinese(question) else ("Found so far", "Headings of the pages")
    )
    user = f"{past_label}:\n{_lines(past)}\n\n{headings_label}:\n{_lines(headings)}\n\n{_ask_step(question, wanted)}"
    return _build(texts, "search_query", question, user)


def distil(
    texts: PromptTexts, question: str, wanted: str, aspects: Sequence[str], passages: Sequence[Passage]
) -> Prompt:
    """Ask for the sentences of the passages that are relevant to a step."""
    block, marker = passage_block(passages)
    label = "方面" if is_chinese(question) else "Aspects"
    user = f"{block}\n\n{label}:\n{_number_lines(aspects)}\n\n{_ask_step(question, wanted)}"
    return _build(texts, "distil", question, user, marker=marker, count=len(passages))


def judge(texts: PromptTexts, wanted: str, whole: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for a verdict on each passage for a question, which may be a part of a larger one."""
    block, marker = passage_block(passages)
    larger = f"{'更大的问题' if is_chinese(whole) else 'Part of'}: {whole}\n" if whole != wanted else ""
    return _build(texts, "judge", whole, f"{block}\n\n{larger}{_ask(wanted)}", marker=marker, count=len(passages))


def choose_next(
    texts: PromptTexts, question: str, past: Sequence[str], aspects: Sequence[str], steps: Sequence[str], revisions: int
) -> Prompt:
    """Ask whether to continue, to add steps, or to write."""
    past_label, aspects_label, steps_label = (
        ("已找到", "尚缺的方面", "未做的步骤") if is_chinese(question) else ("Found", "Aspects not met", "Steps left")
    )
    block = f"{past_label}:\n{_lines(past)}\n\n{aspects_label}:\n{_lines(aspects)}\n\n{steps_label}:\n{_lines(steps)}"
    return _build(texts, "go_on", question, _append(block, question), revisions=revisions)


def by_headings(
    texts: PromptTexts,
    job: Literal["report", "summary"],
    question: str,
    headings: Sequence[str],
    numbered: Sequence[Numbered],
) -> Prompt:
    """Ask for the report or summary, under these headings, from numbered passages."""
    block, marker = _block(numbered)
    label = "标题" if is_chinese(question) else "Headings"
    user = f"{block}\n\n{label}:\n{_defuse(_lines(headings), marker)}\n\n{_ask(question)}"
    return _build(texts, job, question, user, marker=marker, count=len(numbered), missing=NOT_IN_PAGES)


def mend(texts: PromptTexts, question: str, sentences: Sequence[str], passages: Sequence[Passage]) -> Prompt:
    """Ask for corrections of sentences that the passages do not support."""
    block, marker = passage_block(passages)
    label = "句子" if is_chinese(question) else "Sentences"
    user = f"{block}\n\n{label}:\n{_number_lines(sentences)}\n\n{_ask(question)}"
    return _build(texts, "mend", question, user, marker=marker, count=len(sentences))


def _lines(texts: Sequence[str]) -> str:
    return "\n".join(f"- {_one_line(text)}" for text in texts) or "–"


def _number_lines(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}. {_one_line(text)}" for number, text in enumerate(texts, 1))


def page_question(texts: PromptTexts, page: Passage) -> Prompt:
    """Ask for a question that the page answers, with the answer and the sentence that contains it."""
    block, marker = passage_block([page], limit=len(page.text))
    return _build(texts, "test_question", page.text, block, marker=marker)


def assess(texts: PromptTexts, question: str, answer: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for scores of an answer, and for the questions that it answers."""
    block, marker = passage_block(passages)
    user = f"{_append(block, question)}\n\n<{marker}-answer>\n{_defuse(answer, marker)}\n</{marker}-answer>"
    return _build(texts, "assess", question, user, marker=marker)


def _ask(question: str) -> str:
    return f"{'问题' if is_chinese(question) else 'Question'}: {question}"


def _ask_step(question: str, wanted: str) -> str:
    return f"{_ask(question)}\n{'子问题' if is_chinese(question) else 'Sub-question'}: {wanted}"


def _append(block: str, question: str) -> str:
    return f"{block}\n\n{_ask(question)}"


def _format_exchanges(exchanges: Sequence[Exchange], chinese: bool, limit: int) -> str:
    """Format exchanges; a missing answer is stated, since a model would write one after an empty label."""
    person, reply, missing = ("用户", "回答", "（没有得到回答）") if chinese else ("Person", "Answer", "(no answer)")
    return "\n".join(
        f"{person}: {turn.effective_question}\n{reply}: {turn.answer.strip()[:limit] or missing}" for turn in exchanges
    )


def _block(numbered: Sequence[Numbered]) -> tuple[str, str]:
    return passage_block([passage for _, passage in numbered], numbers=[number for number, _ in numbered])


def passage_block(
    passages: Sequence[Passage], limit: int = MAX_PASSAGE, *, numbers: Sequence[int] = ()
) -> tuple[str, str]:
    """Wrap the passages, numbered from 1 or by `numbers`, in tags with a random name for this run.

    Returns the block and the name, which cannot be guessed. Text that looks like such a tag, with any name, loses its
    opening bracket.
    """
    marker = _marker.get() or _new_marker()
    parts = []
    for number, passage in zip(numbers or range(1, len(passages) + 1), passages, strict=True):
        label = f"[{number}] {_label(passage)}"
        text = describe_struck(
            passage.text[:limit], "（已划掉：{}）" if is_chinese(passage.text) else "(struck out: {})"
        )
        shown = _defuse(f"{passage.header}\n{text}" if passage.header else text, marker)
        parts.append(f"<{marker}>\n{label}\n{shown}\n</{marker}>")
    return "\n".join(parts), marker


def wrap_quote(text: str) -> str:
    """Wrap a tool's result, which may contain text from pages, in tags like those of passages."""
    marker = _marker.get() or _new_marker()
    return f"<{marker}>\n{_defuse(text, marker)}\n</{marker}>"


def _label(passage: Passage) -> str:
    names = [passage.title or passage.site or "—", *passage.section]
    date = f" ({passage.date[:10]})" if passage.date else ""
    return _defuse(_one_line(" › ".join(names)), passage.id)[:_MAX_LABEL] + _defuse(date, passage.id)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _defuse(text: str, marker: str) -> str:
    return re.sub(r"<(?=\s*+(?:/\s*+)?passage)", "‹", text.replace(marker, "passage"), flags=re.IGNORECASE)


# In English and in Chinese
_TRIED: Final = (
    "Question: {question}\n\nTried:\n{queries}\n\nFound, but irrelevant:\n{block}",
    "问题：{question}\n\n已试过：\n{queries}\n\n检索到但不相关的段落：\n{block}",
)
_REFINE: Final = ("Draft:\n{draft}\n\nQuestion: {question}", "草稿：\n{draft}\n\n问题：{question}")
_CONDENSE: Final = (
    "Conversation:\n{said}\n\nLast question: {question}",
    "对话：\n{said}\n\n最后一个问题：{question}",
)
_TASKS: Final = {  # by (Chinese, deep answer)
    (False, False): "Write the answer in one or two full sentences, each followed by its passage number.",
    (False, True): "Write the answer in full sentences, each followed by its passage number.",
    (True, False): "请用一两个完整的句子写出答案，每句后标出段落编号。",
    (True, True): "请用完整的句子写出答案，每句后标出段落编号。",
}
