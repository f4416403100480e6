"""Fine-tune the answer reader and write rag/models/answer_reader.safetensors.

    python -m benchmarks.answer_reader [--data FOLDER] [--minutes 20 32] [--start FILE] [--out FILE]

The first stage trains on half of xquad's paragraphs, asked in both languages, and on chroma; the second on the same
half of xquad and on the questions of `benchmarks.reader_questions` that are not held out. Distractors of the former are
search results. The latter have the sentences of the true text of their page, and a sample also what a search finds in
all pages as the app reads them; questions about authors and dates only so. The set `natural`, its pages and the other
half of xquad are not read. The loss is a softmax over the lines of up to three stretches and "none of them" (Clark &
Gardner 2018, "Simple and Effective Multi-Paragraph Reading Comprehension", arXiv 1710.10723); for one question in five,
the answering lines are dropped. With --start, the result is the mean of those weights and the trained ones (Wortsman et
al. 2021, "Robust Fine-Tuning of Zero-Shot Models", arXiv 2109.01903). The file has the differences from the built-in
weights as low-rank factors (truncated SVD).
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from benchmarks.datasets import DEFAULT_FOLDER, Dataset, is_trained_on, load, sample_evenly, variant
from benchmarks.measured_app import MeasuredApp, import_set, measured_app
from benchmarks.reader_questions import (
    address_of,
    cite,
    load_bylines,
    read_pages,
    read_questions,
    read_sources,
)
from rag.evaluation.support import normalise_text
from rag.ingest.batch import ingest_all
from rag.models.cross_encoders import MAX_TOKENS, WEIGHTS, TitledSentence, TokenizedLines
from rag.models.model_files import BUILTIN, find_model
from rag.models.transformer import Tokens, pad_rows, read_bert
from rag.reasoning.extractive import FEATURES, quotables
from rag.text import terms
from rag.types import Passage

Row = dict[str, Any]

RANK: Final = 64
_CHROMA: Final = 240
_BATCH_SIZE: Final = 8  # questions
_STRETCHES: Final = 3
_WITHOUT_ANSWER: Final = 0.2
_SHORT_ANSWER: Final = 60  # characters; the sentence has to contain an answer up to this length
_CLEAR_ANSWER: Final = 8  # characters from which an answer is enough to recognise its sentence in the same page
_SEARCHES: Final = 4_000  # questions about true texts that are also searched for
_PAGE_CHUNKS: Final = 40
_MEANING: Final = FEATURES["similarity"]
_RATES: Final = (8e-5, 1e-3)  # learning rates of the encoder and of the head
_RATES_FROM_START: Final = (5e-5, 3e-4)


@dataclass(frozen=True)
class Example:
    """A question with its lines: indices of the candidates, best first; which answer it; which are questions."""

    coded: TokenizedLines
    order: list[int]
    answers: list[bool]
    leads: list[bool]


def main() -> int:
    options = _options()
    torch.manual_seed(1)
    tokens = Tokens(read_bert(find_model(BUILTIN).folder).tokenizer, MAX_TOKENS)
    with measured_app() as app:
        xquad = [
            example
            for name in ("xquad-en", "xquad-zh")
            for half in _halves(options.data, name)
            for example in _searches(app, _import(app, half), half.questions, tokens)
        ]
        chroma = load(options.data / "chroma")
        first_stage = [*xquad, *_searches(app, _import(app, chroma), sample_evenly(chroma.questions, _CHROMA), tokens)]
        second_stage = [(xquad, 0.18), *_page_questions(app, options.data, tokens)]
    reader = Reader(options.start)
    for groups, minutes in zip(([(first_stage, 1.0)], second_stage), options.minutes, strict=True):
        if minutes:
            _fit(reader, groups, 60 * minutes, _RATES_FROM_START if options.start else _RATES)
    if options.start:
        reader.average_with(options.start)
    save_file(reader.differences(), options.out)
    return 0


def _page_questions(app: MeasuredApp, folder: Path, tokens: Tokens) -> Iterator[tuple[list[Example], float]]:
    """Yield three groups of examples about web pages, each with its share of the second stage."""
    pages, rows = read_pages(folder), read_questions(held_out=False)
    yield list(_own_pages(app, pages, rows, tokens)), 0.35
    app.libraries.create("pages")
    list(ingest_all(app.imports.ingestor("pages"), read_sources(folder, {row["url"] for row in rows})))
    sample = [cite(row, pages) for row in random.Random(3).sample(rows, _SEARCHES)]
    yield list(_searches(app, "pages", sample, tokens)), 0.35
    bylines = load_bylines(folder, held_out=False)
    yield list(_searches(app, "pages", bylines.questions, tokens)), 0.12


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Fine-tune the answer reader.")
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--minutes", type=float, nargs=2, default=[20.0, 32.0])
    parser.add_argument("--start", type=Path, help="differences to continue from and to average with")
    parser.add_argument("--out", type=Path, default=WEIGHTS)
    return parser.parse_args()


def _halves(folder: Path, name: str) -> Iterator[Dataset]:
    """Yield the half of a set that is trained on, asked in either language, without the pages of `natural`."""
    data, natural = load(folder / name), {page["url"] for page in load(folder / "natural").pages}
    for asked in (data, variant(data, "cross-language")):
        rows = [row for row in asked.questions if is_trained_on(row) and row["evidence"][0]["url"] not in natural]
        yield Dataset(name, data.pages, rows)


def _import(app: MeasuredApp, data: Dataset) -> str:
    """Import the pages of a set once; return its library."""
    if not app.libraries.has(data.name):
        import_set(app, data, "semantic", data.name)
    return data.name


def _searches(app: MeasuredApp, library: str, rows: Sequence[Row], tokens: Tokens) -> Iterator[Example]:
    """Yield an example per question, with the sentences of the passages that a search finds.

    If none of them answers a question that has an answer, those of its page; if none of these does, no example.
    """
    pages = {page.url: page.url_hash for page in app.library(library).pages()}
    for row in rows:
        example = _search(app, library, row, app.search(row["question"], library=library).passages, tokens)
        if row["evidence"] and not any(example.answers):
            url_hash = pages.get(row["evidence"][0]["url"])
            passages = app.library(library).chunks(url_hash)[:_PAGE_CHUNKS] if url_hash else []
            example = _search(app, library, row, passages, tokens)
        if any(example.answers) or (example.order and not row["evidence"]):
            yield example


def _search(app: MeasuredApp, library: str, row: Row, passages: Sequence[Passage], tokens: Tokens) -> Example:
    sentences, columns = app.quoter(library).score_sentences(row["question"], passages)
    lines, leads = [sentence.line(passages) for sentence in sentences], [sentence.unit.leads for sentence in sentences]
    urls = [passages[line.passage].url for line in lines]
    return _make_example(row, tokens, lines, urls, leads, columns @ np.array(list(FEATURES.values())))


def _own_pages(app: MeasuredApp, pages: Mapping[str, Row], rows: Iterable[Row], tokens: Tokens) -> Iterator[Example]:
    """Yield an example per question, with the sentences of the true text of its page."""
    for url, questions in groupby(sorted(rows, key=itemgetter("url")), key=itemgetter("url")):
        page = pages[url]
        parts = [part for part in quotables(page["text"]) if normalise_text(part.text)]
        vectors = app.models.embedding.encode_passages([f"{page['title']}. {part.text}" for part in parts])
        lines = [TitledSentence(0, page["title"], "", part.text) for part in parts]
        leads, urls = [part.leads for part in parts], [address_of(url)] * len(parts)
        for row in questions:
            scores = _MEANING * (vectors @ app.models.embedding.encode_query(row["question"]))
            yield _make_example(cite(row, pages), tokens, lines, urls, leads, scores)


def _make_example(
    row: Row,
    tokens: Tokens,
    lines: Sequence[TitledSentence],
    urls: Sequence[str],
    leads: list[bool],
    scores: np.ndarray[Any, Any],
) -> Example:
    order = [place for place in np.argsort(-scores).tolist() if not leads[place]]
    answering = [
        any(url == one["url"] and _answers(row, one["quote"], line.text) for one in row["evidence"]) and not lead
        for line, url, lead in zip(lines, urls, leads, strict=True)
    ]
    return Example(TokenizedLines(tokens, row["question"], lines), order, answering, leads)


def _answers(row: Row, quote: str, text: str) -> bool:
    """Return whether a sentence is in the quote or, with a short answer, says the same in other lines than the quote.

    The app reads a page in other lines than its true text has.
    """
    line, evidence = normalise_text(text), normalise_text(quote)
    golds = [gold for gold in map(normalise_text, row["answers"]) if len(gold) < _SHORT_ANSWER]
    if not golds:
        return bool(line) and (line in evidence or evidence in line)
    words, quoted = set(terms(text)), set(terms(quote))
    is_alike = 2 * len(words & quoted) >= min(len(words), len(quoted))
    return any(gold in line and (is_alike or len(gold) >= _CLEAR_ANSWER) for gold in golds)


class Reader(nn.Module):
    """The model in training; `AnswerReader` runs it."""

    def __init__(self, start: Path | None = None) -> None:
        """Load the built-in model with a random head, or with the weights of an earlier run from `start`."""
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

    def average_with(self, start: Path) -> None:
        """Replace each weight by its mean with that of an earlier run."""
        trained, earlier = self.state_dict(), Reader(start).state_dict()
        self.load_state_dict({name: torch.lerp(weight, earlier[name], 0.5) for name, weight in trained.items()})

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
        """Return for each example the logits of all lines in its stretches, concatenated."""
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
        """Return the weights that `AnswerReader` loads."""
        weights = {
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
                weights[f"{name}:up"], weights[f"{name}:down"] = left[:, :RANK] * roots, roots[:, None] * right[:RANK]
            else:
                weights[f"{name}:add"] = change
        return {name: weight.detach().half().contiguous() for name, weight in weights.items()}


def _fit(
    reader: Reader, groups: Sequence[tuple[Sequence[Example], float]], seconds: float, rates: tuple[float, float]
) -> None:
    """Train for `seconds` on groups of examples, each with its share of the questions.

    The learning rates warm up for a twentieth of the time, then decay linearly.
    """
    chance, began = random.Random(1), time.monotonic()
    heads = [*reader.wide.parameters(), *reader.narrow.parameters()]
    parts = zip((list(reader.body.encoder.parameters()), heads), rates, strict=True)
    optimizer = torch.optim.AdamW([{"params": part, "lr": rate} for part, rate in parts], weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: _rate((time.monotonic() - began) / seconds))
    reader.train()
    losses: list[float] = []
    while time.monotonic() - began < seconds:
        sources = chance.choices([group for group, _ in groups], [share for _, share in groups], k=_BATCH_SIZE)
        batch = list(map(chance.choice, sources))
        stretches = [_stretches(example, chance) for example in batch]
        inputs = [(example.coded, lines) for example, lines in zip(batch, stretches, strict=True)]
        loss = torch.stack([_loss(*one) for one in zip(reader(inputs), batch, stretches, strict=True)]).mean()
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
    """Return up to three stretches: one around an answer (its lines sometimes dropped), then the best others."""
    answering = [place for place in example.order if example.answers[place]]
    dropped = set(answering) if answering and chance.random() < _WITHOUT_ANSWER else set()
    first = [chance.choice(answering[:2])] if answering else []
    rest = [place for place in example.order if not example.answers[place]]
    stretches: list[list[int]] = []
    for stretch in example.coded.windows([*first, *rest]):
        if remaining := [place for place in stretch if place not in dropped]:
            stretches.append(remaining)
        if len(stretches) == _STRETCHES:
            break
    return stretches


def _loss(logits: torch.Tensor, example: Example, stretches: Sequence[Sequence[int]]) -> torch.Tensor:
    places = [place for stretch in stretches for place in stretch]
    leads = torch.tensor([example.leads[place] for place in places] + [False])
    targets = torch.tensor([example.answers[place] for place in places] + [False])
    targets[-1] = not targets.any()
    scores = torch.cat((logits, torch.zeros(1))).masked_fill(leads, -1e4)
    return torch.logsumexp(scores, 0) - torch.logsumexp(scores[targets], 0)


if __name__ == "__main__":
    raise SystemExit(main())
