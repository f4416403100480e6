"""The words on the screens, English and Chinese, one file a page; `rag.ui.kit.strings` puts them together."""
