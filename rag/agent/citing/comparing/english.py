"""What the comparison of English sentences knows of the language: forms of words, synonyms, opposites, numbers."""

from __future__ import annotations

import re
from functools import lru_cache
from types import MappingProxyType

FUNCTION_WORDS = frozenset(
    "a an the and or but nor so yet if then than that this these those there here it its itself he him his she her "
    "hers they them their theirs we us our you your i me my who whom whose which what when where while why how as at "
    "by for from in into of off on onto out over to up upon with within about after against along amid among around "
    "before behind below beneath beside besides between beyond during except inside near since through throughout "
    "toward towards under until via per be am is are was were been being have has had having do does did doing done "
    "will would shall should can could may might must also too very just only even still already again ever quite "
    "rather really simply both either each every all any some such same other another own more most less least much "
    "many few several one ones else yes however therefore thus hence moreover furthermore additionally meanwhile "
    "although though because whereas whether like according according's accordingly indeed instead overall finally "
    "lastly firstly secondly namely approximately roughly nearly almost about around circa actually currently "
    "generally usually often typically mainly mostly largely especially particularly specifically respectively "
    "previously recently originally initially eventually subsequently later earlier now today then once always "
    "sometimes frequently commonly widely highly passage passages page pages text article source sources states "
    "state's mentions says said summary short brief addition fact result example part well s t re ve ll d m".split()
)
"""Words that alone state nothing. Directions (`before`, `after`, `more`, `less`) are compared apart."""

NEGATORS = frozenset(
    "not no never none nobody nothing nowhere neither nor without cannot cant wont dont doesnt didnt isnt arent wasnt "
    "werent hasnt havent hadnt wouldnt couldnt shouldnt mustnt hardly scarcely barely unable failed fails lack lacked "
    "lacks lacking refused denied unless except excepting excluding prohibit prohibits prohibited prohibiting "
    "prohibition forbid forbids forbidden forbade forbidding ban bans banned banning barred disallow disallows "
    "disallowed".split()
)
FORBIDS = frozenset(
    "prohibit prohibits prohibited prohibiting prohibition forbid forbids forbidden forbade forbidding ban bans banned "
    "banning barred disallow disallows disallowed".split()
)
"""Negators that may stand behind what they deny: smoking is prohibited."""
DENIES = re.compile(r"(?:rather than|instead of|as opposed to|other than|apart from)\b", re.IGNORECASE)
NO_DENIAL = re.compile(
    r"(?:not|[a-z]+n't)\s+(?:only|just|merely|simply|solely)\b|no (?:doubt"
    r"|matter)\b",
    re.IGNORECASE,
)
"""Where a negator denies nothing: not only this but also that."""

_IRREGULAR = (
    "begin began begun|become became|bring brought|build built|buy bought|catch caught|choose chose chosen|come came"
    "|cost costs|cut cuts|deal dealt|draw drew drawn|drink drank drunk|drive drove driven|eat ate eaten"
    "|fall fell fallen"
    "|feel felt|fight fought|find found|fly flew flown|forbid forbade forbidden|get got gotten|give gave given"
    "|go went gone|grow grew grown|hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|lead led"
    "|leave left|lend lent|lie lay lain|lose lost|make made|mean meant|meet met|pay paid|rise rose risen|run ran"
    "|see saw seen|seek sought|sell sold|send sent|shake shook shaken|shoot shot|show shown showed|sing sang sung"
    "|sink sank sunk|sit sat|sleep slept|speak spoke spoken|spend spent|stand stood|steal stole stolen|strike struck"
    "|swim swam swum|take took taken|teach taught|tell told|think thought|throw threw thrown|understand understood"
    "|wear wore worn|win won|write wrote written|child children|man men|woman women|foot feet|tooth teeth|mouse mice"
    "|person people|life lives|bind bound|break broke broken|spread spreads|bear bore born borne|wind wound"
    "|france french|spain spanish|england english|britain british|germany german|china chinese|japan japanese"
    "|poland polish|greece greek|denmark danish|netherlands dutch|sweden swedish|turkey turkish|wales welsh"
    "|ireland irish|italy italian|sicily sicilian|scotland scottish|europe european"
)
_SYNONYMS = (
    "start begin commence|end finish conclude cease|big large huge great|small little tiny|buy purchase acquire"
    "|show demonstrate display exhibit reveal|help assist aid|use utilize utilise employ|get obtain receive gain"
    "|give provide supply offer grant|make create produce generate|build construct erect|include contain comprise"
    "|need require|say state mention report note|think believe consider|call name term dub|become turn"
    "|keep retain maintain|happen occur|important significant major key crucial vital|famous renowned notable"
    "|many numerous|fast quick rapid swift|locate situate|near close|allow permit enable let|stop halt|choose select"
    "|try attempt|change alter modify|find discover locate|lead head|kill slay|found establish|dwell live reside"
    "|around approximately|main primary principal chief|mostly mainly|also additionally|goal aim purpose objective"
    "|fight battle|child kid|job work|area region zone|town city|country nation|film movie|people person individual"
    "|law legislation|teach instruct|own possess|win triumph|attack assault|defeat beat|earn gain|award give"
    "|join link connect|result outcome|cause trigger produce|form shape|reduce decrease lower diminish"
    "|increase raise grow rise|answer reply respond|ask request|move shift|pick select|hard difficult|easy simple"
    "|whole entire complete total|part portion section|kind type sort|way method manner|leave depart|die perish"
    "|buildup accumulation|wide broad|ancient old|yearly annual annually|assign allocate|arrive reach|close shut"
    "|carry transport|carryover transfer|speak talk|describe depict|explain clarify|amount quantity|let allow"
    "|propose suggest|design plan|serve function|perform conduct|play perform|release publish issue|rank place"
    "|feature include|boast have|surrender yield|compile amass accumulate|register record|operate run|remain stay"
    "|consist comprise|compulsory mandatory obligatory|house accommodate|usually generally|percent percentage"
    "|km kilometre kilometer"
    "|centre center|colour color|metre meter"
)

OPPOSITES = (
    "increase decrease|rise fall|raise lower|raise reduce|increase reduce|grow shrink|grow decline|increase decline"
    "|gain lose|win lose|victory defeat|before after|begin end|start stop|open close|above below|over under|more less"
    "|more fewer|most least|many few|high low|higher lower|highest lowest|large small|larger smaller|largest smallest"
    "|big small|bigger smaller|biggest smallest|long short|longer shorter|longest shortest|old new|older younger"
    "|oldest youngest|oldest newest|old young|early late|earlier later|earliest latest|first last|north south"
    "|east west"
    "|northern southern|eastern western|northeast southwest|northwest southeast|left right|hot cold|warm cool"
    "|fast slow|faster slower|strong weak|stronger weaker|rich poor|true false"
    "|include exclude|accept reject|support oppose|agree disagree|import export|enter leave|buy sell"
    "|import export|maximum minimum|majority minority|male female|men women|man woman|father mother|son daughter"
    "|husband wife|brother sister|king queen|day night|internal external|inside outside|public private"
    "|positive negative"
    "|advantage disadvantage|success failure|succeed fail|expand contract|love hate|birth death|born die|arrive depart"
    "|always never|best worst|better worse|easy difficult|easy hard|cheap expensive|deep shallow|thick thin"
    "|wide narrow"
    "|heavy light|upper lower|front back|top bottom|up down|input output|major minor|legal illegal|active passive"
    "|improve worsen|strengthen weaken|create destroy|build destroy|attack defend|offense defense|offensive defensive"
    "|enable disable|possible impossible|able unable|likely unlikely|common rare|popular unpopular|known unknown"
    "|regular irregular|direct indirect|formal informal|complete incomplete|dependent independent|with without"
    "|appoint resign|appoint dismiss|add drop|add remove|join quit|marry divorce|launch discontinue|establish abolish"
    "|establish dissolve|install uninstall|insert delete|enact repeal|approve reject|approve veto|adult child"
    "|parent child|teacher student|teacher pupil"
    "|employer employee"
    "|buyer seller|landlord tenant|lender borrower|creditor debtor|plaintiff defendant|host guest|uncle nephew"
    "|aunt niece"
    "|uncle aunt|nephew niece|resident visitor|winner loser|attacker defender|predator prey|summer winter"
    "|spring autumn"
    "|morning evening|credit debit|asset liability|surplus deficit|profit loss|income expense|hire dismiss|lend borrow"
    "|float sink|freeze melt|heat cool|push pull|load unload|encourage discourage|confirm deny|admit deny"
    "|acquit convict"
    "|voluntary compulsory|optional mandatory|optional compulsory|optional obligatory|temporary permanent"
    "|maximal minimal"
    "|clockwise anticlockwise|clockwise counterclockwise|prewar postwar|free charged|ascend descend|forward backward"
    "|past future|rural urban|odd even|liquid solid|domestic foreign"
)

_CONTRARY = frozenset("un in im il ir dis non anti counter mis a de".split())
_NO_CONTRARY = frozenset(
    "discover display discuss dispos diseas discount discharg dispatch inform incom intend intent insid input invest "
    "inhabit insur import improv impress impact inland install intern under unles until mistak counterpart amount "
    "along across around account aris await aros ahead aboard abroad about above alike asleep apart award afford avoid "
    "attend decor define degre depart describ design desert demand depend".split()
)
"""Words that only look like the contrary of their ends. All are stems."""

_COMMON = (
    "achieve act add admit affect agree announce appear apply appoint argue arrange associate assume attract avoid "
    "base become belong break capture carry cause celebrate change claim combine come command compare compete complete "
    "compose concern conduct confirm connect consider consist contain continue contribute control convert cover create "
    "cross decide declare define deliver demand depend derive describe design destroy determine develop direct "
    "discover discuss divide draw drop earn emerge employ enact encourage enter establish estimate exceed exist expect "
    "experience explain express extend face fail favour feature find finish flow follow force form found generate give "
    "go govern grow handle happen hold house identify improve indicate influence inform inspire intend introduce "
    "invent invite involve issue join judge keep know lack last launch lead learn leave link list live locate look "
    "maintain make mark mean measure meet mention move name note observe obtain occupy occur offer open operate oppose "
    "organise organize originate own participate pass perform permit place plan play point possess prefer prepare "
    "present preserve prevent produce promote propose protect prove provide publish put raise range reach receive "
    "recognise recognize recommend record refer reflect regard reject relate release rely remain remember remove "
    "replace report represent require resemble reside respond restrict result return reveal rise rule run say see seek "
    "seem send separate serve set settle share show signify situate spread stand start state stay stop store stress "
    "study succeed suffer suggest supply support surround survive take talk teach tell term think touch train transfer "
    "transform translate travel treat turn understand undergo use utilise utilize vary view visit vote want watch work "
    "write yield begin end help need try call able bad basic big broad central certain clear close common complete "
    "complex considerable current different difficult direct early easy effective entire essential exact extensive "
    "extra extreme famous final full further general good great hard high huge important initial key large late "
    "leading little local long low main major minor modern natural new next noted notable numerous old original "
    "overall particular popular possible powerful present previous primary prominent proper quick rapid rare real "
    "recent renowned serious short significant similar simple single slight small special specific standard strong "
    "substantial sufficient sure total traditional true typical unique usual various vast vital well-known whole wide "
    "additional chief crucial due tiny total thing way area region amount number part kind type form group process "
    "method manner purpose reason role aim total majority variety series set individual person people place aspect "
    "factor feature component element portion section piece bit lot result effect outcome consequence cause origin "
    "source period time era duration moment beginning end start comprise encompass incorporate constitute boast amass "
    "accumulate compile gather collect surrender concede allow let enable commence conclude cease terminate purchase "
    "acquire construct erect demonstrate exhibit display permanent temporary immediate subsequent prior former latter "
    "rough approximate near nearly formerly formally officially primarily principally chiefly predominantly merely "
    "solely exclusively entirely completely fully totally partly partially considerably significantly substantially "
    "greatly strongly heavily rapidly quickly slowly gradually suddenly immediately directly closely clearly easily "
    "successfully effectively likewise similarly consequently nevertheless nonetheless altogether together apart away "
    "back forward regarding concerning despite beside alongside amongst amidst whilst unlike until till onto "
    "underneath beyond opposite"
)


def _forms(table: str) -> dict[str, str]:
    return {form: row.split()[0] for row in table.split("|") for form in row.split()}


_LEMMAS = _forms(_IRREGULAR)
_ENDINGS = (
    ("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("zes", "z"),
    ("ied", "y"), ("ying", "y"), ("ing", ""), ("ed", ""), ("es", "e"), ("s", ""), ("ly", ""),
)  # fmt: skip


_NO_ADVERBS = frozenset(
    "family supply reply apply rely ally rally assembly anomaly monopoly july multiply imply comply daily early".split()
)
_GIVEN = frozenset(
    "william edward john robert richard peter phillip philip steven stephen adam daniel jacob andrew matthew hugh "
    "roger owen evan david henry simon samuel abraham isaac walter watt gibb jenkin hopkin rod brook collin dougla "
    "franci ros roberto charl nichol reynold arnold michael martin georg joe jame rich perkin parson myer sander "
    "ander".split()
)
"""Given names that a surname is made of: Williams is another name than William."""


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    """A form that a word shares with its inflections; not always a word itself."""
    if word in _LEMMAS:
        return _LEMMAS[word]
    if word.endswith("s") and word[:-1] in _GIVEN:
        return word
    for ending, put in _ENDINGS:
        if ending == "ly" and word in _NO_ADVERBS:
            break
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(("ss", "us", "is")):
            base = word[: -len(ending)] + put
            base = _LEMMAS.get(base, _LEMMAS.get(base + "e", base))
            return _without_double(base)
    return _without_double(word)


def _without_double(word: str) -> str:
    """Drop a final e and one of two final consonants: `stopped`, `stop`; `uses`, `using`, `use`."""
    word = word[:-1] if len(word) > 3 and word.endswith("e") else word
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou" else word


def _groups() -> dict[str, frozenset[str]]:
    """For each stem the marks of the synonym groups that it is in."""
    groups: dict[str, set[str]] = {}
    for place, row in enumerate(_SYNONYMS.split("|")):
        for word in row.split():
            groups.setdefault(stem(word), set()).add(f"={place}")
    return {word: frozenset(marks) for word, marks in groups.items()}


SYNONYM_GROUPS = MappingProxyType(_groups())
COMMON = frozenset(stem(word) for word in f"{_COMMON} {_SYNONYMS.replace('|', ' ')}".split())
"""Stems that a rewording exchanges for others: an exchange among rarer words changes what is said."""


def are_contrary(one: str, other: str) -> bool:
    """Whether one stem is the other with a sign of the contrary: safe and unsafe, harmful and harmless."""
    short, long = sorted((one, other), key=len)
    if long in _NO_CONTRARY:
        return False
    if len(short) > 3 and long.endswith(short) and long.removesuffix(short) in _CONTRARY:
        return True
    return short.endswith(("ful", "les")) and long[:-3] == short[:-3] and long[-3:] != short[-3:] and len(short) > 6


def opposites() -> list[tuple[str, str]]:
    pairs = [row.split() for row in OPPOSITES.split("|")]
    return [(stem(a), stem(b)) for a, b in pairs]
