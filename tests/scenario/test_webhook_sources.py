"""Every monitoring system tells its story over HTTP, signed as it signs: what stands in Slack."""

from __future__ import annotations

import asyncio
import json
from io import BytesIO
from itertools import count
from typing import Any

import aiohttp
import pytest

from bot.commands.doctor import check_refusals
from bot.config.section import FORMATS
from tests.fakes import block_kit
from tests.fakes.monitoring_systems.cloudwatch import CloudWatch
from tests.fakes.monitoring_systems.grafana import Grafana
from tests.fakes.monitoring_systems.pagerduty import PagerDuty
from tests.fakes.monitoring_systems.sentry import Sentry, SentryMetric
from tests.fakes.monitoring_systems.system import PERSON, TITLE, MonitoringSystem, Payload, encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS
from tests.scenario.application import TOKEN, RunningBot
from tests.scenario.bot_client import is_done

pytestmark = pytest.mark.asyncio(loop_scope="session")

JSON = {"Content-Type": "application/json"}

_ids = count(1)


@pytest.fixture(autouse=True)
def each_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """All systems tell of the same alert here, which else is one incident and its parts."""
    monkeypatch.setattr("core.incidents.folding.tells_the_same", lambda _one, _other: False)


@pytest.fixture(params=SYSTEMS, ids=[system.__name__ for system in SYSTEMS])
def system(request: pytest.FixtureRequest) -> MonitoringSystem:
    return request.param(f"scenario-{next(_ids)}")


one_system = pytest.mark.parametrize("system", SYSTEMS[:1], indirect=True, ids=[SYSTEMS[0].__name__])
# A whole story takes a second; how each system tells its own is also tested without a server (tests/contract).
each_in_turn = pytest.mark.parametrize(
    "system",
    [
        pytest.param(system, id=system.__name__, marks=pytest.mark.external if number > 2 else ())
        for number, system in enumerate(SYSTEMS)
    ],
    indirect=True,
)


async def answered(bot: RunningBot, source: str, body: bytes, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
    """What somebody is answered who has nothing but these headers."""
    url = f"{bot.address}webhooks/{source}"
    async with (
        aiohttp.ClientSession() as stranger,
        stranger.post(url, data=BytesIO(body), headers=JSON | headers) as response,
    ):
        return response.status, json.loads(await response.text())


async def told(bot: RunningBot, system: MonitoringSystem, payload: Payload) -> str | None:
    """Send what the system says; returns the id of the incident."""
    body = encoded(payload)
    status, answer = await answered(bot, system.source, body, system.headers(body, TOKEN))
    assert status == 202, answer
    return answer["incident"]


def posts(bot: RunningBot, intent: str) -> list[dict[str, Any]]:
    return [
        message
        for message in bot.slack.messages
        if message.get("metadata", {}).get("event_payload", {}).get("intent") == intent
    ]


async def shown(bot: RunningBot, incident: str | None, *words: str) -> str:
    """The text of the one message of an incident, once it says all this."""

    def text() -> str:
        return "\n".join(
            "\n".join(block_kit.texts(message["blocks"])) for message in posts(bot, f"incident:{incident}")
        )

    await bot.slack.until(lambda: all(word in text() for word in words) and text())
    assert [message["channel"] for message in posts(bot, f"incident:{incident}")] == ["C0PAGES"]
    return text()


@each_in_turn
async def test_slack_shows_each_turn_of_an_incident_once_however_often_it_is_sent(
    bot: RunningBot, system: MonitoringSystem
) -> None:
    fire = system.fire()
    answers = await asyncio.gather(*(told(bot, system, fire) for _ in range(4)))
    (incident,) = [answer for answer in answers if answer is not None]
    raw = await shown(bot, incident, TITLE, " since ")
    assert "Acknowledged" not in raw
    assert await told(bot, system, fire) is None
    assert await told(bot, system, system.update()) == incident
    await shown(bot, incident, "Critical" if system.rates else "Warning")
    if system.acknowledges:
        assert await told(bot, system, system.acknowledge()) == incident
        await shown(
            bot, incident, "Acknowledged", PERSON, f"in {getattr(FORMATS.all()[system.source], 'name', system.source)}"
        )
    assert await told(bot, system, system.resolve()) == incident
    await shown(bot, incident, "Resolved")
    assert await told(bot, system, system.fire()) == incident
    await shown(bot, incident, " again, first ")
    await bot.slack.until(lambda: posts(bot, f"reopened:{incident}:1"))
    (root,) = posts(bot, f"incident:{incident}")
    (notice,) = posts(bot, f"reopened:{incident}:1")
    assert notice["thread_ts"] == root["ts"]


async def test_odd_alert_of_signed_group_is_named_by_doctor_and_others_become_incident(
    bot: RunningBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.web.routes.INTERVAL", 0)
    grafana = Grafana("odd")
    payload = grafana.fire()
    good = payload["alerts"][0]
    odd = {name: value for name, value in good.items() if name != "status"} | {"fingerprint": "odd"}
    payload["alerts"] += [odd, good | {"fingerprint": "good", "labels": good["labels"] | {"asha@till.example": None}}]
    incident = await told(bot, grafana, payload)
    assert incident is not None
    assert (await bot.incident(incident, is_done))["alert_count"] == 2
    [finding] = [each for each in check_refusals(bot.company.parent / "data") if each.what == "requests of grafana"]
    assert "read in part: 2 parts left out: alerts.1 (status: Field required); [e-mail]" in finding.remedy
    assert "asha" not in finding.remedy
    await told(bot, grafana, payload | {"message": "again"})
    [finding] = [each for each in check_refusals(bot.company.parent / "data") if each.what == "requests of grafana"]
    assert finding.remedy.endswith("(2 times)")


@one_system
async def test_an_incident_is_posted_in_both_of_its_chats_and_is_over_in_both(
    bot: RunningBot, system: MonitoringSystem
) -> None:
    incident = await told(bot, system, system.fire())
    assert incident is not None
    await shown(bot, incident, " since ")
    assert (await bot.incident(incident, is_done))["state"] == "open"
    await told(bot, system, system.update())
    await told(bot, system, system.resolve())
    await shown(bot, incident, "Resolved")
    await bot.incident(incident, lambda on_the_page: on_the_page["state"] == "resolved")


async def test_a_test_is_answered_and_not_posted(bot: RunningBot, system: MonitoringSystem) -> None:
    if not system.tests:
        pytest.skip("it has no test notification")
    assert await told(bot, system, system.test()) is None


@pytest.mark.parametrize("kind", [Sentry, SentryMetric, PagerDuty])
async def test_a_body_that_is_sent_again_after_it_was_resolved_opens_nothing(
    bot: RunningBot, kind: type[MonitoringSystem]
) -> None:
    system = kind(f"scenario-{next(_ids)}")
    fire = system.fire()
    incident = await told(bot, system, fire)
    await told(bot, system, system.resolve())
    await shown(bot, incident, "Resolved")
    assert await told(bot, system, fire) is None
    assert await told(bot, system, system.fire()) == incident


async def test_what_is_signed_with_another_secret_is_refused(bot: RunningBot, system: MonitoringSystem) -> None:
    body = encoded(system.fire())
    for headers in ({}, system.headers(body, "another secret"), system.headers(body + b" ", f"{TOKEN}x")):
        status, answer = await answered(bot, system.source, body, headers)
        assert status == 401
        assert "PLUMBLINE_WEBHOOK_SECRET" in answer["error"]


async def test_what_makes_no_sense_is_refused_with_a_sentence_even_if_it_is_signed(
    bot: RunningBot, system: MonitoringSystem
) -> None:
    for body in (b"", b"{}", b"[1]", b'{"event": 3, "alert": 3, "action": 3}', b"\xff"):
        status, answer = await answered(bot, system.source, body, system.headers(body, TOKEN))
        assert status == 400, body
        assert answer["error"].endswith("."), body


@one_system
async def test_what_is_too_large_is_refused(bot: RunningBot, system: MonitoringSystem) -> None:
    body = b'{"text": "' + b"x" * 9_000_000 + b'"}'
    status, answer = await answered(bot, system.source, body, {"Authorization": f"Bearer {TOKEN}"})
    assert (status, "larger than 8 MiB" in answer["error"]) == (413, True)


async def test_amazon_sns_is_asked_for_its_password_and_may_call_its_json_a_text(bot: RunningBot) -> None:
    system, plain = CloudWatch(f"scenario-{next(_ids)}"), {"Content-Type": "text/plain; charset=UTF-8"}
    url, body = f"{bot.address}webhooks/cloudwatch", encoded(system.fire())
    notice = {"x-amz-sns-message-type": "Notification"}
    password = {"Authorization": aiohttp.encode_basic_auth("plumbline", TOKEN)}
    async with aiohttp.ClientSession() as sns:
        async with sns.post(url, data=body, headers=plain | notice) as response:
            assert (response.status, response.headers["WWW-Authenticate"]) == (401, 'Basic realm="Plumbline"')
        async with sns.post(url, data=body, headers=plain | password) as response:
            assert response.status == 400
        async with sns.post(url, data=body, headers=plain | notice | password) as response:
            assert (response.status, bool((await response.json())["incident"])) == (202, True)
