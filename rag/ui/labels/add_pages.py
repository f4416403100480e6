"""Words of the Add pages page."""

LABELS: dict[str, tuple[str, str]] = {
    "add_title": ("Add pages", "添加网页"),
    "add_lead": (
        "Each page is fetched, and its main text is kept in this library.",
        "逐个抓取网页，取出正文，存入此资料库。",
    ),
    "add_paste": ("Links", "链接"),
    "add_paste_placeholder": (
        "Paste links, one or many. Any text around them is fine.",
        "粘贴一个或多个链接，夹在文字里也可以。",
    ),
    "add_empty": ("Paste at least one link first.", "请先粘贴至少一个链接。"),
    "add_found_none": ("No link found in what you pasted.", "粘贴的内容里没有找到链接。"),
    "add_found_one": ("1 link found", "找到 1 个链接"),
    "add_found": ("{count} links found", "找到 {count} 个链接"),
    "add_dropped": (
        "{count} more are left out: {limit} at a time.",
        "另有 {count} 个未计入：每次最多 {limit} 个。",
    ),
    "add_go": ("Add pages", "添加"),
    "add_force": ("Fetch again what is already stored", "已存的也重新抓取"),
    "add_force_hint": (
        "For links and sites: read pages anew that are here already, for instance to cut them otherwise.",
        "用于链接和网站：已收录的网页也重新读取，例如要改变切分方式时。",
    ),
    "add_more": ("Add more", "继续添加"),
    "add_tab_links": ("Links", "链接"),
    "add_tab_site": ("A whole site", "整个网站"),
    "add_tab_files": ("Files", "文件"),
    "add_tab_web": ("Web search", "网络搜索"),
    "web_ask": ("What to look for; {name} is asked", "要找什么（由 {name} 搜索）"),
    "web_go": ("Search", "搜索"),
    "web_searching": ("Searching…", "正在搜索……"),
    "web_none": ("Nothing was found. Try other words.", "没有找到结果。请换个说法。"),
    "web_add_one": ("Add 1 page", "添加 1 个网页"),
    "web_add": ("Add {count} pages", "添加 {count} 个网页"),
    "add_tab_samples": ("Sample pages", "示例网页"),
    "add_files": ("Files", "文件"),
    "add_files_hint": (
        "PDF, Word (.docx), HTML, Markdown, plain text, CSV or TSV; a .zip of such files; or a JSONL of pages.",
        "PDF、Word（.docx）、HTML、Markdown、纯文本、CSV 或 TSV；含这些文件的 .zip；或每行一个网页的 JSONL。",
    ),
    "add_files_go": ("Add files", "添加文件"),
    "add_samples_lead": (
        "A dozen short pages in English and Chinese that come with Pagelight. Nothing is fetched.",
        "Pagelight 自带的十几个中英文短网页，不需要联网。",
    ),
    "add_samples_go": ("Load the sample pages", "载入示例网页"),
    "add_advanced": ("Options", "选项"),
    "add_chunker": ("How pages are cut into passages", "网页的切分方式"),
    "add_chunker_hint": (
        "Counts for the pages of this import. Links that are already stored are cut anew only when they are "
        "fetched again.",
        "仅用于本次导入。已存的链接只有重新抓取时才会重新切分。",
    ),
    "chunker_semantic": ("Where the subject changes (semantic)", "按语义：主题变化处切分（semantic）"),
    "chunker_recursive": ("Paragraph by paragraph (recursive)", "按段落递归切分（recursive）"),
    "chunker_fixed": ("Of one size (fixed)", "固定大小（fixed）"),
    "chunker_markdown": ("By heading (markdown)", "按标题切分（markdown）"),
    "chunker_parent": (
        "Found by small pieces, read as whole sections (parent)",
        "小块检索，返回所在章节（parent）",
    ),
    "chunker_breakpoints": (
        "SemanticChunker's breakpoints (breakpoints)",
        "SemanticChunker 断点（breakpoints）",
    ),
    "site_start": ("Where it begins", "起始网址"),
    "site_start_wrong": (
        "Give one web address, such as https://docs.example.org/guide/",
        "请输入一个网址，例如 https://docs.example.org/guide/",
    ),
    "site_kind": ("How its pages are found", "如何查找网页"),
    "site_kind_sitemap": ("Its sitemap", "站点地图"),
    "site_kind_crawl": ("Following links", "跟随链接"),
    "site_kind_feed": ("A feed", "订阅源"),
    "site_hint_sitemap": (
        "The list of pages that most sites keep for search engines. The surest way, where there is one.",
        "多数网站为搜索引擎准备的网页清单。如果有，这是最可靠的方式。",
    ),
    "site_hint_crawl": (
        "Reads the first page and the pages it links to, step by step, and stays below the path.",
        "从起始网页开始逐层跟随链接，不离开该路径。",
    ),
    "site_hint_feed": (
        "The entries of an RSS or Atom feed, or of the feed that the page names.",
        "RSS 或 Atom 订阅源中的条目，也可输入指向订阅源的网页。",
    ),
    "site_prefix": ("Only paths that begin with", "仅限以此开头的路径"),
    "site_prefix_hint": (
        "The part of the address after the host. Left empty, a sitemap counts whole, and links are followed within "
        "the folder of the first page.",
        "网址中主机名之后的部分。留空时，站点地图取全部，跟随链接则限于起始网页所在的目录。",
    ),
    "site_pages": ("Pages at most", "最多网页数"),
    "site_depth": ("Links deep", "链接层数"),
    "site_depth_hint": (
        "How many links away from the first page. 0 is that page alone.",
        "距起始网页几层链接。0 表示只取该网页。",
    ),
    "site_within": ("Stays within {place}", "范围：{place}"),
    "site_go": ("Add the site", "添加网站"),
    "site_polite": (
        "The site's robots.txt is followed, with few requests at a time.",
        "遵守网站的 robots.txt，并限制同时请求的数量。",
    ),
}
