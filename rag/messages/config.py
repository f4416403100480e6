"""Sentences about settings."""

MESSAGES: dict[str, tuple[str, str]] = {
    "setting_invalid": (
        "The setting {name} is wrong: {value!r} {problem}. Correct it in .env or in the environment.",
        "设置 {name} 有误：{value!r} {problem}。请在 .env 或环境变量中更正。",
    ),
    "data_dir_unwritable": (
        "The data folder {path} cannot be written. Choose another with RAG_DATA_DIR or change its permissions.",
        "数据文件夹 {path} 无法写入。请用 RAG_DATA_DIR 换一个，或修改其权限。",
    ),
    "prompt_length": (
        "The text {name} must have between 1 and {limit} characters.",
        "文本 {name} 的长度必须在 1 到 {limit} 个字符之间。",
    ),
    "prompt_fields": (
        "The text {name} must hold exactly these fields in braces: {fields}. Write other braces twice.",
        "文本 {name} 必须恰好包含这些花括号字段：{fields}。其他花括号请写两次。",
    ),
    "prompt_not_kept": (
        "The text {name} could not be kept: the folder prompts in the data folder cannot be written.",
        "文本 {name} 未能保存：数据文件夹中的 prompts 文件夹无法写入。",
    ),
    # What is in use
    "chat_works": ("The chat model {model} answers.", "对话模型 {model} 可以使用。"),
    "database_works": (
        "The database answers; it holds {libraries:library|libraries}.",
        "数据库连接正常，共 {libraries} 个资料库。",
    ),
    "doctor_database_server": ("Qdrant at {url}.", "Qdrant 服务器 {url}。"),
    "doctor_database_embedded": (
        "Qdrant Edge, embedded in this process. For a server or cluster set QDRANT_URL.",
        "内嵌的 Qdrant Edge。如需使用服务器或集群，请设置 QDRANT_URL。",
    ),
    "doctor_server": (
        "Qdrant {version}, {nodes:node|nodes}, {libraries:library|libraries} in {collections:collection|collections}; "
        "up to about {most:library|libraries} a server is well.",
        "Qdrant {version}，{nodes} 个节点，{libraries} 个资料库（{collections} 个集合）；"
        "一台服务器约可容纳 {most} 个资料库。",
    ),
    "doctor_library_whole": (
        "“{library}” is whole: every page has its passages.",
        "“{library}”完整：每个网页的段落都在。",
    ),
    "doctor_library_broken": (
        "In “{library}” {lacking:page|pages} had lost passages and {surplus:page|pages} had some too many. The latter "
        "is repaired; import the former once more.",
        "“{library}”中有 {lacking} 个网页缺少段落，{surplus} 个网页有多余段落。"
        "多余的已清理；请重新导入缺少段落的网页。",
    ),
    "doctor_server_old": (
        "Qdrant {version} judges the conditions of writes anew when it starts after a crash, so that what was removed "
        "can come back. 1.19 and newer do not.",
        "Qdrant {version} 在崩溃后重启时会重新判断写入条件，已删除的内容可能再次出现；1.19 及更新版本没有这个问题。",
    ),
    "doctor_server_plain": (
        "The key goes to {url} unencrypted. Use https there, or a network that nobody else listens on.",
        "密钥以未加密方式发送到 {url}。请改用 https，或使用无人窃听的网络。",
    ),
    "doctor_server_dead": (
        "{count:part of the cluster does|parts of the cluster do} not take part: {what}.",
        "集群中有 {count} 处不可用：{what}。",
    ),
    "doctor_server_layout": (
        "{count:collection is|collections are} not as the settings (QDRANT_SHARDS and those beside it) would make "
        "them: {what}. docs/server.md tells how that is changed.",
        "有 {count} 个集合与当前设置（QDRANT_SHARDS 等）不一致：{what}。修改方法见 docs/server.md。",
    ),
    "doctor_embedding": (
        "{name}, {dimension} dimensions, {how}.",
        "{name}，{dimension} 维，{how}。",
    ),
    "doctor_embedding_builtin": (
        "the built-in all-MiniLM-L6-v2, {dimension} dimensions, {how}; it reads English, and Chinese is found "
        "by keywords alone. For both set EMBEDDING_MODEL=BAAI/bge-m3.",
        "内置的 all-MiniLM-L6-v2，{dimension} 维，{how}；它只懂英文，中文仅按关键词检索。"
        "如需两种语言，请设置 EMBEDDING_MODEL=BAAI/bge-m3。",
    ),
    "doctor_verifier": ("statements are checked by {name}.", "陈述由 {name} 核对。"),
    "doctor_verifier_none": (
        "statements that no chat model checks are compared by words and numbers only. For a local model set "
        "VERIFIER_MODEL.",
        "没有对话模型核对的陈述，仅按词语和数字比对。如需本地模型，请设置 VERIFIER_MODEL。",
    ),
    "doctor_chat": ("{model} answers.", "{model} 可以使用。"),
    "doctor_chat_none": (
        "none, so answers are quoted from the pages. For written answers set LLM_MODEL, LLM_BASE_URL and LLM_API_KEY.",
        "未连接，回答直接引用网页原文。如需生成式回答，请设置 LLM_MODEL、LLM_BASE_URL 和 LLM_API_KEY。",
    ),
}
