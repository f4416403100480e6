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
}
