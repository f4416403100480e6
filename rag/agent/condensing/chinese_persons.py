"""Who is named by a Chinese answer."""

from __future__ import annotations

import re
from typing import Final

from rag.agent.condensing.chinese_words import HAPPENS

_SURNAMES: Final = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦尤许何吕施张孔曹严华金魏陶姜戚谢邹喻柏窦章苏潘葛范彭郎鲁韦马苗凤方俞任袁柳史唐费廉岑薛雷贺倪汤罗毕郝邬安常乐于傅"
    "齐康伍余元顾孟黄穆萧尹姚邵汪毛狄米贝戴宋庞熊纪舒屈项祝董梁杜阮蓝闵季贾江童颜郭梅林钟徐邱骆高夏蔡田樊胡凌霍虞万柯卢莫房丁邓包左石崔吉龚程邢裴陆翁"
    "荀甄曲段侯宁仇甘厉戎祖武刘景詹龙叶司黎薄白蒲卓屠池乔胥苍闻党翟谭贡劳姬申扈冉郦雍桑桂牛寿通边燕冀尚温庄晏柴瞿阎慕连习艾容向古易慎戈廖庾终暨居衡步耿满匡"
    "文寇广禄东欧殳沃利蔚越夔隆师巩聂晁勾敖融冷辛阚那简饶空曾毋沙养鞠须丰巢关蒯相查荆红游竺权盖益桓公袁沈"
)
_FOREIGN: Final = r"[\u4e00-\u9fff]{1,7}(?:[·•・‧][\u4e00-\u9fffA-Z.]{1,8})+"
_LATIN: Final = r"[A-Z][a-z]+(?: (?:de |von |van )?[A-Z][\w.'-]*)+"
_TITLED: Final = r"[\u4e00-\u9fff]{1,4}(?:先生|女士|博士|教授|夫人|兄弟|姐妹)"
_NATIVE: Final = rf"[{_SURNAMES}][\u4e00-\u9fff]{{1,2}}"
_NAME: Final = re.compile(rf"{_FOREIGN}|{_LATIN}")
_PLAIN: Final = re.compile(rf"(?:{_FOREIGN}|{_LATIN}|[\u4e00-\u9fff]{{2,8}}|[A-Z][a-z]+)")
_BY: Final = re.compile(
    rf"(?:由|被)(?P<who>{_FOREIGN}|{_LATIN}|[\u4e00-\u9fff]{{2,6}}?)(?:等人?)?(?:在|于|所|共同|联合|{HAPPENS}|设计|写"
    rf"|画|主持)"
)
_NOBODY: Final = re.compile(r"页面|没有|未|不|无法|什么|谁|的|此|该|这|那|它|他|她|其")
_DATED: Final = re.compile(
    r"(?<=[^\d一二三四五六七八九十])[于在]?(?:公元前?)?[\d一二三四五六七八九十〇]+ ?(?:年代?"
    r"|世纪)(?:\d+ ?[月日])*[初中末底]?$"
)
_BEFORE: Final = re.compile(r"^.*(?:[，,：:]|\d ?年|[年月日]|由|被|是|为)")


def person_in(answer: str, frame: str) -> str:
    """The person whom the answer names; `frame` is the question that asked who, empty if none did."""
    text = re.sub(r"\[\d+\]|[*_`]", "", answer).strip()
    sentence = re.split(r"[。！？!?\n；;]", text)[0].strip()
    if not frame:
        return _unmistakable(text)
    return (
        _doer(sentence, frame)
        or _subject(sentence)
        or _who_is(sentence, frame)
        or _unmistakable(text)
        or _alone(sentence)
    )


def _unmistakable(text: str) -> str:
    """A foreign name with its point, or who something was done by."""
    by = _BY.search(text)
    if by and not _NOBODY.search(by["who"]):
        return by["who"]
    if named := re.search(_FOREIGN, text):
        return re.sub(r"^(?:.*?[由是被为])(?=..)", "", _without_verb(named[0]))
    return ""


def _without_verb(name: str) -> str:
    """`亚历山大·贝尔发明` without what its bearer did."""
    return re.split(rf"{HAPPENS}|(?<=..)(?:首先|最早|最先|率先|第一|于|在|是|因|曾|成为|凭|和|与|的)", name)[0] or name


def _doer(sentence: str, frame: str) -> str:
    """Who stands before the verb that the question asked with: `谁发明了…`, `贝尔发明了…`."""
    asked = re.search(
        rf"谁(?:最早|最先|首先|第一个)?(?P<verb>{HAPPENS}|设计|主持|领导|翻译|执导|[\u4e00-\u9fff](?=[了过《“])"
        rf"|[\u4e00-\u9fff]{{2}})",
        frame,
    )
    if not asked or asked["verb"] not in sentence:
        return ""
    before = _DATED.sub("", sentence[: sentence.index(asked["verb"])].strip())
    before = _BEFORE.sub("", before).strip()
    before = re.sub(r"(?:最早|首先|于|在|所|等人|共同|首次|第一个|正式|成功)+$", "", before).strip()
    return _name_of(before)


def _subject(sentence: str) -> str:
    """Who did something, whatever it was: `蔡伦改进了造纸术`."""
    match = re.match(rf"(?P<name>{_NATIVE})(?=[\u4e00-\u9fff]{{2}}了)", sentence)
    return match["name"] if match else ""


def _who_is(sentence: str, frame: str) -> str:
    """`创始人是王传福`, or `王传福是比亚迪的创始人`."""
    before, is_, after = sentence.rpartition("是") if "是" in sentence else sentence.rpartition("为")
    if not is_:
        return ""
    told = (_name_of(re.split(r"[，,（(、]", after)[0].strip()), _name_of(re.split(r"[，,（(]", before)[0].strip()))
    return next((name for name in told if name and name not in frame), "")


def _alone(sentence: str) -> str:
    """The answer itself, where it is hardly more than a name."""
    told = re.split(r"[，,（(]", sentence)[0].strip()
    short = len(told) <= 4 or _NAME.fullmatch(told)
    native = re.match(rf"{_NATIVE}(?=$|[，,（(、])", sentence)
    return native[0] if native else (_name_of(told) if short else _described(told))


def _name_of(text: str) -> str:
    """The name that the text is, or ends with after who that is."""
    if not text or _NOBODY.search(text) or len(text) > 24:
        return ""
    text = re.sub(r"等(?:人|.位)?$", "", text)
    plain = _PLAIN.fullmatch(text) and not re.search(HAPPENS, text)
    return _described(text) or (text if plain else "")


def _described(text: str) -> str:
    """The name at the end of `清代作家曹雪芹`."""
    match = re.search(rf"(?:家|人|者|师|员|长|商|帝|学者)(?P<name>{_FOREIGN}|{_LATIN}|{_NATIVE})$", text)
    return match["name"] if match else ""
