"""Microsoft Graph as far as reading channels and chats goes: tokens that expire, paging, deltas, deletions and edits."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any
from urllib.parse import quote

from aiohttp import web

from tests.fakes.refusals import Refusals, as_middleware
from tests.fakes.server import FakeServer

TENANT, CLIENT_ID, CLIENT_SECRET = "tenant-1", "client-1", "client-secret"
MOST = 2  # items of one answer, whatever is asked for
MOST_REPLIES = 2  # replies that an expansion holds


class FakeGraph(FakeServer):
    """One tenant. Every change has a number; a delta link holds the number up to which its holder knows."""

    def __init__(self) -> None:
        self.teams: dict[str, dict[str, Any]] = {}
        self.channels: dict[str, dict[str, dict[str, Any]]] = {}
        self.members: dict[str, list[dict[str, str]]] = {}
        self.messages: dict[str, dict[str, dict[str, Any]]] = {}  # by channel: roots and replies by id
        self.refusals = Refusals()
        self.delta_supported = True
        self.oldest_link = 0  # a link that is older is refused
        self.tokens: list[str] = []
        self.secret = CLIENT_SECRET
        self.forbidden_teams: set[str] = set()
        self.members_visible = True
        self.consented = True  # to reading messages
        self.page_size = MOST
        self._clock = itertools.count(1)
        self._changed: dict[str, dict[str, int]] = {}
        app = web.Application(middlewares=[as_middleware(self.refusals)])
        app.router.add_post(f"/login/{TENANT}/oauth2/v2.0/token", self._token)
        base = "/v1.0/teams/{team}"
        app.router.add_get(base, self._team)
        app.router.add_get(f"{base}/channels", self._channels)
        app.router.add_get(f"{base}/channels/{{channel}}/members", self._members)
        app.router.add_get(f"{base}/channels/{{channel}}/messages", self._messages)
        app.router.add_get(f"{base}/channels/{{channel}}/messages/delta", self._delta)
        app.router.add_get(f"{base}/channels/{{channel}}/messages/{{message}}", self._message)
        app.router.add_get(f"{base}/channels/{{channel}}/messages/{{message}}/replies", self._replies)
        app.router.add_get("/v1.0/chats/{channel}/messages", self._chat_messages)
        app.router.add_get("/v1.0/chats/{channel}/messages/{message}", self._message)
        self._add_routes(app)
        super().__init__(app)

    def _add_routes(self, app: web.Application) -> None:
        """For those who need more of Graph."""

    @property
    def url(self) -> str:
        return str(self._server.make_url("/v1.0"))

    @property
    def login_url(self) -> str:
        return str(self._server.make_url("/login"))

    def issue(self) -> str:
        self.tokens.append(f"token-{len(self.tokens)}")
        return self.tokens[-1]

    def expire_tokens(self) -> None:
        self.tokens.append("")

    # --- what people do ----------------------------------------------------------------------------------------------

    def team(self, team: str, visibility: str = "public") -> None:
        self.teams[team] = {"id": team, "displayName": team, "visibility": visibility}
        self.channels.setdefault(team, {})

    def channel(self, team: str, channel: str, name: str, membership: str = "standard") -> None:
        self.channels[team][channel] = {"id": channel, "displayName": name, "membershipType": membership}
        self.members.setdefault(channel, [])
        self.messages.setdefault(channel, {})
        self._changed.setdefault(channel, {})

    def chat(self, chat: str) -> None:
        self.messages[chat] = {}
        self._changed[chat] = {}

    def member(self, channel: str, user: str, name: str, email: str = "") -> None:
        self.members[channel].append({"id": f"m-{user}", "userId": user, "displayName": name, "email": email})

    def post(
        self, channel: str, message: str, content: str, *, reply_to: str | None = None, html: bool = True, **fields: Any
    ) -> None:
        at = f"2026-02-01T10:{len(self.messages[channel]):02}:00.000Z"
        self.messages[channel][message] = {
            "id": message,
            "replyToId": reply_to,
            "etag": message,
            "messageType": "message",
            "createdDateTime": at,
            "lastModifiedDateTime": at,
            "lastEditedDateTime": None,
            "deletedDateTime": None,
            "subject": None,
            "summary": None,
            "chatId": None,
            "importance": "normal",
            "locale": "en-us",
            "webUrl": f"https://teams.example/l/message/{quote(channel, safe='')}/{message}",
            "policyViolation": None,
            "eventDetail": None,
            "from": {"application": None, "device": None, "user": {"id": "u-1", "displayName": "Asha Brandt"}},
            "body": {"contentType": "html" if html else "text", "content": content},
            "channelIdentity": {"channelId": channel},
            "attachments": [],
            "mentions": [],
            "reactions": [],
        } | fields
        self._touch(channel, message)

    def edit(self, channel: str, message: str, content: str) -> None:
        self.messages[channel][message] |= {
            "body": {"contentType": "html", "content": content},
            "lastEditedDateTime": "2026-02-03T10:00:00.000Z",
        }
        self._touch(channel, message)

    def delete(self, channel: str, message: str) -> None:
        """A deleted message stays, without its content."""
        self.messages[channel][message] |= {
            "deletedDateTime": "2026-02-03T11:00:00.000Z",
            "body": {"contentType": "html", "content": ""},
        }
        self._touch(channel, message)

    def purge(self, channel: str, message: str) -> None:
        """As a retention policy does: without a trace."""
        del self.messages[channel][message]

    def _touch(self, channel: str, message: str) -> None:
        root = self.messages[channel][message]["replyToId"] or message
        self._changed[channel][root] = next(self._clock)

    # --- the server --------------------------------------------------------------------------------------------------

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if (form["client_id"], form["client_secret"]) != (CLIENT_ID, self.secret):
            return web.json_response({"error": "invalid_client"}, status=401)
        assert form["grant_type"] == "client_credentials"
        return web.json_response({"access_token": self.issue(), "expires_in": 3599, "token_type": "Bearer"})

    async def _team(self, request: web.Request) -> web.Response:
        team = request.match_info["team"]
        if team in self.forbidden_teams:
            return web.json_response({"error": {"code": "Forbidden"}}, status=403)
        return self._answer(request, lambda: self.teams[team]) if team in self.teams else unknown()

    async def _channels(self, request: web.Request) -> web.Response:
        team = request.match_info["team"]
        return self._paged(request, list(self.channels[team].values())) if team in self.channels else unknown()

    async def _members(self, request: web.Request) -> web.Response:
        if not self.members_visible:
            return web.json_response({"error": {"code": "Forbidden"}}, status=403)
        return self._paged(request, self.members[request.match_info["channel"]])

    async def _messages(self, request: web.Request) -> web.Response:
        if refusal := self._unreadable(request):
            return refusal
        channel = request.match_info["channel"]
        # Newest first, as Graph gives them.
        roots = [self._expanded(request, channel, each) for each in self._roots(channel)[::-1]]
        return self._paged(request, roots)

    async def _chat_messages(self, request: web.Request) -> web.Response:
        if refusal := self._unreadable(request):
            return refusal
        assert request.query.get("$orderby") in (None, "createdDateTime desc", "lastModifiedDateTime desc")
        order = request.query.get("$orderby", "lastModifiedDateTime").removesuffix(" desc")
        messages = self.messages[request.match_info["channel"]].values()
        return self._paged(request, sorted(messages, key=lambda each: each[order], reverse=True))

    async def _message(self, request: web.Request) -> web.Response:
        if refusal := self._unreadable(request):
            return refusal
        found = self.messages[request.match_info["channel"]].get(request.match_info["message"])
        return self._answer(request, lambda: found) if found is not None else unknown()

    async def _replies(self, request: web.Request) -> web.Response:
        if refusal := self._unreadable(request):
            return refusal
        if request.match_info["message"] not in self.messages[request.match_info["channel"]]:
            return unknown()
        # Newest first, as Graph gives them.
        replies = self._replies_to(request.match_info["channel"], request.match_info["message"])
        return self._paged(request, replies[::-1])

    def _unreadable(self, request: web.Request) -> web.Response | None:
        if not self.consented:
            message = "Missing role permissions on the request."
            return web.json_response({"error": {"code": "Forbidden", "message": message}}, status=403)
        team, channel = request.match_info.get("team"), request.match_info["channel"]
        known = self.messages if team is None else self.channels.get(team, {})
        return None if channel in known else unknown()

    async def _delta(self, request: web.Request) -> web.Response:
        """Only roots, in no order that means anything, and without replies when it pleases."""
        channel, query = request.match_info["channel"], request.query
        if not self.delta_supported:
            message = "Parameter 'DeltaToken' not supported for this request."
            return web.json_response({"error": {"code": "BadRequest", "message": message}}, status=400)
        known = int(query.get("$deltatoken", 0))
        if "$deltatoken" in query and known < self.oldest_link:
            return web.json_response({"error": {"code": "SyncStateNotFound"}}, status=410)
        if "$filter" in query:
            # Nothing was changed after the time of the test's clock: the round only yields its link.
            datetime.fromisoformat(query["$filter"].removeprefix("lastModifiedDateTime gt "))
            known = max(self._changed[channel].values(), default=0)
        changed = sorted((number, root) for root, number in self._changed[channel].items() if number > known)
        roots = [
            self.messages[channel].get(root) or {"id": root, "@removed": {"reason": "deleted"}} for _, root in changed
        ]
        answer = self._paged(request, roots[::-1])
        if "@odata.nextLink" not in (answer.text or ""):
            newest = max(self._changed[channel].values(), default=0)
            link = f"{self._server.make_url(request.path)}?$deltatoken={newest}"
            return self._paged(request, roots[::-1], {"@odata.deltaLink": link})
        return answer

    def _roots(self, channel: str) -> list[dict[str, Any]]:
        return [each for each in self.messages[channel].values() if not each["replyToId"]]

    def _replies_to(self, channel: str, root: str) -> list[dict[str, Any]]:
        return [each for each in self.messages[channel].values() if each["replyToId"] == root]

    def _expanded(self, request: web.Request, channel: str, root: dict[str, Any]) -> dict[str, Any]:
        replies = self._replies_to(channel, root["id"])[::-1]
        expanded = root | {"replies": replies[:MOST_REPLIES]}
        if len(replies) > MOST_REPLIES:
            path = f"{request.path}/{root['id']}/replies"
            expanded["replies@odata.nextLink"] = f"{self._server.make_url(path)}?$skip={MOST_REPLIES}"
        return expanded

    def _answer(self, request: web.Request, body: Any) -> web.Response:
        if not self.tokens or request.headers.get("Authorization") != f"Bearer {self.tokens[-1]}":
            return web.json_response({"error": {"code": "InvalidAuthenticationToken"}}, status=401)
        return web.json_response(body())

    def _paged(self, request: web.Request, items: list[Any], more: dict[str, Any] | None = None) -> web.Response:
        start = int(request.query.get("$skip", 0))
        size = min(int(request.query.get("$top", 20)), self.page_size)
        answer: dict[str, Any] = {"value": items[start : start + size]} | (more or {})
        if start + size < len(items):
            kept = {key: value for key, value in request.query.items() if key != "$skip"}
            query = "&".join(f"{key}={quote(value)}" for key, value in (kept | {"$skip": str(start + size)}).items())
            answer = {"value": answer["value"], "@odata.nextLink": f"{self._server.make_url(request.path)}?{query}"}
        return self._answer(request, lambda: answer)


def unknown() -> web.Response:
    return web.json_response({"error": {"code": "NotFound"}}, status=404)


def graph_time(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
