"""PDF files: constructs in the ways that programs draw them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from benchmarks.fidelity.case import Case
from rag.web.media import PDF
from tests.support.pdf_files import HELVETICA, lines, make_pdf, rows, rules, text, unicode_map

LEFT = (
    "The keeper of the northern light writes",
    "up the log of every night and hands it",
    "to the harbour office before noon, so",
    "that ships are told of what has failed.",
)
RIGHT = (
    "Boats for the island leave the old pier",
    "at six on working days, and at ten on",
    "Sundays; in a gale they stay at home and",
    "the mate hangs a black ball at the mast.",
)
MIDDLE = (
    "Lamps are cleaned on Mondays with soft",
    "cloth and spirit, never with sand, and",
    "their wicks are cut by the apprentice on",
    "the same evening before they are lit.",
)
LAMP_ROOM = (
    "A visitor may climb the stairs by day, if",
    "the keeper goes first and no ship is near;",
    "whoever touches a lens pays for the cloth",
    "with which it has to be polished again.",
)
IN_ORDER = ("writes up the log of every night", "leave the old pier at six")
LAMPS = (
    ("Lamp", "2021", "2022", "2023"),
    ("Skerry", "", "", "310"),
    ("Holm", "140", "", "95"),
    ("Vik", "", "77", "81"),
)
LAMPS_READ = ("| Lamp | 2021 | 2022 | 2023 |", "| Skerry | | | 310 |", "| Holm | 140 | | 95 |", "| Vik | | 77 | 81 |")
PLACES = (60, 200, 280, 360)
BODY = lines(60, 740, *LEFT)
GARBLED = {
    "a": "ɹ", "b": "ང", "c": "Θ", "d": "ཀ", "e": "Ϟ", "f": "ɘ", "g": "ש", "h": "ཏ", "i": "Ԫ", "j": "Ω", "k": "ཨ",
    "l": "ϖ", "m": "ʥ", "n": "ם", "o": "Ӝ", "p": "པ", "r": "ʭ", "s": "Ֆ", "t": "Ж", "u": "ղ", "v": "ཧ", "w": "Ϡ",
    "y": "ʘ",
}  # fmt: skip
MADE_UP = f"{HELVETICA}/ToUnicode 4 0 R"


def cases() -> Iterator[Case]:
    for construct, spelling, body, expected in (*_lines(), *_tables(), *_marks(), *_fields(), *_files()):
        yield Case(construct, spelling, body, PDF, **{"name": "lamps.pdf", **expected})


Row = tuple[str, str, bytes, dict[str, Any]]


def _lines() -> Iterator[Row]:
    in_order, columns = {"must": IN_ORDER}, [(50, LEFT), (330, RIGHT)]
    yield "columns", "one after the other", make_pdf("".join(lines(x, 700, *words) for x, words in columns)), in_order
    pairs = "".join(
        text(50, 700 - 12 * n, one) + text(330, 700 - 12 * n, other)
        for n, (one, other) in enumerate(zip(LEFT, RIGHT, strict=True))
    )
    yield "columns", "row by row", make_pdf(pairs), in_order
    three = "".join(
        text(x, 700 - 12 * n, words[n], 7) for n in range(4) for x, words in ((40, LEFT), (220, MIDDLE), (400, RIGHT))
    )
    must = (*IN_ORDER, "with soft cloth and spirit")
    yield "columns", "three, row by row", make_pdf(three), {"must": must}
    words = "Every failed lamp is told of in the log.".split()
    expected = {"must": ("Every failed lamp is told of in the log.",)}
    for gap in (320, 190):
        array = f")-{gap}(".join(words)
        yield (
            "spaces",
            f"gaps of {gap} in one operator",
            make_pdf(f"BT /F1 10 Tf 60 700 Td [({array})] TJ ET"),
            expected,
        )
    loose = f"BT /F1 10 Tf 2 Tc 60 700 Td ({' '.join(words)}) Tj ET"
    yield "spaces", "letters set apart", make_pdf(loose), expected
    wide = f"BT /F1 10 Tf 6 Tw 60 700 Td ({' '.join(words)}) Tj ET"
    yield "spaces", "words set apart", make_pdf(wide), expected
    for name, hyphen in (("hyphen", "-"), ("soft hyphen", "\xad")):
        divided = lines(
            60, 700, f"The oil of all lamps is weighed by the adminis{hyphen}", "tration of the coast each May."
        )
        yield "hyphenation", name, make_pdf(divided), {"must": ("administration of the coast",)}
    compound = lines(
        60, 700, "A well-kept lamp is bright, and of every well-", "kept lamp the log says so in its last column."
    )
    yield "hyphenation", "a compound", make_pdf(compound), {"must": ("every well-kept lamp",)}
    for degrees, turn in ((90, "0 1 -1 0"), (180, "-1 0 0 -1"), (270, "0 -1 1 0")):
        at = {90: (300, 60, 12, 0), 180: (560, 400, 0, 12), 270: (300, 700, -12, 0)}[degrees]
        body = "".join(text(at[0] + at[2] * n, at[1] + at[3] * n, line, turn=turn) for n, line in enumerate(LEFT))
        yield "turned page", str(degrees), make_pdf(body, page=f"/Rotate {degrees}"), {"must": IN_ORDER[:1]}
    note = text(20, 500, "Draft of the second of May", 8, "0 1 -1 0")
    order = {"must": (*IN_ORDER[:1], "noon, so that ships", "Draft of the second of May")}
    yield "turned note", "before the text", make_pdf(note + BODY), order
    yield (
        "turned note",
        "within the text",
        make_pdf(lines(60, 740, *LEFT[:2]) + note + lines(60, 716, *LEFT[2:])),
        order,
    )
    pages = [
        lines(60, 760, "Report of the coast lights", size=8)
        + lines(60, 700, *words)
        + text(300, 30, f"Page {n} of 4", 8)
        for n, words in enumerate((LEFT, RIGHT, MIDDLE, LAMP_ROOM), 1)
    ]
    yield (
        "running heads",
        "page numbers",
        make_pdf(*pages),
        {"must": ("## Page 3",), "must_not": ("Page 3 of 4", "Report of")},
    )


def _tables() -> Iterator[Row]:
    yield "table", "no rules", make_pdf(BODY + rows(600, PLACES, *LAMPS)), {"must": LAMPS_READ}
    right = "".join(
        text(x + (0 if n == 0 else 30 - 5.56 * len(cell)), 600 - 14 * i, cell)
        for i, row in enumerate(LAMPS)
        for n, (x, cell) in enumerate(zip(PLACES, row, strict=True))
        if cell
    )
    yield "table", "numbers to the right", make_pdf(BODY + right), {"must": LAMPS_READ}
    grid = rules((55, 190, 270, 350, 420), (616, 596, 582, 568, 554))
    yield "table", "ruled", make_pdf(BODY + grid + rows(600, PLACES, *LAMPS)), {"must": LAMPS_READ}
    by_column = BODY + "".join(
        text(x, 600 - 14 * i, LAMPS[i][n]) for n, x in enumerate(PLACES) for i in range(4) if LAMPS[i][n]
    )
    yield "table", "ruled, drawn column by column", make_pdf(grid + by_column), {"must": LAMPS_READ}
    wrapped = rules((55, 190, 270, 350), (616, 596, 572, 554)) + rows(600, PLACES[:3], ("Light", "Oil", "Wicks"))
    wrapped += lines(60, 586, "Skerry, with its", "old fog bell") + text(200, 586, "40 l") + text(280, 586, "12")
    wrapped += rows(558, PLACES[:3], ("Holm", "25 l", "9"))
    must = ("| Skerry, with its old fog bell | 40 l | 12 |", "| Holm | 25 l | 9 |")
    yield "table", "ruled, with a cell of two lines", make_pdf(BODY + wrapped), {"must": must}
    money = rows(600, (60, 200, 215, 300, 315), ("", "", "2022", "", "2023"), ("Oil", "$", "1,240", "$", "1,310"))
    money += rows(572, (60, 200, 215, 300, 315), ("Wicks", "", "(88)", "", "90"), ("Total", "$", "1,152", "$", "1,400"))
    must = ("| Wicks | (88) | 90 |", ("| Total | $ 1,152 | $ 1,400 |", "| Total | $1,152 | $1,400 |"))
    yield "table", "currency signs apart", make_pdf(BODY + money), {"must": must}
    spanning = text(215, 620, "Nights lit in") + "0.5 w 195 615 m 400 615 l S\n"
    spanning += rows(600, (60, 200, 280, 360), *LAMPS[:1], *LAMPS[2:])
    must = ("| Lamp | Nights lit in 2021 | Nights lit in 2022 | Nights lit in 2023 |", "| Holm | 140 | | 95 |")
    yield "table", "a heading above several columns", make_pdf(BODY + spanning), {"must": must}
    chinese = rows(
        600, PLACES[:3], ("<C4EAB7DD>", "<CAD5C8EB>", "<D6A7B3F6>"), ("2021", "1,200", ""), ("2022", "", "900")
    )
    yield (
        "table",
        "Chinese, in a font that is not embedded",
        make_pdf(chinese, font=_SONG, objects=_SONG_PARTS),
        {"must": ("| 年份 | 收入 | 支出 |", "| 2021 | 1,200 | |", "| 2022 | | 900 |")},
    )


_SONG = "/Type/Font/Subtype/Type0/BaseFont/STSong-Light/Encoding/GBK-EUC-H/DescendantFonts[4 0 R]"
_SONG_PARTS = (
    b"<</Type/Font/Subtype/CIDFontType0/BaseFont/STSong-Light/CIDSystemInfo<</Registry(Adobe)/Ordering(GB1)"
    b"/Supplement 2>>/FontDescriptor 5 0 R/DW 1000>>",
    b"<</Type/FontDescriptor/FontName/STSong-Light/Flags 6/FontBBox[-25 -254 1000 880]/ItalicAngle 0/Ascent 880"
    b"/Descent -120/CapHeight 880/StemV 93>>",
)


def _marks() -> Iterator[Row]:
    high = text(60, 700, "The lamp gives 4.1 x 10") + text(163.5, 704, "5", 7) + text(170, 700, "candelas to the west.")
    yield (
        "raised number",
        "power, a size of its own",
        make_pdf(high),
        {"must": ("10^5 candelas",), "must_not": ("105",)},
    )
    risen = "BT /F1 10 Tf 60 700 Td (The lamp gives 4.1 x 10) Tj 4 Ts /F1 7 Tf (5) Tj 0 Ts /F1 10 Tf ( candelas.) Tj ET"
    yield "raised number", "power, by its rise", make_pdf(risen), {"must": ("10^5 candelas",)}
    note = "BT /F1 10 Tf 60 700 Td (In all 4500) Tj 4 Ts /F1 6 Tf (2) Tj 0 Ts /F1 10 Tf ( lamps were lit.) Tj ET"
    yield "raised number", "note", make_pdf(note), {"must": ("4500[^2] lamps",), "must_not": ("45002", "4500^2")}
    code = "/Type/Font/Subtype/Type1/BaseFont/Courier/Encoding/WinAnsiEncoding"
    listing = lines(60, 700, "def lit(lamp):", "    if lamp.oil:", "        return True", "    return False")
    yield (
        "code",
        "indented",
        make_pdf(listing, font=code),
        {"must": ("def lit(lamp):\n    if lamp.oil:\n        return True",)},
    )
    arabic = unicode_map(
        {"a": "م", "b": "لا", "c": "س", "d": "لإ", "e": "ن", "f": "ت", "g": "ا", "h": "ج", "i": "ي", "j": "ة"}
    )
    arabic_pdf = make_pdf(text(300, 700, "abc") + text(300, 680, "jihgfedg"), font=MADE_UP, objects=[arabic])
    yield "right to left", "two letters in one sign", arabic_pdf, {"must": ("سلام", "الإنتاجية")}
    ligature_map = unicode_map({"f": "ﬁ", "l": "ﬂ", "a": "a", "n": "n", "d": "d", "o": "o", "w": "w", "s": "s"})
    ligature_pdf = make_pdf(text(60, 700, "fnd and low"), font=MADE_UP, objects=[ligature_map])
    yield "ligatures", "as one character", ligature_pdf, {"must": ("find and flow",)}


def _fields() -> Iterator[Row]:
    def form(*fields: bytes, body: str = BODY) -> bytes:
        own = " ".join(f"{4 + n} 0 R" for n in range(len(fields)))
        return make_pdf(body, catalog=f"/AcroForm<</Fields[{own}]>>", page=f"/Annots[{own}]", objects=fields)

    box = b"<</Type/Annot/Subtype/Widget/Rect[160 632 400 650]"
    label = BODY + text(60, 638, "Name of the light:")
    expected = {"must": ("Name of the light: Blue Skerry",)}
    yield "form", "text", form(box + b"/FT/Tx/T(name)/V(Blue Skerry)>>", body=label), expected
    child = b"<</Type/Annot/Subtype/Widget/Rect[160 632 400 650]/Parent 5 0 R>>"
    parent = b"<</FT/Tx/T(name)/V(Blue Skerry)/Kids[4 0 R]>>"
    inherited = make_pdf(label, catalog="/AcroForm<</Fields[5 0 R]>>", page="/Annots[4 0 R]", objects=[child, parent])
    yield "form", "text, in the field above the box", inherited, expected
    choice = box + b"/FT/Ch/Ff 131072/T(c)/Opt[[(a)(North coast)][(b)(South coast)]]/V(b)>>"
    yield "form", "choice", form(choice, body=BODY + text(60, 638, "Coast:")), {"must": ("Coast: South coast",)}
    states = b"/AP<</N<</Yes 1 0 R/Off 1 0 R>>>>"
    on = b"<</Type/Annot/Subtype/Widget/FT/Btn/T(a)/Rect[60 634 72 646]/V/Yes/AS/Yes" + states + b">>"
    off = b"<</Type/Annot/Subtype/Widget/FT/Btn/T(b)/Rect[160 634 172 646]/V/Off/AS/Off" + states + b">>"
    boxes = form(on, off, body=BODY + text(76, 636, "Oil paid") + text(176, 636, "Oil due"))
    yield "form", "check boxes", boxes, {"must": ("[x] Oil paid", "[ ] Oil due")}
    secret = form(box + b"/FT/Tx/Ff 8192/T(pin)/V(hunter2)>>", box + b"/FT/Tx/F 2/T(x)/V(hidden words)>>")
    yield "form", "hidden and secret", secret, {"must": IN_ORDER[:1], "must_not": ("hunter2", "hidden words")}
    typed = form(b"<</Type/Annot/Subtype/FreeText/Rect[60 620 300 640]/DA(/F1 9 Tf)/Contents(Received in May)>>")
    yield "form", "typed on the page", typed, {"must": ("Received in May",)}


def _files() -> Iterator[Row]:
    wrong = text(60, 700, "failed lamps are told of in the log before noon")
    wrong += lines(
        60, 680, "wicks are cut by the apprentice on the same evening", "before they are lit and cleaned with spirit"
    )
    right = lines(60, 740, *map(str.upper, LEFT))
    font = {"font": MADE_UP, "objects": [unicode_map({**GARBLED, **{sign: sign for sign in right}})]}
    readable = {"must": ("THE LOG OF EVERY NIGHT", "## Page 1"), "must_not": ("ɹ", "Θ", "ང")}
    yield "mojibake", "one page of two", make_pdf(right, wrong, **font), readable
    yield "mojibake", "every page", make_pdf(wrong, **font), {"error": "pdf_unmapped"}
    shifted = "".join(chr(ord(letter) - 29) if letter != " " else " " for letter in " ".join((*LEFT, *RIGHT)).lower())
    escaped = shifted.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    yield "mojibake", "shifted letters", make_pdf(f"BT /F1 5 Tf 20 700 Td ({escaped}) Tj ET"), {"error": "pdf_unmapped"}
    yield (
        "hidden layer",
        "text of a scan",
        make_pdf("BT 3 Tr /F1 10 Tf 60 700 Td (The log of the light) Tj ET"),
        {"must": ("The log of the light",)},
    )
    cover = text(150, 740, "UNITED STATES", 18) + text(90, 718, "SECURITIES AND EXCHANGE COMMISSION", 18)
    cover += text(250, 690, "FORM 8-K", 14) + text(230, 640, "NORTHERN LIGHTS CORP", 12)
    filing = (
        cover
        + text(180, 626, "(Exact name of registrant as specified in its charter)", 8)
        + lines(60, 580, *LEFT, *RIGHT)
    )
    yield "title", "a filing's cover", make_pdf(filing), {"title": "NORTHERN LIGHTS CORP · FORM 8-K"}
    yield (
        "title",
        "an authority and no name",
        make_pdf(cover.replace("NORTHERN LIGHTS CORP", "") + BODY),
        {"title": "lamps"},
    )
    yield (
        "title",
        "of the file's properties",
        make_pdf(BODY, info="/Title(Lamps of the coast)"),
        {"title": "Lamps of the coast"},
    )
