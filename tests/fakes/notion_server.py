"""Notion as its API reference documents it: search, pages, blocks with children, and users.

The answers follow the examples of these pages of the reference:
https://developers.notion.com/reference/post-search · https://developers.notion.com/reference/page
https://developers.notion.com/reference/block · https://developers.notion.com/reference/get-block-children
https://developers.notion.com/reference/rich-text · https://developers.notion.com/reference/get-users
https://developers.notion.com/reference/status-codes
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.refusals import Refusals, as_middleware
from tests.fakes.server import FakeServer

TOKEN = "ntn_secret"
MOST = 2  # results of one answer, whatever is asked for
STYLE = {"bold": False, "italic": False, "strikethrough": False, "underline": False, "code": False, "color": "default"}


@dataclass(slots=True)
class StoredPage:
    title: str
    blocks: list[dict[str, Any]]
    edited: str = "2026-02-01T10:00:00.000Z"
    properties: dict[str, Any] = field(default_factory=dict[str, Any])
    in_trash: bool = False
    is_found: bool = True  # by a search


def page_id(key: str) -> str:
    return f"b55c9c91-384d-452b-81db-d1ef79372{key:0>3}"


def text(content: str, href: str | None = None, **style: bool) -> dict[str, Any]:
    link = {"url": href} if href else None
    own = {"type": "text", "text": {"content": content, "link": link}, "annotations": STYLE | style}
    return own | {"plain_text": content, "href": href}


def mention(name: str) -> dict[str, Any]:
    user = {"object": "user", "id": "u-2", "type": "person", "name": name, "person": {"email": "mateo@acme.example"}}
    own = {"type": "mention", "mention": {"type": "user", "user": user}, "annotations": STYLE}
    return own | {"plain_text": f"@{name}", "href": None}


class Blocks:
    """Makes blocks, with ids of their own."""

    def __init__(self) -> None:
        self._ids = itertools.count(1)

    def __call__(self, kind: str, *texts: dict[str, Any] | str, inside: list[Any] | None = None, **body: Any) -> Any:
        rich = [text(each) if isinstance(each, str) else each for each in texts]
        return {
            "object": "block",
            "id": f"c02fc1d3-db8b-45c5-a222-27595b1{next(self._ids):05}",
            "type": kind,
            "has_children": bool(inside),
            "in_trash": False,
            "last_edited_time": "2026-02-01T10:00:00.000Z",
            kind: ({"rich_text": rich} if rich else {}) | body,
            "children": inside or [],  # of the fake alone
        }


block = Blocks()


class FakeNotion(FakeServer):
    """One workspace, and what of it is shared with one integration."""

    def __init__(self) -> None:
        self.pages: dict[str, StoredPage] = {}
        self.users: list[dict[str, Any]] = [
            {
                "object": "user",
                "id": "u-1",
                "type": "person",
                "name": "Asha Brandt",
                "person": {"email": "a@b.example"},
            },
            {"object": "user", "id": "u-9", "type": "bot", "name": "Plumbline", "bot": {}},
        ]
        self.tells_users = True
        self.hidden_blocks: set[str] = set()
        self.refusals = Refusals()
        self.token = TOKEN
        app = web.Application(middlewares=[as_middleware(self.refusals)])
        app.router.add_post("/v1/search", self._search)
        app.router.add_get("/v1/pages/{page}", self._page)
        app.router.add_get("/v1/blocks/{block}/children", self._children)
        app.router.add_get("/v1/users", self._users)
        super().__init__(app)

    @property
    def url(self) -> str:
        return str(self._server.make_url("/"))

    # --- the server --------------------------------------------------------------------------------------------------

    async def _search(self, request: web.Request) -> web.Response:
        asked = await request.json()
        assert asked["filter"] == {"property": "object", "value": "page"}
        assert asked["sort"]["timestamp"] == "last_edited_time"
        listed = sorted(
            (key for key, page in self.pages.items() if page.is_found), key=lambda key: self.pages[key].edited
        )
        results = [self._described(key) for key in listed]
        return self._listed(request, results, int(asked["page_size"]), asked.get("start_cursor"))

    async def _page(self, request: web.Request) -> web.Response:
        key = request.match_info["page"]
        if refusal := self._refused(request):
            return refusal
        return web.json_response(self._described(key)) if key in self.pages else _not_found(key)

    async def _children(self, request: web.Request) -> web.Response:
        key = request.match_info["block"]
        blocks = self.pages[key].blocks if key in self.pages else self._inner(key)
        if blocks is None or key in self.hidden_blocks:
            return _not_found(key)
        results = [{name: value for name, value in each.items() if name != "children"} for each in blocks]
        return self._listed(request, results, int(request.query["page_size"]), request.query.get("start_cursor"))

    async def _users(self, request: web.Request) -> web.Response:
        if not self.tells_users:
            return web.json_response({"object": "error", "status": 403, "code": "restricted_resource"}, status=403)
        return self._listed(request, self.users, int(request.query["page_size"]), request.query.get("start_cursor"))

    def _inner(self, key: str) -> list[dict[str, Any]] | None:
        waiting = [each for page in self.pages.values() for each in page.blocks]
        while waiting:
            each = waiting.pop()
            if each["id"] == key:
                return each["children"]
            waiting += each["children"]
        return None

    def _described(self, key: str) -> dict[str, Any]:
        page = self.pages[key]
        title = {"id": "title", "type": "title", "title": [text(page.title)]}
        return {
            "object": "page",
            "id": key,
            "created_time": "2026-01-01T10:00:00.000Z",
            "last_edited_time": page.edited,
            "created_by": {"object": "user", "id": "u-1"},
            "last_edited_by": {"object": "user", "id": "u-1"},
            "cover": None,
            "icon": None,
            "parent": {"type": "workspace", "workspace": True},
            "in_trash": page.in_trash,
            "properties": {"title": title, **page.properties},
            "url": f"https://www.notion.so/{page.title.replace(' ', '-')}-{key.replace('-', '')}",
            "public_url": None,
        }

    def _refused(self, request: web.Request) -> web.Response | None:
        assert request.headers["Notion-Version"] == "2026-03-11"
        if request.headers.get("Authorization") == f"Bearer {self.token}":
            return None
        body = {"object": "error", "status": 401, "code": "unauthorized", "message": "API token is invalid."}
        return web.json_response(body, status=401)

    def _listed(self, request: web.Request, items: list[Any], size: int, start: str | None) -> web.Response:
        if refusal := self._refused(request):
            return refusal
        first = int(start or 0)
        after = first + min(size, MOST)
        more = after < len(items)
        following = str(after) if more else None
        answer = {"object": "list", "results": items[first:after], "next_cursor": following, "has_more": more}
        return web.json_response(answer)


def _not_found(key: str) -> web.Response:
    message = f"Could not find block with ID: {key}. Make sure the relevant pages are shared with your integration."
    return web.json_response({"object": "error", "code": "object_not_found", "message": message}, status=404)
