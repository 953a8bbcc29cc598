"""Slack asks to wait, answers nonsense or goes away: nothing is posted twice, and the caller knows what to do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.slack import client
from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import ChatClosed, ChatUnavailable, Undeliverable
from core.model.messages import IncidentMessage, Notice
from tests.cases import every_case
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, DIRECT, PERSON, FakeSlack
from tests.samples import explained_incident

PLACE = Place(Platform.SLACK, CHANNEL)
HELLO = Notice("hello")


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as started:
        yield started


@pytest.fixture
def messenger(slack: FakeSlack, pauses: list[float]) -> SlackMessenger:
    return SlackMessenger(slack_client(BOT_TOKEN, slack.url))


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses that the client makes, not waited out here."""
    made: list[float] = []

    async def sleep(seconds: float) -> None:
        made.append(seconds)

    monkeypatch.setattr(client, "SHORT", replace(client.SHORT, sleep=sleep))
    return made


def rate_limit(slack: FakeSlack, seconds: str, times: int = 1) -> None:
    slack.refuse(429, '{"ok": false, "error": "ratelimited"}', headers={"Retry-After": seconds}, times=times)


async def test_a_short_pause_is_waited_out(slack: FakeSlack, messenger: SlackMessenger, pauses: list[float]) -> None:
    rate_limit(slack, "2")
    await messenger.post(PLACE, HELLO, "intent")
    assert len(slack.messages) == 1
    assert [int(pause) for pause in pauses] == [2]


async def test_a_long_pause_is_left_to_the_caller(
    slack: FakeSlack, messenger: SlackMessenger, pauses: list[float]
) -> None:
    rate_limit(slack, "30")
    with pytest.raises(ChatUnavailable) as raised:
        await messenger.post(PLACE, HELLO, "intent")
    assert raised.value.retry_after == 30
    assert pauses == []


async def test_a_second_pause_is_left_to_the_caller(
    slack: FakeSlack, messenger: SlackMessenger, pauses: list[float]
) -> None:
    rate_limit(slack, "1", times=2)
    with pytest.raises(ChatUnavailable) as raised:
        await messenger.post(PLACE, HELLO, "intent")
    assert raised.value.retry_after == 1
    assert len(pauses) == 1


@pytest.mark.parametrize(
    ("status", "body"),
    [
        pytest.param(500, '{"ok": false, "error": "internal_error"}', id="an error of Slack's"),
        pytest.param(502, "Bad Gateway", id="a gateway's text"),
        pytest.param(200, "Welcome to the airport", id="a captive portal"),
        pytest.param(200, '{"ok": fal', id="half an answer"),
        pytest.param(200, "", id="nothing"),
        pytest.param(429, "slow down", id="a rate limit without its header"),
    ],
)
async def test_an_answer_that_is_none_is_an_outage(
    slack: FakeSlack, messenger: SlackMessenger, status: int, body: str
) -> None:
    slack.refuse(status, body)
    with pytest.raises(ChatUnavailable) as raised:
        await messenger.post(PLACE, HELLO, "intent")
    assert str(raised.value).endswith(".")
    assert slack.messages == []


@pytest.mark.parametrize("error", ["invalid_blocks", "msg_too_long"])
async def test_what_slack_will_never_take_is_no_outage_and_says_why(
    slack: FakeSlack, messenger: SlackMessenger, error: str
) -> None:
    slack.refuse(200, f'{{"ok": false, "error": "{error}"}}')
    with pytest.raises(Undeliverable, match=rf"{error}: \w+ .*\.$"):
        await messenger.post(PLACE, HELLO, "intent")


@pytest.mark.parametrize(
    "error", ["invalid_auth", "missing_scope", "not_in_channel", "channel_not_found", "is_archived"]
)
async def test_a_refusal_that_a_person_must_mend_says_how(
    slack: FakeSlack, messenger: SlackMessenger, error: str
) -> None:
    slack.refuse(200, f'{{"ok": false, "error": "{error}"}}')
    with pytest.raises(ChatClosed, match=rf"{error}: \w+ .*\.$"):
        await messenger.post(PLACE, HELLO, "intent")


ALONE = replace(HELLO, only_for=Person(Platform.SLACK, PERSON))


@every_case(
    "error", ["user_not_in_channel", "invalid_blocks", "channel_not_found", "method_not_supported_for_channel_type"]
)
async def test_what_one_member_alone_may_not_see_is_shown_to_everybody(
    slack: FakeSlack, messenger: SlackMessenger, error: str
) -> None:
    slack.refuse(200, f'{{"ok": false, "error": "{error}"}}', method="chat.postEphemeral")
    await messenger.post(PLACE, ALONE, "intent")
    assert "only_for" not in slack.messages[-1]


async def test_of_a_thread_one_member_reads_it_in_the_channel(slack: FakeSlack, messenger: SlackMessenger) -> None:
    """In a thread, Slack shows it to nobody who does not have the thread open, nor says so."""
    root = await messenger.post(PLACE, HELLO, "root")
    posted = await messenger.post(replace(PLACE, thread=root.message_id), ALONE, "intent")
    assert posted.place == PLACE
    assert (slack.messages[-1]["only_for"], slack.messages[-1].get("thread_ts")) == (PERSON, None)


async def test_in_a_conversation_with_one_person_nothing_is_for_one_member_alone(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    for channel in (DIRECT, PERSON):
        await messenger.post(Place(Platform.SLACK, channel), ALONE, "intent")
        assert "only_for" not in slack.messages[-1]


async def test_a_slack_that_cannot_be_reached_is_an_outage() -> None:
    messenger = SlackMessenger(slack_client(BOT_TOKEN, "http://127.0.0.1:9/api/"))
    with pytest.raises(ChatUnavailable):
        await messenger.post(PLACE, HELLO, "intent")


async def test_a_lost_connection_is_not_tried_again_behind_the_caller_s_back(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    # Slack may have posted the message before the connection broke: only `find` can tell.
    slack.hang_up = True
    with pytest.raises(ChatUnavailable):
        await messenger.post(PLACE, HELLO, "intent")
    assert len(slack.called("chat.postMessage")) == 1
    slack.hang_up = False
    assert await messenger.find(PLACE, "intent") == MessageReference(PLACE, slack.messages[0]["ts"])


async def test_a_post_is_found_behind_many_others(slack: FakeSlack, messenger: SlackMessenger) -> None:
    reference = await messenger.post(PLACE, HELLO, "intent")
    slack.messages += [
        {"type": "message", "channel": CHANNEL, "ts": f"1773480700.{number:06}", "user": PERSON, "text": "chatter"}
        for number in range(450)
    ]
    assert await messenger.find(PLACE, "intent") == reference
    assert len(slack.called("conversations.history")) == 3


async def test_a_message_to_a_person_is_a_direct_message(slack: FakeSlack, messenger: SlackMessenger) -> None:
    reference = await messenger.post(Place(Platform.SLACK, PERSON), HELLO, "intent")
    assert reference.place.channel == DIRECT
    await messenger.edit(reference, Notice("goodbye"))
    assert slack.messages[0]["text"] == "goodbye"


async def test_a_post_unfurls_no_link_and_names_its_intent(slack: FakeSlack, messenger: SlackMessenger) -> None:
    await messenger.post(PLACE, HELLO, "answer:slack:C0ASK:1")
    (sent,) = slack.called("chat.postMessage")
    assert (sent["unfurl_links"], sent["unfurl_media"], sent["link_names"]) in [(False,) * 3, (0,) * 3]
    assert sent["metadata"] == {
        "event_type": "plumbline_post",
        "event_payload": {"intent": "answer:slack:C0ASK:1"},
    }


async def test_what_was_posted_to_a_person_cannot_be_found_and_is_not_looked_for_for_ever(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    to_person = Place(Platform.SLACK, PERSON)
    slack.refuse(200, '{"ok": false, "error": "channel_not_found"}')  # what Slack says to a person's id
    assert await messenger.find(to_person, "intent") is None


@pytest.mark.parametrize("is_old_thread", [True, False])
async def test_only_an_incident_in_the_old_thread_of_its_alert_is_lifted_to_the_channel(
    slack: FakeSlack, messenger: SlackMessenger, is_old_thread: bool
) -> None:
    root = await messenger.post(PLACE, Notice("The first time."), "first")
    message = IncidentMessage(explained_incident(), old_thread=root.thread if is_old_thread else None)
    await messenger.post(root.thread, message, "second")
    broadcast = [call.arguments.get("reply_broadcast") for call in slack.calls if call.method == "chat.postMessage"]
    assert broadcast == [None, True if is_old_thread else None]
