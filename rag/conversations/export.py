"""Export of conversations as Markdown, self-contained HTML without scripts, Word, or JSON.

All formats preserve an answer's headings, lists, tables, emphasis and code, but load and run nothing: raw HTML, images
and links become text. The appendix of a research report has its gaps, removed statements and sources; that of an answer
from a search tree has the tree.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from html import escape
from typing import Any, Final, Literal

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.tree import SyntaxTreeNode
from markdown_it.utils import EnvType, OptionsDict

from rag.checking.statements import code_spans
from rag.conversations.conversations import TurnView
from rag.conversations.trees import TreeNode, nodes_of
from rag.errors import RagError
from rag.locales import LANGUAGES, Language, say
from rag.runs.run import to_json
from rag.store.sql.conversation_table import Conversation
from rag.store.values import now
from rag.text import is_chinese, lazy_regex, replace_surrogates
from rag.tools import describe_use
from rag.types import Answer, Citation, Notice
from rag.web.urls import split_url

Kind = Literal["md", "html", "docx", "json"]

_MARKS: Final = lazy_regex(r"\[(\d{1,3})\]")
_MARKS_BEHIND: Final = lazy_regex(r"(?:\s?\[\d{1,3}\])+")
_BLOCK_MARKS: Final = lazy_regex(r"(?m)^ {0,3}(?:(?:> ++)++(?!\d))?(?:#{1,6} +)?")
_SPECIAL: Final = lazy_regex(r"([\\`*_{}\[\]<>#|~!$&])")
_NO_XML: Final = lazy_regex("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow (production 2), and carriage returns, which parsers convert to newlines."""
_ACTIVE_MARKUP: Final = lazy_regex(r"<|!(?=\[)|\](?=[(:\[])|[$]|&(?=#?\w+;)")
_HEADING: Final = lazy_regex(r"(?m)^( {0,3})(#{1,6})(?=[ \t])")
_FENCE: Final = lazy_regex(r"(?m)^ {0,3}(`{3,}|~{3,})")
_HEADING_OFFSET: Final = 2
"""Levels of headings above those of an answer: the conversation's title, and the question."""
_STYLE: Final = (
    "body{max-width:46rem;margin:2rem auto;padding:0 1rem;font:1rem/1.6 system-ui,sans-serif;color:#1f2328}"
    "h2{font-size:1.1rem;margin:2.5rem 0 .5rem}.note{color:#57606a;font-size:.9rem}blockquote{margin:.25rem 0 .75rem;"
    "padding-left:.75rem;border-left:3px solid #d0d7de}ol{padding-left:1.5rem}a{overflow-wrap:anywhere}"
)


def export(
    conversation: Conversation, turns: Sequence[TurnView], kind: str, language: Language = "en"
) -> tuple[str | bytes, str]:
    """Return the file's content and its media type. Raises RagError("export_format")."""
    kinds: dict[str, tuple[Callable[[Conversation, Sequence[TurnView], Language], str | bytes], str]] = {
        "md": (_markdown, "text/markdown"),
        "html": (_html, "text/html"),
        "docx": (_docx, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        "json": (_json, "application/json"),
    }
    if kind not in kinds:
        raise RagError("export_format", kind=kind)
    make, media = kinds[kind]
    content = make(conversation, turns, language)
    return (replace_surrogates(content) if isinstance(content, str) else content), media


def file_name(conversation: Conversation, kind: str) -> str:
    """Return a name that every file system accepts."""
    words = re.sub(r"[^\w-]+", "-", conversation.title).strip("-_")[:60]
    return f"{words or 'conversation'}.{kind}"


def _json(conversation: Conversation, turns: Sequence[TurnView], _: Language) -> str:
    data: dict[str, Any] = {
        "title": conversation.title,
        "library": conversation.library,
        "created_at": conversation.created_at,
        "exported_at": now(),
        "turns": [
            {
                "question": turn.question,
                "created_at": turn.created_at,
                "state": turn.state,
                "settings": dict(turn.settings),
                "answer": to_json(turn.answer) if turn.answer else None,
            }
            for turn in turns
        ],
    }
    return json.dumps(data, ensure_ascii=False, indent=2)


# Markdown


def _markdown(conversation: Conversation, turns: Sequence[TurnView], language: Language) -> str:
    parts = [f"# {_escape_markdown(conversation.title)}", f"*{_text('export_made', language, date=now()[:10])}*"]
    for turn in turns:
        parts.append(f"## {_escape_markdown(turn.question)}")
        answer = turn.answer
        if answer is None:
            parts.append(f"*{_text('export_unfinished', language)}*")
            continue
        if answer.standalone:
            parts.append(f"*{_text('export_standalone', language)}: {_escape_markdown(answer.standalone)}*")
        parts += [f"*{_escape_markdown(note)}*" for note in _notes(answer, language)]
        if answer.text:
            parts.append(_tame_markdown(_mark_doubts(answer, language)))
        parts += _markdown_sources(answer, language)
        for heading, lines in _appendix(answer, language):
            parts.append(f"**{heading}**")
            parts.append("\n".join(f"{'  ' * depth}- {_escape_markdown(line)}" for depth, line in lines))
    return "\n\n".join(parts) + "\n"


def note(answer: Answer, language: Language = "en") -> str:
    """Return an answer as a page of Markdown, with its quotes and their sources."""
    text = _tame_markdown(_mark_doubts(answer, language))
    return "\n\n".join([f"# {_escape_markdown(answer.question)}", text, *_markdown_sources(answer, language)]) + "\n"


def plain_sources(answer: Answer, language: Language = "en") -> str:
    """Return the cited pages as plain text, each with its marks, title and address; empty without citations."""
    pages: dict[tuple[str, str], list[int]] = {}
    for citation in answer.citations:
        pages.setdefault((_title_of(citation), _link(citation.url)), []).append(citation.n)
    lines = [" ".join(("".join(f"[{n}]" for n in marks), *filter(None, page))) for page, marks in pages.items()]
    return "\n".join([_text("export_sources", language), *lines]) if lines else ""


def _markdown_sources(answer: Answer, language: Language) -> list[str]:
    if not answer.citations:
        return []
    rows = []
    for citation in answer.citations:
        title, url = _escape_markdown(_title_of(citation)), _link(citation.url)
        link = f"[{title}](<{url.replace('<', '%3C').replace('>', '%3E')}>)" if url else title
        rows.append(f"{citation.n}. {link}\n   > {_escape_markdown(_quote(citation))}")
    return [f"**{_text('export_sources', language)}**", "\n".join(rows)]


def _tame_markdown(text: str) -> str:
    """Escape everything in the text that a Markdown renderer would load, run or link."""
    parts, at = [], 0
    for start, end in (*code_spans(text), (len(text), len(text))):
        prose = _HEADING.sub(lambda match: match[1] + "#" * min(6, len(match[2]) + _HEADING_OFFSET), text[at:start])
        parts += [_ACTIVE_MARKUP.sub(r"\\\g<0>", prose), text[start:end]]
        at = end
    whole = "".join(parts)
    fences = _FENCE.findall(whole)
    return f"{whole}\n{fences[-1]}" if len(fences) % 2 else whole


def _escape_markdown(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


# HTML


def _html(conversation: Conversation, turns: Sequence[TurnView], language: Language) -> str:
    title = escape(conversation.title)
    body = "\n".join(_html_turn(turn, place, language) for place, turn in enumerate(turns, 1))
    tag = "zh-CN" if is_chinese(conversation.title) or language == "zh" else "en"
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    return (
        f'<!doctype html>\n<html lang="{tag}">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f'<p class="note">{escape(_text("export_made", language, date=now()[:10]))}</p>\n{body}\n</body>\n</html>\n'
    )


def _html_turn(turn: TurnView, place: int, language: Language) -> str:
    parts = [f"<section>\n<h2>{escape(turn.question)}</h2>"]
    answer = turn.answer
    if answer is None:
        parts.append(f'<p class="note">{escape(_text("export_unfinished", language))}</p>')
    else:
        if answer.standalone:
            understood = f"{_text('export_standalone', language)}: {answer.standalone}"
            parts.append(f'<p class="note">{escape(understood)}</p>')
        parts += [f'<p class="note">{escape(note)}</p>' for note in _notes(answer, language)]
        parts.append(_html_text(_mark_doubts(answer, language), answer, place))
        sources = []
        for citation in answer.citations:
            title, url = escape(_title_of(citation)), _link(citation.url)
            link = f'<a href="{escape(url)}" rel="noopener noreferrer nofollow">{title}</a>' if url else title
            quote = f"<blockquote>{escape(_quote(citation))}</blockquote>"
            sources.append(f'<li id="s{place}-{citation.n}" value="{citation.n}">{link}{quote}</li>')
        if sources:
            heading, rows = escape(_text("export_sources", language)), "\n".join(sources)
            parts.append(f"<h3>{heading}</h3>\n<ol>\n{rows}\n</ol>")
        for heading, lines in _appendix(answer, language):
            items = "\n".join(f'<li style="margin-left:{1.5 * depth}rem">{escape(line)}</li>' for depth, line in lines)
            parts.append(f"<h3>{escape(heading)}</h3>\n<ul>\n{items}\n</ul>")
    return "\n".join([*parts, "</section>"])


def _html_text(text: str, answer: Answer, place: int) -> str:
    """Render Markdown as HTML, with links from citation marks to the sources."""
    numbers = {citation.n for citation in answer.citations}

    def link(match: re.Match[str]) -> str:
        number = int(match[1])
        return f'<a href="#s{place}-{number}">[{number}]</a>' if number in numbers else match[0]

    parser = _parser()
    tokens = parser.parse(text)
    for token in tokens:
        if token.type.startswith("heading_"):
            token.tag = f"h{min(6, int(token.tag[1]) + _HEADING_OFFSET)}"
    return _Html(lambda words: _MARKS.sub(link, escape(words))).render(tokens, parser.options, {})


class _Html(RendererHTML):
    """A renderer whose `write` escapes the text between the tags, and may add markup."""

    def __init__(self, write: Callable[[str], str]) -> None:
        super().__init__()
        self._write = write

    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self._write(tokens[idx].content)

    def softbreak(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return "<br>\n"


# Word


def _docx(conversation: Conversation, turns: Sequence[TurnView], language: Language) -> bytes:
    from docx import Document  # takes half a second, so only when needed

    document = Document()
    document.add_heading(_remove_invalid(conversation.title), 0)
    document.add_paragraph(_text("export_made", language, date=now()[:10]))
    for turn in turns:
        document.add_heading(_remove_invalid(turn.question), 1)
        answer = turn.answer
        if answer is None:
            document.add_paragraph(_text("export_unfinished", language))
            continue
        for note in _notes(answer, language):
            document.add_paragraph(_remove_invalid(note))
        text = _remove_invalid(_mark_doubts(answer, language))
        for node in SyntaxTreeNode(_parser().parse(text)).children:
            _add_block(document, node)
        if answer.citations:
            document.add_heading(_text("export_sources", language), 2)
        for one in answer.citations:
            document.add_paragraph(_remove_invalid(f"[{one.n}] {_title_of(one)}"))
            document.add_paragraph(_remove_invalid(_quote(one)), style="Quote")
            document.add_paragraph(_remove_invalid(_link(one.url)))
        for heading, lines in _appendix(answer, language):
            document.add_heading(heading, 2)
            for depth, line in lines:
                style = f"List Bullet {min(3, depth + 1)}" if depth else "List Bullet"
                document.add_paragraph(_remove_invalid(line), style=style)
    file = io.BytesIO()
    document.save(file)
    return file.getvalue()


def _add_block(document: Any, node: SyntaxTreeNode, style: str | None = None, depth: int = 0) -> None:
    """Add a block of Markdown to a python-docx document, with headings from level 2."""
    match node.type:
        case "heading":
            _add_runs(document.add_heading("", max(2, int(node.tag[1]))), node)
        case "fence" | "code_block":
            document.add_paragraph().add_run(node.content.rstrip()).font.name = "Courier New"
        case "bullet_list" | "ordered_list":
            name = "List Bullet" if node.type == "bullet_list" else "List Number"
            for item in node.children:
                for block in item.children:
                    _add_block(document, block, f"{name} {min(3, depth + 1)}" if depth else name, depth + 1)
        case "table":
            rows = [row for part in node.children for row in part.children]
            table = document.add_table(len(rows), max(len(row.children) for row in rows), "Table Grid")
            for cells, row in zip(table.rows, rows, strict=True):
                for cell, content in zip(cells.cells, row.children, strict=False):
                    _add_runs(cell.paragraphs[0], content)
        case "blockquote":
            for block in node.children:
                _add_block(document, block, "Quote", depth)
        case "paragraph":
            _add_runs(document.add_paragraph(style=style), node)


def _add_runs(paragraph: Any, node: SyntaxTreeNode) -> None:
    for words, marks in _runs(node, frozenset()):
        run = paragraph.add_run(words)
        run.bold, run.italic = "strong" in marks or None, "em" in marks or None
        run.font.strike = "s" in marks or None
        if "code_inline" in marks:
            run.font.name = "Courier New"


def _runs(node: SyntaxTreeNode, marks: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield the text of a node in pieces, each with its marks."""
    if node.type in ("softbreak", "hardbreak"):
        yield "\n", marks
    elif node.type in ("text", "code_inline"):
        yield node.content, marks | {node.type}
    for child in node.children:
        yield from _runs(child, marks | {node.type})


def _remove_invalid(text: str) -> str:
    """Remove characters that XML does not allow."""
    return _NO_XML.sub("", replace_surrogates(text))


# All formats


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return parser.disable(["image", "link", "autolink", "reference", "html_block", "html_inline"])


def _appendix(answer: Answer, language: Language) -> list[tuple[str, list[tuple[int, str]]]]:
    """Return the sections after an answer's sources: tool calls, a report's gaps, removals and ledger, or the tree.

    Each is a heading and its lines with their depth.
    """
    trail = answer.trail
    gaps = [f"{gap['sub_question']} — {_text(gap['code'], language, **gap['params'])}" for gap in trail.get("gaps", ())]
    ledger = [
        " — ".join(filter(None, (entry["title"], entry["url"], " … ".join(entry["distilled"]), entry["fetched_at"])))
        for entry in trail.get("ledger", ())
    ]
    uses = [describe_use(use, language, answer.text) for use in answer.tools]
    sections = (
        ("export_tools", uses),
        ("export_gaps", gaps),
        ("export_struck", list(trail.get("struck", ()))),
        ("export_ledger", ledger),
    )
    flat = [(code, [(0, line) for line in lines]) for code, lines in sections]
    tree = [line for node in nodes_of(trail.get("tree", ())) for line in _node_lines(node, language)]
    return [(_text(code, language), lines) for code, lines in (*flat, ("export_tree", tree)) if lines]


def _node_lines(node: TreeNode, language: Language) -> Iterator[tuple[int, str]]:
    """Yield a question of a search tree, and below it its passages with their verdicts."""
    state = _text(f"tree_{node.state}", language, number=node.same_as)
    yield node.depth, f"{node.number}. {node.question} — {state}"
    for row in node.judged:
        lacks = f"{_text('tree_lacks', language)}: {row['missing']}" if row["missing"] else ""
        parts = (row["title"], row["quote"] or row["reason"], lacks, row["url"])
        yield node.depth + 1, " — ".join((str(row["score"]), *filter(None, parts)))


def _notes(answer: Answer, language: Language) -> list[str]:
    is_notice = answer.notice and answer.text in (say(answer.notice, one) for one in LANGUAGES)
    notes = [say(answer.notice, language)] if answer.notice and not is_notice else []
    if answer.statements and not answer.quoted:
        supported = sum(one.verdict == "supported" for one in answer.statements)
        is_by_model = any(one.by != "rules" for one in answer.statements)
        code = "export_checked" if is_by_model else "export_found"
        notes.append(_text(code, language, supported=supported, count=len(answer.statements)))
    return notes


def _mark_doubts(answer: Answer, language: Language) -> str:
    """Return the answer with a label after each unsupported or off-topic sentence, as on the screen."""
    text = answer.text
    for statement in sorted(answer.statements, key=lambda statement: -statement.end):
        if statement.verdict != "supported" or not statement.relevant:
            word = statement.verdict if statement.verdict != "supported" else "aside"
            marks = _MARKS_BEHIND.match(text, statement.end)
            at = marks.end() if marks else statement.end
            text = f"{text[:at]} ({_text(f'export_{word}', language)}){text[at:]}"
    return text


def _quote(citation: Citation) -> str:
    """Return the quote on one line, without Markdown marks of headings and quotations."""
    return " ".join(_BLOCK_MARKS.sub("", citation.quote).split())


def _title_of(citation: Citation) -> str:
    """Return the page's title, with its library if several were searched."""
    title = citation.title or citation.url
    return f"{title} ({citation.library})" if citation.library else title


def _link(url: str) -> str:
    """Return an http(s) URL, else "": a link in the file must not run a script."""
    return url if split_url(url).scheme in ("http", "https") else ""


def _text(code: str, language: Language, **params: Any) -> str:
    return say(Notice(code, params), language)
