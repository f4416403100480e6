from __future__ import annotations

import pytest

from rag.reasoning.questions import (
    MAX_CHARACTERS,
    MAX_QUESTIONS,
    has_subject,
    is_about_conversation,
    is_greeting,
    is_third_language,
    question_problem,
    split_questions,
)

ABOUT_THE_CONVERSATION = """
What did I ask at the beginning?
Remind me what we were talking about
Which questions have I asked so far?
Could you please sum up our chat?
What was your previous reply?
Please repeat your last answer
Do you remember what I told you earlier?
Translate your answer into Chinese
What was the first question?
How many questions did I ask?
Why did you say that?
Thanks. And what did we discuss before that?
我一开始问的是什么？
咱们刚刚聊到哪儿了
你上一次是怎么回答的
请概括一下这次对话
我总共问了多少个问题
把你刚才的回答再说一遍
你还记得我说过什么吗
上一个问题是什么来着
"""
NEEDS_A_PAGE = """
How can I use the swimming pool?
How can I use a monad transformer?
What can I do against bed bugs?
How can I ask for sick leave?
What can we ask of the landlord?
Can you help me choose a saddle?
How can you help a stranded whale?
What can you do in Lisbon on a rainy day?
How do you work with timezones in SQL?
How do you use chopsticks?
Who are your suppliers?
What are your delivery areas?
What are you required to wear in the lab?
Are you open at Easter?
Do you ship to Norway?
Who do you work with?
What services do you offer?
How does the chat widget load?
When was the first chat room opened?
Is this conversation recorded by law?
How do I delete a conversation in the app?
What was the first message in a bottle?
What was the last question of the exam about?
Where is the previous version of the manual?
Did we agree on a budget?
Have you said anything about parking fees?
What did I say about the invoice?
What did you say the crater is called?
I asked for a receipt, when does it arrive?
What did the minister say in her first answer?
Your reply about the ferry: is there one at night?
What does "nice to meet you" mean?
thank you card sizes
good night sleep duration
hello world in Rust
Yes album list
all day breakfast
Sorry board game rules
Can you tell me what it is?
Do you know how to do it?
Can you do it?
Tell me more
And?
Why?
Is it?
What is a robot?
Are there real dragons?
你会帮我退税吗
你能推荐一家面馆吗？
你们几点下班？
你们提供哪些培训
您的套餐包含什么
怎么使用公交卡
我能做些什么来省电？
我可以问医生哪些问题
谁开发了这个软件
机器人怎么充电
这个对话框是什么意思
聊天记录保存多久
我们的会议室怎么预订
我们之前买的保险还有效吗
我刚才的订单号是多少
刚才那场雨下了多少毫米
老板之前说过加班费怎么算
牛顿说过什么名言
上一条新闻讲了什么
上一个版本改了哪些地方
第一个问世的手机是什么
他们都聊了什么
总结一下第三章
请问早餐几点开始
好的茶叶怎么挑
谢谢用日语怎么说
再见的英文是什么
感谢信怎么写
可以带狗吗
不是会员能买吗
太阳有多大
你知道为什么吗
为什么
然后呢
Are you sure?
Can you?
Tomorrow?
testing
Which one do you like?
What do you use?
有用吗？
有帮助吗
新年
你用什么
"""

THIRD_LANGUAGES = """
Quelle est la hauteur de la tour ?
Wie hoch ist der Turm und wer hat ihn gebaut?
¿Cuál es la altura de la torre?
東京タワーの高さは？
도쿄 타워의 높이는?
Какова высота башни?
Ελληνικά ερώτηση;
Combien coûte le billet ?
Wo ist der Bahnhof?
Où se trouve le musée ?
Quando è stato costruito il ponte?
Le chat est-il noir ?
Comment fonctionne le moteur ?
Der Turm ist hoch
Warum ist der Himmel blau?
Wo liegt das Museum der Stadt?
Los perros son animales
Qual é a altura da torre?
Dove si trova la torre di Pisa?
ＱＵＥＬＬＥ ＥＳＴ ＬＡ ＨＡＵＴＥＵＲ
"""
ENGLISH_OR_CHINESE = """
How high is the tower?
Tower height
Who wrote Les Misérables and Notre-Dame de Paris?
What is the Der Spiegel affair?
塔有多高？
BGE-M3 的维度是多少
42
Los Angeles vs El Paso
los angeles vs el paso
las vegas vs los angeles
Come as you are lyrics
Compare Las Vegas as Los Angeles
Explain Des Moines as a place
Le Mans 24h winners
Del Mar to Los Gatos by train
La Paz del Sur hotel
EST time in El Paso
MIT vs UND
MIT license vs BSD
comment on El Paso
Como hotels near Lake Como
Ｐｒｏ　ｐｌａｎ price
ＴＥＡＭ　ｐｌａｎ cost?
Ｄｏｃｋｅｒ 怎么安装？
Kubernetes Ingress Controller 多少钱
"""


@pytest.mark.parametrize("question", ["", " ", "？", "...", "\u200b"])
def test_a_question_without_a_word_is_empty(question: str) -> None:
    problem = question_problem(question)
    assert problem and problem.code == "question_empty"


def test_the_limit_is_exact() -> None:
    assert question_problem("茶" * MAX_CHARACTERS) is None
    problem = question_problem("茶" * (MAX_CHARACTERS + 1))
    assert problem and problem.params == {"characters": MAX_CHARACTERS + 1, "limit": MAX_CHARACTERS}


def lines(table: str) -> list[str]:
    return table.strip().splitlines()


@pytest.mark.parametrize(
    ("text", "is_third"),
    [*((text, True) for text in lines(THIRD_LANGUAGES)), *((text, False) for text in lines(ENGLISH_OR_CHINESE))],
)
def test_script_and_function_words_tell_another_language(text: str, is_third: bool) -> None:
    assert is_third_language(text) is is_third


@pytest.mark.parametrize(
    ("text", "is_about_it"),
    [*((text, True) for text in lines(ABOUT_THE_CONVERSATION)), *((text, False) for text in lines(NEEDS_A_PAGE))],
)
def test_one_word_more_than_what_was_said_is_a_subject(text: str, is_about_it: bool) -> None:
    assert is_about_conversation(text) is is_about_it


def test_long_questions_are_read_whole() -> None:
    assert not is_about_conversation("did you ask what I said " * 150 + "about fees")
    assert not is_about_conversation("我们刚才你说了" * 500 + "退款")


@pytest.mark.parametrize(
    ("subject", "texts"),
    [
        (False, ["give me more", "Where does this come from?", "你确定吗？", "继续"]),
        (True, ["And in 2020?", "and in kg?", "what is it used for?", "那北京呢？", "他是谁？"]),
    ],
)
def test_a_message_of_small_words_alone_has_no_subject(subject: bool, texts: list[str]) -> None:
    assert [has_subject(text) for text in texts] == [subject] * len(texts)


@pytest.mark.parametrize(
    ("message", "questions"),
    [
        ("How wide is it, and who built it?", ["How wide is it", "who built it?"]),
        ("When is it open? And how much is a ticket?", ["When is it open?", "And how much is a ticket?"]),
        ("几点开门，门票多少钱？", ["几点开门", "门票多少钱？"]),
        ("工资打不打折？什么时候发，怎么发？", ["工资打不打折？", "什么时候发", "什么时候发，怎么发？"]),
        ("哪个摊位卖豆皮，多少钱？", ["哪个摊位卖豆皮", "哪个摊位卖豆皮，多少钱？"]),
        (
            "I leave on Monday. How much cash do I need, and do people tip?",
            ["I leave on Monday. How much cash do I need", "do people tip?"],
        ),
    ],
)
def test_questions_of_one_message_are_separated(message: str, questions: list[str]) -> None:
    assert split_questions(message) == questions


@pytest.mark.parametrize(
    "message",
    [
        "How wide is the bridge?",
        "When and where was the bridge built?",
        "What changed and why?",
        "What is the difference between tea and coffee?",
        "Who wrote it and had a drummer?",
        "Is it cheap or is it expensive?",
        "如果下雨，活动会取消吗？",
        "在哪个世纪，传教士建立了学校？",
        "Why? And how?",
        "How? " * (MAX_QUESTIONS + 1),
        "bridge, width",
        "",
    ],
)
def test_one_question_stays_whole(message: str) -> None:
    assert split_questions(message) == [message]


@pytest.mark.parametrize(
    ("text", "greets"),
    [
        ("Hello!", True),
        ("good evening", True),
        ("早上好", True),
        ("hi, what can you do?", False),
        ("help", False),
        ("撤销", False),
    ],
)
def test_a_greeting_asks_nothing(text: str, greets: bool) -> None:
    assert is_greeting(text) is greets
