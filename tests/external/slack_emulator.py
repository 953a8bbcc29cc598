"""local-slack with our proxy in front of it, and the people of Marigold Ferries in its channels."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import aiohttp
from aiohttp.test_utils import TestServer

from adapters.slack.doctor import SCOPES
from tests.external.slack_proxy import SlackProxy
from tests.fakes import block_kit, slack_payloads
from tests.fakes.door_secrets import KNOWN, LOCKED

HERE = Path(__file__).parent
ARTIFACTS = Path(os.environ.get("PLUMBLINE_TEST_ARTIFACTS", HERE / "artifacts"))  # what people are to look at
EMULATOR = HERE / "node_modules" / "local-slack-linux-x64" / "bin" / "local-slack"
SAMPLE_COMPANY = HERE.parent.parent / "bot" / "sample_company" / "plumbline.yaml"

BOT_USER = "U0PLUMB"
BOT_TOKEN = "xoxb-emulated"
APP_TOKEN = "xapp-emulated"
SIGNING_SECRET = "emulated-signing-secret"
APP = "A0PLUMB"
INES, DANA = "U0INES", "U0DANA"
DIRECT = "D0INES"
CHANNELS = {
    "ask-plumbline": "C0ASK",
    "incidents": "C0INC",
    "ci-cd": "C0CICD",
    "payments-private": "C0PAYPRIV",
    "gallery": "C0GALLERY",
}
PRIVATE = {"payments-private"}

STARTED_WITHIN = 120.0  # seconds
ANSWERED_WITHIN = 60.0  # seconds
PAUSE = 0.05  # seconds between looks

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SlackWorkspace:
    """A workspace with a bot in it, driven as its people would."""

    page: str
    api_url: str
    bot: str
    proxy: SlackProxy
    session: aiohttp.ClientSession

    async def say(self, text: str, *, channel: str = "C0ASK", person: str = INES, thread: str | None = None) -> str:
        """Write a message; the emulator answers once the app has acknowledged it. Returns its timestamp."""
        message = {"channel": channel, "user": person, "text": text, "thread_ts": thread}
        return (await self._control("message", {name: value for name, value in message.items() if value}))["message"][
            "ts"
        ]

    async def command(self, text: str, *, channel: str = "C0ASK", person: str = INES) -> None:
        await self._control("command", {"channel": channel, "user": person, "command": "/plumbline", "text": text})

    async def press(self, message: dict[str, Any], label: str, *, person: str = INES) -> None:
        button = block_kit.buttons(message["blocks"])[label]
        where = {"channel": message["channel"], "messageTs": message["ts"], "user": person}
        await self._control("interact", where | {"action": button})

    async def edit(self, channel: str, ts: str, text: str, *, person: str = INES) -> None:
        await self._control("edit-message", {"channel": channel, "ts": ts, "user": person, "text": text})

    async def delete(self, channel: str, ts: str, *, person: str = INES) -> None:
        await self._control("delete-message", {"channel": channel, "ts": ts, "user": person})

    async def react(self, message: dict[str, Any], name: str, *, person: str = INES, present: bool = True) -> None:
        where = {"channel": message["channel"], "ts": message["ts"], "user": person}
        await self._control("reaction", where | {"name": name, "present": present})

    async def open_home(self, *, person: str = INES) -> dict[str, Any]:
        """Open the person's own page; what stands there once the bot has acknowledged."""
        await self._control("open-home", {"user": person})
        state = await self._page_state()
        return state["homeViews"][person][APP]

    async def form(self) -> dict[str, Any]:
        """The form that stands before the person."""

        async def look() -> dict[str, Any] | None:
            stack = (await self._page_state())["modalStack"]
            return stack[-1] if stack else None

        return await eventually(look, "a form opens", ANSWERED_WITHIN)

    async def fill_in(self, values: dict[str, str], *, person: str = INES) -> None:
        """Fill in the form that stands there, by field, and send it."""
        form = await self.form()
        state = slack_payloads.form_submission(form, values)["view"]["state"]["values"]
        async with self.session.ws_connect(f"{self.page}/ui") as page:
            await page.send_json({"t": "view_submit", "user": person, "values": state})

            async def gone() -> bool:
                return not (await self._page_state())["modalStack"]

            await eventually(gone, "the form closes", ANSWERED_WITHIN)

    async def choose_shortcut(self, channel: str, ts: str, *, person: str = INES) -> None:
        """“Ask Plumbline about this”, in the menu of a message."""
        message = next(each for each in await self.messages(channel) if each["ts"] == ts)
        assert await self.proxy.send_interaction(slack_payloads.message_shortcut(message, person)) == 200

    async def open_messages_tab(self, person: str = INES) -> None:
        """Somebody opens the app's Messages tab, D0INES, of an app with the agent experience."""
        self.proxy.is_agent = True
        event = {"type": "app_home_opened", "user": person, "channel": DIRECT, "tab": "messages", "event_ts": "1.0"}
        assert await self.proxy.send_event(event) == 200

    async def _page_state(self) -> dict[str, Any]:
        """What the emulator's page shows to everybody."""
        async with self.session.ws_connect(f"{self.page}/ui", max_msg_size=0) as page:
            return (await page.receive_json())["state"]

    async def alert(self, name: str) -> None:
        """Alertmanager reports one of the sample company's live incidents."""
        await self.fire(json.loads((SAMPLE_COMPANY.parent / "live" / name / "alert.json").read_text()))

    async def fire(self, alert: dict[str, Any]) -> None:
        async with self.session.post(f"{self.bot}/webhooks/alertmanager", json=alert, headers=KNOWN) as response:
            assert response.status == 202, await response.text()

    async def messages(self, channel: str) -> list[dict[str, Any]]:
        async with self.session.get(f"{self.page}/_control/messages/{channel}") as response:
            return (await response.json())["messages"]

    async def from_bot(self, channel: str, thread: str | None = None) -> list[dict[str, Any]]:
        """What the bot said in a thread, or in the channel itself."""
        said = await self.messages(channel)
        return [each for each in said if each["user"] == BOT_USER and each.get("thread_ts") == thread]

    async def until(
        self, wanted: Callable[[list[dict[str, Any]]], bool], channel: str, thread: str | None = None
    ) -> list[dict[str, Any]]:
        """What the bot said once it is as wanted."""

        async def look() -> list[dict[str, Any]] | None:
            said = await self.from_bot(channel, thread)
            return said if wanted(said) else None

        return await eventually(look, f"the bot says something in {channel}, thread {thread}", ANSWERED_WITHIN)

    async def _control(self, verb: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self.session.post(f"{self.page}/_control/{verb}", json=body) as response:
            answer = await response.json()
            assert response.status == 200, answer
            return answer


@asynccontextmanager
async def slack_workspace(
    folder: Path, *, socket_mode: bool = False, more: Mapping[str, str] = MappingProxyType({})
) -> AsyncIterator[SlackWorkspace]:
    """The emulator, the proxy, and a real bot that serves the sample company, with `more` in its environment."""
    emulator_port, bot_port = free_port(), free_port()
    page, bot = f"http://127.0.0.1:{emulator_port}", f"http://127.0.0.1:{bot_port}"
    proxy = SlackProxy(page, bot, SIGNING_SECRET, BOT_TOKEN, frozenset(SCOPES))
    async with TestServer(proxy.app()) as front, aiohttp.ClientSession() as session:
        events = str(front.make_url("/slack/events"))
        config = folder / "local-slack.json"
        config.write_text(json.dumps(_config(events, socket_mode=socket_mode)))
        arguments = ["--config", str(config), "--port", str(emulator_port), "--base-host", "127.0.0.1"]
        environment = _environment(folder, bot_port, str(front.make_url("/api/")), socket_mode=socket_mode)
        async with (
            process([str(EMULATOR), *arguments], folder / "local-slack.log"),
            process([sys.executable, "-m", "bot", "serve"], folder / "bot.log", {**environment, **more}),
        ):
            workspace = SlackWorkspace(page, str(front.make_url("/api/")), bot, proxy, session)
            await eventually(lambda: _answers(session, f"{page}/_control/state"), "local-slack starts", STARTED_WITHIN)
            await eventually(lambda: _answers(session, f"{bot}/readyz"), "the bot is ready", STARTED_WITHIN)
            if socket_mode:
                await eventually(lambda: _connected(session, page), "the bot connects", STARTED_WITHIN)
            yield workspace


async def eventually(look: Callable[[], Awaitable[T | None]], what: str, within: float) -> T:
    """What `look` finds as soon as it finds something."""
    try:
        async with asyncio.timeout(within):
            while True:
                found = await look()
                if found:
                    return found
                await asyncio.sleep(PAUSE)
    except TimeoutError:
        raise AssertionError(f"Waited {within:.0f} s in vain until {what}.") from None


@asynccontextmanager
async def process(command: list[str], log: Path, environment: dict[str, str] | None = None) -> AsyncIterator[int]:
    """A process that is ended with the block; its output is in `log`."""
    with log.open("wb") as output:
        started = await asyncio.create_subprocess_exec(
            *command, stdout=output, stderr=output, env=environment, cwd=HERE.parent.parent
        )
        try:
            yield started.pid
        finally:
            if started.returncode is None:
                started.terminate()
            await started.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _config(events: str, *, socket_mode: bool) -> dict[str, Any]:
    members = [BOT_USER, INES, DANA]
    app = {
        "appId": APP,
        "botUserId": BOT_USER,
        "botName": "plumbline",
        "botToken": BOT_TOKEN,
        "appToken": APP_TOKEN,
        "signingSecret": SIGNING_SECRET,
    }
    mode = {"mode": "socket"} if socket_mode else {"mode": "events", "requestUrl": events}
    return {
        "workspace": {"name": "Marigold Ferries", "domain": "marigold", "teamId": "T0MARI"},
        "apps": [app | mode],
        "users": [
            {"id": INES, "name": "ines", "real_name": "Ines Okafor"},
            {"id": DANA, "name": "dana", "real_name": "Dana Whitlock"},
        ],
        "channels": [
            *(
                {"id": id_, "name": name, "is_private": name in PRIVATE, "members": members}
                for name, id_ in CHANNELS.items()
            ),
            {"id": DIRECT, "name": "dm-ines", "is_channel": False, "is_im": True, "members": [BOT_USER, INES]},
        ],
    }


def _environment(folder: Path, port: int, api_url: str, *, socket_mode: bool) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PLUMBLINE_", "SLACK_"))}
    mode = {"SLACK_APP_TOKEN": APP_TOKEN} if socket_mode else {"SLACK_SIGNING_SECRET": SIGNING_SECRET}
    return (
        inherited
        | mode
        | LOCKED
        | {
            "PLUMBLINE_PORT": str(port),
            "PLUMBLINE_DATA_DIR": str(folder / "data"),
            "PLUMBLINE_CONFIG": str(SAMPLE_COMPANY),
            "SLACK_BOT_TOKEN": BOT_TOKEN,
            "SLACK_API_URL": api_url,
        }
    )


async def _answers(session: aiohttp.ClientSession, address: str) -> bool:
    try:
        async with session.get(address) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def _connected(session: aiohttp.ClientSession, page: str) -> bool:
    async with session.get(f"{page}/_control/log") as response:
        return any("socket connected" in entry["summary"] for entry in (await response.json())["log"])
