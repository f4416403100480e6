"""Sentences of rag/ingest.

A refusal has one code and many causes. Its sentence ends in the cause, which `because` puts into
both languages at once, so that `say` finds the one it needs: `{why_en}` or `{why_zh}`.
"""

from __future__ import annotations

from typing import Any

MESSAGES: dict[str, tuple[str, str]] = {
    # What became of a source
    "page_added": ("Added with {chunks:passage|passages}.", "已添加，共 {chunks} 个段落。"),
    "page_updated": (
        "Its text changed; it now has {chunks:passage|passages}.",
        "内容有变化，已更新，共 {chunks} 个段落。",
    ),
    "page_reindexed": (
        "Its text has not changed; it was cut and indexed anew, into {chunks:passage|passages}.",
        "内容没有变化，已重新切分并建立索引，共 {chunks} 个段落。",
    ),
    "page_unchanged": ("Its text has not changed.", "内容没有变化。"),
    "already_here": (
        "Already in the library since {added}; it was not fetched again.",
        "{added} 已加入资料库，未重新抓取。",
    ),
    "same_address": (
        "The same page as {first}, given twice.",
        "与 {first} 是同一网页，重复提交。",
    ),
    "leads_away": (
        "This address leads to {target}, which is not part of the site that you chose.",
        "这个网址会跳转到 {target}，不属于您选择的网站范围。",
    ),
    "cancelled": ("Not taken in, because the import was stopped.", "导入已停止，未处理。"),
    "unexpected": (
        "Something unexpected went wrong; the log names it. Nothing of it was stored; try again.",
        "出现意外错误，日志中有记录。没有保存任何内容，请重试。",
    ),
    "no_text": ("{url} holds no text to keep.", "{url} 没有可保存的文本。"),
    "too_many_chunks": (
        "{url} is too long: it would make more than {limit} passages. Split it into several files.",
        "{url} 太长，会产生超过 {limit} 个段落。请拆分成多个文件。",
    ),
    "file_type": (
        "{name} is not a file that can be read. Files may be: {types}.",
        "无法读取 {name}。支持的文件类型：{types}。",
    ),
    "file_too_large": (
        "{name} is larger than {limit} MB. Split it or save only the part you need.",
        "{name} 超过 {limit} MB。请拆分，或只保存需要的部分。",
    ),
    "file_unreadable": (
        "The file {name} cannot be read. Check that it exists and that you may read it.",
        "无法读取文件 {name}。请确认文件存在且有读取权限。",
    ),
    "file_unwritable": (
        "The file {name} cannot be written. Check that its folder exists and that you may write there.",
        "无法写入文件 {name}。请确认文件夹存在且有写入权限。",
    ),
    "case_broken": (
        "Line {line} of {name} is not a case: it must be a JSON object with id, passages (a list of texts) and text.",
        "{name} 第 {line} 行不是有效的案例：应为含 id、passages（文本列表）和 text 的 JSON 对象。",
    ),
    "question_broken": (
        "Line {line} of {name} is not a question: it must be a JSON object with a string named question.",
        "{name} 第 {line} 行不是有效的问题：应为含 question 字符串的 JSON 对象。",
    ),
    "job_unknown": (
        "There is no such import; it may have been removed with its data folder.",
        "没有这个导入任务，可能已随数据文件夹一起删除。",
    ),
    "record_broken": (
        "Line {line} of {name} is not a page: it must be a JSON object with url and one of text, html, markdown.",
        "{name} 第 {line} 行不是有效的网页记录：应为含 url 以及 text、html 或 markdown 的 JSON 对象。",
    ),
    "record_address": (
        "The address on line {line} of {name} cannot be one of the web: {url}. "
        "It must begin with http:// or https:// and have at most {longest} characters.",
        "{name} 第 {line} 行的网址不是有效的网址：{url}。网址应以 http:// 或 https:// 开头，最多 {longest} 个字符。",
    ),
    "record_too_large": (
        "The page on line {line} of {name} has more than {limit} MB of text. Split it, or raise IMPORT_RECORD_MB.",
        "{name} 第 {line} 行的网页文本超过 {limit} MB。请拆分，或调高 IMPORT_RECORD_MB。",
    ),
    "records_left_out": (
        "{name} has more than {limit} pages; those from line {line} on were not read. Split the file, or raise "
        "IMPORT_RECORDS.",
        "{name} 超过 {limit} 个网页，从第 {line} 行起未读取。请拆分文件，或调高 IMPORT_RECORDS。",
    ),
    "other_kind": (
        "Left out, because it is of a kind that is not read. Read are: {types}.",
        "未处理，因为不支持此类文件。支持的类型：{types}。",
    ),
    # Why an address could not be read
    "blocked": (
        "{url} was not fetched, for safety: {why_en}",
        "出于安全考虑，未抓取 {url}：{why_zh}",
    ),
    "unresolved": (
        "No server was found under the name {host} of {url}. Check the spelling and your connection.",
        "找不到 {url} 中名为 {host} 的服务器。请检查拼写和网络连接。",
    ),
    "unreachable": (
        "{url} could not be read: {why_en}",
        "无法读取 {url}：{why_zh}",
    ),
    "timeout": (
        "{url} did not finish answering within {seconds:second|seconds}. Try again later.",
        "{url} 未能在 {seconds} 秒内完成响应。请稍后再试。",
    ),
    "http_error": (
        "{url} answered with status {status}: {why_en}",
        "{url} 返回状态 {status}：{why_zh}",
    ),
    "redirects": (
        "{url} never arrives at a page: {why_en} Open it in a browser and paste the address it ends at.",
        "{url} 没有到达任何网页：{why_zh}请在浏览器中打开它，再粘贴最终的网址。",
    ),
    "too_large": (
        "{url} is larger than the limit of {limit} MB. Save the part you need as a file and upload that.",
        "{url} 超过了 {limit} MB 的上限。请把需要的部分另存为文件后上传。",
    ),
    "content_type": (
        "{url} is not a page of text: {why_en}",
        "{url} 不是文本网页：{why_zh}",
    ),
    "unreadable": (
        "{url} could not be read as a page: {why_en}",
        "无法把 {url} 作为网页读取：{why_zh}",
    ),
    "empty": (
        "{url} holds no text to keep: {why_en}",
        "{url} 没有可保存的文本：{why_zh}",
    ),
}

_ALLOW = (
    " If {pair} is a server you trust, add it to FETCH_ALLOW_PRIVATE_HOSTS.",
    "如果 {pair} 是您信任的服务器，请把它加入 FETCH_ALLOW_PRIVATE_HOSTS。",
)

CAUSES: dict[str, tuple[str, str]] = {
    # blocked
    "too_long": (
        "the address is longer than {limit} characters.",
        "网址超过 {limit} 个字符。",
    ),
    "characters": (
        "the address holds a space, an invisible character or a backslash. Paste it again without them.",
        "网址中有空格、不可见字符或反斜杠。请去掉后重新粘贴。",
    ),
    "scheme": (
        "only addresses that begin with http:// or https:// are fetched.",
        "只抓取以 http:// 或 https:// 开头的网址。",
    ),
    "userinfo": (
        "the address holds a user name or password (an @ before the path). Remove it.",
        "网址中含有用户名或密码（路径之前有 @）。请去掉。",
    ),
    "host": (
        "{host!r} is not a valid server name. Check the address.",
        "{host!r} 不是有效的服务器名称。请检查网址。",
    ),
    "internal_name": (
        "{host} is a name of a private network." + _ALLOW[0],
        "{host} 是内部网络的名称。" + _ALLOW[1],
    ),
    "port": (
        "port {port} is not one that web pages use (80, 443, 8080, 8443)." + _ALLOW[0],
        "端口 {port} 不是网页使用的端口（80、443、8080、8443）。" + _ALLOW[1],
    ),
    "private_address": (
        "its server is at {address}, which is not an address of the public internet." + _ALLOW[0],
        "其服务器位于 {address}，不是公共互联网的地址。" + _ALLOW[1],
    ),
    "metadata": (
        "its server is at {address}, where cloud machines keep their credentials. That is never fetched.",
        "其服务器位于 {address}，那是云主机存放凭据的地方，始终不会抓取。",
    ),
    "led_to": (
        "it redirects to {target}, and there {why_en}",
        "它跳转到 {target}，而{why_zh}",
    ),
    # unreachable
    "refused": (
        "the server {host} does not accept the connection. Try again later.",
        "服务器 {host} 不接受连接。请稍后再试。",
    ),
    "tls": (
        "the secure connection to {host} failed, most often because of a wrong or expired certificate.",
        "与 {host} 的安全连接失败，通常是因为证书有误或已过期。",
    ),
    "broken_off": (
        "the server {host} broke the answer off, or answered with something that is not HTTP.",
        "服务器 {host} 中断了响应，或返回的不是 HTTP。",
    ),
    # http_error
    "gone": (
        "there is no such page. Check the address.",
        "该网页不存在。请检查网址。",
    ),
    "forbidden": (
        "the server wants a login or refuses programs. Save the page in a browser and upload the file.",
        "服务器要求登录或拒绝程序访问。请在浏览器中保存网页后上传文件。",
    ),
    "too_many": (
        "the server asks to slow down. Try again in a few minutes.",
        "服务器要求降低访问频率。请几分钟后再试。",
    ),
    "server_fault": (
        "the server has a fault of its own. Try again later.",
        "服务器自身出错。请稍后再试。",
    ),
    "other_status": (
        "that is not a page. Open the address in a browser to see what it is.",
        "这不是网页。请在浏览器中打开该网址查看。",
    ),
    # redirects
    "too_many_redirects": (
        "it redirects more than {limit} times.",
        "跳转超过 {limit} 次。",
    ),
    "redirect_loop": (
        "it redirects in a circle.",
        "它在循环跳转。",
    ),
    "no_target": (
        "it redirects without saying where to.",
        "它要求跳转，却没有给出目标。",
    ),
    # content_type
    "feed": (
        "it is a feed or a sitemap, a list of pages. Take it in as a site or a feed to get the pages it names.",
        "它是订阅源或站点地图，即网页列表。请以“站点”或“订阅源”的方式导入它列出的网页。",
    ),
    "old_office": (
        "it is an Office file of the old kind (.doc, .xls, .ppt). Save it as .docx, .csv or PDF and upload that.",
        "它是旧格式的 Office 文件（.doc、.xls、.ppt）。请另存为 .docx、.csv 或 PDF 后上传。",
    ),
    "not_as_declared": (
        "it says that it is of the type {type}, and is not. The file may be damaged.",
        "它声明的类型是 {type}，但实际不是。文件可能已损坏。",
    ),
    "binary": (
        "it holds binary data of a kind that is not read, such as an image or an archive.",
        "内容是无法读取的二进制数据，例如图片或压缩包。",
    ),
    "other_type": (
        "it is of the type {type}; HTML, PDF, Word (.docx), CSV, plain text and Markdown are read.",
        "它的类型是 {type}；可读取的是 HTML、PDF、Word（.docx）、CSV、纯文本和 Markdown。",
    ),
    # unreadable
    "encoding": (
        "it is compressed in a way that was not asked for ({encoding}).",
        "它使用了未请求的压缩方式（{encoding}）。",
    ),
    "corrupt": (
        "its compressed data is damaged or cut off. Try again later.",
        "压缩数据已损坏或不完整。请稍后再试。",
    ),
    "parse_timeout": (
        "reading it took longer than {seconds} seconds, so it was given up.",
        "读取用时超过 {seconds} 秒，已放弃。",
    ),
    "parse_failed": (
        "it is too large or too tangled inside for the reader. Save the part you need and upload that.",
        "它的内部结构过大或过于混乱。请保存需要的部分后上传。",
    ),
    "reader_missing": (
        "the program that reads pages did not start. The log says why.",
        "读取网页的程序未能启动。原因见日志。",
    ),
    # empty
    "no_text": (
        "there is nothing to read in it.",
        "其中没有可读的内容。",
    ),
    "scripts_only": (
        "its text is made by JavaScript in a browser. Save the page in a browser and upload the file.",
        "它的文字由浏览器中的 JavaScript 生成。请在浏览器中保存网页后上传文件。",
    ),
}


def because(cause: str, **params: Any) -> dict[str, Any]:
    """The parameters that explain a refusal: its `cause`, that cause in words, and the values in them."""
    english, chinese = CAUSES[cause]
    return {
        **params,
        "cause": cause,
        "why_en": english.format_map(params),
        "why_zh": chinese.format_map(params),
    }
