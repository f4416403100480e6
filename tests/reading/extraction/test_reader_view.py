"""A page as a reader sees it: panels with their names, shadow roots, listings; and pages that would take for ever."""

from __future__ import annotations

import time

import pytest

from rag.reading.extract import extract_html, html_to_markdown

URL = "https://a.example/"
PROSE = "<h1>Logs</h1><p>The keepers of the lamps write their logs by hand on each day of the year.</p>"


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<div role=tabpanel>a</div><div role=tabpanel hidden>b</div>", "a\n\nb"),
        ("<button aria-expanded=false aria-controls=x>More</button><div id=x hidden><p>a</div>", "More\n\na"),
        ("<button aria-controls=x>More</button><p>b</p><div id=x hidden><p>a</div>", "More\n\nb"),
        ("<nav><button aria-expanded=false aria-controls=x>More</button></nav><div id=x hidden>a</div>", "More"),
        ("<p hidden><button aria-expanded=false aria-controls=x>More</button></p>b<p id=x hidden>a</p>", "b"),
        ("<div hidden><div role=tabpanel>a</div><div role=tabpanel hidden>b</div></div>c", "c"),
        ("<a onclick=\"show('x')\">More</a><div id=x style='display:none;color:red'>a</div>", "More\n\na"),
        ("<div role=tablist><b role=tab>One</b><b role=tab>Two</b></div><p role=tabpanel>a</p><p role=tabpanel>b</p>",
         "One Two\n\nOne: a\n\nTwo: b"),
        ("<div role=tabpanel aria-label=One><pre>a</pre></div><div role=tabpanel aria-label=二><ul><li>b</ul></div>",
         "One:\n\n```\na\n```\n\n二：\n\n- b"),
        ("<p role=tabpanel aria-label=A>a</p><div role=tabpanel aria-label=B><p>B</p>b</div>", "a\n\nB\n\nb"),
        ("<p>Pot <span aria-hidden=true>$<b>9</b>.00</span><span class=sr>Price $ 9.00</span></p>", "Pot Price $ 9.00"),
        ("<p><i>EUR 34.42</i> <i aria-hidden=true><b>EUR</b> 34 42</i>, <i aria-hidden=true>sale</i></p>",
         "EUR 34.42 , sale"),
        ("<p>8oz <del aria-hidden=true>$9.50</del> <b class=sr>It was: $9.50.</b> Now $7.</p>",
         "8oz It was: $9.50. Now $7."),
        ("<x-a><template shadowrootmode=open><p>a <slot>b</slot></p></template>c</x-a>", "a c"),
        ("<x-a><template shadowrootmode=open><p>a <slot>b</slot></p></template></x-a>", "a b"),
        ("<x-a><template shadowroot=open><p><slot name=y></slot>a</p></template><i slot=y>b</i><i>c</i></x-a>", "ba"),
        ("<pre><code>a\n  b</code></pre>", "```\na\n  b\n```"),
        ("<pre>a<br>  b</pre>", "```\na\n  b\n```"),
        ("<pre><div>a</div><div></div><div>  b</div></pre>", "```\na\n\n  b\n```"),
        ("<pre><span class=k>a</span><span class=k>b</span></pre>", "```\nab\n```"),
        ("<pre class=line-numbers>1\n2</pre>", "```\n1\n2\n```"),
        ("<table><tr><td>1<td><code>a</code><tr><td>2<td><code>b</code></table>", "| 1 | a |\n|---|---|\n| 2 | b |"),
        ("<p>See <code>a</code><br><code>b</code></p>", "See a\nb"),
        ("<button>Copy</button><p>Press it.</p>", "Copy\n\nPress it."),
    ],
)  # fmt: skip
def test_what_is_read(html: str, text: str) -> None:
    assert html_to_markdown(f"<html><body>{html}</body></html>") == text


@pytest.mark.parametrize(
    "html",
    [
        "".join(f"<div role=tabpanel hidden id=p{n}>text {n}</div>" for n in range(4000)) + "<b role=tab>a</b>",
        "".join(f"<b aria-controls=x{n} aria-expanded=0>b</b><p id=x{n} hidden>text {n}</p>" for n in range(4000)),
        "<table>" + "".join(f"<tr><td>{n}<td><svg aria-labelledby=l{n}><g id=l{n}>No</g></svg>" for n in range(4000)),
        "<div>" + "".join(f"<pre>x{n}</pre><button>Copy</button>" for n in range(4000)),
        "<p><sup>" + "".join(f"<a href=#n{n}>{n % 99}</a>" for n in range(6000)),
        "<p>" + "10<sup>6</sup>" * 6000,
        "<p>" + "".join(f"<abbr title='Title {n} of it'>AB{n}</abbr>" for n in range(4000)),
        "<table>" + ("<tr>" + "<td rowspan=60000 colspan=1000>x" * 300) * 40,
        "<p>" + "<math><mi>x</mi></math> " * 4000,
        "<x-a><template shadowrootmode=open><slot></slot>" * 120 + "<p>deep",
        "<style>" + "".join(f".c{n}{{color:line-through}}" for n in range(9000)) + "</style>" + "<p class=c1>a" * 900,
        "<ol>" + "<li>word here" * 4000,
    ],
    ids=range(12),
)  # fmt: skip
def test_pages_made_to_be_slow(html: str) -> None:
    began = time.process_time()
    assert extract_html(f"<html><body><main>{PROSE}{html}</main></body></html>", URL).text
    assert time.process_time() - began < 20
