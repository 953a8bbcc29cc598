"""The way out: every client goes through the proxy that the environment names, if it names one (HTTPS_PROXY, HTTP_PROXY,
NO_PROXY), and trusts the authorities of SSL_CERT_FILE.

aiohttp, requests (of botbuilder and OpenTelemetry) and qdrant-client read the environment themselves once it is prepared.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any, Protocol, TypeVar
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL


class _Client(Protocol):
    proxy: str | None


# Never asked through a proxy: this machine, and the service of a cloud that knows the machine.
NEAR = ("localhost", "127.0.0.1", "::1", "169.254.169.254")


def prepare(environment: MutableMapping[str, str]) -> None:
    """Exempt what is near from the proxies of the environment, and let no client add credentials from ~/.netrc."""
    exempt = (environment.get("no_proxy") or environment.get("NO_PROXY") or "").split(",")
    environment["NO_PROXY"] = environment["no_proxy"] = ",".join(filter(None, dict.fromkeys((*exempt, *NEAR))))
    environment["NETRC"] = os.devnull


def client_session(**options: Any) -> aiohttp.ClientSession:
    """Return a session that uses the proxies of the environment. `options` go to aiohttp."""
    return aiohttp.ClientSession(trust_env=True, **options)


def proxy_for(url: str) -> str | None:
    """Return the proxy for a URL, for clients that do not look for it or know no exemptions; None for the direct way."""
    address = URL(url)
    near = address.host is None or proxy_bypass(address.host)
    return None if near else getproxies().get(address.scheme)


C = TypeVar("C", bound=_Client)


def through_proxy(client: C, url: str) -> C:
    """Return the client, with its way to a URL set: Slack's own takes every proxy of the environment, and no exemption."""
    client.proxy = proxy_for(url)
    return client
