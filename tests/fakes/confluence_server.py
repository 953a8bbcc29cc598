"""Confluence as its REST API documents it, Cloud or Data Center: search by CQL, expansions, paging, restrictions."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from tests.fakes.refusals import Refusals, as_middleware
from tests.fakes.server import FakeServer

TOKEN = "confluence-token"
MOST_LISTED = 4  # results of one answer, whatever is asked for
MOST_WITH_BODY = 2


@dataclass(slots=True)
class Page:
    id: str
    title: str
    storage: str
    when: str = "2026-02-01T10:00:00.000Z"
    space: str = "OPS"
    ancestors: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    author: dict[str, str] = field(default_factory=lambda: {"displayName": "Asha Brandt", "accountId": "5b10asha"})
    hidden_users: int = 0  # whom it is restricted to, but who are not shown to us
    tells_restrictions: bool = True
    type: str = "page"


class FakeConfluence(FakeServer):
    """One site. With `cloud`, links to the next results hold a cursor and no context path, else an offset."""

    def __init__(self, *, cloud: bool) -> None:
        self.pages: dict[str, Page] = {}
        self.cloud = cloud
        self.context = "/wiki" if cloud else "/confluence"
        self.refusals = Refusals()
        self.token = TOKEN
        self._cursors: dict[str, list[str]] = {}
        app = web.Application(middlewares=[as_middleware(self.refusals)])
        app.router.add_get(f"{self.context}/rest/api/content/search", self._search)
        app.router.add_get(f"{self.context}/rest/api/content/{{id}}", self._content)
        super().__init__(app)

    @property
    def url(self) -> str:
        return str(self._server.make_url(self.context))

    async def _search(self, request: web.Request) -> web.Response:
        if refused := self._unauthorized(request):
            return refused
        query = request.query
        expand = query.get("expand", "").split(",")
        limit = min(int(query.get("limit", 25)), MOST_WITH_BODY if "body.storage" in expand else MOST_LISTED)
        # A cursor stands for what was found at first; an offset counts in what is there now.
        found = self._cursors[query["cursor"]] if "cursor" in query else self._found(query["cql"])
        start = int(query.get("start", 0))
        chosen, rest = found[start : start + limit], found[start + limit :]
        answer: dict[str, Any] = {
            "results": [self._result(self.pages[page_id], expand) for page_id in chosen if page_id in self.pages],
            "start": start,
            "limit": limit,
            "size": len(chosen),
            "_links": {"base": self.url, "context": self.context},
        }
        if rest:
            answer["_links"]["next"] = self._next(query, start + limit, limit, rest)
        return web.json_response(answer)

    def _next(self, query: Any, start: int, limit: int, rest: list[str]) -> str:
        kept = {key: query[key] for key in ("cql", "expand")} | {"limit": str(limit)}
        if not self.cloud:
            return f"/rest/api/content/search?{urlencode(kept | {'start': str(start)})}"
        cursor = f"raNDoM{len(self._cursors)}"
        self._cursors[cursor] = rest
        return f"/rest/api/content/search?{urlencode(kept | {'next': 'true', 'cursor': cursor})}"

    async def _content(self, request: web.Request) -> web.Response:
        if refused := self._unauthorized(request):
            return refused
        page = self.pages.get(request.match_info["id"])
        if page is None:
            return web.json_response({"statusCode": 404, "message": "No content found"}, status=404)
        return web.json_response(self._result(page, request.query.get("expand", "").split(",")))

    def _unauthorized(self, request: web.Request) -> web.Response | None:
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        return web.json_response({"statusCode": 401}, status=401)

    def _found(self, cql: str) -> list[str]:
        """The ids of the pages that a query of ours finds, in order of creation."""
        clauses, _, order = cql.partition(" order by ")
        assert order in ("", "created"), cql
        found = list(self.pages.values())
        for clause in clauses.split(" and "):
            if clause == "type=page":
                found = [page for page in found if page.type == "page"]
            elif match := re.fullmatch(r"(space|id) in \((.+)\)", clause):
                wanted = {value.strip('"') for value in match[2].split(",")}
                found = [page for page in found if getattr(page, match[1]) in wanted]
            else:
                raise AssertionError(f"Confluence does not understand {clause!r}")
        return [page.id for page in found]

    def _result(self, page: Page, expand: list[str]) -> dict[str, Any]:
        result: dict[str, Any] = {
            "id": page.id,
            "type": page.type,
            "status": "current",
            "title": page.title,
            "_expandable": {},
            "_links": {
                "webui": f"/spaces/{page.space}/pages/{page.id}",
                "self": f"{self.url}/rest/api/content/{page.id}",
            },
        }
        if "version" in expand:
            result["version"] = {"number": 1, "when": page.when, "by": {"type": "known"} | page.author}
        if "space" in expand:
            result["space"] = {"key": page.space, "name": page.space}
        if "ancestors" in expand:
            result["ancestors"] = [{"id": ancestor, "type": "page"} for ancestor in page.ancestors]
        if "body.storage" in expand:
            result["body"] = {"storage": {"value": page.storage, "representation": "storage"}}
        if "restrictions.read.restrictions.user" in expand and page.tells_restrictions:
            result["restrictions"] = {
                "read": {
                    "operation": "read",
                    "restrictions": {
                        "user": {
                            "results": [{"accountId": user, "displayName": user} for user in page.users],
                            "size": len(page.users) + page.hidden_users,
                        },
                        "group": {"results": [{"type": "group", "name": group} for group in page.groups]},
                    },
                }
            }
        return result
