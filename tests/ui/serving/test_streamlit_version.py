import streamlit
from streamlit.runtime.app_session import AppSession
from streamlit.runtime.runtime import Runtime

from rag.ui.serving.startup import PATCHED_STREAMLIT


def test_the_patches_are_looked_at_again_with_each_version_of_streamlit() -> None:
    """Another version: see whether the patches and page.js's dialogs still hold, then name it in PATCHED_STREAMLIT."""
    assert streamlit.__version__ == PATCHED_STREAMLIT


def test_what_the_patches_replace_is_there() -> None:
    replaced = ("_call_soon_on_event_loop", "flush_browser_queue", "_create_scriptrunner")
    assert all(callable(getattr(AppSession, name, None)) for name in replaced)
    assert all(callable(getattr(Runtime, name, None)) for name in ("_send_message", "_enqueued_some_message"))
