"""The Microsoft 365 Agents Playground with Marigold Ferries in it, and a real bot beside it.

The playground looks up outside hosts although its telemetry is off: `.ci/run` runs these tests in a network namespace
that has no way out.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import yaml

from tests.external.slack_emulator import ANSWERED_WITHIN, HERE, eventually, free_port, process
from tests.fakes.adaptive_card import of_type, texts

PLAYGROUND = HERE / "node_modules" / "@microsoft" / "m365agentsplayground" / "cli.js"
SAMPLE_COMPANY = HERE.parent.parent / "bot" / "sample_company" / "plumbline.yaml"

BOT = {"id": "28:plumbline", "name": "Plumbline"}
STARTED_WITHIN = 180.0  # seconds; the bot reads all documents first, and CI's machine is a small one

TENANT = "72f988bf-86f1-41af-91ab-2d7cd011db47"
INES, DANA = "29:ines", "29:dana"
PERSONAL_CHAT = "a:1ines-and-plumbline"
GROUP_CHAT = "19:group@thread.v2"
ASK, INCIDENTS = "19:ask-plumbline@thread.tacv2", "19:incidents@thread.tacv2"
CHANNELS = (ASK, INCIDENTS)
MENTION = "<at>Plumbline</at>"


@dataclass(slots=True)
class Shown:
    """A message of the bot as it stands in the chat; `edits` counts how often it was replaced."""

    conversation: str
    id: str
    card: dict[str, Any]
    edits: int = 0
    said: str = ""  # beside the card, as a streamed message has it

    @property
    def thread(self) -> str:
        """The conversation that its replies stand in."""
        return f"{self.conversation};messageid={self.id}" if self.conversation in CHANNELS else self.conversation

    @property
    def text(self) -> str:
        return "\n".join([self.said, *texts(self.card.get("body", []))]).strip()

    @property
    def links(self) -> set[str]:
        return {action["url"] for action in of_type(self.card, "Action.OpenUrl")}


@dataclass(frozen=True, slots=True)
class Playground:
    """Chats and a team with a bot in them, driven as their people would."""

    page: str
    bot: str
    session: aiohttp.ClientSession
    data: Path
    shown: dict[str, Shown] = field(default_factory=dict)

    async def event(self, **fields: Any) -> dict[str, Any]:
        """Have Teams tell the bot something that the page has no button for. Returns the activity."""
        address = f"{self.page}/_internal/v1/customActivities"
        where = {"conversationId": fields.get("conversation", {}).get("id", PERSONAL_CHAT)}
        async with self.session.get(f"{address}/template", params=where) as response:
            usual = await response.json()
            assert response.status == 200, usual
        activity = usual | fields
        async with self.session.post(address, json=activity) as response:
            assert response.status == 200, await response.text()
        return activity

    async def invoke(
        self, name: str, value: dict[str, Any], conversation: str, *, person: str = INES
    ) -> dict[str, Any]:
        """Ask the bot for something that a client waits for. Returns what the bot answered."""
        return await self._control(
            "invoke", {"name": name, "value": value, "from": {"id": person}, "conversation": {"id": conversation}}
        )

    async def say(
        self, text: str, *, conversation: str = PERSONAL_CHAT, person: str = INES, mention: bool = False
    ) -> str:
        """Write a message. Returns the conversation that its replies stand in."""
        message: dict[str, Any] = {"from": {"id": person}, "text": text, "textFormat": "plain"}
        if mention:
            message |= {"text": f"{MENTION} {text}", "mentions": [{"mentioned": {"id": BOT["id"]}, "text": MENTION}]}
        said = await self._control(f"conversations/{conversation}/messages", message)
        return said.get("postConversationId", conversation)

    async def press(self, message: Shown, title: str, *, person: str = INES, **typed: str) -> dict[str, Any]:
        """Press a button, with what was typed into the card. Returns what the bot answered."""
        action = _action(message, title)
        return await self._execute(message, action | {"data": action["data"] | typed}, person)

    async def refresh(self, message: Shown, *, person: str = INES) -> dict[str, Any]:
        """Have the card asked for again, as a client does that shows it anew."""
        return await self._execute(message, message.card["refresh"]["action"], person)

    async def _execute(self, message: Shown, action: dict[str, Any], person: str) -> dict[str, Any]:
        return await self._control(
            "invoke",
            {
                "name": "adaptiveCard/action",
                "value": {"action": action, "trigger": "manual"},
                "from": {"id": person},
                "conversation": {"id": message.thread},
                "replyToId": message.id,
            },
        )

    async def submit(self, message: Shown, title: str, *, person: str = INES) -> None:
        """Press a button in a client that is too old for Action.Execute."""
        action = _action(message, title)
        action = action.get("fallback", action)
        where = {"from": {"id": person}, "conversation": {"id": message.thread}, "replyToId": message.id}
        async with self.session.post(
            f"{self.page}/_conversation/v1/submit", json=where | {"value": action["data"]}
        ) as sent:
            assert sent.status == 200, await sent.text()

    def in_(self, conversation: str) -> list[Shown]:
        """What the bot said there, oldest first."""
        return [message for message in self.shown.values() if message.conversation == conversation]

    async def until(self, conversation: str, wanted: Callable[[list[Shown]], bool]) -> list[Shown]:
        """What the bot said there once it is as wanted, without an answer that is still being written."""

        async def look() -> list[Shown] | None:
            said = [each for each in self.in_(conversation) if each.card or not each.said.endswith("…")]
            return said if wanted(said) else None

        return await eventually(look, f"the bot says something in {conversation}", ANSWERED_WITHIN)

    async def watch(self) -> None:
        """Read along until cancelled."""
        async with self.session.ws_connect(f"{self.page}/_ws_conversation/v1/conversations/stream") as stream:
            async for event in stream:
                self._note(json.loads(event.data))

    def _note(self, event: dict[str, Any]) -> None:
        message = event.get("message", {})
        if message.get("from", {}).get("id") != BOT["id"]:
            return
        id_, cards = (
            message["messageId"],
            [each["content"] for each in message.get("attachments") or () if "content" in each],
        )
        card, said = cards[0] if cards else {}, message.get("text") or ""
        if event["action"] == "createMessage":
            self.shown[id_] = Shown(event["actionConversationId"], id_, card, said=said)
        elif event["action"] == "updateMessage" and id_ in self.shown:
            self.shown[id_].card, self.shown[id_].said = card, said
            self.shown[id_].edits += 1
        elif event["action"] == "deleteMessage":
            self.shown.pop(id_, None)

    async def _control(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        async with self.session.post(f"{self.page}/_conversation/v1/{path}", json=body) as response:
            answer = await response.json(content_type=None)
            assert response.status == 200, answer
            return answer


def _action(message: Shown, title: str) -> dict[str, Any]:
    """The button of a card, also one that is unfolded by another."""
    actions = [each for kind in ("Action.Execute", "Action.Submit") for each in of_type(message.card["actions"], kind)]
    return next(action for action in actions if action.get("title") == title)


@asynccontextmanager
async def teams_playground(folder: Path, sdk: str) -> AsyncIterator[Playground]:
    """The playground, and a real bot that serves the sample company through one of the SDKs."""
    page_port, bot_port = free_port(), free_port()
    page, bot = f"http://127.0.0.1:{page_port}", f"http://127.0.0.1:{bot_port}"
    config = folder / "playground.yml"
    config.write_text(json.dumps(_people()))
    arguments = ["-e", f"{bot}/api/messages", "-c", "msteams", "-p", str(page_port), "--disable-telemetry"]
    variables = os.environ | {
        "M365_AGENTS_PLAYGROUND_CONFIG_PATH": str(config),
        "M365_AGENTS_PLAYGROUND_LOGFILE": str(folder / "playground-events.log"),
        "TEAMSAPPTESTER_BROWSER": "none",
    }
    async with (
        aiohttp.ClientSession() as session,
        process([sys.executable, "-m", "bot", "serve"], folder / "bot.log", environment(folder, bot_port, sdk)),
        process(["node", str(PLAYGROUND), *arguments], folder / "playground.log", variables),
    ):
        playground = Playground(page, bot, session, folder / "data")
        await eventually(lambda: answers(session, f"{bot}/readyz"), "the bot is ready", STARTED_WITHIN)
        await eventually(lambda: answers(session, f"{page}/_internal/v1/testConfig"), "it starts", STARTED_WITHIN)
        watching = asyncio.create_task(playground.watch())
        yield playground
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def _people() -> dict[str, Any]:
    others = ["dana", "yusuf", "hana", "oskar", "asha"]
    return {
        "version": "0.1.1",
        "tenantId": TENANT,
        "bot": BOT,
        "currentUser": _person("ines"),
        "users": [_person(name) for name in others],
        "personalChat": {"id": PERSONAL_CHAT},
        "groupChat": {"id": GROUP_CHAT, "name": "On call"},
        "team": {
            "id": ASK,  # a team's first channel has the team's own id
            "name": "Marigold Ferries",
            "aadGroupId": "6a2f7f0e-6c0e-4a55-9c7b-2b6c1d8f0a11",
            "channels": [{"id": INCIDENTS, "name": "incidents"}],
        },
    }


def _person(name: str) -> dict[str, str]:
    return {
        "id": f"29:{name}",
        "name": name.capitalize(),
        "userPrincipleName": f"{name}@marigold-ferries.example",
        "aadObjectId": f"00000000-0000-0000-0000-{name:x>12}",
        "givenName": name.capitalize(),
        "surname": "Marigold",
        "email": f"{name}@marigold-ferries.example",
    }


def environment(folder: Path, port: int, sdk: str) -> dict[str, str]:
    """The environment of a bot in the sample company, without anything of this process's own."""
    foreign = ("PLUMBLINE_", "SLACK_", "TEAMS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return inherited | {
        "PLUMBLINE_PORT": str(port),
        "PLUMBLINE_DATA_DIR": str(folder / "data"),
        "PLUMBLINE_CONFIG": str(_company_on_teams(folder)),
        "TEAMS_SDK": sdk,
    }


def _company_on_teams(folder: Path) -> Path:
    """The sample company without its local page, so that its incidents are posted in Teams."""
    company = yaml.safe_load(SAMPLE_COMPANY.read_text())
    for channel in company["channels"]:
        channel.pop("console", None)
    for section, name in (("sources", "path"), ("tools", "path"), ("teams", "document")):
        for entry in company[section]:
            entry[name] = str(SAMPLE_COMPANY.parent / entry[name])
    file = folder / "plumbline.yaml"
    file.write_text(yaml.safe_dump(company))
    return file


async def answers(session: aiohttp.ClientSession, address: str) -> bool:
    """Whether something answers with 200 there."""
    try:
        async with session.get(address) as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False
