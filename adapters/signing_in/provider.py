"""An OpenID provider: the way there, and the claims of the tokens that come back (OpenID Connect Core 1.0).

Authlib writes the requests and checks the ID tokens; the requests go out like all others.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from authlib.oauth2.rfc6749.parameters import prepare_grant_uri
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken

from adapters.http import basic, json_in, line_of
from adapters.microsoft import Certificate
from adapters.openid import UNUSABLE, Issuer
from adapters.signing_in.guard import SignInSection
from core.model.errors import Unauthorized, Unavailable

LEEWAY = 60  # seconds between two clocks
LONGEST_LIFE = timedelta(days=1)  # of an access token, because its end alone says that somebody left


def derived(secret: str, purpose: str) -> str:
    """Return a value of an attempt to sign in, from the secret that only one browser has, which it does not reveal."""
    return hmac.digest(secret.encode(), purpose.encode(), "sha256").hex()


class Provider:
    """The provider that a section describes. `secret` is the password of the client; unused with a certificate."""

    def __init__(self, section: SignInSection, secret: str, issuer: Issuer) -> None:
        self.issuer = issuer
        self._section = section
        self._secret = secret

    async def address(self, redirect_uri: str, secret: str) -> str:
        """Return the address at which a person signs in, from which the browser comes back to `redirect_uri`."""
        return prepare_grant_uri(
            (await self.issuer.metadata())["authorization_endpoint"],
            self._section.client_id,
            "code",
            redirect_uri,
            " ".join(self._section.scopes),
            derived(secret, "state"),
            nonce=derived(secret, "nonce"),
            code_challenge=create_s256_code_challenge(derived(secret, "verifier")),
            code_challenge_method="S256",
        )

    async def redeem(self, reply: Mapping[str, str], redirect_uri: str, secret: str) -> tuple[dict[str, Any], str]:
        """Return the claims of the ID token for the code with which a browser came back, and the token.

        Raises Unauthorized if the reply does not belong to this attempt and this provider, or if the provider refuses.
        """
        metadata = await self.issuer.metadata()
        if not hmac.compare_digest(reply.get("state", "").encode(), derived(secret, "state").encode()):
            raise Unauthorized("This sign-in was not begun in this browser, or it took too long. Begin again.")
        is_named = "iss" in reply or metadata.get("authorization_response_iss_parameter_supported")  # RFC 9207
        if is_named and reply.get("iss") != self._section.issuer:
            raise Unauthorized("Another provider answered than the one that was asked. Begin again.")
        if "code" not in reply:
            raise Unauthorized(f"The provider did not sign you in: {line_of(reply.get('error', 'no reason'), 100)}.")
        form = {
            "grant_type": "authorization_code",
            "code": reply["code"],
            "redirect_uri": redirect_uri,
            "code_verifier": derived(secret, "verifier"),
        }
        address, client_id, file = metadata["token_endpoint"], self._section.client_id, self._section.client_certificate
        form |= {**Certificate(file).fields(address, client_id), "client_id": client_id} if file else {}
        headers = {} if file else {"Authorization": basic(client_id, self._secret).value}
        answer = await self.issuer.ask("POST", address, data=form, headers=headers)
        if answer.may_pass:
            raise Unavailable(f"The provider answered with HTTP status {answer.status}.", answer.retry_after)
        try:
            tokens: Any = json_in(answer.body)
            return await self._identity(tokens["id_token"], tokens["access_token"], secret), tokens["id_token"]
        except UNUSABLE as error:
            raise Unauthorized(f"The provider did not sign you in: {line_of(str(error), 200)}. Begin again.") from None

    async def claims(self, token: str, audience: str) -> dict[str, Any]:
        """Return the claims of a person's access token for this audience. Raises Unauthorized, Unavailable."""
        claims = (await self.issuer.verified(token, audience, LEEWAY))[0].claims
        named = claims["aud"] if isinstance(claims["aud"], list) else [claims["aud"]]
        if self._section.client_id in named or "nonce" in claims or claims.get("idtyp") == "app":
            raise Unauthorized("This token is not the access token of a person for /mcp.")
        if claims["exp"] - self.issuer.clock.now().timestamp() > LONGEST_LIFE.total_seconds():
            raise Unauthorized("This token is valid for more than a day: let the provider issue shorter ones.")
        return claims

    async def _identity(self, id_token: str, access_token: str, secret: str) -> dict[str, Any]:
        client_id = self._section.client_id
        verified, _ = await self.issuer.verified(id_token, client_id, LEEWAY)
        expected = {"client_id": client_id, "nonce": derived(secret, "nonce"), "access_token": access_token}
        identity = CodeIDToken(verified.claims, verified.header, {}, expected)
        identity.validate(int(self.issuer.clock.now().timestamp()), LEEWAY)
        return verified.claims
