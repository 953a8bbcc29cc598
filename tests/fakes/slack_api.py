"""Slack as its apps see it: the Web API and Socket Mode, in this process."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import WSMsgType, web

from tests.fakes import block_kit
from tests.fakes.server import FakeServer

BOT_TOKEN = "xoxb-fake"
APP_TOKEN = "xapp-fake"
SIGNING_SECRET = "fake-signing-secret"
BOT_USER = "U0PLUMB"
BOT = "B0PLUMB"
TEAM = "T0MARI"
CHANNEL = "C0ASK"
PRIVATE_CHANNEL = "C0PAYPRIV"
SHARED_CHANNEL = "C0SHARED"
DIRECT = "D0INES"
PERSON = "U0INES"
EXPIRED = "1.1.expired"  # a trigger whose three seconds are over

Arguments = dict[str, Any]
Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Call:
    method: str
    arguments: Arguments


@dataclass(slots=True)
class Refusal:
    """The answer to the next calls instead, of any method if `method` is empty, to any channel if `channel` is."""

    status: int
    body: str
    headers: Mapping[str, str] = field(default_factory=dict)
    method: str = ""
    times: int = 1
    channel: str = ""


class FakeSlack(FakeServer):
    """One workspace. `calls` is everything that was asked for, `messages` what stands in the channels now."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.messages: list[dict[str, Any]] = []
        self.channels: dict[str, dict[str, Any]] = {
            CHANNEL: {"id": CHANNEL, "is_channel": True, "is_private": False, "is_member": True},
            PRIVATE_CHANNEL: {"id": PRIVATE_CHANNEL, "is_channel": True, "is_private": True, "is_member": True},
            SHARED_CHANNEL: {"id": SHARED_CHANNEL, "is_channel": True, "is_member": True, "is_ext_shared": True},
            DIRECT: {"id": DIRECT, "is_im": True, "user": PERSON},
        }
        self.enterprise = ""  # that the workspace belongs to
        self.workspaces: dict[str, list[str]] | None = None  # of an organisation: who is in each; None in one workspace
        self.people: dict[str, dict[str, Any]] = {PERSON: {"id": PERSON, "name": "ines"}}
        self.members: dict[str, list[str]] = {channel: [PERSON, BOT_USER] for channel in self.channels}
        self.views: list[Answer] = []  # the forms that were opened
        self.homes: dict[str, Answer] = {}  # each person's own page
        self.refusals: list[Refusal] = []
        self.hang_up = False  # close the connection instead of answering, after the work was done
        self._sockets: asyncio.Queue[web.WebSocketResponse] = asyncio.Queue()
        self._acknowledgements: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._timestamps = itertools.count(1)
        self._asked: dict[str, asyncio.Event] = {}
        self._methods: dict[str, Callable[[Arguments], Answer]] = {
            "auth.teams.list": self._list_workspaces,
            "auth.test": self._auth_test,
            "chat.postEphemeral": self._post_ephemeral,
            "chat.postMessage": self._post,
            "chat.update": self._update,
            "chat.delete": self._delete,
            "conversations.history": self._history,
            "conversations.replies": self._replies,
            "conversations.info": self._info,
            "conversations.members": self._members,
            "users.list": self._users,
            "users.info": self._user,
            "chat.getPermalink": self._permalink,
            "views.open": self._open_view,
            "views.publish": self._publish_view,
            "assistant.threads.setSuggestedPrompts": lambda arguments: {},
            "apps.connections.open": self._open_connection,
        }
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_get("/socket", self._socket)
        super().__init__(app)

    @property
    def url(self) -> str:
        """The base of the Web API."""
        return str(self._server.make_url("/api/"))

    def refuse(
        self,
        status: int,
        body: str = "",
        *,
        headers: Mapping[str, str] | None = None,
        method: str = "",
        times: int = 1,
        channel: str = "",
    ) -> None:
        """Answer the next calls with this instead."""
        self.refusals.append(Refusal(status, body, headers or {}, method, times, channel))

    def called(self, method: str) -> list[Arguments]:
        return [call.arguments for call in self.calls if call.method == method]

    async def was_called(self, method: str) -> None:
        """Wait until a method was called at least once."""
        await self._asked.setdefault(method, asyncio.Event()).wait()

    def delete(self, channel: str, ts: str) -> None:
        self.messages.remove(self.message(channel, ts))

    def message(self, channel: str, ts: str) -> dict[str, Any]:
        return next(each for each in self.messages if (each["channel"], each["ts"]) == (channel, ts))

    def _delete(self, arguments: Arguments) -> Answer:
        channel, ts = arguments["channel"], arguments["ts"]
        if not any((each["channel"], each["ts"]) == (channel, ts) for each in self.messages):
            return {"ok": False, "error": "message_not_found"}
        self.delete(channel, ts)
        return {"ok": True, "channel": channel, "ts": ts}

    async def send(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Send an envelope over Socket Mode once an app is connected, and wait for its acknowledgement."""
        socket = await self._sockets.get()
        self._sockets.put_nowait(socket)
        await socket.send_json({"envelope_id": "e-1", "type": kind, "payload": payload})
        return await self._acknowledgements.get()

    # --- the server --------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        arguments = await _arguments(request)
        self.calls.append(Call(method, arguments))
        self._asked.setdefault(method, asyncio.Event()).set()
        if refusal := self._refusal(method, arguments.get("channel", "")):
            return web.Response(
                status=refusal.status, text=refusal.body, headers=refusal.headers, content_type=_type_of(refusal.body)
            )
        if request.headers.get("Authorization") not in (f"Bearer {BOT_TOKEN}", f"Bearer {APP_TOKEN}"):
            return web.json_response({"ok": False, "error": "invalid_auth"})
        if method not in self._methods:
            return web.json_response({"ok": False, "error": "unknown_method"})
        answer = {"ok": True} | self._methods[method](arguments)
        if self.hang_up and request.transport is not None:
            request.transport.close()
        return web.json_response(answer)

    def _refusal(self, method: str, channel: object) -> Refusal | None:
        refusal = next(
            (each for each in self.refusals if each.method in ("", method) and each.channel in ("", channel)), None
        )
        if refusal is not None:
            refusal.times -= 1
            if refusal.times == 0:
                self.refusals.remove(refusal)
        return refusal

    async def _socket(self, request: web.Request) -> web.WebSocketResponse:
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        self._sockets.put_nowait(socket)
        async for message in socket:
            if message.type is WSMsgType.TEXT:
                self._acknowledgements.put_nowait(json.loads(message.data))
        return socket

    # --- the methods -------------------------------------------------------------------------------------------------

    def _auth_test(self, arguments: Arguments) -> Answer:
        own = {"team_id": TEAM, "user_id": BOT_USER, "bot_id": BOT, "user": "plumbline"}
        if self.workspaces is not None:
            own |= {"team_id": self.enterprise, "is_enterprise_install": True}
        return own | ({"enterprise_id": self.enterprise} if self.enterprise else {})

    def _post(self, arguments: Arguments) -> Answer:
        channel = DIRECT if arguments["channel"] == PERSON else arguments["channel"]
        thread = arguments.get("thread_ts")
        if channel not in self.channels:
            return _error("channel_not_found")
        if thread is not None and not any(each["ts"] == thread for each in self.messages):
            return _error("thread_not_found")
        if found := block_kit.problems(arguments.get("text"), arguments.get("blocks")):
            return _error("invalid_blocks", found)
        ts = self._now()
        kept = {name: arguments[name] for name in ("text", "blocks", "metadata", "thread_ts") if arguments.get(name)}
        message = {"type": "message", "channel": channel, "ts": ts, "user": BOT_USER, "bot_id": BOT} | kept
        self.messages.append(message)
        return {"channel": channel, "ts": ts, "message": message}

    def _post_ephemeral(self, arguments: Arguments) -> Answer:
        reader = arguments["user"]
        if reader not in self.members.get(arguments["channel"], []):
            return _error("user_not_in_channel")
        answer = self._post(arguments)
        if posted := answer.pop("message", None):
            posted["only_for"] = reader
            answer["message_ts"] = answer.pop("ts")
        return answer

    def _update(self, arguments: Arguments) -> Answer:
        channel, ts = arguments["channel"], arguments["ts"]
        if not any((each["channel"], each["ts"]) == (channel, ts) for each in self.messages):
            return _error("message_not_found")
        if found := block_kit.problems(arguments.get("text"), arguments.get("blocks")):
            return _error("invalid_blocks", found)
        self.message(channel, ts).update(text=arguments["text"], blocks=arguments["blocks"])
        return {"channel": channel, "ts": ts}

    def _open_view(self, arguments: Arguments) -> Answer:
        if arguments["trigger_id"] == EXPIRED:
            return _error("expired_trigger_id")
        if found := block_kit.view_problems(arguments["view"]):
            return _error("invalid_arguments", found)
        view = arguments["view"] | {"id": f"V{len(self.views) + 1:03}"}
        self.views.append(view)
        return {"view": view}

    def _publish_view(self, arguments: Arguments) -> Answer:
        if found := block_kit.view_problems(arguments["view"]):
            return _error("invalid_arguments", found)
        self.homes[arguments["user_id"]] = arguments["view"]
        return {"view": arguments["view"]}

    def _now(self) -> str:
        return f"1773480600.{next(self._timestamps):06}"

    def _user(self, arguments: Arguments) -> Answer:
        person = self.people.get(arguments["user"])
        return {"user": person} if person else _error("user_not_found")

    def _permalink(self, arguments: Arguments) -> Answer:
        channel, ts = arguments["channel"], arguments["message_ts"]
        return {"permalink": f"https://marigold.slack.example/archives/{channel}/p{ts.replace('.', '')}"}

    def _history(self, arguments: Arguments) -> Answer:
        found = [each for each in self._in_history(arguments) if "thread_ts" not in each]
        return self._page(found[::-1], arguments)

    def _replies(self, arguments: Arguments) -> Answer:
        root, oldest = arguments["ts"], float(arguments.get("oldest") or 0)
        thread = [each for each in self._in_history(arguments) if root in (each["ts"], each.get("thread_ts"))]
        found = [each for each in thread if each["ts"] == root or float(each["ts"]) >= oldest]
        return self._page(found, arguments) if found else _error("thread_not_found")

    def _in_history(self, arguments: Arguments) -> list[dict[str, Any]]:
        here = (each for each in self.messages if each["channel"] == arguments["channel"])
        return [each for each in here if "only_for" not in each]

    def _page(self, messages: list[dict[str, Any]], arguments: Arguments) -> Answer:
        start, limit = int(arguments.get("cursor") or 0), int(arguments.get("limit") or 100)
        shown = messages[start : start + limit]
        if str(arguments.get("include_all_metadata")).lower() not in ("true", "1"):
            shown = [{name: value for name, value in each.items() if name != "metadata"} for each in shown]
        following = str(start + limit) if len(messages) > start + limit else ""
        return {"messages": shown, "response_metadata": {"next_cursor": following}}

    def _info(self, arguments: Arguments) -> Answer:
        channel = self.channels.get(arguments["channel"])
        return {"channel": channel} if channel else _error("channel_not_found")

    def _members(self, arguments: Arguments) -> Answer:
        return {"members": self.members.get(arguments["channel"], [])}

    def _users(self, arguments: Arguments) -> Answer:
        if self.workspaces is None:
            return {"members": list(self.people.values())}
        if "team_id" not in arguments:
            return _error("missing_argument")
        return {"members": [self.people[person] for person in self.workspaces[arguments["team_id"]]]}

    def _list_workspaces(self, arguments: Arguments) -> Answer:
        named = [{"id": team, "name": team} for team in self.workspaces or ()]
        start = int(arguments.get("cursor") or 0)
        following = str(start + 1) if len(named) > start + 1 else ""
        return {"teams": named[start : start + 1], "response_metadata": {"next_cursor": following}}

    def _open_connection(self, arguments: Arguments) -> Answer:
        return {"url": str(self._server.make_url("/socket")).replace("http", "ws", 1)}


def _error(code: str, details: list[str] | None = None) -> Answer:
    return {"ok": False, "error": code, "response_metadata": {"messages": details or []}}


def _type_of(body: str) -> str:
    return "application/json" if body.startswith("{") else "text/plain"


async def _arguments(request: web.Request) -> Arguments:
    if request.content_type == "application/json":
        return await request.json()
    return dict(request.query) | {name: str(value) for name, value in (await request.post()).items()}
