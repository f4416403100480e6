"""Units of measure and currencies in English and Chinese, and when two amounts are one."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from types import MappingProxyType
from typing import Final

# sign, English, Chinese, factor
_PREFIXES = (
    ("k", "kilo", "千", 1e3), ("M", "mega", "兆", 1e6), ("G", "giga", "吉", 1e9), ("T", "tera", "太", 1e12),
    ("P", "peta", "拍", 1e15), ("m", "milli", "毫", 1e-3), ("c", "centi", "厘", 1e-2), ("d", "deci", "分", 1e-1),
    ("h", "hecto", "百", 1e2), ("μ", "micro", "微", 1e-6), ("n", "nano", "纳", 1e-9), ("p", "pico", "皮", 1e-12),
)  # fmt: skip
# dimension, sign, factor, English words, Chinese words, prefixes; a sign in brackets never stands alone
_BASES = (
    ("mass", "g", 1, "gram gramme", "克", "kmμnpd"),
    ("length", "m", 1, "meter metre", "米", "kcmdμn"),
    ("time", "second", 1, "second sec", "秒", ""),
    ("time", "s", 1, "second", "秒", "mμnp"),
    ("volume", "l", 1, "liter litre", "升 公升", "mcdhkμ"),
    ("power", "W", 1, "watt", "瓦 瓦特", "kMGTmμn"),
    ("voltage", "V", 1, "volt", "伏 伏特", "kmμM"),
    ("current", "(A)", 1, "ampere amp", "(安) 安培", "mkμn"),
    ("frequency", "Hz", 1, "hertz", "赫兹 赫", "kMGTm"),
    ("bytes", "(B)", 8, "byte", "字节", "kMGTP"),
    ("bytes", "(bit)", 1, "bit", "比特", "kMGT"),
    ("bytes", "(b)", 1, "", "", "kMGT"),
    ("bitrate", "bps", 1, "", "", "kMGT"),
    ("energy", "J", 1, "joule", "焦耳 焦", "kMGm"),
    ("energy", "Wh", 3600, "watt-hour", "瓦时", "kMGT"),
    ("heat", "cal", 1, "calorie", "卡路里 (卡)", "k"),
    ("pressure", "Pa", 1, "pascal", "帕 帕斯卡", "kMGh"),
    ("force", "(N)", 1, "newton", "牛顿 (牛)", "kM"),
    ("particle", "eV", 1, "electronvolt", "电子伏 电子伏特", "kMGT"),
    ("capacitance", "(F)", 1, "farad", "法拉", "μnp"),
    ("resistance", "Ω", 1, "ohm", "欧姆", "mkM"),
    ("dose", "Sv", 1, "sievert", "西弗 希沃特", "mμn"),
    ("activity", "Bq", 1, "becquerel", "贝可 贝克勒尔", "kMGT"),
    ("substance", "mol", 1, "mole", "摩尔", "mμn"),
    ("signal", "兆", 1e6, "", "兆", ""),
    ("signal", "千兆", 1e9, "", "千兆", ""),
    ("signal", "百兆", 1e8, "", "百兆", ""),
)
# unit, dimension, factor, forms; a dimension of its own where nothing else measures the same
_OTHERS = """
%            - 1       percent percentage pct
百分点       - 1
‰            - 1       permille
minute       time 60      min 分钟
hour         time 3600    hr h 小时 钟头
day          time 86400   日 天 号 d
week         time 604800  wk 周 星期 礼拜
month        months 1     mo 月 个月
quarter      months 3     季度
year         months 12    yr 年 周年
decade       - 1       十年间
年代         - 1
century      - 1       世纪
millennium   - 1       millennia 千年
mile         feet 5280    mi 英里 哩
foot         feet 1       ft feet 英尺 呎
yard         feet 3       yd 码
inch         feet 0.0833333333333333 inches 英寸 吋
海里         - 1
光年         - 1       light-year
里           - 1
丈           - 1
尺           - 1
寸           - 1
kg           mass 1000    kilo kilogramme 公斤
mg           mass 0.001   毫克
μg           mass 0.000001 mcg ug
tonne        mass 1000000 ton t 吨 公吨
斤           mass 500
carat        - 1       ct 克拉
km           length 1000  公里
lb           ounces 16    lbs 磅
ounce        ounces 1     oz 盎司
pound        - 1       pounds
gallon       - 1       gal 加仑
pint         - 1       品脱
quart        - 1       夸脱
barrel       - 1       bbl 桶
cup          - 1       杯
tablespoon   - 1       tbsp 汤匙
teaspoon     - 1       tsp 茶匙
l            volume 1     L ltr
ml           volume 0.001 mL cc
acre         - 1       英亩
ha           area 10000   hectare 公顷
亩           - 1
km^2         area 1000000 km2 sqkm 平方公里 平方千米
m^2          area 1       m2 sqm 平方米 平米
cm^2         area 0.0001  cm2 平方厘米
mile^2       - 1       sqmi 平方英里
foot^2       - 1       sqft 平方英尺
m^3          volume 1000  m3 立方米
cm^3         volume 0.001 cm3 立方厘米
km^3         volume 1000000000000 km3 立方千米 立方公里
km/h         speed 1      kmh kph 公里/小时 千米/小时 公里每小时
m/s          speed 3.6    米/秒 米每秒
mile/h       - 1       mph 英里/小时
knot         - 1       kn kt kts
rpm          - 1       转
dB           - 1       decibel 分贝
hp           - 1       horsepower 马力
degree       - 1       ° 度
celsius      - 1       °C ℃ 摄氏度
fahrenheit   - 1       °F 华氏度
kelvin       - 1       开尔文
pixel        - 1       px 像素
倍           - 1
times        - 1       次
岁           - 1       周岁
件           - 1
dollar       - 1       usd 美元 美金
euro         - 1       eur 欧元
gbp          - 1       英镑 sterling
yuan         - 1       rmb cny renminbi 元 人民币 块 块钱
yen          - 1       jpy 日元 日圆
won          - 1       krw 韩元
rupee        - 1       inr 卢比
rouble       - 1       ruble rub 卢布
franc        - 1       chf 法郎 瑞士法郎
peso         - 1       mxn 比索
krone        - 1       kroner krona kronor sek nok dkk 克朗 瑞典克朗 挪威克朗 丹麦克朗
baht         - 1       thb 泰铢
dong         - 1       vnd 越南盾
rupiah       - 1       idr 印尼盾
lira         - 1       里拉
brl          - 1       reais 雷亚尔
rand         - 1       zar 兰特
shekel       - 1       ils 谢克尔
ringgit      - 1       myr 林吉特
dirham       - 1       aed 迪拉姆
riyal        - 1       sar 里亚尔
dinar        - 1       第纳尔
zloty        - 1       pln 兹罗提
cent         - 1       美分
penny        - 1       pence 便士
bitcoin      - 1       btc 比特币
hkd          - 1       港元 港币
twd          - 1       新台币 台币
cad          - 1       加元 加币
aud          - 1       澳元 澳币 澳大利亚元
nzd          - 1       新西兰元 纽元
sgd          - 1       新元 新加坡元 新币
"""
SIGNS = MappingProxyType(
    {
        "US$": "dollar", "HK$": "hkd", "NT$": "twd", "CA$": "cad", "C$": "cad", "AU$": "aud", "A$": "aud",
        "NZ$": "nzd", "S$": "sgd", "R$": "brl", "$": "dollar", "€": "euro", "£": "gbp", "¥": "¥", "₽": "rouble",
        "₹": "rupee", "₩": "won", "₺": "lira", "₪": "shekel", "฿": "baht", "₫": "dong",
    }
)  # fmt: skip
"""Signs of money that stand before a number, longer ones first."""
_DOLLARS = (
    "us american u.s. united-states dollar|canadian cad|australian aud|hong-kong hkd|singapore sgd|new-zealand nzd"
    "|taiwan twd"
)
_NATIONS = MappingProxyType({n: row.split()[-1] for row in _DOLLARS.split("|") for n in row.split()[:-1]})
_NATION = re.compile(
    r"(?:\s*|-)(US|U\.S\.|American|United States|Canadian|Australian|Hong Kong|Singapore|New Zealand|Taiwan)"
    r" dollars?\b", re.IGNORECASE,
)  # fmt: skip
# Units that a looser word may stand for: ¥ is two currencies, a pound is money or a weight.
_ALIKE: Final = frozenset(
    map(frozenset, (("¥", "yuan"), ("¥", "yen"), ("pound", "gbp"), ("pound", "lb"), ("degree", "celsius"),
                    ("degree", "fahrenheit")))
)  # fmt: skip
_SPACED = r"(?:[ \u00a0\u202f]?|-)"
_WORD = re.compile(
    _SPACED
    + r"(?:(?P<square>square|sq\.?|cubic)\s+)?(?P<unit>per cent\b|percentage points?\b|[%‰]|°\s?[CF]?(?![A-Za-z])"
    r"|[A-Za-zμΩ]+(?:[23](?![\w.]))?)(?P<per>\s*/\s*[A-Za-z]+[23]?(?!\w)|\s+per\s+[a-z]+)?"
)


def _rows() -> Iterator[tuple[str, str, float, list[str]]]:
    """Each unit with what it measures, how many of its base it is, and its forms; the first to take a form keeps it."""
    for line in filter(None, _OTHERS.splitlines()):
        unit, dimension, factor, *forms = line.split()
        yield unit, unit if dimension == "-" else dimension, float(factor), [unit, *forms]
    for kind, sign, base, words, han, prefixes in _BASES:
        alone = sign.strip("()")
        unit = {"s": "second", "b": "bit"}.get(alone, alone)
        yield unit, kind, base, [form for form in (sign, *words.split(), *han.split()) if not form.startswith("(")]
        for short, long, chinese, times in _PREFIXES:
            if short in prefixes:
                forms = [short + alone, *(long + word for word in words.split()), *_prefixed(chinese, han)]
                yield short + unit, kind, base * times, forms


def _prefixed(chinese: str, words: str) -> list[str]:
    """分 and 百 are prefixes of few units, and signs of their own before others."""
    return [chinese + word.strip("()") for word in words.split() if chinese not in "分百" or word in "米帕"]


_LATIN: dict[str, str] = {}
_LOWER: dict[str, str] = {}
_HAN: dict[str, str] = {}
_MEASURED: dict[str, tuple[str, float]] = {}
for _unit, _dimension, _factor, _written in _rows():
    _MEASURED.setdefault(_unit, (_dimension, _factor))
    for _form in _written:
        if "\u4e00" <= _form[-1] <= "\u9fff":
            _HAN.setdefault(_form, _unit)
        else:
            _LATIN.setdefault(_form, _unit)
            _LOWER.setdefault(_form.lower(), _unit)
_CHINESE = re.compile(rf"\s?个?({'|'.join(sorted(map(re.escape, _HAN), key=len, reverse=True))})")
_DIVIDES = frozenset("h s second minute hour kg l dl dL ml m^3 ha km^2".split())
# What follows a unit's sign where it belongs to another word.
_OTHER_WORD = re.compile(
    "里程|里面|里边|天气|天下|天空|周围|周边|周末|日本|日报|月球|月亮|年轻|元旦|元素|元首|元帅|度过|块状|克服|克隆"
    "|磅礴|桶装"
)


def latin_unit(text: str, at: int) -> tuple[str, int]:
    """The unit in Latin letters or signs that begins at `at`, a space or a hyphen left out, and its end."""
    if nation := _NATION.match(text, at):
        return _NATIONS[nation[1].lower().replace(" ", "-")], nation.end()
    match = _WORD.match(text, at)
    unit = _looked_up(match["unit"]) if match else ""
    if match is None or not unit:
        return "", at
    end = match.end("unit")
    if match["square"]:
        unit += "^3" if match["square"] == "cubic" else "^2"
    over = _looked_up(re.sub(r"[\s/]|per\b", "", match["per"])) if match["per"] else ""
    if over in _DIVIDES and _MEASURED.get(unit, ("",))[0] in ("length", "feet", "mass", "bytes", "volume", "substance"):
        short = {"hour": "h", "second": "s", "minute": "min"}.get(over, over)
        return f"{unit}/{short}", match.end()
    return unit, end


def _looked_up(word: str) -> str:
    word = re.sub(r"\s", "", word) if word.startswith("°") else word
    fixed = {"per cent": "%", "percentage point": "百分点", "percentage points": "百分点", "°": "degree"}
    if found := fixed.get(word.lower()) or _LATIN.get(word):
        return found
    if len(word) == 1:
        return ""  # a single letter is a unit as it is written only
    lower = word.lower()
    return _LOWER.get(lower) or (_LOWER.get(lower[:-1], "") if lower.endswith("s") and len(lower) > 3 else "")


def chinese_unit(text: str, at: int) -> tuple[str, int]:
    """The unit in Chinese that begins at `at`, and its end."""
    if (match := _CHINESE.match(text, at)) and not _OTHER_WORD.match(text, match.start(1)):
        return _HAN[match[1]], match.end()
    return "", at


def same_amount(value: float, unit: str, other: float, other_unit: str) -> bool:
    """Whether two amounts are one; a missing unit agrees with any but percent."""
    if {unit, other_unit} == {"", "%"}:
        return False
    if not unit or not other_unit or unit == other_unit or frozenset((unit, other_unit)) in _ALIKE:
        return math.isclose(value, other, rel_tol=1e-12)
    (dimension, factor), (theirs, their_factor) = measured(unit), measured(other_unit)
    return dimension == theirs and math.isclose(value * factor, other * their_factor, rel_tol=1e-9)


def measured(unit: str) -> tuple[str, float]:
    """What a unit measures, and how many of its dimension's base it is."""
    return _MEASURED.get(unit, (unit, 1.0))
