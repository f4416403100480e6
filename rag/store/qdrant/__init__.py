"""Libraries in Qdrant. `client.connect` opens the database, `library.open_library` a library in it.

`edge` is the embedded engine; most modules do not know whether it or a server is used.
"""

from __future__ import annotations

import sys
from typing import Any

from pydantic import BaseModel


def _import_client() -> None:
    """Import qdrant-client without building the schemas of its 400 models, which takes most of the import time.

    Pydantic builds a missing schema on first use. httpx's command line, which imports rich and pygments, is skipped.
    """
    rebuild = BaseModel.__dict__["model_rebuild"]

    def rebuild_others(cls: type[BaseModel], /, *, _parent_namespace_depth: int = 2, **options: Any) -> bool | None:
        if cls.__module__.startswith("qdrant_client."):
            return None
        depth = _parent_namespace_depth + 1
        result: bool | None = rebuild.__func__(cls, _parent_namespace_depth=depth, **options)
        return result

    BaseModel.model_rebuild = classmethod(rebuild_others)  # type: ignore[assignment,method-assign]
    command_line = sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]
    try:
        import qdrant_client  # noqa: F401
    finally:
        BaseModel.model_rebuild = rebuild  # type: ignore[method-assign]
        if command_line is None:
            del sys.modules["httpx._main"]


_import_client()
