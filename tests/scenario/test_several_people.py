"""Several people press the same buttons, or one of them twice: nobody is overridden unseen, and nobody is called twice."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from core.model.messages import ButtonAction
from core.views import I_AM_UNSURE, PING
from handlers.incidents.reassign_incident import TAKEN, TAKEN_OVER, TEAM_UNKNOWN
from tests.fakes import block_kit, slack_payloads
from tests.fakes.door_secrets import KNOWN
from tests.fakes.slack_api import CHANNEL
from tests.scenario.home import Home
from tests.scenario.mortal_bot import MortalBot
from tests.scenario.slack import WatchedSlack
from tests.scenario.unclear_owner import raise_unclear, without_monitoring
from tests.scenario.webhooks import alert, delivery

_moments = count(1_773_480_700)


@pytest.fixture
async def home(furnished: Path, tmp_path: Path) -> AsyncIterator[Home]:
    without_monitoring(furnished, tmp_path)
    file = tmp_path / "company" / "plumbline.yaml"
    text = file.read_text(encoding="utf-8")
    text = text.replace("{ping_two_when_unsure: true}", "{ping_two_when_unsure: true, ping_owner_above: 0.99}")
    file.write_text(text, encoding="utf-8")
    async with WatchedSlack() as slack:
        yield Home(tmp_path, slack)


class Crowd:
    """What people see of the one incident, and what they press."""

    def __init__(self, slack: WatchedSlack, address: str) -> None:
        self._slack = slack
        self._address = address

    @property
    def root(self) -> dict[str, Any]:
        return next(each for each in self._slack.messages if each["channel"] == CHANNEL and "thread_ts" not in each)

    @property
    def shown(self) -> str:
        return "\n".join(block_kit.texts(self.root["blocks"]))

    def thread(self, part: str) -> list[str]:
        """What was said in the incident's thread that holds this."""
        said = ["\n".join(block_kit.texts(each["blocks"])) for each in self._slack.replies(self.root["ts"])]
        return [each for each in said if part in each]

    def button(self, label: str) -> dict[str, Any]:
        return block_kit.buttons(self.root["blocks"])[label]

    async def press(self, button: dict[str, Any], name: str, **picked: str) -> None:
        payload = slack_payloads.button_press(button, self.root, f"U0{name.upper().replace(' ', '')}")
        payload["user"] |= {"username": name, "name": name}
        payload["actions"][0]["action_ts"] = f"{next(_moments)}.000100"
        if team := picked.get("choice"):
            option = {"text": {"type": "plain_text", "text": team}, "value": team}
            payload["state"] = {
                "values": {"team": {"team": {"type": "static_select", "selected_option": option}}},
            }
        body = slack_payloads.interaction(payload)
        headers = slack_payloads.signed(body, time.time()) | {"Content-Type": "application/x-www-form-urlencoded"}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self._address}slack/events", data=body, headers=headers) as response,
        ):
            assert response.status == 200, await response.text()

    async def say(self, verdict: ButtonAction, subject: str, name: str, **picked: str) -> None:
        """What a form says that was opened before."""
        button = {"type": "button", "action_id": f"feedback:{verdict}", "value": subject}
        await self.press(button, name, **picked)


async def clear_alarm(address: str) -> None:
    async with (
        aiohttp.ClientSession(headers=KNOWN) as session,
        session.post(f"{address}webhooks/alertmanager", json=delivery("group", alert("till"))) as response,
    ):
        assert response.status == 202, await response.text()


@asynccontextmanager
async def crowded(
    home: Home, raise_alarm: Callable[[str], Awaitable[object]] = clear_alarm
) -> AsyncGenerator[tuple[MortalBot, Crowd]]:
    """A bot that has looked into one incident, and the people around it; the bot is stopped at the end."""
    async with home.life() as bot:
        address = await bot.address()
        await raise_alarm(address)
        await bot.finishes("details")
        yield bot, Crowd(home.slack, address)
        await bot.stop()


async def test_who_takes_an_incident_second_is_told_who_has_it_and_may_take_it_over(home: Home) -> None:
    async with crowded(home) as (_, crowd):
        take_it = crowd.button("Take")
        await crowd.press(take_it, "ines")
        await home.slack.until(lambda: "taken by ines" in crowd.shown)
        await crowd.press(take_it, "ines")
        await crowd.press(take_it, "dana")
        await home.slack.until(lambda: crowd.thread(TAKEN.format(person="ines")))
        assert "taken by ines" in crowd.shown
        await crowd.press(crowd.button("Take over"), "dana")
        await home.slack.until(lambda: "taken by dana" in crowd.shown)
        await home.slack.until(lambda: crowd.thread(TAKEN_OVER.format(person="dana", before="ines")))
    assert len(crowd.thread("ines")) == 2


async def test_a_team_that_two_people_give_it_to_at_once_is_given_it_once_and_called_once(home: Home) -> None:
    async with crowded(home) as (bot, crowd):
        claim = block_kit.subject(crowd.button("Right owner"))
        for name, team in (("ines", "catalogue"), ("ines", "catalogue"), ("dana", "catalogue"), ("lee", "payments")):
            bot.steps.clear()
            await crowd.say(ButtonAction.REASSIGN, claim, name, choice=team)
            await bot.finishes("feedback")
            await home.slack.until(lambda: crowd.thread(PING))
        await home.slack.until(lambda: crowd.thread("says lee"))
    (story,) = crowd.thread("says lee")
    assert [line.partition("says ")[2] for line in story.splitlines() if "says " in line] == [
        "ines, given to Catalogue",
        "lee, given to Payments",
    ]
    assert len([each for each in crowd.thread(PING) if "Catalogue" in each]) == 1


async def test_a_team_that_says_twice_that_it_is_not_theirs_makes_one_hop(home: Home) -> None:
    async with crowded(home) as (_, crowd):
        claim = block_kit.subject(crowd.button("Right owner"))
        for name in ("ines", "ines", "dana"):
            await crowd.say(ButtonAction.NOT_OURS, claim, name)
        await home.slack.until(lambda: "Payments" not in crowd.shown.partition("*Owner*")[2].partition("\n")[0])
    assert "\n".join(crowd.thread("says ines")).count("says ines") == 1


async def test_of_two_teams_that_are_asked_the_one_whose_person_says_no_is_asked_no_more(home: Home) -> None:
    async with crowded(home, raise_unclear) as (_, crowd):
        claim = crowd.button("Reassign…")["value"]
        await crowd.say(ButtonAction.NOT_OURS, claim, "somebody")
        await home.slack.until(lambda: crowd.thread(TEAM_UNKNOWN))
        assert len(crowd.thread(I_AM_UNSURE)) == 1, "the same question is not asked again"
        await crowd.say(ButtonAction.NOT_OURS, claim, "Ada Quist")
        await home.slack.until(lambda: "Payments" not in crowd.shown.partition("*Owner*")[2].partition("*Cause*")[0])
    (_, *later) = crowd.thread(I_AM_UNSURE)
    assert all("S0PAY" not in each for each in later)


async def test_a_word_that_holds_a_services_name_names_no_service(home: Home) -> None:
    async with home.life() as bot:
        ts = await home.slack.asks(await bot.address(), "triage The bakery is shut until noon, says the distillery")
        await home.slack.until(lambda: "not clear" in str(home.slack.replies(ts)))
        await bot.stop()
    said = "\n".join(text for each in home.slack.replies(ts) for text in block_kit.texts(each["blocks"]))
    assert "till" not in said.replace("until", "").replace("distillery", "")


async def test_an_incident_that_was_given_to_a_team_that_is_no_more_is_triaged_on_request_and_its_message_shows_it(
    home: Home,
) -> None:
    async with crowded(home) as (_, crowd):
        await crowd.say(
            ButtonAction.REASSIGN, block_kit.subject(crowd.button("Right owner")), "ines", choice="catalogue"
        )
        await home.slack.until(lambda: "*Owner*  Catalogue" in crowd.shown)
    _without_catalogue(home)
    async with home.life() as bot:
        address = await bot.address()
        ts = await home.slack.asks(address, "triage", thread_ts=crowd.root["ts"])
        assert ts
        await home.slack.until(lambda: "*Owner*  not clear" in crowd.shown)
        await bot.stop()


def _without_catalogue(home: Home) -> None:
    file = home.data.parent / "company" / "plumbline.yaml"
    lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
    file.write_text("".join(line for line in lines if "id: catalogue" not in line), encoding="utf-8")
