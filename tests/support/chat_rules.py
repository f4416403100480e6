"""A rule-based chat model: it searches for questions, returns greetings, grades by shared words, and quotes.

It reads requests as a model would: the offered tools, the requested schema, and passages as `[1] title` and text
between tags. No answers are hard-coded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tests.support.chat_protocol import PASSAGE, Call, Reply, Request

_QUESTION = re.compile(r"(?:Question|问题)[:：]\s*(.+?)(?=\n\n|\Z)", re.DOTALL)
_SENTENCE = re.compile(r"[^。！？.!?\n]+(?:[。！？]|[.!?](?=\s|$)|$)")
_GREETING = re.compile(r"^\W*(?:(?:hi|hello|hey|thanks|thank you)\b|你好|您好|谢谢|早上好)[^?？]{0,20}$", re.I)
_CHINESE = re.compile(r"[\u4e00-\u9fff]")
_COMMON = frozenset(
    "a an and are as at be by did do does for from how in is it of on or the this that to was were what when where "
    "which who why with".split()
)


def rules(request: Request) -> Reply:
    """Reply as a well-behaved model would."""
    schema = _schema(request)
    question = _question(request.last)
    if schema is not None and (planned := _research(schema, question, request)):
        return Reply(json.dumps(planned, ensure_ascii=False))
    if schema is not None and "irrelevant" in schema.get("properties", {}):
        wanted = _terms(question)
        irrelevant = [number for number, text in request.passages if not wanted & _terms(text)]
        return _in_form(request, {"irrelevant": irrelevant})
    if schema is not None:
        return _in_form(request, _fill(schema, schema, request.passages, question))
    if request.tools:
        return _decide(request)
    if reply := _about_the_conversation(request):
        return Reply(reply)
    if request.passages:
        return _answer(request, question)
    return Reply(_greeting(question))


def _in_form(request: Request, filled: Any) -> Reply:
    if request.forced_tool:
        return Reply(tool_calls=[Call(request.forced_tool, filled)])
    return Reply(json.dumps(filled, ensure_ascii=False))


def _research(schema: dict[str, Any], question: str, request: Request) -> dict[str, Any]:
    """Plan a step for each clause of the question, search it verbatim, and finish once everything is read."""
    form = frozenset(schema.get("properties", {}))
    if form == {"aspects", "steps", "unclear"}:
        clauses = [part.strip(" ?？,，") for part in re.split(r"\band\b|[，,；;]|以及", question) if len(part) > 3]
        steps = [{"question": f"{part}?", "justification": "A clause of the question."} for part in clauses[:6]]
        return {"aspects": clauses[:6], "steps": steps}
    if form == {"query", "search", "reason", "section"}:
        wanted = re.findall(r"^(?:Sub-question|子问题): (.+)$", request.last, re.MULTILINE)
        return {"query": wanted[-1] if wanted else question, "search": "hybrid", "reason": "Words and meaning."}
    if form == {"sentences", "summary", "met"}:
        found = [(number, _SENTENCE.findall(text)[0].strip()) for number, text in request.passages]
        aspects = re.findall(r"^(\d+)\. ", PASSAGE.sub("", request.last), re.MULTILINE)
        sentences = [{"number": number, "sentence": sentence} for number, sentence in found]
        return {"sentences": sentences, "summary": found[0][1] if found else "", "met": [int(n) for n in aspects]}
    return {"action": "finish", "justification": "Enough is found."} if "action" in form else {}


def _about_the_conversation(request: Request) -> str:
    """Complete a follow-up with the previous question, summarise, take notes, or suggest follow-ups."""
    system = request.rules
    last = re.search(r"(?:Last question: |最后一个问题：)(.+)", request.last)
    if last:
        before = re.findall(r"^(?:Person|用户): (.+)$", request.last, re.MULTILINE)
        return f"{last[1].rstrip('?？')} ({before[-1].rstrip('?？')})?" if before else last[1]
    if "running summary" in system or "维护对话的摘要" in system:
        return request.last[:600]
    if "further questions" in system or "三个问题" in system:
        ask = (
            "关于“{}”，页面说了什么？"
            if _CHINESE.search(_question(request.last))
            else "What does the page say about {}?"
        )
        labels = re.findall(r"^\[\d+\] (.+)$", request.last, re.MULTILINE)
        return "\n".join(ask.format(label.split(" › ")[-1]) for label in dict.fromkeys(labels))
    if "who will write a summary" in system or "为撰写摘要" in system:
        return _first_sentences(request.passages)
    if "take notes" in system or "做笔记" in system:
        wanted = _terms(_question(request.last))
        notes = [
            f"{sentence.strip()} [{number}]"
            for number, text in request.passages
            for sentence in _SENTENCE.findall(text)
            if wanted & _terms(sentence)
        ]
        return "\n".join(notes) or "NOT_IN_PAGES"
    return ""


def _decide(request: Request) -> Reply:
    """Return a greeting, repeat a tool's result, or call the first tool with the question as its first argument."""
    if _GREETING.match(request.last.strip()):
        return Reply(_greeting(request.last))
    if request.messages[-1].get("role") == "tool":
        return Reply(str(request.messages[-1].get("content") or ""))
    function = request.body["tools"][0]["function"]
    name, form = next(iter(function["parameters"]["properties"].items()))
    query = request.last.strip()[:300]
    return Reply(tool_calls=[Call(function["name"], {name: [query] if form.get("type") == "array" else query})])


def _greeting(text: str) -> str:
    if _CHINESE.search(text):
        return "你好！请问关于你保存的网页，你想了解什么？"
    return "Hello! What would you like to know about your pages?"


def _answer(request: Request, question: str) -> Reply:
    """Reply with the sentence that shares most words with the question, or to a rewrite with its terms."""
    system, passages = request.rules, request.passages
    if "search queries" in system or "检索词" in system:
        return Reply(
            " ".join(dict.fromkeys(_terms(question))) + (" 说明" if _CHINESE.search(question) else " overview")
        )
    if "You write a summary" in system or "写一份摘要" in system:
        return Reply(_first_sentences(passages))
    if "You write a report" in system or "写一份回答问题的报告" in system:
        return Reply(_report(request, passages))
    shared, quote = _best_sentence(question, passages)
    if not shared:
        return Reply("NOT_IN_PAGES" if "NOT_IN_PAGES" in system else "The passages do not say.")
    return Reply(quote)


def _best_sentence(question: str, passages: Sequence[tuple[int, str]]) -> tuple[int, str]:
    """Return the number of words that the sentence most like the question shares with it, and the sentence, cited."""
    wanted = _terms(question)
    ranked = (
        (len(wanted & _terms(sentence)), -number, sentence.strip())
        for number, text in passages
        for sentence in _SENTENCE.findall(text)
        if len(sentence.strip()) > 3
    )
    shared, number, sentence = max(ranked, default=(0, 0, ""))
    return shared, f"{sentence} [{-number}]"


def _first_sentences(passages: Sequence[tuple[int, str]]) -> str:
    """Return the first sentence of each passage that is not a heading, with citations."""
    found = ((number, [one.strip() for one in _SENTENCE.findall(text)]) for number, text in passages)
    said = ((number, [one for one in sentences if len(one) > 12 and one[0] != "#"]) for number, sentences in found)
    return "\n".join(f"{sentences[0]} [{number}]" for number, sentences in said if sentences)


def _report(request: Request, passages: Sequence[tuple[int, str]]) -> str:
    """Return under each heading the sentence that shares most words with it."""
    listed = re.search(r"(?:Headings|标题):\n((?:- .+\n)+)", request.last)
    headings = [line.removeprefix("- ") for line in listed[1].splitlines()] if listed else []
    above = "## {}\n\n" if len(headings) > 1 else ""
    parts = [above.format(heading) + _best_sentence(heading, passages)[1] for heading in headings]
    return "\n\n".join(parts) or "NOT_IN_PAGES"


def _schema(request: Request) -> dict[str, Any] | None:
    """Return the schema that the reply must fit, wherever in the request the client put it."""
    if request.forced_tool:
        functions = {tool["function"]["name"]: tool["function"] for tool in request.body["tools"]}
        return dict(functions[request.forced_tool]["parameters"])
    if request.response_format == "json_schema":
        return dict(request.body["response_format"]["json_schema"]["schema"])
    marker = "JSON schema, and nothing else:\n"
    if marker in request.last:
        found: dict[str, Any] = json.loads(request.last.split(marker, 1)[1])
        return found
    return None


def _fill(form: dict[str, Any], root: dict[str, Any], passages: Sequence[tuple[int, str]], question: str) -> Any:
    """Return a value of the schema: a list has an item per passage, a flag is true if one shares a word."""
    if "$ref" in form:
        form = root["$defs"][form["$ref"].rsplit("/", 1)[-1]]
    kind = form.get("type")
    if kind == "object":
        return {key: _fill(value, root, passages, question) for key, value in form.get("properties", {}).items()}
    if kind == "array":
        return [_fill(form["items"], root, [passage], question) for passage in passages]
    if kind == "boolean":
        return any(_terms(question) & _terms(text) for _, text in passages)
    if kind in ("integer", "number"):
        return passages[0][0] if passages else 0
    return form["enum"][0] if "enum" in form else question


def _question(text: str) -> str:
    found = _QUESTION.findall(PASSAGE.sub("", text))
    return str(found[-1] if found else text).strip()


def _terms(text: str) -> set[str]:
    """Return the words except common ones, and Chinese bigrams."""
    words = {word for word in re.findall(r"[a-z0-9]+", text.lower()) if word not in _COMMON}
    runs = re.findall(r"[\u4e00-\u9fff]+", text)
    return words | {run[i : i + 2] for run in runs for i in range(len(run) - 1)}


def quote_each(request: Request) -> Reply:
    """Reply like `rules`, but quote the last sentence of each of the first three passages."""
    reply = rules(request)
    passages = request.passages
    if reply.tool_calls or request.body.get("response_format") or not passages:
        return reply
    quotes = (f"{_SENTENCE.findall(text)[-1].strip()} [{number}]" for number, text in passages[:3])
    return Reply("\n\n".join(quotes))
