"""Words of the Settings page."""

LABELS: dict[str, tuple[str, str]] = {
    "settings_title": ("Settings", "设置"),
    "settings_lead": (
        "What Pagelight is using here, and how to change it.",
        "Pagelight 目前所用的各部分，以及如何更换。",
    ),
    "settings_in_use": ("In use", "当前使用"),
    "use_database": ("Database", "数据库"),
    "use_database_embedded": ("Qdrant Edge, in this process", "Qdrant Edge，内嵌于本进程"),
    "use_database_server": ("Qdrant server at {url}", "Qdrant 服务器：{url}"),
    "use_database_change": (
        "Set QDRANT_URL (and QDRANT_API_KEY) in .env to use a Qdrant server or cluster.",
        "在 .env 中设置 QDRANT_URL（及 QDRANT_API_KEY）即可改用 Qdrant 服务器或集群。",
    ),
    "use_embedding": ("Embedding model", "向量模型"),
    "use_embedding_builtin": ("all-MiniLM-L6-v2, built in", "all-MiniLM-L6-v2（内置）"),
    "use_embedding_change": (
        "It reads English; Chinese is found by keywords. Set EMBEDDING_MODEL=BAAI/bge-m3 in .env and "
        "start a new library to search both by meaning.",
        "内置模型只读英文，中文靠关键词检索。在 .env 中设置 EMBEDDING_MODEL=BAAI/bge-m3 并新建资料库，"
        "即可让中英文都按语义检索。",
    ),
    "use_chat": ("Chat model", "对话模型"),
    "use_chat_none": ("None: answers are quoted from your pages", "无：答案直接摘自网页"),
    "use_chat_session": ("{model}, for this browser", "{model}（仅此浏览器）"),
    "use_chat_change": (
        "Connect one below for this browser, or set LLM_MODEL, LLM_BASE_URL and LLM_API_KEY in .env.",
        "可在下方为此浏览器接入，或在 .env 中设置 LLM_MODEL、LLM_BASE_URL 和 LLM_API_KEY。",
    ),
    "use_folder": ("Data folder", "数据文件夹"),
    "use_folder_change": ("Change it with RAG_DATA_DIR.", "用 RAG_DATA_DIR 更改。"),
    "use_library": ("This library", "当前资料库"),
    "use_library_counts": ("{pages} · {chunks}", "{pages} · {chunks}"),
    "use_versions": ("Versions", "版本"),
    "settings_chat": ("Chat model for this browser", "此浏览器的对话模型"),
    "settings_chat_lead": (
        "Any service that speaks the OpenAI protocol: DeepSeek, DashScope, Moonshot, Zhipu, vLLM, Ollama. "
        "The key stays in the server's memory for this browser, until you sign out or stop using it, for at most "
        "12 hours; it is never written down.",
        "任何兼容 OpenAI 协议的服务：DeepSeek、通义千问、Moonshot、智谱、vLLM、Ollama。"
        "密钥只为此浏览器保存在服务器内存中，退出登录或停用即删除，最长 12 小时，不会写入磁盘。",
    ),
    "chat_base_url": ("Address", "服务地址"),
    "chat_model_name": ("Model", "模型"),
    "chat_key": ("Key", "密钥"),
    "chat_key_hint": ("leave empty if the service needs none", "服务不需要密钥则留空"),
    "chat_fast_hint": ("the same", "与模型相同"),
    "chat_use": ("Use it", "启用"),
    "chat_list": ("Show its models", "查看可用模型"),
    "chat_service": ("Service", "服务"),
    "chat_served": ("Models of this service ({count})", "该服务的模型（{count} 个）"),
    "chat_served_hint": ("Choose one", "请选择"),
    "settings_chat_off": (
        "Models of one's own are switched off here; the model of the settings answers, or your pages are quoted.",
        "此处不允许接入自己的模型；由设置中的模型作答，或直接摘录您的网页。",
    ),
    "chat_disconnect": ("Stop using it", "停用"),
    "chat_in_use": ("{model} answers in this browser.", "此浏览器中由 {model} 作答。"),
    "chat_testing": ("Asking the service…", "正在询问服务…"),
    "database_test": ("Test the database", "测试数据库"),
    "database_testing": ("Asking the database…", "正在询问数据库…"),
    "settings_language": ("Language", "语言"),
    "settings_language_lead": (
        "The screens' language. Answers follow the language of the question.",
        "界面语言。回答的语言随问题而定。",
    ),
}
