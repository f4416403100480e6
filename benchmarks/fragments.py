"""Rate at which a browser finds the sentence that a link points to.

    python -m benchmarks.fragments [--data FOLDER] [--count 300] [--seed 1] [--show]

Real pages (wcxb: articles, documentation, forum threads, services) and Chinese ones (made of xquad-zh's paragraphs, and
the samples) are served on loopback, extracted, and cited at random sentences. Chromium opens each link. A link is right
if the sentence is in the viewport, the highlight (found by its colour in a screenshot) lies within it, and its first
and last lines are highlighted. Scripts and other hosts are blocked; sentences that a page shows only with its scripts
are counted separately.
"""

from __future__ import annotations

import argparse
import gzip
import html
import io
import json
import random
import re
import shutil
import threading
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.datasets import DEFAULT_FOLDER, load
from rag.checking.fragments import text_fragment
from rag.errors import IngestError
from rag.reading.extract import extract
from rag.text import split_sentences

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
KINDS = ("article", "documentation", "forum", "service")
MARK_COLOUR = (233, 210, 253)
# Without stylesheets, drawings would cover the text next to them, and lazily loaded images would move it.
_LAZY = re.compile(rb"loading=[\"']?lazy[\"']?")
_HEAD = re.compile(rb"<head[^>]*>", re.IGNORECASE)
_PLAIN = b"<style>svg { max-width: 1em !important; max-height: 1em !important }</style>"
_DOT = bytes.fromhex("47494638396101000100800000ffffff00000021f90401000000002c00000000010001000002024401003b")
_COLOUR_TOLERANCE = 6  # per channel, since screenshots round
_SPREAD = 4  # pixels by which a highlight may exceed its line

# Locate the sentence in the rendered page by its letters and digits; return a rectangle per line.
FIND = r"""([wanted, before]) => {
  const letters = text => text.normalize('NFKC').toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '');
  const seen = {visibilityProperty: true, opacityProperty: true};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let body = ''; const places = [];
  for (let node; node = walker.nextNode();) {
    const parent = node.parentElement;
    if (['SCRIPT', 'STYLE', 'TEMPLATE'].includes(parent.tagName)) continue;
    if (!parent.checkVisibility(seen)) continue;
    for (let i = 0; i < node.data.length; i++) {
      const kept = letters(node.data[i]);
      for (const sign of kept) { body += sign; places.push([node, i]); }
    }
  }
  const common = at => {
    let n = 0;
    while (n < before.length && body[at - 1 - n] === before[before.length - 1 - n]) n++;
    return n;
  };
  let best = -1, score = -1;
  for (let at = body.indexOf(wanted); at >= 0; at = body.indexOf(wanted, at + 1))
    if (common(at) > score) { best = at; score = common(at); }
  if (best < 0) return null;
  const range = document.createRange();
  range.setStart(...places[best]);
  const [node, offset] = places[best + wanted.length - 1];
  range.setEnd(node, offset + 1);
  const lines = [...range.getClientRects()].filter(line => line.width > 1 && line.height > 1);
  return lines.map(line => [line.left, line.top, line.right, line.bottom]);
}"""


@dataclass(frozen=True)
class Citation:
    """A sentence of a page, by its span in the extracted text."""

    path: str
    kind: str
    text: str
    start: int
    end: int

    @property
    def sentence(self) -> str:
        return self.text[self.start : self.end]


class PageSite:
    """HTML pages on loopback, without scripts."""

    def __init__(self, pages: dict[str, bytes]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = pages.get(self.path.split("?")[0], b"")
                body = _HEAD.sub(lambda head: head.group() + _PLAIN, _LAZY.sub(b"", body), count=1)
                self.send_response(200 if body else 404)
                self.send_header("Content-Type", f"text/html{_charset(body)}")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _charset(body: bytes) -> str:
    """Return the charset parameter of a UTF-8 page, else an empty string: other pages declare theirs."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return ""
    return "; charset=utf-8"


def real_pages(data: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield (path, kind, HTML) of pages from the web."""
    rows = [
        json.loads(line) for line in (data / "wcxb" / "truth.jsonl").read_text(encoding="utf-8").split("\n") if line
    ]
    for row in rows:
        file = data / "wcxb" / "html" / f"{row['id']}.html.gz"
        if row["type"] in KINDS and file.exists():
            yield f"/{row['id']}.html", row["type"], gzip.decompress(file.read_bytes())


def chinese_pages(data: Path) -> Iterator[tuple[str, str, bytes]]:
    for number, page in enumerate(load(data / "xquad-zh").pages):
        yield f"/zh-{number}.html", "xquad-zh", _format_html(page)
    for file in sorted(EXAMPLES.glob("*.html")):
        yield f"/{file.name}", "samples", file.read_bytes()


def _format_html(page: dict[str, Any]) -> bytes:
    """Format a page as a site would: navigation, headings, a bold word here and there, a footer."""
    parts = [f"<h1>{html.escape(page['title'])}</h1>"]
    for place, text in enumerate(page["text"].split("\n\n")):
        head, tail = html.escape(text[: len(text) // 2]), html.escape(text[len(text) // 2 :])
        parts.append(f"<h2>第 {place + 1} 节</h2><p>{head}<b>{tail[:6]}</b>{tail[6:]}</p>")
    body = "".join(parts)
    return (
        f"<!doctype html><html lang='zh'><head><meta charset='utf-8'><title>{html.escape(page['title'])}</title></head>"
        f"<body><nav><a href='/'>首页</a> <a href='/about'>关于我们</a></nav><article>{body}</article>"
        "<footer>版权所有</footer></body></html>"
    ).encode()


def citations(pages: Sequence[tuple[str, str, bytes]], count: int, chance: random.Random) -> Iterator[Citation]:
    """Yield random sentences, one page after the other, up to `count`."""
    texts: dict[str, str] = {}
    total = 0
    while total < count:
        total_before = total
        for path, kind, body in pages:
            if path not in texts:
                texts[path] = _text_of(path, body)
            text = texts[path]
            spans = [(a, b) for a, b in split_sentences(text) if _is_sentence(text[a:b])]
            if spans and total < count:
                total += 1
                yield Citation(path, kind, text, *chance.choice(spans))
        if total == total_before:
            return


def _text_of(path: str, body: bytes) -> str:
    try:
        return extract(body, "text/html", "utf-8", f"https://example.org{path}").text
    except IngestError:  # without text unless its scripts run, so there is nothing to cite
        return ""


def _is_sentence(text: str) -> bool:
    return len(letters(text)) >= (12 if re.search("[\u4e00-\u9fff]", text) else 25) and not text.startswith(
        ("#", "```")
    )


def letters(text: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFKC", text).lower() if sign.isalnum())


def open_page(browser: Any, address: str) -> Any:
    """Open a page with scripts disabled, and a one-pixel placeholder for every image of other hosts."""
    page = browser.new_page(viewport={"width": 1100, "height": 800}, color_scheme="light", java_script_enabled=False)

    def answer(route: Any) -> None:
        if route.request.url.startswith(address):
            route.continue_()
        elif route.request.resource_type == "image":
            route.fulfill(body=_DOT, content_type="image/gif")
        else:
            route.abort()

    page.route("**/*", answer)
    return page


def find_fault(page: Any, address: str, cited: Citation) -> str:
    """Open the link and return what is wrong with the highlight, or an empty string."""
    page.goto("about:blank")
    page.goto(text_fragment(address + cited.path, cited.text, cited.start, cited.end), wait_until="load")
    _settle(page)
    before = letters(cited.text[max(0, cited.start - 80) : cited.start])[-40:]
    lines = page.evaluate(FIND, [letters(re.sub(r"^\d{1,3}[.)] ", "", cited.sentence)), before])
    if not lines:
        return "not rendered"
    shot = page.screenshot()
    return judge_mark(find_marks(shot), lines, page.viewport_size["height"])


def _settle(page: Any) -> None:
    """Wait until the page stops moving: some scroll smoothly."""
    previous = None
    for _ in range(20):
        page.wait_for_timeout(150)
        position = page.evaluate("scrollY")
        if position == previous:
            return
        previous = position


def find_marks(shot: bytes) -> Any:
    """Return the pixels of a screenshot in the colour of a mark, (height, width) of bool."""
    from PIL import Image

    pixels = np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)
    return (np.abs(pixels - np.array(MARK_COLOUR)) <= _COLOUR_TOLERANCE).all(axis=2)


def judge_mark(mask: Any, lines: Sequence[Sequence[float]], height: int) -> str:
    if not mask.any():
        return "no highlight"
    allowed = np.zeros_like(mask)
    for left, top, right, bottom in lines:
        allowed[_slice(top, bottom, mask.shape[0]), _slice(left, right, mask.shape[1])] = True
    if not 0 <= lines[0][1] < height:
        return "wrong place"
    inside = float(mask[allowed].sum() / mask.sum())
    if inside < 0.9:
        return "highlight too long" if inside > 0.2 else "wrong place"
    visible = [line for line in lines if line[3] < height - 2]
    ends = [visible[0], visible[-1]] if visible else []
    shares = [mask[_slice(t, b, mask.shape[0]), _slice(x, y, mask.shape[1])].mean() for x, t, y, b in ends]
    return "" if shares and min(shares) > 0.15 else "highlight too short"


def _slice(low: float, high: float, size: int) -> slice:
    return slice(max(0, int(low) - _SPREAD), min(size, int(high) + _SPREAD))


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DEFAULT_FOLDER)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print what went wrong")
    options = parser.parse_args()
    chance = random.Random(options.seed)
    real, chinese = list(real_pages(options.data)), list(chinese_pages(options.data))
    chance.shuffle(real)
    share = options.count // 4
    sample = [*citations(real, options.count - share, chance), *citations(chinese, share, chance)]
    outcomes: dict[str, Counter[str]] = {}
    with PageSite({path: body for path, _, body in (*real, *chinese)}) as site, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        page = open_page(browser, site.address)
        for cited in sample:
            fault = find_fault(page, site.address, cited)
            outcomes.setdefault(cited.kind, Counter())[fault or "right"] += 1
            if fault and options.show:
                print(fault, cited.path, repr(cited.sentence[:200]))
                print("    ", text_fragment("", cited.text, cited.start, cited.end)[:300])
        browser.close()
    report(outcomes)


def report(outcomes: dict[str, Counter[str]]) -> None:
    totals = sum(outcomes.values(), Counter[str]())
    for kind, counts in (*sorted(outcomes.items()), ("all", totals)):
        rendered = counts.total() - counts["not rendered"]
        share = counts["right"] / max(1, rendered)
        print(f"{kind}: {counts['right']}/{rendered} = {share:.3f}  {dict(counts)}")


if __name__ == "__main__":
    main()
