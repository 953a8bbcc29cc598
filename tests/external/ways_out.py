"""Every kind of client asks the address in its first argument once, in a process with the environment of a proxy."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable

from adapters import http

http.prepare(os.environ)

import aiohttp  # noqa: E402
import requests  # noqa: E402 -- once the environment is prepared, as in the product

from adapters.clock import SystemClock  # noqa: E402
from adapters.http import Http, client_session  # noqa: E402
from adapters.microsoft import ClientLogin, ClientSecret  # noqa: E402
from adapters.openid import Issuer  # noqa: E402
from adapters.slack.client import slack_client  # noqa: E402
from adapters.teams.connector import Connector  # noqa: E402
from adapters.teams.sdk_botbuilder import Botbuilder  # noqa: E402
from adapters.tools.mcp_server import McpServer  # noqa: E402


async def main(address: str) -> None:
    """Ask for a path that names the client; the answers do not matter."""
    ways: dict[str, Callable[[aiohttp.ClientSession], Awaitable[object]]] = {
        "http": lambda session: Http("It", f"{address}/http", session).get(""),
        "login": lambda session: ClientLogin(f"{address}/login", "t", "app", ClientSecret("s")).issue(session, "r"),
        "keys": lambda session: Issuer("keys", address, f"{address}/keys", SystemClock(), session).keys(),
        "teams": lambda session: Connector(None, session).call(f"{address}/teams", "delete_activity", "c", "m"),
        "botbuilder": lambda session: Botbuilder(None, session).call(
            f"{address}/botbuilder", "delete_activity", "c", "m"
        ),
        "slack": lambda _: slack_client("xoxb-1", f"{address}/slack/").auth_test(),
        "slack, in a session": lambda session: slack_client("xoxb-1", f"{address}/slack-session/", session).auth_test(),
        "mcp": lambda _: McpServer("it", f"{address}/mcp", {"tool": ""}).check(),
        "requests": lambda _: asyncio.to_thread(requests.get, f"{address}/requests", timeout=5),
    }
    for name, way in ways.items():
        # A session each: the proxy ends a connection without saying so, and a POST is not sent twice.
        async with client_session() as session:
            try:
                await way(session)
            except Exception as error:  # noqa: BLE001 -- whatever an answer of this kind leads to
                sys.stdout.write(f"{name}: {type(error).__name__}: {str(error)[:120]}\n")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
