"""Fine-tune the answer reader: writes rag/models/answer_reader.safetensors.

    python -m benchmarks.answer_reader [--data FOLDER] [--minutes 20 32] [--start FILE] [--out FILE]

First on half of xquad's paragraphs in both languages and on chroma, then on the same of xquad and, twice, on
answer_reader_questions.jsonl: questions in people's own words about pages of wcxb, aeb and xquad-zh, two in five of
which their page does not answer. What a search finds for the former stands beside the answer, and for the latter the
rest of the page. The set `natural`, its pages and the other half of xquad are not read. The loss is a softmax over
the lines of up to three stretches and "none of them" (Clark & Gardner 2018, "Simple and Effective Multi-Paragraph
Reading Comprehension", arXiv 1710.10723); a question in five loses what answers it. What is written are the
differences to the built-in weights, cut to their largest singular values.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, is_trained_on, load, spread
from benchmarks.ours import MeasuredApp, measured_app, take_in
from rag.evaluation.evidence import squash
from rag.models.answer_reader import MAX_TOKENS, WEIGHTS, Line, TokenizedLines
from rag.models.hub import BUILTIN, find_model
from rag.models.tokens import Tokens, pad_rows
from rag.models.transformer import read_bert
from rag.reasoning.extractive import FEATURES
from rag.reasoning.quotable import quotables

QUESTIONS: Final = Path(__file__).with_name("answer_reader_questions.jsonl")
RANK: Final = 64
_CHROMA: Final = 240
_A_STEP: Final = 8  # questions
_STRETCHES: Final = 3
_WITHOUT_ANSWER: Final = 0.2
_SHORT: Final = 60  # characters of an answer that its sentence has to hold
_MEANING: Final = FEATURES["near"]


@dataclass(frozen=True)
class Example:
    """A question, the places of its lines from the most promising on, which lines answer it, and which ask."""

    coded: TokenizedLines
    order: list[int]
    answers: list[bool]
    asks: list[bool]


def main() -> int:
    options = _options()
    torch.manual_seed(1)
    tokens = Tokens(read_bert(find_model(BUILTIN).folder).tokenizer, MAX_TOKENS)
    with measured_app() as app:
        xquad = [one for name in ("xquad-en", "xquad-zh") for one in _searched(app, _half(options.data, name), tokens)]
        chroma = load(options.data / "chroma")
        few = Dataset("chroma", chroma.pages, spread(chroma.questions, _CHROMA))
        first = [*xquad, *_searched(app, few, tokens)]
        own = list(_on_their_page(app, options.data, tokens))
    reader = Reader(options.start)
    for examples, minutes in zip((first, [*xquad, *own, *own]), options.minutes, strict=True):
        if minutes:
            _fit(reader, examples, 60 * minutes)
    save_file(reader.differences(), options.out)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tune the answer reader.")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--minutes", type=float, nargs=2, default=[20.0, 32.0])
    parser.add_argument("--start", type=Path, help="differences to go on from, as an earlier run wrote them")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    return parser.parse_args()


def _half(folder: Path, name: str) -> Dataset:
    """The questions of every second paragraph, but for those that stand in `natural`."""
    data, natural = load(folder / name), {page["url"] for page in load(folder / "natural").pages}
    some = [row for row in data.questions if is_trained_on(row) and row["evidence"][0]["url"] not in natural]
    return Dataset(name, data.pages, some)


def _searched(app: MeasuredApp, data: Dataset, tokens: Tokens) -> Iterator[Example]:
    """The questions of a set beside all that a search reads for them."""
    take_in(app, data, "semantic", data.name)
    quoter = app.quoter(data.name)
    for row in data.questions:
        passages = app.search(row["question"], library=data.name).passages
        sentences, columns = quoter.score_sentences(row["question"], passages)
        lines = [one.line(passages) for one in sentences]
        scores = columns @ np.array(list(FEATURES.values()))
        yield _example(row, tokens, lines, [one.quoted.asks for one in sentences], scores)


def _on_their_page(app: MeasuredApp, folder: Path, tokens: Tokens) -> Iterator[Example]:
    """The questions that ship with this command, each beside the sentences of the page that it is about."""
    pages = {page["url"]: page for page in load(folder / "xquad-zh").pages}
    for name in ("wcxb", "aeb"):
        with (folder / name / "truth.jsonl").open(encoding="utf-8") as lines:
            pages.update({row.get("url") or row["id"]: row for row in map(json.loads, lines)})
    with QUESTIONS.open(encoding="utf-8") as lines:
        rows_of = groupby(sorted(map(json.loads, lines), key=itemgetter("url")), key=itemgetter("url"))
        for url, asked in rows_of:
            yield from _about(app, pages[url], asked, tokens)


def _about(app: MeasuredApp, page: dict[str, Any], rows: Iterable[dict[str, Any]], tokens: Tokens) -> Iterator[Example]:
    parts = [part for part in quotables(page["text"]) if squash(part.text)]
    title = page.get("title") or page["text"].partition("\n")[0][:60]
    vectors = app.models.embedding.encode_passages([f"{title}. {part.text}" for part in parts])
    lines, asks = [Line(0, title, "", part.text) for part in parts], [part.asks for part in parts]
    for row in rows:
        scores = _MEANING * (vectors @ app.models.embedding.encode_query(row["question"]))
        quote, answer = ([page["text"][slice(*row[key])]] if key in row else [] for key in ("quote", "answer"))
        asked = {"question": row["question"], "answers": answer, "evidence": [{"quote": one} for one in quote]}
        yield _example(asked, tokens, lines, asks, scores)


def _example(
    row: dict[str, Any], tokens: Tokens, lines: Sequence[Line], asks: list[bool], scores: np.ndarray[Any, Any]
) -> Example:
    golds, quotes = list(map(squash, row["answers"])), [squash(one["quote"]) for one in row["evidence"]]
    short = bool(golds) and min(map(len, golds)) < _SHORT

    def answers(text: str) -> bool:
        within = any(text in quote or quote in text for quote in quotes)
        return bool(text) and within and (not short or any(gold in text for gold in golds))

    order = [place for place in np.argsort(-scores).tolist() if not asks[place]]
    found = [answers(squash(line.text)) and not ask for line, ask in zip(lines, asks, strict=True)]
    return Example(TokenizedLines(tokens, row["question"], lines), order, found, asks)


class Reader(nn.Module):
    """The model as it is trained; `AnswerReader` runs it."""

    def __init__(self, start: Path | None = None) -> None:
        """Without `start`, the built-in model and a head of random weights."""
        from transformers import AutoModel

        super().__init__()
        self.body = AutoModel.from_pretrained(find_model(BUILTIN).folder, dtype=torch.float32, add_pooling_layer=False)
        self.body.embeddings.requires_grad_(False)
        width = self.body.config.hidden_size
        self.wide, self.narrow = nn.Linear(2 * width, 256), nn.Linear(256, 1)
        self.drop = nn.Dropout(0.1)
        self._built_in = {name: weight.detach().clone() for name, weight in self.body.encoder.named_parameters()}
        if start:
            self._add(load_file(start))

    @torch.no_grad()
    def _add(self, changes: dict[str, torch.Tensor]) -> None:
        for name, weight in self.body.encoder.named_parameters():
            if f"{name}:up" in changes:
                weight += changes[f"{name}:up"].float() @ changes[f"{name}:down"].float()
            else:
                weight += changes[f"{name}:add"].float()
        for name, layer in (("wide", self.wide), ("narrow", self.narrow)):
            layer.weight.copy_(changes[f"head.{name}"])
            layer.bias.copy_(changes[f"head.{name}_bias"])

    def forward(self, examples: Sequence[tuple[TokenizedLines, Sequence[Sequence[int]]]]) -> list[torch.Tensor]:
        """For each example the logits of the lines of its stretches, after each other."""
        rows = [coded.build_row(stretch) for coded, stretches in examples for stretch in stretches]
        batch = pad_rows([ids for ids, _ in rows], 1, MAX_TOKENS)
        ids, mask = torch.from_numpy(batch.ids), torch.from_numpy(batch.mask).long()
        with torch.autocast("cpu", torch.bfloat16):
            hidden = self.body(input_ids=ids, attention_mask=mask).last_hidden_state.float()
            states = [
                torch.cat((hidden[row, first:last].mean(0), hidden[row, 0]))
                for row, (_, spans) in enumerate(rows)
                for first, last in spans
            ]
            inner = nn.functional.gelu(self.wide(self.drop(torch.stack(states))))
            logits: torch.Tensor = self.narrow(inner).squeeze(-1).float()
        return list(logits.split([sum(map(len, stretches)) for _, stretches in examples]))

    def differences(self) -> dict[str, torch.Tensor]:
        """What `AnswerReader` loads."""
        found = {
            "head.wide": self.wide.weight,
            "head.wide_bias": self.wide.bias,
            "head.narrow": self.narrow.weight,
            "head.narrow_bias": self.narrow.bias,
        }
        for name, weight in self.body.encoder.named_parameters():
            change = weight.detach() - self._built_in[name]
            if change.ndim == 2:
                left, sizes, right = torch.linalg.svd(change, full_matrices=False)
                roots = sizes[:RANK].sqrt()
                found[f"{name}:up"], found[f"{name}:down"] = left[:, :RANK] * roots, roots[:, None] * right[:RANK]
            else:
                found[f"{name}:add"] = change
        return {name: weight.detach().half().contiguous() for name, weight in found.items()}


def _fit(reader: Reader, examples: list[Example], seconds: float) -> None:
    """Train for so long, at a rate that rises for a twentieth of the time and then falls."""
    chance, began = random.Random(1), time.monotonic()
    heads = [*reader.wide.parameters(), *reader.narrow.parameters()]
    groups = [{"params": list(reader.body.encoder.parameters()), "lr": 8e-5}, {"params": heads, "lr": 1e-3}]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: _rate((time.monotonic() - began) / seconds))
    reader.train()
    losses: list[float] = []
    while time.monotonic() - began < seconds:
        step = chance.sample(examples, _A_STEP)
        chosen = [_stretches(example, chance) for example in step]
        given = [(example.coded, some) for example, some in zip(step, chosen, strict=True)]
        loss = torch.stack([_loss(*one) for one in zip(reader(given), step, chosen, strict=True)]).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(reader.body.encoder.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        losses.append(float(loss.detach()))
        if len(losses) % 20 == 0:
            print(f"{len(losses)} steps, loss {np.mean(losses[-40:]):.3f}", flush=True)


def _rate(progress: float) -> float:
    return min(1.0, progress / 0.05) * max(0.03, 1.0 - progress)


def _stretches(example: Example, chance: random.Random) -> list[list[int]]:
    """What holds an answer, at times without it, and the most promising of the rest: three in all."""
    right = [place for place in example.order if example.answers[place]]
    gone = set(right) if right and chance.random() < _WITHOUT_ANSWER else set()
    first = [chance.choice(right[:2])] if right else []
    rest = [place for place in example.order if not example.answers[place]]
    found: list[list[int]] = []
    for stretch in example.coded.windows([*first, *rest]):
        if left := [place for place in stretch if place not in gone]:
            found.append(left)
        if len(found) == _STRETCHES:
            break
    return found


def _loss(logits: torch.Tensor, example: Example, stretches: Sequence[Sequence[int]]) -> torch.Tensor:
    places = [place for stretch in stretches for place in stretch]
    asks = torch.tensor([example.asks[place] for place in places] + [False])
    right = torch.tensor([example.answers[place] for place in places] + [False])
    right[-1] = not right.any()
    every = torch.cat((logits, torch.zeros(1))).masked_fill(asks, -1e4)
    return torch.logsumexp(every, 0) - torch.logsumexp(every[right], 0)


if __name__ == "__main__":
    raise SystemExit(main())
