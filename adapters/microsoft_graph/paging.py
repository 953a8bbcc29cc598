"""Collections of Microsoft Graph, which come in pages: https://learn.microsoft.com/graph/paging."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from adapters.http import Http, followed


async def graph_pages(
    server: Http, address: str, parameters: Mapping[str, str] | None = None
) -> AsyncIterator[dict[str, Any]]:
    """Yield each page of a collection. Raises SourceUnavailable if the links form a loop."""
    answer = await server.get(address, parameters)
    before = set[str]()
    while True:
        yield answer
        if not (following := answer.get("@odata.nextLink")):
            return
        answer = await server.get(followed(str(following), before, server.system))


async def graph_values(server: Http, address: str, parameters: Mapping[str, str] | None = None) -> list[Any]:
    """Return all values of a collection."""
    return [each async for page in graph_pages(server, address, parameters) for each in page.get("value", ())]
