"""English and Chinese patterns of interstitials: JavaScript, consent, login, bot check, missing page, moved page.

An interstitial is recognised by the share of its typical sentences, never by a single phrase: pages about cookies,
logins and captchas use the same words, among many others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from rag.text import lazy_regex


@dataclass(frozen=True, slots=True)
class Interstitial:
    """A kind of interstitial. `strong` matches phrases that only this kind has, `weak` other typical ones.

    A text of up to `max_length` (see `rag.text.weigh`) matches if it has a strong phrase and matching sentences make up
    `share` of it, or half of that if the page has the `signal`.
    """

    code: str
    strong: re.Pattern[str]
    weak: re.Pattern[str]
    max_length: float
    share: float
    signal: str


def _compile_any(*patterns: str) -> re.Pattern[str]:
    """Combine patterns for lower-case texts: with IGNORECASE, the engine tries every branch at every position."""
    return lazy_regex("|".join(f"(?:{pattern})" for pattern in patterns))


_SCRIPTS = Interstitial(
    "gate_scripts",
    _compile_any(
        r"(?:enabl\w{1,3}|requires?|activat\w{1,3}|turn(?:ed)? on|without|support|allow|needs?)\b.{0,60}\bjava ?script",
        r"turn(?:ing)? java ?script on|java ?script\b.{0,60}\b(?:disabled|required|enabled?|turned off"
        r"|not (?:available|supported)|to (?:run|view|use))",
        r"(?:启用|开启|打开|禁用|关闭|支持|允许|需要|啟用|開啟|停用).{0,12}java ?script",
        r"java ?script.{0,16}(?:启用|开启|打开|禁用|关闭|不支持|才能|啟用|開啟|停用)",
        r"(?:modern|supported|compatible|up-to-date|newer|different) (?:web )?browser|\bscripts? (?:is "
        r"|are )?(?:enabled|disabled|blocked)",
        r"(?:enabl\w{1,3}|allow\w{0,3}|turn on) (?:client-side )?scripts?\b|(?:浏览器|瀏覽器).{0,6}(?:版本过低|不支持"
        r"|不兼容|升级|過舊)",
        r"^(?:loading|please wait|initiali[sz]ing|preparing|starting)\b[\w ]{0,30}(?:\.{2,}|…|\s*$)",
        r"^(?:页面)?(?:正在)?(?:加载|载入|載入|加載)中?(?:[，,]?请稍[候后等])?[\s.…。]*$",
    ),
    _compile_any(
        r"\b(?:browser|reload|refresh|supported|no ?script|extensions?|loading)\b",
        "浏览器|刷新|重新加载|加载|请稍候|瀏覽器|重新整理",
    ),
    700,
    0.6,
    "app_root",
)

_CONSENT = Interstitial(
    "gate_consent",
    _compile_any(
        r"(?:accept|allow|agree to|reject|decline|refuse)(?: (?:all|and continue|optional|additional"
        r"|non-essential))+",
        r"(?:accept|reject|decline|manage|customi[sz]e|consent to|use of|uses?|set|need(?:ed)?"
        r"|about) (?:\w+ ){0,3}cookies",
        r"(?:manage|cookie|privacy|consent) (?:options|preferences|settings|choices|purposes)",
        r"we (?:and our|use) .{0,60}(?:partners|cookies)|(?:we|your|us) (?:value|care about"
        r"|respect) (?:your )?privacy",
        r"before you continue",
        r"(?:optional|essential|necessary|analytics|third[- ]party|marketing|tracking|functional"
        r"|performance) cookies",
        r"(?:only|just) (?:the )?(?:essential|necessary|required)|(?:withdraw|give|change|ask for"
        r"|need) your consent|without (?:ads and )?tracking|you (?:agree|consent) to (?:the|our) (?:use|storing)",
        r"(?:agree|consent)(?:ing)? to (?:our|the|their|these)(?: use)?|(?:全部|一键)(?:接受|拒绝|同意)|(?:仅"
        r"|只)(?:接受|保留)?必要",
        r"cookie.{0,16}(?:同意|接受|必要)|(?:同意|接受|允许|使用|必要的?|分析类?) ?cookie",
        r"(?:接受|同意|拒绝|允许|拒絕|允許)(?:所有|全部|并继续|並繼續|非必要)",
        r"(?:管理|设置|設定|自定义).{0,6}(?:cookie|偏好|隐私|隱私)|(?:我们|本网站|本站|我們"
        r"|本網站).{0,12}(?:使用|利用).{0,6}cookie",
        r"(?:重视|尊重|重視).{0,6}(?:您|你)的?(?:个人)?(?:隐私|隱私)|(?:阅读并|已阅读).{0,6}同意",
    ),
    _compile_any(
        r"\b(?:cookies?|consent|privacy|partners|vendors|personal data|legitimate interests?|advertising"
        r"|personali[sz]ed"
        r"|tracking|store (?:and/or )?access|your choices|withdraw|i agree|precise geolocation|measurement|opt[ -]out"
        r"|accept|reject|necessary|essential|permission|analytics|ads)\b",
        "cookie|隐私|隱私|同意|个性化|個人化|合作伙伴|合作夥伴|广告|廣告|追踪|分析|撤回|个人信息|偏好|必要",
    ),
    3500,
    0.6,
    "consent",
)

_LOGIN = Interstitial(
    "gate_login",
    _compile_any(
        r"(?:sign|log)(?:ging|ning)?[ -]?in (?:to|with|or|required|using|below|first|and)\b",
        r"(?:please|must|need to|required to|have to) (?:be )?(?:(?:sign|log|logged|signed)[ -]?in"
        r"|register(?:ed)?|create an account|identify yourself)\b",
        r"^(?:member |user |account |customer )?(?:sign|log)[ -]?in\b.{0,25}$",
        r"forg[eo]t(?:ten)? (?:your |my )?(?:password|username)|(?:don['’]t|do not) have an account"
        r"|already (?:have an account|a member)",
        r"(?:create|open) (?:an?|your) (?:free )?account (?:to|or)|(?:join|register|sign up"
        r"|subscribe)\b.{0,30}\bto (?:see|view|read|continue)",
        r"log in to (?:see|view|read|continue|your)|(?:enter|use|type) (?:in )?your (?:\w+ ){0,3}(?:user ?name"
        r"|user id|password|passcode|credentials)",
        r"(?:请|請)(?:先|您先|在)?(?:登录|登入|登陆|登錄)|(?:登录|登入|登陆|登錄)(?:后|後|即可|才能|才可|以"
        r"|账号|账户|您的|帳號|查看|注册)",
        r"authentication (?:is )?required|(?:limit|number) of free (?:articles|views|pages)|(?:subscribe"
        r"|register|sign up|join)(?: now)? (?:to (?:continue|keep|read|view|see|access|unlock)|for free)",
        r"^.{0,12}(?:登录|登入|登錄|登陆).{0,8}$|扫一扫|扫描二维码|(?:未|没有|尚未|還沒)(?:登录|登入|登陆)"
        r"|身份认证|會員專屬|仅(?:限|对)会员",
        r"忘记密码|忘記密碼|没有(?:账号|帐号|账户)|还没有账号|扫码登录|(?:短信|验证码|密码|微信"
        r"|手机号?)登[录陆]|立即(?:登录|注册)|(?:登录|註冊|注册)[/／|](?:登录|注册|登入)",
        r"^(?:用户|会员|账号|帐号)?(?:登录|登入|登錄)\s*$",
    ),
    _compile_any(
        r"\b(?:password|username|user name|e-?mail(?: address)?|remember me|sign up|sign in|log ?in|register|account"
        r"|keep me|single sign-on|sso|continue with|members? only|facebook|google|apple|authenticate|one-time code"
        r"|credentials|stay signed in|subscribers?)\b",
        "密码|密碼|用户名|用戶名|手机号|验证码|注册|註冊|登录|登入|登錄|账号|帳號|记住我|记住密码|微信|扫码"
        "|会员|qq|微博",
    ),
    1600,
    0.55,
    "password",
)

_CAPTCHA = Interstitial(
    "gate_captcha",
    _compile_any(
        r"^just a moment\b|^attention required|^robot check|^access (?:to this page has been )?denied"
        r"|^security check",
        r"(?:request|browser|connection|you|identity|visit|access|session) (?:is"
        r"|are) (?:currently )?being (?:verified|checked|reviewed|validated)",
        r"verifying (?:your|the|that|you)\b|^one moment,? please|security checkpoint|permission to access"
        r"|too many requests|^requests? blocked",
        r"(?:you(?:['’]ve| have)|access|requests?|ip(?: address)?|connection)(?: has| have| is"
        r"| was)?(?: been)? (?:temporarily |automatically )?(?:blocked|banned|denied|restricted|limited|flagged)",
        r"(?:slide|drag|swipe|check|tick|click|select)\b.{0,40}(?:puzzle|verify|the box|checkbox|slider"
        r"|not a robot)|blocked by (?:network |our )?security",
        r"(?:confirm|ensure|make sure|sure) (?:that )?you(?: are|['’]re)(?: not)? (?:a |an )?(?:ro)?(?:bot"
        r"|human|person|real|automated)|(?:might be|think you (?:were|are)) a (?:ro)?bot",
        r"check(?:ing)? (?:if the site connection is secure|your browser)|verify(?:ing)? (?:that )?you(?: are"
        r"|['’]re)? "
        r"(?:a |not a )?(?:human|robot|real)|(?:are you|you are|you['’]re|i['’]m|is) (?:not )?a (?:ro)?bot\b",
        r"(?:complete|pass|solve) (?:the|this|a) (?:security|captcha|challenge|following|action|puzzle)"
        r"|(?:enter|type) the characters",
        r"enable javascript and cookies to continue|needs to review the security of your connection",
        r"(?:unusual|suspicious|automated|abnormal) (?:traffic|activity|requests|access|behaviou?r)",
        r"pardon our interruption|press (?:&|and) hold|prove (?:that )?you(?: are|['’]re) (?:a )?human"
        r"|human verification",
        r"ddos protection by|(?:cloudflare )?ray id|you have been blocked|performance (?:&"
        r"|and) security by cloudflare",
        r"^(?:captcha|recaptcha|hcaptcha|bot verification|please verify)\b|request unsuccessful\. incapsula",
        r"人机(?:验证|校验|识别)|(?:安全|真人|人機|身份)验证|安全(?:驗證|检查|检测)|(?:拖动|滑动|拖動"
        r"|按住).{0,6}(?:滑块|滑塊|滑动|完成)|点击.{0,8}(?:完成|进行)验证",
        r"(?:验证|確認|确认|驗證).{0,10}(?:您|你)?.{0,4}(?:是否?是?|为|為)真人|(?:不是|非)(?:机器人|機器人)"
        r"|(?:请|請)?输入(?:图中|图片中?的?|下图)?.{0,4}验证码",
        r"(?:协助|智能|开始|点击|图形|拼图|行为|滑块|点选|完成.{0,8})验证|正常用户行为|(?:证明|确认"
        r"|確認).{0,10}(?:机器人|真人|人类|本人)|依次点击|机器人(?:验证|检测|识别)|勾选.{0,8}(?:复选框|方框)"
        r"|爬虫",
        r"(?:请求|访问|ip).{0,8}被?.{0,3}(?:拦截|封禁|限制|阻止|拒绝)|(?:網路|系統|系统).{0,8}(?:異常|检测到|偵測到)",
        r"(?:访问|请求|操作)(?:过于|太过?)频繁|(?:异常|可疑|異常)(?:访问|流量|请求|行为|操作)|(?:访问|网络"
        r"|环境|行为).{0,6}(?:异常|存在风险)|访问被(?:拒绝|阻断|拦截|限制)",
    ),
    _compile_any(
        r"\b(?:captcha|robots?|bots?|human|javascript|cookies|browser|cloudflare|security|verif\w+|challenge"
        r"|blocked|proceed"
        r"|continue|redirect\w*|ip(?: address)?|seconds|wait|reference id|network|site owner|support|automated"
        r"|moment)\b",
        "验证|驗證|机器人|真人|浏览器|瀏覽器|安全|滑块|刷新|稍后|稍候|网络|ip|频繁|解封|继续访问|客服|反馈|cookie",
    ),
    1800,
    0.5,
    "captcha",
)

_MISSING = Interstitial(
    "gate_not_found",
    _compile_any(
        r"\b(?:page|content|article|file|url|document|product|item|listing|post|site|link|resource|video|job"
        r"|ad|advert|address|entry"
        r"|account|profile|user|topic|thread|event|offer|recipe|story|project|repository)\b.{0,45}\b"
        r"(?:(?:was|were|is|are|be|has|could|can|may|might|does|did)\b.{0,12}(?:not|n['’]t|no longer|been"
        r"|have)\b.{0,20}"
        r"(?:found|exist|available|located|removed|deleted|moved|expired|online|active|match|valid|here"
        r"|withdrawn)|not found"
        r"|(?:doesn|isn|wasn|couldn)['’]t (?:exist|available|match|found|be found|here)|unavailable"
        r"|gone missing|(?:has|have) expired|is broken)",
        r"not the (?:web ?)?page you|(?:seem|appear) to be lost|(?:removed|deleted) by (?:the|its) (?:uploader"
        r"|owner|author|user|poster|person|seller)|\b(?:page|post|article|listing) is gone",
        r"(?:doesn['’]t|does not) match anything|no longer (?:exists?|available|active|here|accepting|sold"
        r"|for sale|offered|in stock)|nothing (?:to see )?here\W*$|dead link",
        r"(?:can(?:no|['’])t|could(?: not|n['’]t)|unable to) (?:seem to )?(?:find|locate) (?:the |that |this "
        r"|your |what )?"
        r"(?:\w+ ){0,2}(?:page|content|article|file|url|you|product|looking)",
        r"^(?:oops|whoops|uh[- ]oh|sorry|hmm)\b.{0,60}(?:404|page|nothing|lost|wrong|missing)|^\W*(?:error\W*)?404\b",
        r"^(?:page |file |document |product |article )?not found\W*$|^nothing (?:was )?found|\berror 404"
        r"|404 (?:error|not found|page)",
        r"(?:页面?|网页|頁面|網頁|内容|文章|商品|宝贝|帖子|主题|条目|链接|連結|文件|视频|資料|用户|职位|信息"
        r"|活动|店铺|房源|词条|文档|网址|问题|回答).{0,16}"
        r"(?=[不未找没可已或被失过暂无走飞消])(?:不存在|未找到|找不到|没有找到|(?:可能|已经?|或者?|被){1,3}.{0,6}(?:删除|下架|移除|刪除|更名|转移"
        r"|移走|隐藏)|失效|过期|被屏蔽|不收录"
        r"|(?:暂时)?不可用|无法(?:访问|查看|找到|显示|打开)|走丢|飞走|不见了|消失)",
        r"(?:找不到|未找到|没有找到|无法找到|無法找到).{0,12}(?:页|网页|内容|頁|網頁|文章|商品|资源|服务器)"
        r"|404\s*(?:错误|错誤|页面|錯誤)",
        r"已被(?:发布者|作者|楼主|卖家|管理员).{0,3}删除|此内容.{0,8}无法查看|(?:已|被)(?:下架|删除)(?:或者?"
        r"|，|。|$)",
    ),
    _compile_any(
        r"\b(?:404|home ?page|go (?:back|home)|back to|return to|search|try|url|address|broken|mistyped|moved"
        r"|removed|error"
        r"|sorry|oops|looking for|exist|check|contact us|links? below|navigat\w+|outdated|spelling|browse|report)\b",
        "404|首页|首頁|返回|回到|检查|网址|網址|输入|抱歉|很抱歉|链接|删除|搜索|刷新|联系|错误|秒后|跳转|存在|失效",
    ),
    2200,
    0.5,
    "",
)

_MOVED = Interstitial(
    "gate_moved",
    _compile_any(
        r"\b(?:page|(?:web ?)?site|content|document|article|blog|resource|url|object|wiki|documentation|docs|forum"
        r"|domain|address|journal|repository)\b.{0,30}\b(?:has|have|was|were|is)(?: (?:been|now|recently|permanently"
        r"|temporarily))* (?:moved|relocated|migrated|transferred|redirected)\b",
        r"^(?:\d{3}\W{0,3})?(?:(?:object|page|document) )?moved(?: (?:permanently|temporarily|here))?\W*$",
        r"\b(?:you|browser) (?:(?:are|will|should|now|be|being|shortly|automatically) ){1,4}"
        r"(?:redirected|forwarded|sent|taken)\b|\byou['’](?:re|ll) (?:(?:be|being|now) )*(?:redirected|forwarded)\b",
        r"^(?:please wait\W{1,3})?redirect(?:ing|ion)?(?: you| to\b.{0,120})?\W*$",
        r"(?:not|n['’]t|without)(?: being| get)?(?: automatically)? (?:redirect\w*|forward\w*)"
        r"|\b(?:update|change) your (?:bookmarks?|links?)\b",
        r"\b(?:page|site|blog|documents?|content)\b.{0,20}\bnow (?:(?:be )?(?:located|found|lives) )?(?:at|here)\b"
        r"|\bmoved to (?:a new (?:address|location|url|domain|site)|https?:|here\b)",
        r"(?:页面?|网页|网站|本站|頁面|網頁|網站|域名|网址|地址|文档|博客|论坛|專案|文章).{0,10}(?:已|现|現|永久|正在)"
        r".{0,6}(?:迁移|搬迁|转移|移至|移到|搬到|搬家|更换|变更|迁往|迁至|遷移|搬遷|移動|移动|轉移)",
        r"(?:正在|即将|即將|自动|自動|将会?|將會?).{0,8}(?:跳转|转向|转到|重定向|跳轉|轉向|重新導向)"
        r"|(?:跳转|跳轉)(?:中|到|至)|(?:没有|未能?|不能|无法|沒有|無法).{0,6}(?:跳转|转向|跳轉|轉向)",
    ),
    _compile_any(
        r"\b(?:click|here|go on|continue|proceed|follow (?:this|the)|new (?:address|location|site|home|url|page)|moved"
        r"|seconds?|bookmarks?|redirect\w*|refresh|wait|browser|link)\b|https?:",
        "点击|點擊|这里|這裡|此处|此處|新网址|新地址|新域名|新站|秒|稍候|书签|收藏|浏览器|瀏覽器|链接|連結|手动|https?:",
    ),
    700,
    0.7,
    "refresh",
)

INTERSTITIALS = (_CAPTCHA, _MISSING, _CONSENT, _LOGIN, _MOVED, _SCRIPTS)
"""In matching order: a bot check may ask for JavaScript, a login for cookies."""

# A separator and the site's name may follow the title of an interstitial.
_SITE = r"(?:\W.{0,40})?"


def _compile_title(*patterns: str) -> re.Pattern[str]:
    return lazy_regex(f"\\A(?:{'|'.join(patterns)}){_SITE}", re.IGNORECASE)


TITLES = {
    "gate_captcha": _compile_title(
        "just a moment|attention required|robot check|access denied|access to this page has been denied",
        "security (?:check|verification)|captcha|human verification|are you (?:a )?(?:human|robot)",
        "verify(?:ing)? you are human|ddos-guard|pardon our interruption|one moment,? please|client challenge"
        "|(?:vercel )?security checkpoint",
        "bot (?:detection|verification)|challenge validation|too many requests|blocked",
        "请?稍候|人机验证|人機驗證|安全验证|访问验证|身份验证|验证码|百度安全验证|滑动验证(?:页面)?|知乎安全中心",
    ),
    "gate_not_found": _compile_title(
        r"(?:error\W{0,3})?404(?:\W*(?:error|not found|page|页面|错误|頁面|錯誤|找不到.{0,8}))?",
        r"(?:.{0,25}\W)?(?:page|file|content|article|product) "
        r"(?:not found|unavailable|does not exist|could not be found|missing|(?:can['’]t|cannot) be found)",
        "not found|oops",
        ".{0,6}(?:页面|网页|頁面|網頁|内容|文章|帖子|商品)(?:不存在|未找到|找不到|没有找到|已删除|已下架"
        "|出错了?|走丢了)",
        "(?:未找到|找不到)(?:页面|頁面)|出错了",
    ),
    "gate_moved": _compile_title(
        r"(?:30[12378]\W{0,3})?(?:(?:object|page|document|site) )?(?:has )?moved(?: permanently| temporarily)?",
        "(?:page )?redirect(?:ing|ion|ed)?|(?:页面?|網頁|网页)?(?:正在)?(?:跳转|跳轉|重定向)(?:中|提示)?",
    ),
    "gate_login": _compile_title(
        r"(?:sign|log)[ -]?in|log ?in to .{0,30}|.{0,25}[\W_](?:log[ -]?in|sign[ -]?in|登录|登入)",
        "(?:用户|会员|统一身份|账号)?(?:登录|登入|登錄|登陆)(?:页面?|界面)?",
    ),
    "gate_consent": _compile_title(
        "before you continue.{0,30}", "(?:your )?(?:privacy|cookie) (?:choices|preferences|consent)"
    ),
}
