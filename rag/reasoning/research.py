"""What research plans, asks and reads: what a chat model (`research_chat`) and rules (`research_rules`) give.

Where the model fails, its step is done by the rules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from rag.types import Passage

AspectKind = Literal["name", "attribute", "clause", "comparison"]
Tool = Literal["library", "web"]
Leg = Literal["", "keyword", "dense", "hybrid"]
Action = Literal["continue", "revise", "finish"]

MOST_STEPS: Final = 6
"""Steps of a first plan."""
MOST_NEW: Final = 2
"""Steps that one revision may add."""
SUMMARY: Final = 160
"""Characters of what a step is remembered by."""


@dataclass(frozen=True, slots=True)
class Aspect:
    """Something that a full answer has to tell."""

    id: str
    text: str
    kind: AspectKind = "attribute"


@dataclass(frozen=True, slots=True)
class SubQuestion:
    """A step as it was planned. `needs` are the numbers, from 1, of steps of the same list that must come first."""

    text: str
    justification: str = ""
    tool: Tool = "library"
    keywords: tuple[str, ...] = ()
    section: str = ""
    needs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """`unclear` is what a person should be asked first, where the question can mean different things."""

    aspects: tuple[Aspect, ...]
    steps: tuple[SubQuestion, ...]
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Task:
    """A step that is at work: the question it is a part of, its sub-question, and what earlier steps found."""

    question: str
    step: SubQuestion
    aspects: tuple[Aspect, ...] = ()
    past: tuple[str, ...] = ()
    headings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """What is searched for, by which legs (empty: as is set) and why, under which heading."""

    text: str
    leg: Leg = ""
    reason: str = ""
    section: str = ""


@dataclass(frozen=True, slots=True)
class Reading:
    """What a step's passages say: sentences by the place of their passage, verbatim; one sentence; aspects met."""

    sentences: tuple[tuple[int, str], ...] = ()
    summary: str = ""
    met: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a run stands: sub-questions asked and what each found, best first; aspects open; steps not yet begun."""

    question: str
    asked: tuple[str, ...]
    found: tuple[tuple[Passage, ...], ...]
    past: tuple[str, ...] = ()
    open_aspects: tuple[Aspect, ...] = ()
    open_steps: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """How to go on; `steps` are at most MOST_NEW, for `revise`."""

    action: Action
    justification: str = ""
    steps: tuple[SubQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the report: a heading, and the numbers, from 1, of the passages that its step brought."""

    heading: str
    numbers: tuple[int, ...] = field(default=())
