"""Sentences of rag/store/qdrant/transfer.py: a library as one file."""

MESSAGES: dict[str, tuple[str, str]] = {
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
