"""What local-slack leaves out, in front of it: rate limits, retried events, message metadata, Block Kit's limits,
assistant threads, triggers that expire, and what stays where a thread's root was deleted.

The bot talks to this proxy as if it were Slack, and the emulator delivers its events through it:

    bot → /api/METHOD → local-slack → /slack/events → bot
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

import aiohttp
from aiohttp import web

from tests.fakes import block_kit

PASSED_ON = ("Authorization", "Content-Type", "X-Slack-Signature", "X-Slack-Request-Timestamp")
FORM = "application/x-www-form-urlencoded"

Arguments = dict[str, Any]
Answer = dict[str, Any]


def refusal(code: str) -> Answer:
    return {"ok": False, "error": code}


@dataclass(slots=True)
class SlackProxy:
    """`emulator` and `bot` are base addresses; `secret` signs what is sent to the bot; `scopes` are those granted."""

    emulator: str
    bot: str
    secret: str
    token: str
    scopes: frozenset[str]
    rate_limits: int = 0  # the next calls that post or edit are refused
    retry_after: int = 1  # seconds
    retries: int = 0  # times that each event is sent again
    triggers_expire: bool = False  # a form is always opened too late
    refused: list[str] = field(default_factory=list)  # what Slack would not have taken
    delivered: list[int] = field(default_factory=list)  # the bot's status for every event, retries included
    acknowledged_in: list[float] = field(default_factory=list)  # seconds
    is_agent: bool = False  # has the agent messaging experience, else the assistant experience
    assistant: list[tuple[str, Arguments]] = field(default_factory=list)  # method and arguments
    _metadata: dict[str, Any] = field(default_factory=dict)
    _trigger: str = ""  # the latest of the emulator's own, which live for half an hour
    _numbers: itertools.count[int] = field(default_factory=itertools.count)
    _session: aiohttp.ClientSession | None = None

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_post("/slack/events", self._deliver)
        app.cleanup_ctx.append(self._client)
        return app

    async def send_event(self, event: dict[str, Any]) -> int:
        """An event that the emulator does not know; the bot's status."""
        number = next(self._numbers)
        body = {
            "token": "verification-token",
            "team_id": "T0MARI",
            "api_app_id": "A0PLUMB",
            "event": event,
            "type": "event_callback",
            "event_id": f"EvProxy{number}",
            "event_time": int(time.time()),
            "authorizations": [{"enterprise_id": None, "team_id": "T0MARI", "user_id": "U0PLUMB", "is_bot": True}],
            "is_ext_shared_channel": False,
        }
        return await self._post(json.dumps(body).encode(), "application/json")

    async def send_interaction(self, payload: dict[str, Any]) -> int:
        """An interaction that the emulator does not know; the bot's status."""
        trigger = f"proxy.{next(self._numbers)}"
        return await self._post(urlencode({"payload": json.dumps(payload | {"trigger_id": trigger})}).encode(), FORM)

    async def _client(self, app: web.Application):
        self._session = aiohttp.ClientSession()
        yield
        await self._session.close()

    # --- from the bot ------------------------------------------------------------------------------------------------

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        body = await request.read()
        arguments = _arguments(body, request)
        if self._is_limited(method):
            headers = {"Retry-After": str(self.retry_after)}
            return web.json_response(refusal("ratelimited"), status=429, headers=headers)
        if refused := self._refusal(method, arguments):
            return web.json_response(refused)
        own: dict[str, Callable[[Arguments], Awaitable[Answer]]] = {
            "assistant.threads.setSuggestedPrompts": self._set_prompts,
        }
        if method in own:
            return web.json_response(await own[method](arguments))
        if method == "views.open" and arguments["trigger_id"].startswith("proxy."):
            body = json.dumps(arguments | {"trigger_id": self._trigger}).encode()
        answer = await self._forward(f"{self.emulator}{request.rel_url}", request, body)
        said: Answer = json.loads(answer.text or "{}")
        if method == "auth.test":
            answer.headers["X-OAuth-Scopes"] = ",".join(sorted(self.scopes))
        if method == "chat.postMessage" and said.get("ok"):
            self._metadata[said["ts"]] = arguments.get("metadata")
        if method in ("conversations.history", "conversations.replies") and said.get("ok"):
            said["messages"] = [each | self._metadata_of(each) for each in said["messages"]]
            return web.json_response(said)
        return answer

    def _is_limited(self, method: str) -> bool:
        limited = method in ("chat.postMessage", "chat.update", "chat.startStream") and self.rate_limits > 0
        self.rate_limits -= limited
        return limited

    def _refusal(self, method: str, arguments: Arguments) -> Answer | None:
        """What Slack would not take, as Slack says so."""
        problems: list[str] = []
        if method in ("chat.postMessage", "chat.update"):
            problems = block_kit.problems(arguments.get("text"), arguments.get("blocks"))
            if method == "chat.postMessage" and (arguments.get("unfurl_links"), arguments.get("unfurl_media")) != (
                0,
                0,
            ):
                problems.append("a link would be unfurled")
        elif method in ("views.open", "views.publish"):
            problems = block_kit.view_problems(arguments.get("view") or {})
            if method == "views.open" and self.triggers_expire:
                return refusal("expired_trigger_id")
        self.refused += problems
        return refusal("invalid_blocks") if problems else None

    def _metadata_of(self, message: dict[str, Any]) -> dict[str, Any]:
        metadata = self._metadata.get(message["ts"])
        return {"metadata": metadata} if metadata else {}

    # --- assistant threads: https://docs.slack.dev/reference/methods/assistant.threads.setSuggestedPrompts ------------

    async def _set_prompts(self, arguments: Arguments) -> Answer:
        prompts = arguments.get("prompts") or []
        fits = 1 <= len(prompts) <= 4 and all(each.get("title") and each.get("message") for each in prompts)
        # An agent app has no threads for prompts: with one, its call fails.
        has_place = bool(arguments.get("thread_ts")) is not self.is_agent
        return self._noted("setSuggestedPrompts", arguments, fits and has_place)

    def _noted(self, method: str, arguments: Arguments, fits: bool) -> Answer:
        needs_thread = not (self.is_agent and method == "setSuggestedPrompts")
        if not fits or not arguments.get("channel_id") or (needs_thread and not arguments.get("thread_ts")):
            self.refused.append(f"assistant.threads.{method}: {arguments}")
            return refusal("invalid_arguments")
        self.assistant.append((method, arguments))
        return {"ok": True}

    # --- to the bot --------------------------------------------------------------------------------------------------

    async def _deliver(self, request: web.Request) -> web.Response:
        body = await request.read()
        self._trigger = _trigger(body, request.content_type) or self._trigger
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        if request.content_type == "application/json" and (changed := await self._as_slack_deletes(json.loads(body))):
            body = json.dumps(changed).encode()
            headers = self._signed(body, "application/json")
        started = time.perf_counter()
        assert self._session is not None
        async with self._session.post(f"{self.bot}/slack/events", data=body, headers=headers) as response:
            answer = web.Response(
                status=response.status, body=await response.read(), content_type=response.content_type
            )
        self.acknowledged_in.append(time.perf_counter() - started)
        self.delivered.append(answer.status)
        if request.content_type == "application/json":
            for number in range(1, self.retries + 1):
                retry = {"X-Slack-Retry-Num": str(number), "X-Slack-Retry-Reason": "http_timeout"}
                self.delivered.append(await self._post(body, "application/json", retry))
        return answer

    async def _as_slack_deletes(self, envelope: dict[str, Any]) -> dict[str, Any] | None:
        """Slack leaves a stone where a message with replies stood, and calls that a change."""
        event = envelope.get("event", {})
        if event.get("subtype") != "message_deleted":
            return None
        gone = event["previous_message"]
        said = await self._ask("conversations.replies", {"channel": event["channel"], "ts": event["deleted_ts"]})
        if not any(each.get("thread_ts") == gone["ts"] for each in said.get("messages", ())):
            return None
        stone = {"type": "message", "subtype": "tombstone", "user": "USLACKBOT", "text": "This message was deleted."}
        changed = {name: event[name] for name in ("type", "channel", "ts", "event_ts")}
        changed |= {"subtype": "message_changed", "hidden": True, "previous_message": gone}
        changed["message"] = stone | {"hidden": True, "ts": gone["ts"], "thread_ts": gone["ts"]}
        return envelope | {"event": changed}

    async def _post(self, body: bytes, content_type: str, extra: dict[str, str] | None = None) -> int:
        assert self._session is not None
        headers = self._signed(body, content_type) | (extra or {})
        async with self._session.post(f"{self.bot}/slack/events", data=body, headers=headers) as response:
            return response.status

    def _signed(self, body: bytes, content_type: str) -> dict[str, str]:
        timestamp = str(int(time.time()))
        digest = hmac.new(self.secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        return {
            "Content-Type": content_type,
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": f"v0={digest}",
        }

    # --- to the emulator ---------------------------------------------------------------------------------------------

    async def _ask(self, method: str, arguments: Arguments) -> Answer:
        assert self._session is not None
        headers = {"Authorization": f"Bearer {self.token}"}
        address = f"{self.emulator}/api/{method}"
        async with self._session.post(address, json=arguments, headers=headers) as response:
            return await response.json()

    async def _forward(self, address: str, request: web.Request, body: bytes) -> web.Response:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        assert self._session is not None
        async with self._session.request(request.method, address, data=body, headers=headers) as response:
            return web.Response(status=response.status, body=await response.read(), content_type=response.content_type)


def _arguments(body: bytes, request: web.Request) -> Arguments:
    if request.content_type == "application/json":
        return json.loads(body) if body else {}
    return dict(request.query) | dict(parse_qsl(body.decode(errors="replace")))


def _trigger(body: bytes, content_type: str) -> str:
    """The trigger in a command or an interaction of the emulator's."""
    if content_type != FORM:
        return ""
    fields = dict(parse_qsl(body.decode()))
    return (json.loads(fields["payload"]) if "payload" in fields else fields).get("trigger_id", "")
