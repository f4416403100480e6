"""The web app manifest, with which a phone's share menu passes links to the app."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from rag.ui.kit.navigation import SHARE_PARAMS

if TYPE_CHECKING:
    from starlette.requests import Request

_ICON = Path(__file__).resolve().parents[1] / "static" / "icon.svg"


async def manifest(_: Request) -> JSONResponse:
    """Return the manifest; a shared link opens the Add page with the link in its box, and is not added yet."""
    icon = base64.b64encode(_ICON.read_bytes()).decode("ascii")
    content = {
        "name": "Pagelight",
        "short_name": "Pagelight",
        "start_url": "./",
        "display": "standalone",
        "background_color": "#FCFBF8",
        "theme_color": "#1F6F5C",
        "icons": [{"src": f"data:image/svg+xml;base64,{icon}", "sizes": "any", "type": "image/svg+xml"}],
        "share_target": {"action": "./", "method": "GET", "params": {"url": SHARE_PARAMS[0], "text": SHARE_PARAMS[1]}},
    }
    return JSONResponse(content, media_type="application/manifest+json")
