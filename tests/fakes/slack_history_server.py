"""Slack's Web API as far as reading channels goes: history from the newest down, replies, members, users, paging."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import web

from tests.fakes.refusals import Refusals, as_middleware
from tests.fakes.server import FakeServer

TOKEN = "xoxb-history"
BOT_ID, BOT_USER = "B0PLUMB", "U0PLUMB"
MOST_MESSAGES = 3  # messages of one answer, whatever is asked for
MOST_OTHERS = 2


class FakeSlackHistory(FakeServer):
    """One workspace. `messages` maps a channel to its messages by time, replies among them."""

    def __init__(self) -> None:
        self.channels: dict[str, dict[str, Any]] = {}
        self.members: dict[str, list[str]] = {}
        self.users: list[dict[str, Any]] = []
        self.workspaces: list[str] = []  # of an organisation, in which the app is as a whole; empty in one workspace
        self.messages: dict[str, dict[str, dict[str, Any]]] = {}
        self.refusals = Refusals()
        self.token = TOKEN
        self.asked: list[tuple[str, dict[str, str]]] = []
        self._methods: dict[str, Callable[[Mapping[str, str]], dict[str, Any]]] = {
            "auth.test": self._auth_test,
            "auth.teams.list": lambda query: self._paged("teams", [{"id": each} for each in self.workspaces], query),
            "users.list": self._users,
            "conversations.info": self._info,
            "conversations.members": lambda query: self._paged("members", self.members[query["channel"]], query),
            "conversations.history": self._history,
            "conversations.replies": self._replies,
        }
        app = web.Application(middlewares=[as_middleware(self.refusals)])
        app.router.add_get("/api/{method}", self._call)
        super().__init__(app)

    @property
    def url(self) -> str:
        return str(self._server.make_url("/api/"))

    def channel(self, channel: str, name: str, *, private: bool = False, members: tuple[str, ...] = ()) -> None:
        self.channels[channel] = {
            "id": channel,
            "name": name,
            "is_channel": True,
            "is_private": private,
            "is_member": True,
        }
        self.members[channel] = [*members, BOT_USER]
        self.messages.setdefault(channel, {})

    def user(self, user: str, name: str, handle: str, email: str = "") -> None:
        profile = {"real_name": name, "display_name": name.partition(" ")[0], "email": email}
        self.users.append({"id": user, "name": handle, "real_name": name, "is_bot": False, "profile": profile})

    def post(self, channel: str, ts: str, text: str, user: str = "U1", *, thread: str = "", **fields: Any) -> None:
        message = {"type": "message", "ts": ts, "user": user, "text": text} | fields
        if thread:
            message |= {"thread_ts": thread, "parent_user_id": "U1"}
        self.messages[channel][ts] = message

    def edit(self, channel: str, ts: str, text: str, at: str) -> None:
        self.messages[channel][ts] |= {"text": text, "edited": {"user": "U1", "ts": at}}

    def delete(self, channel: str, ts: str) -> None:
        """A message with replies leaves a tombstone, as in Slack."""
        if any(each.get("thread_ts") == ts != each["ts"] for each in self.messages[channel].values()):
            tombstone = {
                "text": "This message was deleted.",
                "user": "USLACKBOT",
                "subtype": "tombstone",
                "hidden": True,
            }
            self.messages[channel][ts] |= tombstone
        else:
            del self.messages[channel][ts]

    async def _call(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {self.token}":
            return web.json_response({"ok": False, "error": "token_expired"})
        query = request.query
        self.asked.append((request.match_info["method"], dict(query)))
        if "channel" in query and query["channel"] not in self.channels:
            return web.json_response({"ok": False, "error": "channel_not_found"})
        if not self.channels.get(query.get("channel", ""), {"is_member": True})["is_member"]:
            return web.json_response({"ok": False, "error": "not_in_channel"})
        return web.json_response({"ok": True} | self._methods[request.match_info["method"]](query))

    def _auth_test(self, _: Mapping[str, str]) -> dict[str, Any]:
        own = {"url": "https://marigold.slack.example/", "team": "M", "user_id": BOT_USER, "bot_id": BOT_ID}
        return own | {"is_enterprise_install": bool(self.workspaces)}

    def _users(self, query: Mapping[str, str]) -> dict[str, Any]:
        here = [each for each in self.users if not self.workspaces or each["team_id"] == query["team_id"]]
        return self._paged("members", here, query)

    def _info(self, query: Mapping[str, str]) -> dict[str, Any]:
        return {"channel": self.channels[query["channel"]]}

    def _paged(self, key: str, items: list[Any], query: Mapping[str, str]) -> dict[str, Any]:
        start = int(query.get("cursor") or 0)
        end = start + min(int(query.get("limit", 100)), MOST_OTHERS)
        return {key: items[start:end], "response_metadata": {"next_cursor": str(end) if end < len(items) else ""}}

    def _history(self, query: Mapping[str, str]) -> dict[str, Any]:
        latest = float(query.get("latest", "inf"))
        roots = [each for each in self._of(query["channel"]) if each.get("thread_ts") in (None, each["ts"])]
        shared = [each for each in self._of(query["channel"]) if each.get("subtype") == "thread_broadcast"]
        found = sorted(
            (each for each in roots + shared if float(each["ts"]) < latest), key=lambda each: -float(each["ts"])
        )
        limit = min(int(query.get("limit", 100)), MOST_MESSAGES)
        return {
            "messages": [self._with_counts(query["channel"], each) for each in found[:limit]],
            "has_more": len(found) > limit,
        }

    def _replies(self, query: Mapping[str, str]) -> dict[str, Any]:
        thread = [each for each in self._of(query["channel"]) if query["ts"] in (each["ts"], each.get("thread_ts"))]
        ordered = sorted(thread, key=lambda each: float(each["ts"]))
        return self._paged("messages", [self._with_counts(query["channel"], each) for each in ordered], query)

    def _of(self, channel: str) -> list[dict[str, Any]]:
        return list(self.messages[channel].values())

    def _with_counts(self, channel: str, message: dict[str, Any]) -> dict[str, Any]:
        replies = [each["ts"] for each in self._of(channel) if each.get("thread_ts") == message["ts"] != each["ts"]]
        if not replies:
            return message
        return message | {
            "thread_ts": message["ts"],
            "reply_count": len(replies),
            "latest_reply": max(replies, key=float),
        }
