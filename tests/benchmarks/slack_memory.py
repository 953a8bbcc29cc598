"""A Slack that remembers what it was told: the part of its Web API that the bot uses, with messages that can be found."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

LARGEST_PAGE = 1_000  # messages, as at Slack


@dataclass(slots=True)
class RememberedMessage:
    """A message as it stands now."""

    ts: str
    thread: str  # ts of the root; empty for a root
    channel: str
    text: str
    blocks: list[dict[str, Any]]
    metadata: dict[str, Any]
    posted_at: float  # monotonic seconds

    @property
    def intent(self) -> str:
        """What the bot calls this very post."""
        return str(self.metadata.get("event_payload", {}).get("intent", self.ts))


@dataclass(slots=True)
class SlackMemory:
    """Every message, oldest first."""

    messages: dict[str, RememberedMessage] = field(default_factory=dict[str, RememberedMessage])
    changes: int = 0  # posts and edits

    def roots(self) -> list[RememberedMessage]:
        return [message for message in self.messages.values() if not message.thread]

    def replies(self, thread: str) -> list[RememberedMessage]:
        return [message for message in self.messages.values() if message.thread == thread]

    def post(self, arguments: dict[str, Any], ts: str) -> RememberedMessage:
        message = RememberedMessage(
            ts,
            str(arguments.get("thread_ts") or ""),
            str(arguments.get("channel")),
            str(arguments.get("text", "")),
            _decoded(arguments.get("blocks"), []),
            _decoded(arguments.get("metadata"), {}),
            time.monotonic(),
        )
        self.messages[ts] = message
        self.changes += 1
        return message

    def update(self, arguments: dict[str, Any]) -> None:
        message = self.messages[str(arguments["ts"])]
        message.text = str(arguments.get("text", message.text))
        message.blocks = _decoded(arguments.get("blocks"), message.blocks)
        self.changes += 1

    def page(self, arguments: dict[str, Any], messages: list[RememberedMessage]) -> dict[str, Any]:
        """Newest first, as a channel's history is; a thread's order does not matter to whoever looks for a message."""
        limit = min(int(arguments.get("limit") or LARGEST_PAGE), LARGEST_PAGE)
        start = int(arguments.get("cursor") or 0)
        newest = list(reversed(messages))
        following = str(start + limit) if len(newest) > start + limit else ""
        shown = [
            {"ts": each.ts, "thread_ts": each.thread, "text": each.text, "metadata": each.metadata}
            for each in newest[start : start + limit]
        ]
        return {"messages": shown, "response_metadata": {"next_cursor": following}}


@asynccontextmanager
async def remembering_slack(
    patience: Callable[[str, str], int] = lambda _method, _channel: 0,
) -> AsyncGenerator[tuple[str, SlackMemory]]:
    """Its address, and what it remembers. `patience` says of a method and a channel how many seconds to come later."""
    memory = SlackMemory()
    ids = itertools.count(1)

    async def answer(request: web.Request) -> web.Response:
        arguments = await _arguments(request)
        if seconds := patience(request.match_info["method"], str(arguments.get("channel", ""))):
            refusal = {"ok": False, "error": "ratelimited"}
            return web.json_response(refusal, status=429, headers={"Retry-After": str(seconds)})
        match request.match_info["method"]:
            case "chat.postMessage":
                message = memory.post(arguments, f"{next(ids)}.000100")
                body: dict[str, Any] = {"channel": message.channel, "ts": message.ts}
            case "chat.update":
                memory.update(arguments)
                body = {"channel": arguments.get("channel"), "ts": arguments.get("ts")}
            case "conversations.history":
                channel = [each for each in memory.roots() if each.channel == arguments.get("channel")]
                body = memory.page(arguments, channel)
            case "conversations.replies":
                body = memory.page(arguments, memory.replies(str(arguments.get("ts"))))
            case "conversations.info":
                body = {"channel": {"id": arguments.get("channel"), "name": "load", "is_channel": True}}
            case _:
                body = IDENTITY
        return web.json_response({"ok": True, **body})

    app = web.Application(client_max_size=2**20)
    app.router.add_route("*", "/{method}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/", memory
    finally:
        await runner.cleanup()


IDENTITY: dict[str, Any] = {
    "user": {"id": "U1", "name": "load", "profile": {"display_name": "load"}},
    "messages": [],
    "url": "",
    "user_id": "U0BOT",
    "bot_id": "B0BOT",
    "team_id": "T1",
    "team": "load",
}


async def _arguments(request: web.Request) -> dict[str, Any]:
    if request.content_type == "application/json":
        return await request.json()
    return dict(request.query) | dict(await request.post())


def _decoded(value: object, otherwise: Any) -> Any:
    """A structure, which Slack also takes as JSON in a form."""
    if isinstance(value, str):
        return json.loads(value)
    return otherwise if value is None else value
