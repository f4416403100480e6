"""Find words in texts and docstrings that read like a translation, or use another word than the glossary.

The texts are those of rag/locales, the docstrings those of public names in CHECKED. `make lint` runs this and prints a
line for each finding.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHECKED = ("main.py", "pages", "rag", "benchmarks", "scripts")

TELLTALES = {
    r"anew|once more": "again",
    r"bears? (?:on|out)|borne out": "is relevant to, supports",
    r"(?:is|are|was|were) told(?: of)?": "gets, sees",
    r"beside the (?:question|point)": "off-topic, not relevant",
    r"(?:looks?|looked) at again": "re-check",
    r"goes on|go on|went on": "continue, resume",
    r"(?:comes?|came) in": "is added, imported",
    r"by itself|of (?:its|one's|their) own": "automatically, alone",
    r"on the way|in force": "later, until",
    r"handed on|held back|left out|struck from": "used, needs review, skipped, removed",
    r"ticked|tick": "select",
    r"stands? (?:in|on|by|at)|as (?:it stands|they stand)": "is in, is from",
    r"leads? on|asks? on": "continue with",
    r"does not hold|do not hold|holds? no": "has no, doesn't answer",
}
LABELS = {r"at most": "up to, or max."}
CHINESE = {
    "聊天模型": "对话模型",
    "嵌入模型": "向量模型",
    "重排序": "重排",
    "片段|切片": "段落",
    "网页库|知识库": "资料库",
    "接入": "连接",
    "出处": "来源",
}
PARTICIPLES = frozenset(
    "asked called chosen cited counted done drawn fetched filled found given held joined judged kept known left listed"
    " made marked meant named opened said saved scored searched seen sent shown spent stored taken told used"
    " wanted widened written".split()
)
OPENINGS = r"What|Whether|How|Which|Who|Whose|Where|Why|When|That"
_TELLTALES = {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): better for words, better in TELLTALES.items()}
_TELLTALES |= {re.compile(words): better for words, better in CHINESE.items()}
_OF_LABELS = _TELLTALES | {re.compile(rf"\b(?:{words})\b", re.IGNORECASE): better for words, better in LABELS.items()}


Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def in_text(text: str, telltales: Mapping[re.Pattern[str], str] = _OF_LABELS) -> Iterator[str]:
    """Yield a hint for each tell-tale of `text`, and for each Chinese word that is another term's synonym."""
    for pattern, better in telltales.items():
        if match := pattern.search(text):
            yield f"“{match[0]}” (rather: {better})"


def in_docstring(text: str) -> Iterator[str]:
    """Yield a hint for each tell-tale of a docstring, and for an opening that is neither a verb nor a noun."""
    if opening := re.match(rf"(?:{OPENINGS})\b", text):
        yield f"begins with “{opening[0]}” (rather a verb in the imperative, or a noun phrase)"
    yield from in_text(re.sub(r"`[^`]*`", "", text), _TELLTALES)


def locale_findings(file: Path) -> Iterator[str]:
    """Yield the findings in a file of sentences."""
    for section in tomllib.loads(file.read_text(encoding="utf-8")).values():
        for key, sentence in section.items():
            yield from (f"{file.relative_to(ROOT)}: {key}: {hint}" for hint in in_text(sentence))


def in_name(node: Documented) -> Iterator[str]:
    """Yield a hint for a function whose name is only a participle; properties are values and may have one."""
    is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.decorator_list
    if is_function and node.name.strip("_") in PARTICIPLES:
        yield f"“{node.name}” (rather a verb in the imperative)"


def code_findings(file: Path) -> Iterator[str]:
    """Yield the findings in the docstrings of a module, its classes and functions, and in the functions' names.

    Docstrings of pydantic models are skipped: chat models get them as descriptions of the expected reply.
    """
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, Documented):
            continue
        is_reply = isinstance(node, ast.ClassDef) and any(ast.unparse(base) == "BaseModel" for base in node.bases)
        hints = () if is_reply else in_docstring(ast.get_docstring(node) or "")
        for hint in (*hints, *in_name(node)):
            yield f"{file.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}: {hint}"


def files(rooms: tuple[str, ...] = CHECKED) -> Iterator[Path]:
    """Yield the Python files of `rooms`, which are folders or files of this repository."""
    for room in rooms:
        yield from sorted((ROOT / room).rglob("*.py")) if (ROOT / room).is_dir() else [ROOT / room]


def main() -> int:
    """Print all findings. Return 1 if there are any."""
    texts = [one for file in (ROOT / "rag" / "locales").glob("*.toml") for one in locale_findings(file)]
    findings = [*texts, *(one for file in files() for one in code_findings(file))]
    sys.stdout.writelines(f"{one}\n" for one in findings or ["No tell-tales found."])
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
