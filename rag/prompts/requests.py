"""What a chat model is asked, in the question's language, and how passages are wrapped to stay quotes."""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from rag.prompts.texts import PromptText, PromptTexts
from rag.text import first_sentence, is_chinese, struck_told
from rag.types import Exchange, Passage

NOT_IN_PAGES: Final = "NOT_IN_PAGES"
"""What a model writes, and nothing else, when the passages do not hold the answer."""

_MAX_LABEL = 160
MAX_PASSAGE = 4_000
"""Characters of a passage that a model is given."""
_TITLES = 60
_WHOLE = 100_000  # characters of an answer: who asks has chosen what is shown of it

_MOST: Final = {
    **dict.fromkeys(("need", "translation", "condense", "rewrite"), 100),
    **dict.fromkeys(("grade", "route", "phrasings", "search_query"), 200),
    **dict.fromkeys(("decide", "hypothetical", "suggest", "tools", "test_question", "dates", "refine", "score"), 400),
    **dict.fromkeys(("answer", "check"), 800),
    **dict.fromkeys(("report", "summary"), 2_500),
}
"""Tokens of a reply, by job."""

_MARKER = re.compile(r"passage-[0-9a-f]{6}(?=>)")
_marker: ContextVar[str] = ContextVar("marker", default="")

Numbered = tuple[int, Passage]


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two parts of a request: the standing rules, and what is asked now; `version` names the rules' wording.

    `most` is how many tokens the reply may have.
    """

    system: str
    user: str
    version: str = ""
    most: int = 1_000


def made(texts: Sequence[PromptText], user: str, **values: object) -> Prompt:
    """A request with these texts as its rules, one after another."""
    rules = "".join(text.filled(values) for text in texts)
    return Prompt(rules, user, _versions(texts), _most(texts))


def on_passages(texts: Sequence[PromptText], base: PromptText, block: str, asked: str, **values: object) -> Prompt:
    """A request whose passages come before its rules: servers keep what requests of a run begin with alike."""
    rules = "".join(text.filled(values) for text in texts)
    return Prompt(base.text, f"{block}\n\n{rules}\n{asked}", _versions([base, *texts]), _most(texts))


def mark_run() -> None:
    """Give all blocks of passages that are made from here on in this context the same marker."""
    _marker.set(_new_marker())


def _new_marker() -> str:
    return f"passage-{secrets.token_hex(3)}"


def marker_in(prompt: Prompt) -> str:
    """Return the name of the tags around the prompt's passages; empty if it has none."""
    found = _MARKER.search(prompt.user)
    return found[0] if found else ""


def _versions(texts: Sequence[PromptText]) -> str:
    return " ".join(text.version for text in texts)


def _most(texts: Sequence[PromptText]) -> int:
    return max(_MOST.get(text.name.partition(".")[0], 1_000) for text in texts)


def decide(texts: PromptTexts, question: str) -> Prompt:
    """The rules for choosing between a search and small talk."""
    return made([texts.of("decide", question)], question)


def route(texts: PromptTexts, message: str) -> Prompt:
    """Ask which way a message goes."""
    return made([texts.of("route", message)], message)


def tools(texts: PromptTexts, question: str, now: str) -> Prompt:
    """The rules for calling tools, and for saying what came of it."""
    return made([texts.of("tools", question)], question, now=now)


def grade(texts: PromptTexts, question: str, passages: Sequence[Passage]) -> Prompt:
    block, marker = passage_block(passages)
    base = texts.of("passages", question)
    return on_passages([texts.of("grade", question)], base, block, _asked(question), count=len(passages), marker=marker)


def rewrite(texts: PromptTexts, question: str, tried: Sequence[str], passages: Sequence[Passage]) -> Prompt:
    form = _TRIED_ZH if is_chinese(question) else _TRIED_EN
    block, marker = passage_block(passages, limit=300)
    queries = "\n".join(f"- {_one_line(query)}" for query in tried)
    user = form.format(question=question, queries=queries, block=block)
    return made([texts.of("rewrite", question)], user, marker=marker)


def answer(texts: PromptTexts, question: str, numbered: Sequence[Numbered], *, deep: bool = False) -> Prompt:
    """Ask for the answer from passages that keep their numbers."""
    return _answering(texts, ["answer"], question, numbered, _asked(question), deep=deep)


def refine(
    texts: PromptTexts, question: str, numbered: Sequence[Numbered], draft: str, *, deep: bool = False
) -> Prompt:
    """Ask for a better answer, from a draft and further passages."""
    form = _REFINE_ZH if is_chinese(question) else _REFINE_EN
    asked = form.format(draft=draft, question=question)
    return _answering(texts, ["answer", "refine"], question, numbered, asked, deep=deep)


def scored(texts: PromptTexts, question: str, numbered: Sequence[Numbered], *, deep: bool = False) -> Prompt:
    """Ask for the answer as `answer` does, and how well these passages answer, on a last line `SCORE: n`."""
    return _answering(texts, ["answer", "score"], question, numbered, _asked(question), deep=deep)


def _answering(
    texts: PromptTexts, jobs: Sequence[str], question: str, numbered: Sequence[Numbered], asked: str, *, deep: bool
) -> Prompt:
    """The task is said again after the question: small models follow what stands last."""
    block, marker = _block(numbered)
    rules = [*(texts.of(job, question) for job in jobs), *_dates(texts, question, numbered, deep)]
    task = _TASKS[is_chinese(question), deep]
    values = {"marker": marker, "count": len(numbered), "missing": NOT_IN_PAGES}
    return on_passages(rules, texts.of("passages", question), block, f"{asked}\n\n{task}", **values)


def notes(texts: PromptTexts, question: str, numbered: Sequence[Numbered]) -> Prompt:
    """Ask for what bears on the question, one fact a line, each with its passage's number."""
    block, marker = _block(numbered)
    return made([texts.of("notes", question)], _under(block, question), marker=marker, missing=NOT_IN_PAGES)


def section_notes(texts: PromptTexts, question: str, numbered: Sequence[Numbered]) -> Prompt:
    """Ask for what matters most of each passage, one fact a line, each with its passage's number."""
    block, marker = _block(numbered)
    return made([texts.of("section_notes", question)], _under(block, question), marker=marker, missing=NOT_IN_PAGES)


def summary(texts: PromptTexts, question: str, headings: Sequence[str], numbered: Sequence[Numbered]) -> Prompt:
    """Ask for a summary, from passages that keep their numbers."""
    return _by_headings(texts, "summary", question, headings, numbered)


def beside(texts: PromptTexts, prompt: Prompt, notes: Sequence[str]) -> Prompt:
    """The request with what the person asked to be remembered, quoted between tags of its own."""
    if not notes:
        return prompt
    rule, marker = texts.of("remembered", prompt.system), f"note-{secrets.token_hex(6)}"
    told = "\n".join(f"- {_one_line(note).replace('<', '‹')}" for note in notes)
    system = prompt.system + rule.filled({"marker": marker})
    user = f"{prompt.user}\n\n<{marker}>\n{told}\n</{marker}>"
    return replace(prompt, system=system, user=user, version=f"{prompt.version} {rule.version}")


def hypothetical(texts: PromptTexts, question: str) -> Prompt:
    """Ask for a passage such as a page would hold that answers; it is searched with and never shown as an answer."""
    return made([texts.of("hypothetical", question)], _asked(question))


def phrasings(texts: PromptTexts, question: str) -> Prompt:
    """Ask for other ways to put the question, or its parts, one a line."""
    return made([texts.of("phrasings", question)], _asked(question))


def translation(texts: PromptTexts, question: str, language: str) -> Prompt:
    """Ask for the question in `language`, `en` or `zh`."""
    named = {"zh": "Chinese (简体中文)"}.get(language, "English")
    return made([texts.of("translation", question)], _asked(question), language=named)


def need(texts: PromptTexts, question: str) -> Prompt:
    """Ask for one word: exact, concept or facets."""
    return made([texts.of("need", question)], _asked(question))


def condense(texts: PromptTexts, question: str, history: Sequence[Exchange], summary: str = "") -> Prompt:
    """Ask for the question complete in itself, on one line."""
    chinese = is_chinese(question)
    said = _told(history, chinese, _WHOLE)
    before = f"{summary}\n\n" if summary else ""
    form = _CONDENSE_ZH if chinese else _CONDENSE_EN
    return made([texts.of("condense", question)], form.format(said=before + said, question=question))


def summarise(texts: PromptTexts, before: str, exchanges: Sequence[Exchange], tokens: int) -> Prompt:
    """Ask for a running summary."""
    last = exchanges[-1].question
    said = _told(exchanges, is_chinese(last), 1_200)
    return made([texts.of("summarise", last)], f"{before}\n\n{said}".strip(), tokens=tokens)


def suggest(texts: PromptTexts, question: str, answer: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for three further questions, one a line."""
    block, marker = passage_block(passages, limit=800)
    answered = "回答" if is_chinese(question) else "Answer"
    user = f"{_under(block, question)}\n\n{answered}: {first_sentence(answer, 400)}"
    return made([texts.of("suggest", question)], user, marker=marker)


def plan(texts: PromptTexts, question: str, titles: Sequence[str]) -> Prompt:
    """Ask for the aspects of a question and the steps that would answer it; `titles` are those of pages at hand."""
    pages, asked = ("页面", "问题") if is_chinese(question) else ("Pages", "Question")
    listed = "\n".join(f"- {_defused(_one_line(title), '')[:_MAX_LABEL]}" for title in titles[:_TITLES])
    return made([texts.of("plan", question)], f"{pages}:\n{listed}\n\n{asked}: {question}")


def search_query(
    texts: PromptTexts, question: str, wanted: str, past: Sequence[str], headings: Sequence[str]
) -> Prompt:
    """Ask how to search for a step."""
    found, under, whole, step = _STEP_ZH if is_chinese(question) else _STEP_EN
    user = f"{found}:\n{_lines(past)}\n\n{under}:\n{_lines(headings)}\n\n{whole}: {question}\n{step}: {wanted}"
    return made([texts.of("search_query", question)], user)


def distil(
    texts: PromptTexts, question: str, wanted: str, aspects: Sequence[str], passages: Sequence[Passage]
) -> Prompt:
    """Ask for the sentences of the passages that bear on a step."""
    block, marker = passage_block(passages)
    numbered = "\n".join(f"{number}. {_one_line(aspect)}" for number, aspect in enumerate(aspects, 1))
    told, whole, step = ("方面", "问题", "子问题") if is_chinese(question) else ("Aspects", "Question", "Sub-question")
    user = f"{block}\n\n{told}:\n{numbered}\n\n{whole}: {question}\n{step}: {wanted}"
    return made([texts.of("distil", question)], user, marker=marker, count=len(passages))


def judge(texts: PromptTexts, wanted: str, whole: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for a verdict on each passage that was found for a question, which may be a part of a larger one."""
    block, marker = passage_block(passages)
    larger = f"{'更大的问题' if is_chinese(whole) else 'Part of'}: {whole}\n" if whole != wanted else ""
    return made([texts.of("judge", whole)], f"{block}\n\n{larger}{_asked(wanted)}", marker=marker, count=len(passages))


def go_on(
    texts: PromptTexts,
    question: str,
    past: Sequence[str],
    aspects: Sequence[str],
    steps: Sequence[str],
    revisions: int,
) -> Prompt:
    """Ask whether to go on, to add steps, or to write."""
    found, missing, left = (
        ("已找到", "尚缺的方面", "未做的步骤") if is_chinese(question) else ("Found", "Aspects not met", "Steps left")
    )
    told = f"{found}:\n{_lines(past)}\n\n{missing}:\n{_lines(aspects)}\n\n{left}:\n{_lines(steps)}"
    return made([texts.of("go_on", question)], _under(told, question), revisions=revisions)


def report(texts: PromptTexts, question: str, headings: Sequence[str], numbered: Sequence[Numbered]) -> Prompt:
    """Ask for the report, from passages that keep their numbers."""
    return _by_headings(texts, "report", question, headings, numbered)


def _by_headings(
    texts: PromptTexts, job: str, question: str, headings: Sequence[str], numbered: Sequence[Numbered]
) -> Prompt:
    block, marker = _block(numbered)
    parts = "标题" if is_chinese(question) else "Headings"
    listed = _defused(_lines(headings), marker)
    user = f"{block}\n\n{parts}:\n{listed}\n\n{_asked(question)}"
    return made([texts.of(job, question)], user, marker=marker, count=len(numbered), missing=NOT_IN_PAGES)


def mend(texts: PromptTexts, question: str, sentences: Sequence[str], passages: Sequence[Passage]) -> Prompt:
    """Ask for sentences that the passages do not bear out as they would."""
    block, marker = passage_block(passages)
    numbered = "\n".join(f"{number}. {_one_line(sentence)}" for number, sentence in enumerate(sentences, 1))
    stated = "句子" if is_chinese(question) else "Sentences"
    user = f"{block}\n\n{stated}:\n{numbered}\n\n{_asked(question)}"
    return made([texts.of("mend", question)], user, marker=marker, count=len(sentences))


def _lines(said: Sequence[str]) -> str:
    return "\n".join(f"- {_one_line(one)}" for one in said) or "–"


def page_question(texts: PromptTexts, page: Passage) -> Prompt:
    """Ask for a question that the page answers, with the answer and the sentence that holds it."""
    block, marker = passage_block([page], limit=len(page.text))
    return made([texts.of("test_question", page.text)], block, marker=marker)


def assess(texts: PromptTexts, question: str, answer: str, passages: Sequence[Passage]) -> Prompt:
    """Ask for points for an answer, and for the questions that it answers."""
    block, marker = passage_block(passages)
    user = f"{_under(block, question)}\n\n<{marker}-answer>\n{_defused(answer, marker)}\n</{marker}-answer>"
    return made([texts.of("assess", question)], user, marker=marker)


def _asked(question: str) -> str:
    return f"{'问题' if is_chinese(question) else 'Question'}: {question}"


def _under(block: str, question: str) -> str:
    return f"{block}\n\n{_asked(question)}"


def _told(exchanges: Sequence[Exchange], chinese: bool, limit: int) -> str:
    """An answer that is missing is named: after an empty label a model goes on to write one."""
    asked, answered, none = (
        ("用户", "回答", "（没有得到回答）") if chinese else ("Person", "Answer", "(none was given)")
    )
    return "\n".join(f"{asked}: {one.meant}\n{answered}: {one.answer.strip()[:limit] or none}" for one in exchanges)


def _block(numbered: Sequence[Numbered]) -> tuple[str, str]:
    return passage_block([one for _, one in numbered], numbers=[number for number, _ in numbered])


def _dates(texts: PromptTexts, question: str, numbered: Sequence[Numbered], deep: bool) -> list[PromptText]:
    """Sources that differ are told apart by their dates, where there are any."""
    differ = deep and len({one.url_hash for _, one in numbered}) > 1
    return [texts.of("dates", question)] if differ else []


def passage_block(
    passages: Sequence[Passage], limit: int = MAX_PASSAGE, *, numbers: Sequence[int] = ()
) -> tuple[str, str]:
    """Wrap the passages, numbered from 1 or by `numbers`, in tags whose name is made for this run.

    Returns the block and the name, which cannot be guessed. Text that looks like such a tag, whatever its
    name, loses its bracket.
    """
    marker = _marker.get() or _new_marker()
    parts = []
    for number, passage in zip(numbers or range(1, len(passages) + 1), passages, strict=True):
        label = f"[{number}] {_label(passage)}"
        text = struck_told(passage.text[:limit], "（已划掉：{}）" if is_chinese(passage.text) else "(struck out: {})")
        shown = _defused(f"{passage.header}\n{text}" if passage.header else text, marker)
        parts.append(f"<{marker}>\n{label}\n{shown}\n</{marker}>")
    return "\n".join(parts), marker


def quoted(text: str) -> str:
    """What a tool said, which may hold words of pages, in tags like those of passages."""
    marker = _marker.get() or _new_marker()
    return f"<{marker}>\n{_defused(text, marker)}\n</{marker}>"


def _label(passage: Passage) -> str:
    names = [passage.title or passage.site or "—", *passage.section]
    date = f" ({passage.date[:10]})" if passage.date else ""
    return _defused(_one_line(" › ".join(names)), passage.id)[:_MAX_LABEL] + _defused(date, passage.id)


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _defused(text: str, marker: str) -> str:
    return re.sub(r"<(?=\s*+(?:/\s*+)?passage)", "‹", text.replace(marker, "passage"), flags=re.IGNORECASE)


_TRIED_EN = "Question: {question}\n\nTried:\n{queries}\n\nFound, but not to the point:\n{block}"
_TRIED_ZH = "问题：{question}\n\n已试过：\n{queries}\n\n检索到但不相关的段落：\n{block}"
_REFINE_EN = "Draft:\n{draft}\n\nQuestion: {question}"
_REFINE_ZH = "草稿：\n{draft}\n\n问题：{question}"
_TASKS: Final = {  # in Chinese, and for a deep answer
    (False, False): "Write the answer in one or two full sentences, each followed by its passage number.",
    (False, True): "Write the answer in full sentences, each followed by its passage number.",
    (True, False): "请用一两个完整的句子写出答案，每句后标出段落编号。",
    (True, True): "请用完整的句子写出答案，每句后标出段落编号。",
}
_CONDENSE_EN = "Conversation:\n{said}\n\nLast question: {question}"
_CONDENSE_ZH = "对话：\n{said}\n\n最后一个问题：{question}"
_STEP_EN = ("Found so far", "Headings of the pages", "Question", "Sub-question")
_STEP_ZH = ("已找到", "页面的标题", "问题", "子问题")
