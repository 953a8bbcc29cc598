"""The Microsoft cloud of a bot: token issuers, authorities and service hosts."""

from __future__ import annotations

from dataclasses import dataclass

from yarl import URL

from adapters.section import LOOPBACK


@dataclass(frozen=True, slots=True)
class Cloud:
    """A cloud and its addresses.

    `issuer` and `metadata_url` belong to inbound tokens, `login_url` to outbound ones. `service_hosts` are the hosts
    (with subdomains, unless local) that a connector service may have; `graph_url` is Microsoft Graph.
    """

    issuer: str
    metadata_url: str
    login_url: str
    service_hosts: frozenset[str]
    graph_url: str = ""

    def serves(self, service_url: str) -> bool:
        """Return whether a connector service may have this address: over TLS, unless it is local."""
        if not (service_url.isascii() and service_url.isprintable()):
            return False  # clients parse such addresses differently
        try:
            url = URL(service_url)
            host = url.host or ""
        except ValueError:
            return False
        if url.user is not None or url.password is not None or url.query_string or url.fragment:
            return False
        if url.scheme != "https" and not (url.scheme == "http" and host in LOOPBACK):
            return False
        # A name below "localhost" may resolve to any host.
        return host in self.service_hosts or host.endswith(tuple(f".{each}" for each in self.service_hosts - LOOPBACK))


PUBLIC_CLOUD = Cloud(
    issuer="https://api.botframework.com",
    metadata_url="https://login.botframework.com/v1/.well-known/openidconfiguration",
    login_url="https://login.microsoftonline.com",
    service_hosts=frozenset({"smba.trafficmanager.net", "botframework.com", "teams.microsoft.com"}),
    graph_url="https://graph.microsoft.com/v1.0",
)

THIS_MACHINE = Cloud(issuer="", metadata_url="", login_url="", service_hosts=LOOPBACK)  # the playground, without tokens
