"""Compute the means that `rag.models.embedding` subtracts from the built-in model's vectors.

    python -m benchmarks.language_means [--data FOLDER] [--write]

The mean vector of passages and of questions, in English and in Chinese, over xquad-en and xquad-zh: the same articles
and questions in both languages, so that only the language differs. Prints the cosines between the means of one half of
the articles and those of the other.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.datasets import DEFAULT_FOLDER, find_folders, load
from benchmarks.plain_search import pieces_of
from rag.models import model_files
from rag.models.embedding import FlagEncoder
from rag.models.model_files import family_of, find_model
from rag.models.transformer import read_bert

TARGET = Path(model_files.__file__).with_name(model_files.MEANS)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER, metavar="FOLDER")
    parser.add_argument("--write", action="store_true", help=f"write them into {TARGET.name}")
    options = parser.parse_args()
    folders = find_folders(options.data, ["xquad-en", "xquad-zh"])
    if len(folders) < 2:
        print(f"xquad-en and xquad-zh are not in {options.data}", file=sys.stderr)
        return 2
    files = find_model(model_files.E5)
    model = FlagEncoder(
        read_bert(files.folder), family_of(files.origin, files.folder), name=model_files.E5, device="cpu"
    )
    means: dict[str, NDArray[np.float32]] = {}
    for folder in folders:
        data, language = load(folder), folder.name[-2:]
        passages = [f"{piece.title}\n{piece.text}" for piece in pieces_of(data.pages)]
        vectors = {
            f"passage.{language}": model.encode_passages(passages),
            f"query.{language}": np.stack([model.encode_query(row["question"]) for row in data.questions]),
        }
        for name, rows in vectors.items():
            first_mean, second_mean = (half.mean(axis=0) for half in np.array_split(rows, 2))
            cosine = float(first_mean @ second_mean / np.linalg.norm(first_mean) / np.linalg.norm(second_mean))
            print(json.dumps({"mean": name, "texts": len(rows), "halves": round(cosine, 4)}))
            means[name] = rows.mean(axis=0)
    if options.write:
        from safetensors.numpy import save_file

        save_file(means, TARGET)
    return 0


if __name__ == "__main__":
    sys.exit(main())
