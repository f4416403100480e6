"""Sentences of rag/store."""

MESSAGES: dict[str, tuple[str, str]] = {
    "store_busy": (
        "Another process has the database in {path} open. Close it, or give this one another folder with RAG_DATA_DIR.",
        "另一个进程正在使用 {path} 中的数据库。请先关闭它，或用 RAG_DATA_DIR 为本进程另选一个文件夹。",
    ),
    "store_unwritable": (
        "The database folder {path} cannot be written. Choose another with RAG_DATA_DIR or change its permissions.",
        "数据库文件夹 {path} 无法写入。请用 RAG_DATA_DIR 换一个，或修改其权限。",
    ),
    "store_disk_full": (
        "The disk that holds {path} is full. Nothing was stored by halves; free some space and try again.",
        "{path} 所在的磁盘已满。没有留下写了一半的内容；请腾出空间后重试。",
    ),
    "store_disk_low": (
        "The disk that holds {path} has less than {needed} MB left, so nothing was stored. "
        "Free some space and try again.",
        "{path} 所在的磁盘剩余空间不足 {needed} MB，因此没有存入任何内容。请腾出空间后重试。",
    ),
    "store_damaged": (
        "The database folder {path} is damaged: {detail}. "
        "Restore it from a copy, or move it away and add the pages again.",
        "数据库文件夹 {path} 已损坏：{detail}。请从备份恢复，或将其移走后重新添加页面。",
    ),
    "store_failed": (
        "The database could not do “{call}”: {detail}.",
        "数据库无法完成“{call}”：{detail}。",
    ),
    "store_argument": (
        "The database could not read what “{call}” was given: {detail}. It takes objects of qdrant_client.models, "
        "whole numbers or UUIDs as ids, and values of JSON in payloads, a date as text (isoformat()).",
        "数据库无法读取“{call}”收到的内容：{detail}。请使用 qdrant_client.models 中的对象；ID 应为整数或 UUID；"
        "payload 中只能有 JSON 值，日期请写成文本（isoformat()）。",
    ),
    "store_closed": (
        "The database is closed.",
        "数据库已关闭。",
    ),
    "store_unsupported": (
        "The embedded database does not do {call}. Set QDRANT_URL to use a server that does.",
        "内置数据库不支持 {call}。请设置 QDRANT_URL，改用支持它的服务器。",
    ),
    "store_unreachable": (
        "The database server {url} does not answer. Check QDRANT_URL and that the server runs.",
        "数据库服务器 {url} 没有响应。请检查 QDRANT_URL，并确认服务器正在运行。",
    ),
    "store_away": (
        "The database has not answered since {since}.",
        "数据库自 {since} 起没有响应。",
    ),
    "store_server_full": (
        "The disk of the database server {url} is full. Free some space there; what is under way goes on by itself.",
        "数据库服务器 {url} 的磁盘已满。请在该服务器上腾出空间；正在进行的工作会自动继续。",
    ),
    "store_key_refused": (
        "The database server {url} refused the key. Check QDRANT_API_KEY.",
        "数据库服务器 {url} 拒绝了密钥。请检查 QDRANT_API_KEY。",
    ),
    "store_forbidden": (
        "The key for the database server {url} does not allow this: {detail}. "
        "Give QDRANT_API_KEY one that may read, write and manage collections.",
        "数据库服务器 {url} 的密钥没有相应权限：{detail}。请在 QDRANT_API_KEY 中使用可读写并可管理集合的密钥。",
    ),
    "store_certificate": (
        "The certificate of the database server {url} is not trusted here. Check QDRANT_URL, or make its authority "
        "known to this system (SSL_CERT_FILE).",
        "本机不信任数据库服务器 {url} 的证书。请检查 QDRANT_URL，或通过 SSL_CERT_FILE 让系统信任其颁发机构。",
    ),
    "store_too_large": (
        "One piece of what was to be stored is larger than the database server {url} takes. "
        "Raise its service.max_request_size_mb, or its rate limit.",
        "要存入的一项内容超过了数据库服务器 {url} 的限制。请调高其 service.max_request_size_mb 或速率限制。",
    ),
    "store_unread": (
        "What answers as the database server cannot be understood. Check QDRANT_URL, and that the server is a Qdrant "
        "that this version knows (docs/server.md).",
        "无法理解数据库服务器的应答。请检查 QDRANT_URL，并确认它是本版本支持的 Qdrant（见 docs/server.md）。",
    ),
    "store_too_old": (
        "The database server is Qdrant {version}; {oldest} or newer is needed, for pages would get lost where two "
        "processes write at once.",
        "数据库服务器是 Qdrant {version}，需要 {oldest} 或更新的版本；否则两个进程同时写入时会丢失页面。",
    ),
    "collection_missing": (
        "The database has no collection named {name}.",
        "数据库中没有名为 {name} 的集合。",
    ),
    "collection_exists": (
        "The database already has a collection named {name}.",
        "数据库中已有名为 {name} 的集合。",
    ),
    "vector_invalid": (
        "A vector of point {point} holds a value that is not a finite number; nothing of its batch was stored.",
        "点 {point} 的向量中有非有限数值；该批数据未被存储。",
    ),
    "model_mismatch": (
        "The library “{library}” was made with the embedding model {made_with} ({made_dimension} dimensions)"
        ", not with {asked} ({asked_dimension} dimensions). "
        "Set EMBEDDING_MODEL={made_with} again, or choose another library name.",
        "资料库“{library}”是用嵌入模型 {made_with}（{made_dimension} 维）建立的，"
        "不是 {asked}（{asked_dimension} 维）。"
        "请把 EMBEDDING_MODEL 改回 {made_with}，或换一个资料库名称。",
    ),
    "library_name_invalid": (
        "The library name {name!r} is wrong: 1 to 40 of a-z, 0-9, - and _, beginning with a letter or a digit.",
        "资料库名称 {name!r} 有误：应为 1 到 40 个 a-z、0-9、- 或 _，并以字母或数字开头。",
    ),
    "library_unknown": (
        "There is no library “{library}” here. Choose another one, or make one with the button below the list.",
        "这里没有资料库“{library}”。请选择其他资料库，或用列表下方的按钮新建一个。",
    ),
    "library_removed": (
        "The library “{library}” was removed. Until {until} it can be brought back, on the Library page.",
        "资料库“{library}”已被移除。在 {until} 之前，可以在“资料库”页面恢复。",
    ),
    "library_arriving": (
        "The library “{library}” is being restored from a file by another process. Wait until that is done, or choose "
        "another name.",
        "另一个进程正在从文件恢复资料库“{library}”。请等它完成，或另选名称。",
    ),
    "library_newer": (
        "The library “{library}” was written by a newer version of this program. Update the program.",
        "资料库“{library}”由本程序的更新版本写入。请升级程序。",
    ),
    "library_is_first": (
        "“{library}” is the library that is opened first (RAG_LIBRARY), so it stays. You can remove all of its pages.",
        "“{library}”是默认打开的资料库（RAG_LIBRARY），不能移除，但可以移除其中的全部网页。",
    ),
    "libraries_full": (
        "There are {most:library|libraries}, which is as many as there can be; one that was removed counts for a day. "
        "Remove one that is not needed.",
        "已有 {most} 个资料库，达到上限；被移除的资料库在一天内仍计入。请移除不需要的资料库。",
    ),
    "library_title_wrong": (
        "A library's name has 1 to {most:letter|letters}, digits or other signs that can be seen.",
        "资料库名称应为 1 到 {most} 个可见字符。",
    ),
    "library_title_taken": (
        "There is a library called “{title}” already, or one that can still be brought back. Choose another name.",
        "已有名为“{title}”的资料库，或有同名资料库仍可恢复。请换一个名称。",
    ),
    "commit_incomplete": (
        "The database did not tell whether {url} was stored, although it was asked several times. Import it once more.",
        "多次询问后，数据库仍未说明 {url} 是否已存入。请重新导入。",
    ),
    "vector_store_read_only": (
        "This view of the library is for reading. Add and remove pages through the library itself.",
        "资料库的这个视图只供读取。请通过资料库本身添加或删除页面。",
    ),
    "database_newer": (
        "The file {path} was written by a newer version of this program. "
        "Update the program, or choose another RAG_DATA_DIR.",
        "文件 {path} 由本程序的更新版本写入。请升级程序，或另选 RAG_DATA_DIR。",
    ),
    "database_failed": (
        "The file {path} cannot be used: {detail}.",
        "文件 {path} 无法使用：{detail}。",
    ),
    "exchange_unreadable": (
        "The file {name} is not a library that was exported here, or cannot be read.",
        "文件 {name} 不是由本程序导出的资料库，或无法读取。",
    ),
    "exchange_newer": (
        "The file {name} was exported by a newer version of this program. Update the program and try again.",
        "文件 {name} 由本程序的更新版本导出。请升级程序后重试。",
    ),
    "exchange_damaged": (
        "The file {name} is damaged ({detail}). Nothing of it was imported; export the library anew.",
        "文件 {name} 已损坏（{detail}）。没有导入任何内容；请重新导出资料库。",
    ),
    "exchange_model": (
        "The library in {name} was made with the embedding model {made_with} ({made_dimension} dimensions), not with "
        "{asked} ({asked_dimension} dimensions). Set EMBEDDING_MODEL={made_with} and import it again.",
        "{name} 中的资料库是用嵌入模型 {made_with}（{made_dimension} 维）建立的，不是 {asked}（{asked_dimension} 维）。"
        "请设置 EMBEDDING_MODEL={made_with} 后重新导入。",
    ),
    "exchange_folder": (
        "{name} is a folder. Give the name of a file in it for the library to be written to.",
        "{name} 是文件夹。请给出其中的一个文件名，用来写入资料库。",
    ),
    "exchange_unwritable": (
        "The file {name} cannot be written ({detail}). Check that its folder exists and that you may write there; the "
        "library itself is well.",
        "无法写入文件 {name}（{detail}）。请确认其文件夹存在且有写入权限；资料库本身没有问题。",
    ),
    "exchange_oversized": (
        "The file {name} was not written: {part} holds more at one place than an import would read. Remove that page, "
        "or take it in again in smaller parts.",
        "没有写入文件 {name}：{part} 有一处过大，导入时将无法读取。请移除该网页，或拆成较小的部分重新添加。",
    ),
    "library_exists": (
        "There is a library named “{library}” already. Choose another name for the one to import.",
        "已有名为“{library}”的资料库。请为要导入的资料库另选名称。",
    ),
}
