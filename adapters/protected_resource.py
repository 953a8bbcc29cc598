"""`/mcp` as a protected resource (RFC 9728): the metadata from which a client learns how to present its token.

Apart from `adapters/agents.py`, because every bot has its routes, and few load the SDK of that.
"""

from __future__ import annotations

from dataclasses import dataclass

from yarl import URL

PATH = "/mcp"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """The metadata and the challenge of `/mcp` of the bot at `address`; empty if its public address is not known.

    `issuer` is the provider whose access tokens it accepts, beside those of the agents in plumbline.yaml; may be empty.

    A request cannot say which address is meant, because anybody can write its Host and forwarded headers.
    """

    address: str
    issuer: str = ""

    @property
    def origin(self) -> str:
        """Return the origin of its pages; empty if the address is not known."""
        return str(URL(self.address).origin()) if self.address else ""

    @property
    def metadata(self) -> dict[str, object]:
        """Return the metadata (RFC 9728, section 2); empty if the address is not known."""
        if not self.address:
            return {}
        return {
            "resource": f"{self.address}{PATH}",
            "resource_name": "Plumbline",
            "bearer_methods_supported": ["header"],
            **({"authorization_servers": [self.issuer]} if self.issuer else {}),
        }

    def challenge(self, *, wrong_token: bool) -> str:
        """Return the header WWW-Authenticate of a refusal (RFC 6750, section 3; RFC 9728, section 5.1)."""
        parameters = [
            'realm="plumbline"',
            *(['error="invalid_token"'] if wrong_token else []),
            *([f'resource_metadata="{self.address}{WELL_KNOWN}{PATH}"'] if self.address else []),
        ]
        return f"Bearer {', '.join(parameters)}"


def resource_at(public_url: str, issuer: str = "") -> ProtectedResource:
    """Return the resource of the bot with this public address, of which only scheme, host, port and path are shown."""
    try:
        url = URL(public_url)
        is_address = url.scheme in {"http", "https"} and url.host
        return ProtectedResource(f"{url.origin()}{url.raw_path.rstrip('/')}" if is_address else "", issuer)
    except ValueError:
        return ProtectedResource("")
