"""MathML as LaTeX, and formulas at their places in pages."""

from __future__ import annotations

import pytest

from rag.reading.extraction.formulas import latex, write_formulas
from rag.reading.extraction.tree import body_of, parse


@pytest.mark.parametrize(
    ("mathml", "source"),
    [
        ("<mfrac><mi>a</mi><mi>b</mi></mfrac>", r"\frac{a}{b}"),
        ("<msqrt><mi>a</mi><mo>+</mo><mi>b</mi></msqrt>", r"\sqrt{a+b}"),
        ("<mroot><mi>a</mi><mn>3</mn></mroot>", r"\sqrt[3]{a}"),
        ("<msubsup><mi>x</mi><mi>i</mi><mn>12</mn></msubsup>", "x_i^{12}"),
        ("<msup><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></msup>", "{a+b}^2"),
        ("<mi>sin</mi><mo>&#8289;</mo><mi>x</mi>", r"\sin x"),
        ("<munder><mo>lim</mo><mi>n</mi></munder><mi>a</mi>", r"\lim_n a"),
        ("<mover><mi>x</mi><mo>¯</mo></mover>", r"\overline{x}"),
        ("<mfenced><mi>a</mi><mi>b</mi></mfenced>", "(a,b)"),
        ("<mi>rate</mi><mo>=</mo><mtext>new users</mtext>", r"\mathrm{rate}=\text{new users}"),
        (
            "<mtable><mtr><mtd><mn>1</mn></mtd><mtd><mn>0</mn></mtd></mtr></mtable>",
            r"\begin{matrix} 1 & 0 \end{matrix}",
        ),
        ("<mi>𝑥</mi><mo>−</mo><mn>1</mn>", "x-1"),
        ("<mfrac><mi>a</mi></mfrac>", "a"),
    ],
)
def test_latex(mathml: str, source: str) -> None:
    assert latex(parse(f"<body><math>{mathml}</math></body>").find(".//math")) == source


def test_mathml_that_is_nested_without_end() -> None:
    assert "a" in latex(parse("<body><math>" + "<mrow>" * 200 + "<mi>a</mi></math></body>").find(".//math"))


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("a <math alttext='x^{2}'><mi>q</mi></math> b", "a x^2 b"),
        ("a <math style='display:none'><mi>q</mi></math> b", "a q b"),  # hidden elements are removed later
        ("a <img class=texture alt='Sand'> b", "a  b"),
        ("a <img class=tex alt='A nice photo'> b", "a  b"),
        ("a <span class='katex'><span aria-hidden=true>x = 1</span></span> b", "a x=1 b"),
        ("a <script type='math/mml'><math><mi>x</mi></math></script> b", "a x b"),
        (r"a <script type='math/tex; mode=display'>\[ x \]</script> b", "a x b"),
    ],
)
def test_in_a_paragraph(html: str, text: str) -> None:
    tree = parse(f"<body><p>{html}</p></body>")
    write_formulas(tree)
    assert body_of(tree).text_content() == text
