"""Sentences of rag/reading and rag/ingest/archives.py: documents, and what is held back for a person to look at."""

from __future__ import annotations

MESSAGES: dict[str, tuple[str, str]] = {
    "pdf_encrypted": (
        "{url} is locked with a password. Save a copy without one (in a PDF program: print to PDF) and upload that.",
        "{url} 有密码保护。请用 PDF 程序另存为无密码的副本（例如“打印为 PDF”）后上传。",
    ),
    "pdf_broken": (
        "{url} is damaged, or not a PDF file at all. Download it again, or save a new copy from a PDF program.",
        "{url} 已损坏，或根本不是 PDF 文件。请重新下载，或用 PDF 程序另存一份。",
    ),
    "pdf_no_text": (
        "{url} has no text layer: what it shows ({pages:page|pages}) is pictures, as from a scanner. "
        "Run text recognition (OCR) on it and upload the result.",
        "{url} 没有文字层：共 {pages} 页，都是图片（例如扫描件）。请先做文字识别（OCR），再上传结果。",
    ),
    "pdf_unmapped": (
        "{url} does not say which letters its fonts draw, so its text comes out as signs without meaning. "
        "Save a new copy from the program it was made with, or run text recognition (OCR) on it.",
        "{url} 的字体没有说明字形对应的文字，读出来的是乱码。请用原来的程序重新导出，或做文字识别（OCR）。",
    ),
    "pdf_too_many_pages": (
        "{url} has {pages:page|pages}; up to {limit} are read. Split it into several files.",
        "{url} 有 {pages} 页，最多读取 {limit} 页。请拆分成多个文件。",
    ),
    "document_too_long": (
        "{url} holds more than {limit} million characters. Split it into several files.",
        "{url} 超过 {limit} 百万个字符。请拆分成多个文件。",
    ),
    "document_no_text": (
        "{url} holds no text to keep.",
        "{url} 中没有可保存的文字。",
    ),
    "docx_broken": (
        "{url} is damaged, or not a Word document (.docx). Open it in Word or LibreOffice and save it again.",
        "{url} 已损坏，或不是 Word 文档（.docx）。请用 Word 或 LibreOffice 打开并重新保存。",
    ),
    "docx_too_large": (
        "{url} unpacks to more than {limit} MB of text and settings, so it was not opened. Save the part you need.",
        "{url} 解压后的文字和设置超过 {limit} MB，因此没有打开。请只保存需要的部分。",
    ),
    "table_broken": (
        "{url} cannot be read as a table: line {line} holds a cell longer than {limit} characters, or a quotation mark "
        "that never ends. Check it in a spreadsheet program.",
        "无法把 {url} 作为表格读取：第 {line} 行有超过 {limit} 个字符的单元格，或引号没有结束。请用表格软件检查。",
    ),
    "table_too_wide": (
        "{url} has {columns} columns; up to {limit} are read. Save the columns you need.",
        "{url} 有 {columns} 列，最多读取 {limit} 列。请只保存需要的列。",
    ),
    "archive_broken": (
        "{name} is damaged, or not a zip archive. Pack it again.",
        "{name} 已损坏，或不是 zip 压缩包。请重新打包。",
    ),
    "archive_too_many": (
        "{name} holds more than {limit} files. Pack it in parts.",
        "{name} 中的文件超过 {limit} 个。请分批打包。",
    ),
    "archive_over_budget": (
        "{name} was left out: with it, all files together are more than is read at once. Add them in parts.",
        "已略过 {name}：加上它，所有文件的总量超过一次可读取的上限。请分批添加。",
    ),
    "archive_bomb": (
        "{name} was not unpacked: it grows to {times} times its packed size, as no document does.",
        "未解压 {name}：它会膨胀到压缩大小的 {times} 倍，正常文件不会如此。",
    ),
    "archive_encrypted": (
        "{name} is locked with a password. Pack it without one.",
        "{name} 有密码保护。请不加密码重新打包。",
    ),
    "archive_unsafe_name": (
        "{name} was left out: its name leads out of the archive.",
        "已略过 {name}：它的路径指向压缩包之外。",
    ),
    "archive_nested": (
        "{name} is an archive within an archive, which is not opened. Unpack it and add what is in it.",
        "{name} 是压缩包中的压缩包，不会打开。请先解压，再添加其中的内容。",
    ),
    "archive_packing": (
        "{name} is packed in a way that is not read. Pack it as an ordinary zip archive.",
        "{name} 的压缩方式无法读取。请打包成普通的 zip。",
    ),
    "archive_empty": (
        "{name} holds no file that can be read. Files may be: {types}.",
        "{name} 中没有可以读取的文件。支持的文件类型：{types}。",
    ),
    "archive_left_out": (
        "Of {name}, {count:more file|more files} of other kinds stayed out, such as {examples}.",
        "{name} 中另有 {count} 个其他类型的文件未导入，例如 {examples}。",
    ),
    "folder_too_many": (
        "{name} holds more than {limit} files to read. Add its folders one by one.",
        "{name} 中可读取的文件超过 {limit} 个。请逐个添加其中的文件夹。",
    ),
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
