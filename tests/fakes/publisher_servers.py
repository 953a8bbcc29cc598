"""GitHub, GitLab, Jira and Confluence, as far as their documentation says how they take what is written; and a memory."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from aiohttp import web

from core.model.errors import SourceUnavailable
from core.model.incident import Filed, Report
from tests.fakes.tool_servers import FakeToolServer

CREATED = "2026-03-14T09:30:00Z"


@dataclass
class FakePublisher:
    """A Publisher in memory. A `failure` is what it says instead, after it has written if it `fails_late`."""

    settles_after: float = 0.0
    failure: str = ""
    fails_late: bool = False
    may_write: bool = True
    written: list[Report] = field(default_factory=list)

    async def find(self, report: Report) -> Filed | None:
        known = [(each.marker, each.title) for each in self.written]  # like Confluence, which looks for the title
        return self._filed(report) if (report.marker, report.title) in known else None

    async def file(self, report: Report) -> Filed:
        if self.failure and not self.fails_late:
            raise SourceUnavailable(self.failure)
        self.written.append(report)
        if self.failure:
            raise SourceUnavailable(self.failure)
        return self._filed(report)

    async def check(self) -> None:
        if not self.may_write:
            raise SourceUnavailable("It may not be written to.")

    def _filed(self, report: Report) -> Filed:
        return Filed("PAY-1", f"https://board.example/{report.marker}")


class FakeTracker(FakeToolServer):
    """A server that is written to. `loses_answer` breaks the connection after the next write. `text` names an item's text."""

    text: ClassVar[str] = ""

    def __init__(self) -> None:
        super().__init__()
        self.items: list[dict[str, Any]] = []
        self.files: dict[str, str] = {}  # by branch and path
        self.branches = {"main"}
        self.may_write = True
        self.loses_answer = False

    @property
    def texts(self) -> list[str]:
        """Return the whole text of each report that was written."""
        return list(self.files.values()) or [item[self.text] for item in self.items]

    def _answer(self, request: web.Request, item: dict[str, Any], status: int = 201) -> web.Response:
        if self.loses_answer:
            self.loses_answer = False
            assert request.transport is not None
            request.transport.close()
        return web.json_response(item, status=status)


Handler = Callable[[web.Request], Awaitable[web.Response]]


def _lists(base: str, names: Iterable[str], shown: Handler, created: Handler) -> list[web.RouteDef]:
    return [make(f"{base}/{name}", each) for name in names for make, each in ((web.get, shown), (web.post, created))]


class FakeGitHub(FakeTracker):
    text = "body"

    def routes(self) -> list[web.RouteDef]:
        base = "/repos/acme/ops"
        return [
            web.get(base, self._repository),
            *_lists(base, ("issues", "pulls"), self._list, self._create),
            web.get(f"{base}/git/ref/heads/{{name:.+}}", self._branch),
            web.post(f"{base}/git/refs", self._new_branch),
            web.get(f"{base}/contents/{{path:.+}}", self._content),
            web.put(f"{base}/contents/{{path:.+}}", self._write),
        ]

    async def _repository(self, _: web.Request) -> web.Response:
        rights = {"pull": True, "push": self.may_write}
        return web.json_response({"default_branch": "main", "has_issues": self.may_write, "permissions": rights})

    async def _list(self, request: web.Request) -> web.Response:
        head, since = request.query.get("head", ""), request.query.get("since", "")
        found = [item for item in reversed(self.items) if head in ("", f"acme:{item.get('head')}")]
        found = [item for item in found if item["created_at"] >= since]
        size, page = int(request.query.get("per_page", 30)), int(request.query.get("page", 1))
        return web.json_response(found[(page - 1) * size : page * size])

    async def _create(self, request: web.Request) -> web.Response:
        number = len(self.items) + 1
        url = f"https://github.com/acme/ops/{request.path.rsplit('/', 1)[1]}/{number}"
        self.items.append({"number": number, "html_url": url, "created_at": CREATED, **await request.json()})
        return self._answer(request, self.items[-1])

    async def _branch(self, request: web.Request) -> web.Response:
        if request.match_info["name"] not in self.branches:
            return web.json_response({"message": "Not Found"}, status=404)
        return web.json_response({"ref": "…", "object": {"sha": "aa218f56", "type": "commit"}})

    async def _new_branch(self, request: web.Request) -> web.Response:
        name = (await request.json())["ref"].removeprefix("refs/heads/")
        if name in self.branches:
            return web.json_response({"message": "Reference already exists"}, status=422)
        self.branches.add(name)
        return web.json_response({"ref": name, "object": {"sha": "aa218f56"}}, status=201)

    async def _content(self, request: web.Request) -> web.Response:
        key = f"{request.query['ref']}:{request.match_info['path']}"
        if key not in self.files:
            return web.json_response({"message": "Not Found"}, status=404)
        return web.json_response({"sha": "3d21ec53"})

    async def _write(self, request: web.Request) -> web.Response:
        value = await request.json()
        key = f"{value['branch']}:{request.match_info['path']}"
        if value["branch"] not in self.branches or (key in self.files) != ("sha" in value):
            return web.json_response({"message": 'Invalid request. "sha" wasn\'t supplied.'}, status=422)
        self.files[key] = b64decode(value["content"]).decode()
        return self._answer(request, {"content": {}, "commit": {}}, 200)


class FakeGitLab(FakeTracker):
    text = "description"

    def routes(self) -> list[web.RouteDef]:
        base = "/api/v4/projects/acme%2Fops"
        return [
            web.get(base, self._project),
            *_lists(base, ("issues", "merge_requests"), self._list, self._create),
            web.get(f"{base}/repository/branches/{{name}}", self._branch),
            web.get(f"{base}/repository/files/{{path}}", self._file),
            web.post(f"{base}/repository/commits", self._commit),
        ]

    async def _project(self, _: web.Request) -> web.Response:
        access = {"project_access": None, "group_access": {"access_level": 30 if self.may_write else 10}}
        return web.json_response({"id": 1, "default_branch": "main", "permissions": access})

    async def _list(self, request: web.Request) -> web.Response:
        query = request.query
        found = [
            item
            for item in self.items
            if query.get("search", "") in item["description"]
            and query.get("source_branch", "") in ("", item.get("source_branch"))
        ]
        return web.json_response(found)

    async def _create(self, request: web.Request) -> web.Response:
        number, kind = len(self.items) + 1, request.path.rsplit("/", 1)[1]
        full = f"acme/ops{'#' if kind == 'issues' else '!'}{number}"
        url = f"https://gitlab.com/acme/ops/-/{kind}/{number}"
        self.items.append({"iid": number, "web_url": url, "references": {"full": full}, **await request.json()})
        return self._answer(request, self.items[-1])

    async def _branch(self, request: web.Request) -> web.Response:
        known = request.match_info["name"] in self.branches
        return web.json_response({"name": "…"} if known else {"message": "404"}, status=200 if known else 404)

    async def _file(self, request: web.Request) -> web.Response:
        known = f"{request.query['ref']}:{request.match_info['path']}" in self.files
        return web.json_response({"file_name": "…"} if known else {"message": "404"}, status=200 if known else 404)

    async def _commit(self, request: web.Request) -> web.Response:
        value = await request.json()
        (action,) = value["actions"]
        key = f"{value['branch']}:{action['file_path']}"
        if (value["branch"] in self.branches) == ("start_branch" in value):
            return web.json_response({"message": "A branch with this name already exists"}, status=400)
        if (key in self.files) != (action["action"] == "update"):
            return web.json_response({"message": "A file with this name doesn't exist"}, status=400)
        self.branches.add(value["branch"])
        self.files[key] = action["content"]
        return self._answer(request, {"id": "ed899a2f"})


class FakeJira(FakeTracker):
    """A project `OPS`, in the cloud or in a data centre."""

    def __init__(self, *, cloud: bool) -> None:
        super().__init__()
        self._search = "/rest/api/2/search/jql" if cloud else "/rest/api/2/search"

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/rest/api/2/mypermissions", self._permissions),
            web.get(self._search, self._found),
            web.post("/rest/api/2/issue", self._create),
        ]

    @property
    def texts(self) -> list[str]:
        return [item["fields"]["description"] for item in self.items]

    async def _permissions(self, request: web.Request) -> web.Response:
        return web.json_response({"permissions": {"CREATE_ISSUES": {"havePermission": self.may_write}}})

    async def _found(self, request: web.Request) -> web.Response:
        word = request.query["jql"].rpartition(' ~ "')[2].strip('"')
        return web.json_response({"issues": [each for each in self.items if word in each["fields"]["description"]]})

    async def _create(self, request: web.Request) -> web.Response:
        fields = (await request.json())["fields"]
        if fields["issuetype"] != {"name": "Task"}:
            return web.json_response({"errors": {"issuetype": "The issue type selected is invalid."}}, status=400)
        self.items.append({"id": "10000", "key": f"OPS-{len(self.items) + 1}", "fields": fields})
        return self._answer(request, {"id": "10000", "key": self.items[-1]["key"]})


class FakeConfluencePages(FakeTracker):
    """A space `OPS`, in the cloud or in a data centre. A title occurs once."""

    def __init__(self, *, cloud: bool) -> None:
        super().__init__()
        self._cloud = cloud

    def routes(self) -> list[web.RouteDef]:
        if self._cloud:
            return [
                web.get("/api/v2/spaces", self._spaces),
                web.get("/api/v2/pages", self._list),
                web.post("/api/v2/pages", self._create),
            ]
        return [
            web.get("/rest/api/space/OPS", self._space),
            web.get("/rest/api/content", self._list),
            web.post("/rest/api/content", self._create),
        ]

    @property
    def texts(self) -> list[str]:
        return [item["body"]["storage"]["value"] for item in self.items]

    async def _spaces(self, request: web.Request) -> web.Response:
        operations = [{"operation": "create", "targetType": "page"}] if self.may_write else []
        known = request.query["keys"] == "OPS"
        return web.json_response({"results": [{"id": "65", "operations": {"results": operations}}] if known else []})

    async def _space(self, _: web.Request) -> web.Response:
        operations = [{"operation": "create", "targetType": "page"}] if self.may_write else []
        return web.json_response({"id": 65, "key": "OPS", "operations": operations})

    async def _list(self, request: web.Request) -> web.Response:
        return web.json_response({"results": [each for each in self.items if each["title"] == request.query["title"]]})

    async def _create(self, request: web.Request) -> web.Response:
        value = await request.json()
        assert value.get("spaceId") == "65" if self._cloud else value["space"] == {"key": "OPS"}
        if value["title"] in [each["title"] for each in self.items]:
            return web.json_response({"message": "A page with this title already exists"}, status=400)
        storage = value["body"] if self._cloud else value["body"]["storage"]
        page = {"id": str(len(self.items)), "title": value["title"], "body": {"storage": storage}}
        self.items.append(page | {"_links": {"webui": f"/spaces/OPS/pages/{len(self.items)}"}})
        return self._answer(request, self.items[-1], 200)


Server = Callable[[], FakeTracker]
