"""What the comparison of Chinese sentences knows of the language: function words, synonyms, opposites, numbers."""

from __future__ import annotations

import re
from types import MappingProxyType

FUNCTION_WORDS = tuple(
    sorted(
        (
            "的 了 是 在 着 也 都 就 而 且 与 和 及 并 或 其 之 所 以 于 从 把 被 将 由 为 这 "
            "那 此 该 它 他 她 "
            "们 我 你 您 个 些 等 等等 很 更 最 还 又 再 却 则 即 因 若 但 虽 然 因为 所以 因此 由于 "
            "但是 然而 不过 "
            "虽然 尽管 而且 并且 以及 或者 还是 同时 此外 另外 其中 例如 比如 即使 如果 那么 于是 从而 进而 从此 "
            "后来 随后 然后 "
            "之后 之前 以后 以前 期间 时候 大约 大概 左右 大致 几乎 通常 一般 往往 经常 "
            "常常 主要 "
            "基本 其实 实际 确实 的确 已经 已 曾 曾经 正在 一直 仍 仍然 依然 还 只 仅 仅仅 只有 只是 甚至 尤其 "
            "特别 非常 十分 "
            "相当 比较 极其 总共 一共 分别 各 各自 每 某 有 可以 能够 应该 需要 吗 呢 吧 "
            "啊 呀 嘛 一个 一种 一些 "
            "一 这个 那个 这些 那些 这种 如此 根据 按照 依据 关于 对于 有关 来说 而言 方面 总之 综上 综上所述 文中 "
            "文章 段落 资料 "
            "网页 提到 指出 表示 认为 进行 加以 予以 予 以来 才 均 皆 亦 乃 之一 作为 当 当时 "
            "目前 现在 如今 "
            "最终 终于 首先 其次 最后 随着 通过 经过 以便 为了"
        ).split(),
        key=len,
        reverse=True,
    )
)
"""Longest first. Directions (之前, 之后) are compared apart."""

NEGATION = re.compile("不|没有|没|未|無|无|非|别|勿|并非|从未|绝非|毫无|尚未|拒绝|否认|缺乏|未能|无法")
NOT_NEGATION = re.compile(
    "不同|不仅|不断|不久|不过|不少|不得不|差不多|不但|不管|不如|不论|不止|不只|不列颠|不莱梅|不锈|不丹|不免|不禁"
    "|不约而同"
    "|无论|无数|无线|无疑|无锡|无产|无政府|无穷|无限|非常|除非|非洲|非法|非凡|并非不|未来|没收|沉没|淹没|出没|埋没"
    "|是否|能否|否则"
    "|别墅|区别|分别|级别|性别|特别|类别|个别|差别|识别|别人|别名|告别|辨别|鉴别|派别|国别|南非|北非|中非|西非|东非"
    "|是非|非得|非正式"
    "|非政府|非营利|非盈利|非裔|布宜诺斯艾利斯|莫不|无不|不等式|不变|不动产|不明|不良|不足|不满|不幸|不利|不安"
    "|不规则|不稳定|不平等"
)

_SYNONYMS = (
    "开始 起始 着手 展开|结束 终结 终止|位于 坐落于 坐落在 地处 处于|成为 变成 变为|使用 采用 利用 运用 应用"
    "|拥有 具有 具备"
    "|获得 取得 得到 赢得 荣获|建立 创建 创立 成立 设立 建成 创办|建造 修建 兴建 建设|发生 出现|包括 包含 涵盖 含有"
    "|因为 由于"
    "|许多 很多 众多 大量 诸多 多个|著名 知名 闻名 有名|重要 关键 重大|巨大 庞大|帮助 协助 援助"
    "|显示 表明 展示 展现 表现"
    "|导致 造成 引起 引发 致使|认为 相信 觉得|称为 叫做 被称作 称作 名为 叫作|发现 找到|减少 降低 下降 缩减"
    "|增加 增长 上升 提高 提升"
    "|提供 给予|要求 需要|允许 准许 容许|阻止 防止 避免|改变 变化 转变|参加 参与 加入|离开 离去|到达 抵达"
    "|去世 逝世 死亡 死去"
    "|出生 诞生|居住 住在|攻击 袭击 进攻|击败 打败 战胜|保护 维护|制造 生产 制作|研究 探究|学习 研习|讨论 探讨"
    "|领导 带领 率领"
    "|负责 主管|组成 构成 组建|分为 划分为 分成|增强 加强|减弱 削弱|全部 所有 全体 一切|部分 局部|地区 区域 地带"
    "|国家 国度"
    "|人们 民众|方法 方式 办法|原因 缘由|结果 后果|目标 目的|工作 任务|电影 影片|比赛 赛事 竞赛|球员 选手 队员"
    "|领先 领跑"
    "|丢 失 丢掉 失掉|排名 位列 名列|完成 实现|贡献 奉献|选入 入选|举行 举办|决定 决议|支持 赞成|反对 抗议|同意 赞同"
    "|拒绝 回绝"
    "|包围 围绕|存在 存有|相同 一样|不同 各异|迅速 快速 很快|缓慢 慢慢|主要 首要|最初 起初 最早|最后 最终 终于"
    "|目前 现在 如今 当前"
    "|以前 过去 从前 此前|之后 以后 随后 后来|大约 大概 约 近 将近|超过 多于 超出|不足 少于|仅 只 仅仅 只有"
    "|经常 时常 常常"
    "|通常 一般 往往|几乎 差不多|容易 轻易|困难 艰难|美丽 漂亮|古老 悠久|发布 发表 公布 宣布|出版 刊行"
    "|描述 描写 形容|解释 说明"
    "|证明 证实|计算 运算|连接 联结|传播 散布|收集 搜集|控制 掌控|管理 治理|影响 作用|形成 产生|移动 迁移|购买 买"
    "|出售 销售 卖"
)

OPPOSITES = (
    "增加 减少|增长 下降|增长 减少|上升 下降|提高 降低|上涨 下跌|升高 降低|扩大 缩小|增强 减弱|加强 削弱|之前 之后"
    "|以前 以后|前 后"
    "|开始 结束|最大 最小|最多 最少|最高 最低|最长 最短|最早 最晚|最好 最差|最强 最弱|第一 最后|首次 末次|大于 小于"
    "|高于 低于|多于 少于"
    "|早于 晚于|超过 不足|胜利 失败|赢 输|击败 败给|支持 反对|同意 拒绝|允许 禁止|接受 拒绝|成功 失败|进口 出口"
    "|买 卖|东 西|南 北"
    "|左 右|上游 下游|内部 外部|国内 国外|公共 私人|公立 私立|男 女|父 母|儿子 女儿|丈夫 妻子|新 旧|快 慢|强 弱"
    "|冷 热|优点 缺点"
    "|有利 不利|正 负|积极 消极|合法 非法|直接 间接|出生 去世|生 死|创造 毁灭|建立 废除|进攻 防守|包括 排除|先 后"
    "|高 低|长 短|富 穷"
    "|主要 次要|多数 少数|全部 部分|加速 减速|拓宽 收窄|打开 关闭|加入 退出|到达 离开|古代 现代|白天 夜晚|容易 困难"
)

COMMON = frozenset(
    (
        "举行 举办 创造 属于 来自 作为 担任 负责 经历 接受 提出 发展 发表 继续 保持 控制 影响 支持 反对 允许 禁止 "
        "决定 选择 "
        "希望 试图 努力 支付 购买 出售 增加 减少 提高 降低 改变 改善 移动 到达 离开 返回 进入 加入 参加 领导 带领 "
        "管理 统治 "
        "保护 攻击 破坏 毁坏 制造 生产 设计 发明 研究 学习 教授 讨论 解释 描述 证明 显示 代表 象征 反映 表达 说明 "
        "强调 忽视 "
        "允许 要求 请求 命令 阻止 帮助 合作 竞争 比较 区分 分割 结合 连接 组成 构成 形成 产生 引起 解决 处理 完成 "
        "实现 达到 "
        "超过 不足 等于 相当 类似 不同 相同 独特 特殊 普通 常见 稀有 简单 复杂 困难 容易 快速 缓慢 巨大 微小 强大 "
        "弱小 古老 现代 "
        "新的 旧的 早期 晚期 初期 后期 最近 近来 将来 未来 过去 现代 当代 全部 部分 整个 完整 大部分 多数 少数 各种 "
        "各类 不少 "
        "若干 一系列 直接 间接 迅速 逐渐 突然 立即 立刻 马上 永远 暂时 完全 彻底 广泛 普遍 明显 显著 严重 轻微 充分 "
        "成功 失败 "
        "有效 优秀 良好 糟糕 正确 错误 真实 虚假 知道 了解 明白 理解 看到 听到 感到 感受 记得 忘记 喜欢 讨厌 害怕 "
        "生活 居住 存在 "
        "消失 出生 死亡 成长 变化 运动 停止 打开 关闭 放置 拿走 给出 收到 寻找 失去 赢得 输掉 击败 战胜 打败 建设 "
        "修建 开发 扩大 "
        "缩小 延长 缩短 提供 供应 满足 符合 依靠 依赖 取决 围绕 涉及 关系 联系 称呼 命名 视为 当作 看作 看成 归类 "
        "列为 排在 位居 "
        "处在 座落 设有 设于 立于 建于 始于 源于 起源 源自 出自 得名 闻名 知名 占据 占 拥 有着 存有 富有 没有 缺少 "
        "造成 导致 促使 "
        "促进 推动 推进 鼓励 激励 吸引 展示 展现 呈现 揭示 透露 公布 宣布 发布 报道 记录 记载 写道 撰写 编写 创作 "
        "出版 发行 "
        "推出 引入 引进 采纳 采取 实施 执行 实行 开展 从事 致力 专注 集中 分散 分布 遍布 覆盖 包围 环绕 流经 流入 "
        "流向 通往 通向 "
        "率领 指挥 掌管 主持 任命 选举 当选 入选 被选 评为 授予 颁发 获颁 失掉 丢掉 遗失 仅有 唯有 约有 共有 合计 "
        "总计 大多 大都 "
        "重大 庞大 宏大 广阔 狭窄 人物 人士 人们 民众 群众 事情 事件 事物 东西 物品 地方 场所 地点 区域 地带 时期 "
        "时代 阶段 年代 "
        "原因 缘故 理由 结果 后果 目的 目标 方法 方式 手段 途径 过程 步骤 部门 机构 单位 成员 角色 作用 功能 特点 "
        "特征 性质 类型 种类 "
        "优势 劣势 问题 情况 状态 条件 程度 水平 数量 数目 规模 范围 内容 形式 部份 份额 比例 起到 起着 发挥 用于 "
        "用来 借助 凭借 "
        "遭到 遭受 受到 承受 忍受 面临 面对 应对 倾向 趋于 旨在 意味 意在 打算 计划 准备 试着 尝试"
    ).split()
) | frozenset(word for row in _SYNONYMS.split("|") for word in row.split())
"""Words that a rewording exchanges for others: an exchange among rarer words changes what is said."""

FOREIGN = frozenset(
    ""
    ""
    "斯尔克特德拉里罗尼亚维伊奥巴伯布卡达丹迪杜恩法菲弗福盖戈格古哈赫亨霍贾杰凯坎康柯科莱兰劳勒雷利林卢鲁伦洛玛马迈曼梅蒙米莫姆穆纳内诺欧帕佩皮普"
    ""
    ""
    "奇乔切萨桑塞沙舍史塔泰汤图托瓦威韦沃希锡夏谢休叙雅扬耶英尤约赞泽扎詹朱兹祖肯翰逊顿森娜莉琳珍莎黛露丽丝茜妮芬娅艾埃爱阿安"
)
"""Signs that foreign names are mostly written with."""
PLACE_ENDINGS = frozenset("国省市县州区镇村岛山河江湖海洋港桥队党军院校局部司社寺教族王朝帝语洲城堡军节奖法会学团")
_DIGITS = MappingProxyType(dict(zip("〇零一二三四五六七八九两", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2), strict=True)))
_TENS = MappingProxyType({"十": 10, "百": 100, "千": 1000})
_MYRIADS = MappingProxyType({"万": 10**4, "亿": 10**8})
NUMERAL = re.compile("[〇零一二三四五六七八九十百千万亿两]+")
NO_NUMERAL = re.compile(
    "十分|万一|一定|一般|一些|一直|一起|统一|唯一|一样|一切|一旦|一致|一方面|一系列|三明治|四川|四周|四处|三峡"
    "|五角大楼|千克|千米|千瓦"
    "|百姓|百科|万维|七喜|之一|一部分|一边|一面|一度|进一步|万能|亿万|百分|星期[一二三四五六]"
    "|周[一二三四五六](?=[^年])|一带|单一|同一"
)
UNITS = MappingProxyType(
    {
        "％": "%", "%": "%", "年": "year", "月": "month", "日": "day", "天": "day", "号": "day", "小时": "hour",
        "分钟": "minute", "秒": "second", "公里": "km", "千米": "km", "厘米": "cm", "毫米": "mm", "米": "m",
        "英里": "mile", "英尺": "foot", "英寸": "inch", "公斤": "kg", "千克": "kg", "克": "g", "吨": "tonne",
        "磅": "pound", "美元": "dollar", "欧元": "euro", "元": "yuan", "日元": "yen", "公顷": "hectare",
        "世纪": "century", "度": "degree", "升": "l", "周": "week", "个月": "month",
    }
)  # fmt: skip


def numeral(text: str) -> float | None:
    """The value of a run of Chinese numerals: 三百零五, 一九三二, 两万; None for what is no number."""
    if all(sign in _DIGITS for sign in text):
        return float("".join(str(_DIGITS[sign]) for sign in text))
    total, part, digit = 0, 0, 0
    for sign in text:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in _TENS:
            part, digit = part + (digit or 1) * _TENS[sign], 0
        elif not total and not part and not digit:
            return None  # 万 and 亿 alone scale a number in digits before them
        else:
            total, part, digit = (total + part + digit) * _MYRIADS[sign], 0, 0
    return float(total + part + digit)


def _groups() -> dict[str, frozenset[str]]:
    groups: dict[str, set[str]] = {}
    for place, row in enumerate(_SYNONYMS.split("|")):
        for word in row.split():
            groups.setdefault(word, set()).add(f"={place}")
    return {word: frozenset(marks) for word, marks in groups.items()}


SYNONYM_GROUPS = MappingProxyType(_groups())
_SYNONYM_WORD = re.compile("|".join(sorted(map(re.escape, SYNONYM_GROUPS), key=len, reverse=True)))


def synonym_words(text: str) -> list[tuple[int, int, str]]:
    """Where words of a synonym group stand in `text`, the longest first at each place."""
    return [(match.start(), match.end(), match.group()) for match in _SYNONYM_WORD.finditer(text)]


def opposites() -> list[tuple[str, str]]:
    return [(a, b) for a, b in (row.split() for row in OPPOSITES.split("|"))]
