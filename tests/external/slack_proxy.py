"""What local-slack leaves out, in front of it: rate limits, retried events, message metadata and Block Kit's limits.

The bot talks to this proxy as if it were Slack, and the emulator delivers its events through it:

    bot → /api/METHOD → local-slack → /slack/events → bot
"""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

from tests.fakes import block_kit

PASSED_ON = ("Authorization", "Content-Type", "X-Slack-Signature", "X-Slack-Request-Timestamp")


@dataclass(slots=True)
class SlackProxy:
    """`emulator` and `bot` are base addresses; `secret` signs the events that are sent again."""

    emulator: str
    bot: str
    secret: str
    rate_limits: int = 0  # the next calls that post or edit are refused
    retry_after: int = 1  # seconds
    retries: int = 0  # times that each event is sent again
    refused: list[str] = field(default_factory=list)  # what Slack would not have taken
    delivered: list[int] = field(default_factory=list)  # the bot's status for every event, retries included
    acknowledged_in: list[float] = field(default_factory=list)  # seconds
    _metadata: dict[str, Any] = field(default_factory=dict)
    _session: aiohttp.ClientSession | None = None

    def app(self) -> web.Application:
        app = web.Application()
        app.router.add_route("*", "/api/{method}", self._call)
        app.router.add_post("/slack/events", self._deliver)
        app.cleanup_ctx.append(self._client)
        return app

    async def _client(self, app: web.Application):
        self._session = aiohttp.ClientSession()
        yield
        await self._session.close()

    async def _call(self, request: web.Request) -> web.Response:
        method = request.match_info["method"]
        body = await request.read()
        writes = method in ("chat.postMessage", "chat.update")
        arguments: dict[str, Any] = json.loads(body) if request.content_type == "application/json" and body else {}
        if writes and self.rate_limits:
            self.rate_limits -= 1
            headers = {"Retry-After": str(self.retry_after)}
            return web.json_response({"ok": False, "error": "ratelimited"}, status=429, headers=headers)
        if writes and (problems := block_kit.problems(arguments.get("text"), arguments.get("blocks"))):
            self.refused += problems
            return web.json_response({"ok": False, "error": "invalid_blocks"})
        answer = await self._forward(f"{self.emulator}{request.rel_url}", request, body)
        said: dict[str, Any] = json.loads(answer.text or "{}")
        if method == "chat.postMessage" and said.get("ok"):
            self._metadata[said["ts"]] = arguments.get("metadata")
        if method in ("conversations.history", "conversations.replies") and said.get("ok"):
            said["messages"] = [each | self._metadata_of(each) for each in said["messages"]]
            return web.json_response(said)
        return answer

    def _metadata_of(self, message: dict[str, Any]) -> dict[str, Any]:
        metadata = self._metadata.get(message["ts"])
        return {"metadata": metadata} if metadata else {}

    async def _deliver(self, request: web.Request) -> web.Response:
        body = await request.read()
        started = time.perf_counter()
        answer = await self._forward(f"{self.bot}/slack/events", request, body)
        self.acknowledged_in.append(time.perf_counter() - started)
        self.delivered.append(answer.status)
        if request.content_type == "application/json":
            for number in range(1, self.retries + 1):
                self.delivered.append(await self._retry(body, number))
        return answer

    async def _retry(self, body: bytes, number: int) -> int:
        timestamp = str(int(time.time()))
        digest = hmac.new(self.secret.encode(), b"v0:" + timestamp.encode() + b":" + body, hashlib.sha256).hexdigest()
        headers = {
            "Content-Type": "application/json",
            "X-Slack-Request-Timestamp": timestamp,
            "X-Slack-Signature": f"v0={digest}",
            "X-Slack-Retry-Num": str(number),
            "X-Slack-Retry-Reason": "http_timeout",
        }
        assert self._session is not None
        async with self._session.post(f"{self.bot}/slack/events", data=body, headers=headers) as response:
            return response.status

    async def _forward(self, address: str, request: web.Request, body: bytes) -> web.Response:
        headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
        assert self._session is not None
        async with self._session.request(request.method, address, data=body, headers=headers) as response:
            return web.Response(status=response.status, body=await response.read(), content_type=response.content_type)
