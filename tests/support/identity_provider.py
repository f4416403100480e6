"""An identity provider on loopback that signs everyone in as the same user, by OpenID Connect's code flow."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

from tests.support.loopback import Handler, LoopbackServer

CLIENT, SECRET = "pagelight", "of the client"


class IdentityProvider(LoopbackServer):
    """A provider that issues `claims` to everyone who signs in."""

    def __init__(self, claims: Mapping[str, Any]) -> None:
        super().__init__(_Handler)
        self._claims = dict(claims)
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.nonces: dict[str, str] = {}
        self.issuer = self.origin

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

    def metadata(self) -> dict[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["RS256"],
        }

    def tokens(self, code: str) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "iat": now, "exp": now + 3600, **self._claims}
        claims |= {"nonce": self.nonces[code]}
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.key)
        return {"access_token": "x", "token_type": "Bearer", "expires_in": 3600, "id_token": token}


class _Handler(Handler):
    def get(self) -> None:
        provider, place = self.server.owner, urlsplit(self.path)
        if place.path == "/authorize":
            asked = {name: values[0] for name, values in parse_qs(place.query).items()}
            code = f"code{len(provider.nonces)}"
            provider.nonces[code] = asked.get("nonce", "")
            back = urlencode({"code": code, "state": asked["state"]})
            self.send_whole(302, headers={"Location": f"{asked['redirect_uri']}?{back}"})
        elif place.path == "/keys":
            self._send({"keys": [provider.key.as_dict(private=False)]})
        else:
            self._send(provider.metadata())

    def post(self) -> None:
        self._send(self.server.owner.tokens(parse_qs(self.read_body().decode())["code"][0]))

    def _send(self, data: Mapping[str, Any]) -> None:
        self.send_whole(200, json.dumps(data).encode(), {"Content-Type": "application/json"})
