"""Is it from Slack, and is it readable: what the door lets in, and what it says to the others."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator

import pytest

from tests.fakes.slack_bot import FORM, SlackBot, slack_bot
from tests.fakes.slack_payloads import event_callback, mention, signed

MENTION = json.dumps(event_callback(mention()))
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


async def test_a_url_verification_is_answered_with_its_challenge(bot: SlackBot) -> None:
    response = await bot.send(json.dumps({"type": "url_verification", "challenge": "3eZbrw1aBm2rZgRNFdxV"}))
    assert response.status == 200
    assert "3eZbrw1aBm2rZgRNFdxV" in await response.text()


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"X-Slack-Signature": "v0=" + 64 * "0"}, id="wrong"),
        pytest.param({"X-Slack-Signature": ""}, id="empty"),
        pytest.param({"X-Slack-Signature": "v0=é"}, id="not ASCII"),
        pytest.param({"X-Slack-Request-Timestamp": "yesterday"}, id="timestamp that is no number"),
        pytest.param({"X-Slack-Request-Timestamp": "9" * 5000}, id="timestamp that is too long to read"),
        pytest.param({"X-Slack-Request-Timestamp": ""}, id="empty timestamp"),
    ],
)
async def test_a_wrong_signature_is_refused_with_one_sentence(bot: SlackBot, change: dict[str, str]) -> None:
    response = await bot.send(MENTION, **change)
    assert response.status == 401
    assert (await response.json())["error"].endswith(".")
    assert bot.inbox.questions == []


async def test_a_request_without_a_signature_is_refused(bot: SlackBot) -> None:
    response = await bot.post(MENTION.encode(), JSON)
    assert response.status == 401
    assert bot.inbox.questions == []


@pytest.mark.parametrize("age", [pytest.param(301, id="old"), pytest.param(-301, id="from the future")])
async def test_a_right_signature_of_another_time_is_refused(bot: SlackBot, age: int) -> None:
    response = await bot.post(MENTION.encode(), JSON | signed(MENTION, bot.clock.now().timestamp() - age))
    assert response.status == 401
    assert bot.inbox.questions == []


async def test_a_signature_of_another_body_is_refused(bot: SlackBot) -> None:
    other = json.dumps(event_callback(mention("<@U0PLUMB> help")))
    response = await bot.post(MENTION.encode(), JSON | signed(other, bot.clock.now().timestamp()))
    assert response.status == 401
    assert bot.inbox.questions == []


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        pytest.param("", "application/json", id="nothing"),
        pytest.param("{", "application/json", id="half an object"),
        pytest.param("[]", "application/json", id="a list"),
        pytest.param("[" * 100_000, "application/json", id="too deep"),
        pytest.param('{"type": 1' + "0" * 5_000 + "}", "application/json", id="a number that is too long"),
        pytest.param('{"type": "event_callback", "event": "app_mention"}', "application/json", id="no event"),
        pytest.param(
            '{"type": "event_callback", "event": {"type": "app_mention"}}', "application/json", id="bare event"
        ),
        pytest.param('{"type": "event_callback"}', "application/json", id="an envelope without its event"),
        pytest.param(
            '{"type": "event_callback", "event": {}, "authorizations": 1}', "application/json", id="other shape"
        ),
        pytest.param('payload={"type": "block_actions", "actions": []}', FORM, id="a press of no button"),
        pytest.param("payload=oops", FORM, id="an interaction that is no JSON"),
        pytest.param("&".join(f"a{number}=1" for number in range(1_000)), FORM, id="a thousand fields"),
        pytest.param("command=/plumbline&text=hello", FORM, id="a command from nobody"),
    ],
)
async def test_what_cannot_be_understood_is_refused_with_one_sentence(
    bot: SlackBot, body: str, content_type: str, caplog: pytest.LogCaptureFixture
) -> None:
    response = await bot.send(body, content_type)
    assert response.status == 400
    assert (await response.json())["error"].endswith(".")
    assert "Traceback" not in caplog.text


async def test_a_body_that_is_no_utf_8_is_refused(bot: SlackBot) -> None:
    response = await bot.post(b"\xff\xfe", JSON | signed("", bot.clock.now().timestamp()))
    assert response.status == 400


@pytest.mark.parametrize("announced", [True, False], ids=["with its length", "in chunks"])
async def test_a_huge_body_is_refused_before_it_is_read(bot: SlackBot, announced: bool) -> None:
    body = b"x" * (1024 * 1024 + 1)

    async def chunks() -> AsyncIterator[bytes]:
        yield body

    response = await bot.http.post("/slack/events", data=io.BytesIO(body) if announced else chunks(), headers=JSON)
    assert response.status == 413
    assert (await response.json())["error"].endswith(".")


async def test_an_event_that_nobody_asked_for_is_acknowledged_and_ignored(bot: SlackBot) -> None:
    response = await bot.event({"type": "channel_rename", "channel": {"id": "C0ASK", "name": "renamed"}})
    assert response.status == 200
    assert bot.inbox.questions == []


async def test_an_inbox_that_is_down_means_that_slack_sends_the_event_again(bot: SlackBot) -> None:
    bot.inbox.broken = ConnectionError("the database is down")
    assert (await bot.event(mention())).status == 500
    bot.inbox.broken = None
    assert (await bot.send(MENTION, **{"X-Slack-Retry-Num": "1", "X-Slack-Retry-Reason": "http_error"})).status == 200
    assert len(bot.inbox.questions) == 1


async def test_a_slack_that_does_not_say_who_we_are_means_that_it_sends_the_event_again(bot: SlackBot) -> None:
    bot.slack.refuse(503, "down", method="auth.test")
    assert (await bot.event(mention())).status == 503
    assert (await bot.event(mention())).status == 200
    assert len(bot.inbox.questions) == 1
