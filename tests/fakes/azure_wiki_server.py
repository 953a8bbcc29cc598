"""A wiki of Azure DevOps, as its REST API documents it: the tree of pages, and the Git repository behind them."""

from __future__ import annotations

import hashlib
from typing import Any

from aiohttp import encode_basic_auth, web

from tests.fakes.refusals import Refusals, as_middleware
from tests.fakes.server import FakeServer

TOKEN = "azure-token"


class FakeAzureWiki(FakeServer):
    """Pages by path, all of them below the page `/Runbooks`, which has no text."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.unreadable = set[str]()
        self.refusals = Refusals()
        self.token = TOKEN
        app = web.Application(middlewares=[as_middleware(self.refusals)])
        base = "/acme/Shop floor/_apis"
        app.router.add_get(f"{base}/wiki/wikis/Shop.wiki", self._wiki)
        app.router.add_get(f"{base}/wiki/wikis/Shop.wiki/pages", self._pages)
        app.router.add_get(f"{base}/git/repositories/repo-1/items", self._items)
        super().__init__(app)

    @property
    def url(self) -> str:
        return str(self._server.make_url("/acme"))

    def _refused(self, request: web.Request) -> web.Response | None:
        assert request.query["api-version"] == "7.1"
        if request.headers.get("Authorization") == encode_basic_auth("", self.token):
            return None
        return web.Response(status=401)

    async def _wiki(self, request: web.Request) -> web.Response:
        named = {"id": "wiki-1", "name": "Shop.wiki", "type": "projectWiki", "repositoryId": "repo-1"}
        return self._refused(request) or web.json_response(
            named | {"mappedPath": "/", "versions": [{"version": "wikiMaster"}]}
        )

    async def _pages(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        path = request.query["path"]
        if request.query.get("includeContent") == "true":
            if path in self.unreadable:
                return web.json_response({"typeKey": "WikiPageCorruptException"}, status=400)
            if path not in self.pages:
                return web.json_response({"typeKey": "WikiPageNotFoundException"}, status=404)
            text = self.pages[path]
            return web.json_response(self._page(path) | {"content": text}, headers={"ETag": f'"{self._object(text)}"'})
        below = [self._page(each) for each in sorted(self.pages)] if request.query["recursionLevel"] == "full" else []
        top = self._page("/Runbooks") | {"subPages": below, "isParentPage": True}
        return web.json_response({"path": "/", "order": 0, "gitItemPath": "/", "subPages": [top]})

    async def _items(self, request: web.Request) -> web.Response:
        if refused := self._refused(request):
            return refused
        query = request.query
        assert (query["recursionLevel"], query["versionDescriptor.version"]) == ("full", "wikiMaster")
        change = {"commitId": "be67", "committer": {"name": "Asha Brandt", "date": "2026-02-01T10:00:00Z"}}
        files = [
            {"path": self._file(path), "objectId": self._object(text), "gitObjectType": "blob"}
            for path, text in (self.pages | {"/Runbooks": ""}).items()
        ]
        value = [{"path": "/", "objectId": "f00d", "gitObjectType": "tree", "isFolder": True}, *files]
        return web.json_response(
            {"count": len(value), "value": [each | {"latestProcessedChange": change} for each in value]}
        )

    def _page(self, path: str) -> dict[str, Any]:
        address = f"https://dev.azure.com/acme/Shop/_wiki/wikis/Shop.wiki?pagePath={path}"
        return {"path": path, "order": 1, "gitItemPath": self._file(path), "subPages": [], "remoteUrl": address}

    @staticmethod
    def _file(path: str) -> str:
        return f"{path.replace(' ', '-')}.md"

    @staticmethod
    def _object(text: str) -> str:
        return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
