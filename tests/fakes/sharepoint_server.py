"""SharePoint as Microsoft Graph documents it: libraries with deltas and permissions, and the pages of a site.

The answers follow the examples of these pages of the reference:
https://learn.microsoft.com/graph/api/site-getbypath · https://learn.microsoft.com/graph/api/drive-list
https://learn.microsoft.com/graph/api/driveitem-delta · https://learn.microsoft.com/graph/api/driveitem-list-permissions
https://learn.microsoft.com/graph/api/driveitem-get-content · https://learn.microsoft.com/graph/api/group-list-transitivemembers
https://learn.microsoft.com/graph/api/sitepage-list · https://learn.microsoft.com/graph/api/sitepage-get
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from aiohttp import web

from tests.fakes.graph_server import FakeGraph, unknown

HOST = "contoso.sharepoint.com"
SITE = f"{HOST},2c712604-1370-44e7-a1f5-426573fda80a,2d2244c3-251a-49ea-93a8-39e1c3a060fe"
ADDRESS = f"https://{HOST}/sites/ops"
DRIVE = "b!-RIj2DuyvEyV1T4NlOaMHk8XkS_I8MdFlUCq1BlcjgmhRfAj3-Z8RY2VpuvV_tpd"
AUTHOR = {"user": {"id": "u-9", "displayName": "Rahul Mittal", "email": "rahmit@contoso.example"}}
VISITORS = {"siteGroup": {"id": "4", "displayName": "Ops Visitors", "loginName": "Ops Visitors"}}
KEEPERS = {"siteGroup": {"id": "9", "displayName": "Vault Keepers", "loginName": "Vault Keepers"}}


@dataclass(slots=True)
class StoredFile:
    name: str
    content: bytes
    permissions: list[dict[str, Any]] = field(default_factory=lambda: [granted(VISITORS)])
    fields: dict[str, Any] = field(default_factory=dict[str, Any])
    changed: int = 0
    tells_permissions: int = 200  # the status with which its permissions are answered


@dataclass(slots=True)
class StoredPage:
    title: str
    canvas: dict[str, Any]
    level: str = "published"
    version: int = 1


def granted(*identities: dict[str, Any], **link: Any) -> dict[str, Any]:
    """A permission of somebody, or those who use a link."""
    if link:
        return {"id": "3", "roles": ["read"], "link": {"type": "view", **link}, "grantedToIdentitiesV2": [*identities]}
    return {"id": "1", "roles": ["write"], "grantedToV2": identities[0]}


def text_part(html: str) -> dict[str, Any]:
    return {"@odata.type": "#microsoft.graph.textWebPart", "id": "f6d0ef70", "innerHtml": html}


def canvas_of(*columns: list[dict[str, Any]], vertical: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    columns_of = [{"id": str(number), "width": 4, "webparts": parts} for number, parts in enumerate(columns, 1)]
    section = {"layout": "twoColumns", "id": "1", "emphasis": "none", "columns": columns_of}
    return {"horizontalSections": [section]} | ({"verticalSection": {"webparts": vertical}} if vertical else {})


class FakeSharePoint(FakeGraph):
    """One site with one library. Deleted items stay in the delta until their link is too old."""

    def __init__(self) -> None:
        self.files: dict[str, StoredFile] = {}
        self.folders = ["01FOLDER"]
        self.pages: dict[str, StoredPage] = {}
        self.libraries = {DRIVE: "Documents"}
        self.groups: dict[str, list[dict[str, str]]] = {}
        self.elsewhere = ""  # the server to which downloads are redirected, if not this one
        self.oldest_delta = 0  # a link that is older is refused
        self.shows_pages = True
        self._deleted: dict[str, int] = {}
        self._changes = itertools.count(1)
        super().__init__()

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_get(f"/v1.0/sites/{HOST}:/sites/ops", self._site)
        app.router.add_get(f"/v1.0/sites/{SITE}/drives", self._drives)
        app.router.add_get(f"/v1.0/sites/{SITE}/pages/microsoft.graph.sitePage", self._list_pages)
        app.router.add_get(f"/v1.0/sites/{SITE}/pages/{{page}}/microsoft.graph.sitePage", self._page)
        drive = "/v1.0/drives/{drive}"
        app.router.add_get(f"{drive}/root/delta", self._drive_delta)
        app.router.add_get(f"{drive}/items/{{item}}", self._item)
        app.router.add_get(f"{drive}/items/{{item}}/permissions", self._permissions)
        app.router.add_get(f"{drive}/items/{{item}}/content", self._content)
        app.router.add_get("/v1.0/groups/{group}/transitiveMembers", self._group_members)
        app.router.add_get("/download/{item}", self._download)

    @property
    def download_host(self) -> str:
        return f"{self._server.host}:{self._server.port}"

    # --- what people do ----------------------------------------------------------------------------------------------

    def put(self, item: str, name: str, content: str | bytes, **fields: Any) -> StoredFile:
        data = content.encode() if isinstance(content, str) else content
        stored = self.files.setdefault(item, StoredFile(name, data))
        stored.name, stored.content, stored.changed = name, data, next(self._changes)
        stored.fields |= fields
        return stored

    def drop(self, item: str) -> None:
        del self.files[item]
        self._deleted[item] = next(self._changes)

    def forget_deletions(self) -> None:
        """As a delta that does not name everything."""
        self._deleted.clear()

    # --- the server --------------------------------------------------------------------------------------------------

    async def _site(self, request: web.Request) -> web.Response:
        site = {"id": SITE, "name": "ops", "displayName": "Operations", "webUrl": ADDRESS}
        return self._answer(request, lambda: site)

    async def _drives(self, request: web.Request) -> web.Response:
        drives = [{"id": key, "name": name, "driveType": "documentLibrary"} for key, name in self.libraries.items()]
        return self._paged(request, drives)

    async def _drive_delta(self, request: web.Request) -> web.Response:
        if request.match_info["drive"] != DRIVE:
            return self._paged(request, [])
        since = int(request.query.get("token", 0))
        if since < self.oldest_delta and "token" in request.query:
            error = {"code": "resyncRequired", "innerError": {"code": "resyncChangesApplyDifferences"}}
            return web.json_response({"error": error}, status=410)
        changed = [(file.changed, self._described(item)) for item, file in self.files.items()]
        changed += [(number, {"id": item, "deleted": {"state": "deleted"}}) for item, number in self._deleted.items()]
        items = [item for number, item in sorted(changed, key=lambda each: each[0]) if number > since]
        if not since:
            items = [{"id": folder, "name": folder.lower(), "folder": {}} for folder in self.folders] + items
        newest = max([number for number, _ in changed], default=since)
        link = {"@odata.deltaLink": f"{self._server.make_url(request.path)}?token={max(newest, since)}"}
        answer = self._paged(request, items)
        return answer if "@odata.nextLink" in (answer.text or "") else self._paged(request, items, link)

    def _described(self, item: str) -> dict[str, Any]:
        file = self.files[item]
        return {
            "id": item,
            "name": file.name,
            "eTag": f'"{{{item}}},{file.changed}"',
            "webUrl": f"{ADDRESS}/Shared%20Documents/{quote(file.name)}",
            "size": len(file.content),
            "file": {"mimeType": "text/markdown"},
            "lastModifiedDateTime": f"2026-02-01T10:{file.changed % 60:02}:00Z",
            "createdBy": AUTHOR,
            "lastModifiedBy": AUTHOR,
        } | file.fields

    async def _item(self, request: web.Request) -> web.Response:
        item = request.match_info["item"]
        return self._answer(request, lambda: self._described(item)) if item in self.files else unknown()

    async def _permissions(self, request: web.Request) -> web.Response:
        file = self.files.get(request.match_info["item"])
        if file is None:
            return unknown()
        if file.tells_permissions != 200:
            return web.json_response({"error": {"code": "accessDenied"}}, status=file.tells_permissions)
        return self._paged(request, file.permissions)

    async def _content(self, request: web.Request) -> web.Response:
        item = request.match_info["item"]
        if item not in self.files:
            return unknown()
        answer = self._answer(request, dict)
        where = self.elsewhere or f"http://{self.download_host}"
        location = {"Location": f"{where}/download/{item}?tempauth=v1.secret"}
        return answer if answer.status == 401 else web.Response(status=302, headers=location)

    async def _download(self, request: web.Request) -> web.Response:
        assert "Authorization" not in request.headers, "a preauthenticated address needs no token"
        return web.Response(body=self.files[request.match_info["item"]].content)

    async def _group_members(self, request: web.Request) -> web.Response:
        group = request.match_info["group"]
        if group not in self.groups:
            return web.json_response({"error": {"code": "Authorization_RequestDenied"}}, status=403)
        return self._paged(request, self.groups[group])

    async def _list_pages(self, request: web.Request) -> web.Response:
        return self._paged(request, [self._page_of(page) for page in self.pages] if self.shows_pages else [])

    async def _page(self, request: web.Request) -> web.Response:
        page = request.match_info["page"]
        if page not in self.pages:
            return unknown()
        more = {"canvasLayout": self.pages[page].canvas} if request.query.get("$expand") == "canvasLayout" else {}
        return self._answer(request, lambda: self._page_of(page) | more)

    def _page_of(self, page: str) -> dict[str, Any]:
        stored = self.pages[page]
        return {
            "@odata.type": "#microsoft.graph.sitePage",
            "id": page,
            "name": f"{stored.title}.aspx",
            "title": stored.title,
            "webUrl": f"{ADDRESS}/SitePages/{quote(stored.title)}.aspx",
            "eTag": f'"{{{page.upper()}}},{stored.version}"',
            "lastModifiedDateTime": f"2026-02-01T10:{stored.version % 60:02}:00Z",
            "pageLayout": "article",
            "createdBy": AUTHOR,
            "lastModifiedBy": AUTHOR,
            "publishingState": {"level": stored.level, "versionId": f"{stored.version}.0"},
        }
