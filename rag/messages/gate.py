"""Sentences of the quality gate: what was seen on a page that is held back, and what the person can do."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "gate_scripts": (
        "The page came without its content, which JavaScript fetches in a browser; it says “{seen}”. "
        "Open it in a browser, save it as HTML or PDF and add the file.",
        "网页的内容由浏览器中的 JavaScript 加载，抓到的只有“{seen}”。请在浏览器中打开，另存为 HTML 或 PDF 后添加文件。",
    ),
    "gate_consent": (
        "A cookie or consent notice came in place of the page: “{seen}”. "
        "Accept it in a browser, save the page as HTML or PDF and add the file.",
        "抓到的是 Cookie 或隐私同意提示，而不是正文：“{seen}”。请在浏览器中同意后，把网页另存为 HTML 或 PDF 再添加。",
    ),
    "gate_login": (
        "A login form came in place of the page: “{seen}”. "
        "Log in with a browser, save the page as HTML or PDF and add the file.",
        "抓到的是登录页面，而不是正文：“{seen}”。请在浏览器中登录后，把网页另存为 HTML 或 PDF 再添加。",
    ),
    "gate_captcha": (
        "A check for robots came in place of the page: “{seen}”. "
        "Try again later, or open it in a browser, save it as HTML or PDF and add the file.",
        "抓到的是人机验证，而不是正文：“{seen}”。请稍后再试，或在浏览器中打开，另存为 HTML 或 PDF 后添加文件。",
    ),
    "gate_not_found": (
        "The site answered, but says that the page does not exist: “{seen}”. Check the address.",
        "网站有响应，但提示网页不存在：“{seen}”。请检查网址。",
    ),
    "gate_short": (
        "Only {characters:character|characters} of text could be found on the page: “{seen}”. "
        "If the content is missing, open the page in a browser, save it as HTML or PDF and add the file.",
        "网页上只找到 {characters} 个字符：“{seen}”。如果缺少正文，请在浏览器中打开，另存为 HTML 或 PDF 后添加文件。",
    ),
    "gate_mojibake": (
        "The text was decoded wrong somewhere on its way; it reads “{seen}”. "
        "Open it in a browser, and if it is right there, save it as PDF and add the file.",
        "文字出现乱码：“{seen}”。请在浏览器中打开，如果显示正常，另存为 PDF 后添加文件。",
    ),
    "gate_boilerplate": (
        "Only the site's menu and footer were found, such as “{seen}”. "
        "If the page has content of its own, save it in a browser as HTML or PDF and add the file.",
        "只找到网站的菜单和页脚，例如“{seen}”。如果网页有正文，请在浏览器中另存为 HTML 或 PDF 后添加文件。",
    ),
    "gate_language": (
        "Neither search can read the language of this text: “{seen}”. Added anyway, it would hardly ever be found; "
        "another embedding model may read it.",
        "语义检索和关键词检索都不支持这种语言：“{seen}”。即使添加也很难检索到；换用其他嵌入模型或许可以读取。",
    ),
}
