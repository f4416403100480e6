from __future__ import annotations

import ast
import copy
import pickle
import re
import sys

import pytest

from benchmarks.patterns import package_patterns
from rag import text as text_module
from rag.text import LazyPattern, compile_all, lazy_regex
from tests.test_architecture import trees


def test_a_lazy_pattern_does_what_a_compiled_one_does() -> None:
    lazy, plain = (make(r"(?P<word>[a-z]+)(\d?)", re.IGNORECASE) for make in (lazy_regex, re.compile))
    text = "Ab1 cd2 EF"
    assert [match.span() for match in lazy.finditer(text, 2)] == [match.span() for match in plain.finditer(text, 2)]
    assert lazy.findall(text) == plain.findall(text)
    assert lazy.sub(r"<\g<word>>", text) == plain.sub(r"<\g<word>>", text)
    assert lazy.subn("", text) == plain.subn("", text)
    assert lazy.split(text) == plain.split(text)
    assert lazy.fullmatch("ab1") and not lazy.fullmatch("ab 1")
    assert (lazy.pattern, lazy.flags, lazy.groups) == (plain.pattern, plain.flags, plain.groups)
    assert dict(lazy.groupindex) == dict(plain.groupindex)
    assert lazy_regex(b"a+").search(b"baa").group() == b"aa"  # type: ignore[union-attr]


def test_a_pattern_is_compiled_once_and_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    sources: list[str] = []
    monkeypatch.setattr(text_module.re, "compile", lambda *args: sources.append(args[0]) or re._compiler.compile(*args))  # type: ignore[attr-defined]
    lazy = lazy_regex("a|b")
    assert sources == []
    assert lazy.match("b") and lazy.search("ca")
    assert sources == ["a|b"]


def test_a_lazy_pattern_can_be_copied() -> None:
    lazy = lazy_regex("a")
    for other in (copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))):
        assert other.match("a")


def test_all_patterns_of_the_app_are_valid_and_measured() -> None:
    measured = {one.pattern for one in package_patterns()}  # imports all modules
    compile_all()
    modules = [module for name, module in sys.modules.items() if name.startswith("rag.")]
    named = [value for module in modules for value in vars(module).values() if isinstance(value, LazyPattern)]
    assert named and measured >= {lazy.pattern for lazy in named}


def test_modules_compile_no_pattern_when_they_are_imported() -> None:
    for module, tree in trees().items():
        outside = [node for node in ast.iter_child_nodes(tree) if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        calls = [node for statement in outside for node in ast.walk(statement) if isinstance(node, ast.Call)]
        assert not [call.lineno for call in calls if ast.unparse(call.func) == "re.compile"], module
