"""The words on the screens, English and Chinese, one file a page; `rag.ui.strings` puts them together."""
