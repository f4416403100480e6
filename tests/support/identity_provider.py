"""An identity provider on loopback that signs everyone in as the same user, by OpenID Connect's code flow."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "pagelight", "of the client"


class IdentityProvider:
    """A provider that issues `claims` to everyone who signs in."""

    def __init__(self, claims: Mapping[str, Any]) -> None:
        self._claims = dict(claims)
        self._key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self._nonces: dict[str, str] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.issuer = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def secrets(self, redirect: str, cookie_secret: str) -> str:
        """Return the text of .streamlit/secrets.toml for an app that users reach at `redirect`."""
        rows = {
            "redirect_uri": f"{redirect}/oauth2callback",
            "cookie_secret": cookie_secret,
            "client_id": CLIENT,
            "client_secret": SECRET,
            "server_metadata_url": f"{self.issuer}/.well-known/openid-configuration",
        }
        return "[auth]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in rows.items())

    def _metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def _tokens(self, code: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 3600, **self._claims}
        claims |= {"nonce": self._nonces[code]}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self._key)
        return {"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": token}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                place = urlsplit(self.path)
                if place.path == "/authorize":
                    asked = {name: values[0] for name, values in parse_qs(place.query).items()}
                    code = f"code{len(provider._nonces)}"
                    provider._nonces[code] = asked.get("nonce", "")
                    back = urlencode({"code": code, "state": asked["state"]})
                    self.send_response(302)
                    self.send_header("Location", f"{asked['redirect_uri']}?{back}")
                    self.end_headers()
                elif place.path == "/keys":
                    self._send({"keys": [provider._key.as_dict(private=False)]})
                else:
                    self._send(provider._metadata())

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                self._send(provider._tokens(parse_qs(body)["code"][0]))

            def _send(self, data: Mapping[str, Any]) -> None:
                body = json.dumps(data).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Log nothing."""

        return Handler
