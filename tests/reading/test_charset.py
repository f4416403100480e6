"""Bytes in many charsets, declared correctly, wrongly, or not at all."""

from __future__ import annotations

import pytest
from webencodings.labels import LABELS

from rag.reading.charset import decode
from rag.web.markup import codec_of

CHINESE = (
    "武汉长江大桥于一九五五年九月动工，一九五七年十月建成通车，是长江上的第一座公路铁路两用桥。这座桥把武汉三镇连成一体，"
    "也把中国南北的铁路连成一体，大大方便了人民的出行。建桥工人采用了大型管柱钻孔法，避免了在水下高气压中施工。"
)
TAIWAN = "臺灣的鐵路由北向南延伸，這是一個有名的景點，在山中可以看到大海。人們來到這裡，不是為了時間，而是為了風景。"
ENGLISH = (
    "The harbour café opens at seven – earlier in June – and a cup of tea costs £2.40. “Mind the step,” says the sign "
    "by the door. Tickets to the island are £5 for adults, and half of that for children under twelve. "
)
KOREAN = "북항 여객선은 매일 아침 일곱 시에 출발하며, 어른 요금은 네 크라운입니다. 어린이는 무료로 탈 수 있습니다."
JAPANESE = "冬の渡し船は毎朝七時と九時に北の桟橋を出発します。料金は大人が四クローネで、子供は無料です。"
RUSSIAN = "Паром отправляется от северного причала в семь и девять часов утра, билет стоит четыре кроны."
POLISH = "Zimą prom odpływa z północnego nabrzeża o siódmej i dziewiątej, a bilet kosztuje cztery korony. Śnieg łatwo"
CZECH = "V zimě odplouvá přívoz ze severního nábřeží v sedm a v devět hodin, jízdenka stojí čtyři koruny a děti šetří."
FRENCH = "L'été dernier, nous avons visité la forêt près du château ; le goûter était délicieux à côté du fleuve."


def page(text: str, meta: str = "") -> str:
    declared = f'<meta charset="{meta}">' if meta else ""
    return f"<html><head>{declared}<title>{text[:8]}</title></head><body><p>{text}</p></body></html>"


@pytest.mark.parametrize(
    ("text", "codec", "header", "meta"),
    [
        (CHINESE, "gbk", "gb2312", ""),
        (CHINESE, "gbk", "GBK", ""),
        (CHINESE, "gbk", None, "gb2312"),
        (CHINESE, "gbk", None, ""),
        (CHINESE, "gbk", "iso-8859-1", ""),
        (CHINESE, "gbk", "iso-8859-1", "gb2312"),
        (CHINESE, "gbk", "utf-8", ""),
        (CHINESE, "gbk", "utf-8", "utf-8"),
        (CHINESE + "镕㑇𠀀", "gb18030", "gb2312", ""),
        (CHINESE, "utf-8", "gbk", ""),
        (CHINESE, "utf-8", None, "gb2312"),
        (CHINESE, "utf-8", "iso-8859-1", ""),
        (CHINESE, "utf-8-sig", "gbk", ""),
        (CHINESE, "utf-16", None, ""),
        (CHINESE, "utf-16", "utf-16", ""),
        (TAIWAN, "big5", None, "Big5"),
        (FRENCH, "cp1252", "iso-8859-1", ""),
        (FRENCH, "cp1252", None, "windows-1252"),
        (FRENCH, "utf-8", "latin1", ""),
        ("Plain words.", "ascii", None, ""),
    ],
)
def test_text_survives(text: str, codec: str, header: str | None, meta: str) -> None:
    assert decode(page(text, meta).encode(codec), header) == page(text, meta)


@pytest.mark.parametrize("declared", ["windows-1252", "iso-8859-1", "us-ascii", None])
@pytest.mark.parametrize("text", [ENGLISH, "All rooms from £35", "The café", "Open Monday – Friday", "© Harbour Board"])
def test_few_letters_beyond_ascii_are_read_as_declared(text: str, declared: str | None) -> None:
    for form in (text, page(text), page("Plain words of English. " * 300 + text)):
        assert decode(form.encode("cp1252"), declared) == form


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        (ENGLISH, "cp1252"),
        (FRENCH, "cp1252"),
        (POLISH, "iso-8859-2"),
        (POLISH, "cp1250"),
        (CZECH, "iso-8859-2"),
        (CZECH, "cp1250"),
        (RUSSIAN, "cp1251"),
        (RUSSIAN, "koi8-r"),
        (RUSSIAN, "iso-8859-5"),
        (RUSSIAN, "cp866"),
        (TAIWAN, "big5"),
        (KOREAN, "euc-kr"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc-jp"),
        (JAPANESE, "iso-2022-jp"),
        (CHINESE, "gb18030"),
    ],
)
def test_a_paragraph_is_read_with_and_without_its_declaration(text: str, codec: str) -> None:
    label = {"cp866": "ibm866"}.get(codec, codec.replace("cp125", "windows-125"))
    for form in (text, page(text), page("Plain words of English. " * 300 + text)):
        assert decode(form.encode(codec)) == form
        assert decode(form.encode(codec), label) == form


@pytest.mark.parametrize("label", sorted(label for label, name in LABELS.items() if name == "euc-kr"))
@pytest.mark.parametrize("text", [KOREAN, "뷁", "힣", "똠방각하", "漢字", "ㄱㄴㄷ"])
def test_korean_under_every_label(text: str, label: str) -> None:
    body = page(text, label).encode("cp949")
    assert decode(body) == page(text, label)
    assert decode(page(text).encode("cp949"), label.upper()) == page(text)


SHORT = {
    "gbk": [
        "注册登录",
        "今天天气不错",
        "武汉长江大桥建成通车",
        "关于我们 联系方式",
        "北京市朝阳区",
        "苹果香蕉葡萄西瓜",
    ],
    "big5": ["臺灣鐵路時刻表", "今天天氣很好", "聯絡我們", "香港特別行政區"],
    "big5hkscs": ["我哋嘅網頁喺香港", "佢話唔係咁樣"],
    "euc-jp": ["日本語の文章です", "お問い合わせはこちら", "ニュース一覧", "会社概要"],
    "shift_jis": ["日本語の文章です", "お問い合わせはこちら", "ニュース一覧"],
    "cp949": ["한국어 문장입니다", "회사 소개", "안녕하세요 여러분"],
    "cp1250": ["Příliš žluťoučký kůň úpěl ďábelské ódy", "Zażółć gęślą jaźń"],
    "cp1251": ["Привет, мир", "Это проверка кодировки", "Москва"],
    "koi8-r": ["Привет, мир", "Это проверка кодировки"],
    "cp1252": ["L'été à la forêt", "Grüße aus München", "São Paulo é ótimo", "naïve café", "Ñandú años"],
    "cp1253": ["Καλημέρα κόσμε, αυτό είναι ένα κείμενο"],
    "cp1254": ["İstanbul'da güneşli bir gün, çok güzel"],
    "cp1255": ["שלום עולם זה טקסט בעברית"],
    "cp1256": ["مرحبا بالعالم هذا نص عربي"],
}


@pytest.mark.parametrize(("codec", "text"), [(codec, text) for codec, texts in SHORT.items() for text in texts])
def test_a_few_words_that_declare_nothing(codec: str, text: str) -> None:
    assert decode(text.encode(codec)) == text
    assert decode(page(text).encode(codec)) == page(text)


NAMES_OF_LATIN_2 = ("latin2", "l2", "iso8859-2", "iso_8859-2:1987", "csisolatin2")


@pytest.mark.parametrize(
    ("text", "codec", "label"),
    [
        # A clear reading outweighs the declaration.
        (TAIWAN, "big5", "gb2312"),
        (CHINESE, "gbk", "big5"),
        (CHINESE, "gbk", "windows-1251"),
        (CHINESE, "gbk", "euc-kr"),
        ("日本語の文章です。これは試験のための文です。", "euc-jp", "shift_jis"),
        ("中国", "utf-8", "gbk"),
        ("Это проверка кодировки", "utf-8", "windows-1251"),
        ("Это проверка кодировки", "cp1251", "utf-8"),
        # Unlikely text is read as declared.
        ("Это проверка кодировки", "windows-1251", "windows-1251"),
        ("卍巛彐", "gbk", "gbk"),
        ("ｱｲｳ", "shift_jis", "shift_jis"),
        ("ÄÖÜ", "iso-8859-2", "iso-8859-2"),
        # Labels that Python does not know, and characters that its own codec lacks.
        *(("Zażółć gęślą jaźń", "iso-8859-2", label) for label in NAMES_OF_LATIN_2),
        ("สวัสดีชาวโลก ภาษาไทย", "cp874", "windows-874"),
        ("สวัสดีชาวโลก ภาษาไทย", "cp874", "TIS-620"),
        ("日本語の文章です。これは試験のための文です。", "cp932", "Windows-31J"),
        ("①番乗り場", "euc-jis-2004", "euc-jp"),
        ("똠방각하 뷁", "euc-kr", "euc-kr"),
        ("①番乗り場", "iso2022-jp-2004", "iso-2022-jp"),
    ],
)
def test_a_declaration_in_the_header_or_in_the_page(text: str, codec: str, label: str) -> None:
    assert decode(page(text).encode(codec), label) == page(text)
    assert decode(page(text, label).encode(codec)) == page(text, label)


@pytest.mark.parametrize("label", ["utf-7", "unicode_escape", "zip", "rot13", "punycode", "idna", "nonsense", ""])
def test_what_is_no_charset_of_pages(label: str) -> None:
    assert codec_of(label) is None
    assert decode("é".encode(), label) == "é"


def test_a_few_wrong_bytes_do_not_change_the_charset() -> None:
    body = page(CHINESE * 20).encode() + b"\xff"
    assert decode(body, "utf-8").startswith(page(CHINESE * 20))


@pytest.mark.parametrize("body", [b"", b"\xff", bytes(range(128, 256)), b"\xef\xbb\xbf", b"\xff\xfe"])
def test_never_fails(body: bytes) -> None:
    assert isinstance(decode(body, "utf-8"), str)
    assert isinstance(decode(body), str)


def test_a_declared_utf16_that_is_none_is_not_believed() -> None:
    for text in (CHINESE, FRENCH, "Plain words."):
        assert decode(page(text).encode(), "utf-16") == page(text)


@pytest.mark.parametrize(
    ("text", "codec"),
    [(CHINESE, "gbk"), (TAIWAN, "big5"), (JAPANESE, "shift_jis"), (JAPANESE, "euc-jp"), (KOREAN, "cp949")],
)
@pytest.mark.parametrize("declared", [True, False])
def test_one_broken_character_does_not_change_the_charset(text: str, codec: str, declared: bool) -> None:
    half = f"<p>{text}</p>\n" * 4
    body = half.encode(codec) + b"\xa0 <br>" + half.encode(codec)
    found = decode(body, codec if declared else None)
    assert found.startswith(half) and found.endswith(half)


@pytest.mark.parametrize("stray", [b"\xa0", b"\x92", b"\xe9 "])
def test_a_stray_byte_in_a_page_of_few_other_letters(stray: bytes) -> None:
    assert decode(b"<p>\xe2\x80\x9cMind the step\xe2\x80\x9d</p>" + stray, "utf-8").startswith("<p>“Mind the step”</p>")
    assert decode(b"<p>Mind the step</p>" + stray, "utf-8") == "<p>Mind the step</p>" + stray.decode("cp1252")


@pytest.mark.parametrize("text", [POLISH, CZECH])
def test_what_windows_has_beyond_iso_8859(text: str) -> None:
    assert decode(page(text).encode("cp1250"), "iso-8859-2") == page(text)
    assert decode(page(text).encode("iso-8859-2") + b"\x84x\x94 \x96", "iso-8859-2") == page(text) + "„x” –"
    assert decode("Café à 5 €".encode("iso-8859-15") + b" \x96", "iso-8859-15") == "Café à 5 € –"


def test_a_countrys_sites_are_in_its_languages() -> None:
    dutch, portuguese = "geïnstalleerd".encode("cp1252"), "no ecrã".encode("cp1252")
    assert decode(dutch, url="https://example.nl./a") == "geïnstalleerd"
    assert decode(portuguese, url="https://www.example.PT:8080/") == "no ecrã"
    assert decode(portuguese, "windows-1250", "https://example.pt/") == "no ecră"


@pytest.mark.parametrize(
    "url", ["https://[::1]/", "https://127.0.0.1/", "https://example.cé/", "a.txt", "file:///a.nl", "https://a.xn--/"]
)
def test_addresses_without_a_country(url: str) -> None:
    assert decode("geïnstalleerd".encode("cp1252"), url=url) == decode("geïnstalleerd".encode("cp1252"))


@pytest.mark.parametrize("text", [CHINESE, ENGLISH, RUSSIAN, FRENCH])
def test_text_that_was_encoded_twice_is_decoded_twice(text: str) -> None:
    twice = page(text).encode().decode("latin-1").encode()
    assert decode(twice) == page(text)


def test_only_the_lines_that_were_encoded_twice_change() -> None:
    wrong = "<p>You don’t pay.</p>".encode().decode("cp1252")
    text = decode(f"{page(FRENCH)}\n{wrong}\n<p>« Âge », « À »</p>".encode())
    assert text == f"{page(FRENCH)}\n<p>You don’t pay.</p>\n<p>« Âge », « À »</p>"


@pytest.mark.parametrize("text", [TAIWAN, POLISH, CZECH, "SÃO PAULO – ÂNGELO", "5 × 3 = 15; Å – Ã…"])
def test_text_that_was_encoded_once_stays(text: str) -> None:
    assert decode(page(text).encode()) == page(text)
