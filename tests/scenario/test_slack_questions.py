"""A mention, a direct message or a slash command in Slack becomes a question with the right audience, once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from core.incidents.incident_questions import Command, CommandName, parse_command
from core.model.conversation import PUBLIC, Person, Place, Platform, SharedFile, Speaker, Turn
from tests.fakes.slack_api import BOT, BOT_USER, CHANNEL, DIRECT, PERSON, PRIVATE_CHANNEL, SHARED_CHANNEL
from tests.fakes.slack_bot import SlackBot, slack_bot
from tests.fakes.slack_payloads import edit, mention, message

TS = "1773480600.000100"


def deletion(previous: dict[str, object] | None = None) -> dict[str, object]:
    """As Slack tells that a message was deleted."""
    gone = {"ts": TS, "user": PERSON, "text": f"<@{BOT_USER}> how?"} | (previous or {})
    event: dict[str, object] = {
        "type": "message",
        "subtype": "message_deleted",
        "channel": CHANNEL,
        "ts": "1773480700.000100",
    }
    return event | {"deleted_ts": TS, "previous_message": gone}


@pytest.fixture
async def bot() -> AsyncIterator[SlackBot]:
    async with slack_bot() as started:
        yield started


async def test_a_mention_is_a_question_in_a_thread_of_its_own(bot: SlackBot) -> None:
    assert (await bot.event(mention())).status == 200
    (question,) = bot.inbox.questions
    assert question.id == f"slack:{CHANNEL}:{TS}"
    assert question.text == "how do I roll back a canary?"
    assert question.asker == Person(Platform.SLACK, PERSON)
    assert question.place == Place(Platform.SLACK, CHANNEL, TS)
    assert question.asked_at == datetime(2026, 3, 14, 9, 30, 0, 100, tzinfo=UTC)


FORWARDED = {"is_share": True, "text": f"quiet 00:00-23:59 <@{BOT_USER}>", "fallback": "quiet"}


async def test_what_a_question_forwards_is_its_context(bot: SlackBot) -> None:
    await bot.event(mention(f"<@{BOT_USER}> what now?") | {"attachments": [FORWARDED]})
    (question,) = bot.inbox.questions
    assert question.text == "what now?"
    assert question.history == (Turn(Speaker.PERSON, "quiet 00:00-23:59"),)


async def test_a_snippet_comes_with_the_question_and_is_read_when_it_is_answered(bot: SlackBot) -> None:
    url = "https://files.slack.com/files-pri/T0-F0/download/untitled"
    snippet = {"id": "F0", "name": "Untitled", "mode": "snippet", "url_private_download": url}
    await bot.event(mention(f"<@{BOT_USER}> why does it fail?") | {"files": [snippet]})
    (question,) = bot.inbox.questions
    assert (question.text, question.files) == ("why does it fail?", (SharedFile("Untitled", url),))


async def test_a_forwarded_message_without_words_is_asked_about_and_is_no_command(bot: SlackBot) -> None:
    await bot.event(mention(f"<@{BOT_USER}>") | {"attachments": [FORWARDED]})
    assert parse_command(bot.inbox.questions[0].text) == Command(CommandName.ASK, "quiet 00:00-23:59")


async def test_a_mention_within_a_forwarded_message_asks_nothing(bot: SlackBot) -> None:
    await bot.event(message("look at this") | {"attachments": [FORWARDED]})
    assert bot.inbox.questions == []


async def test_an_edited_question_keeps_what_it_forwards(bot: SlackBot) -> None:
    await bot.event(edit(mention(f"<@{BOT_USER}> what?"), f"<@{BOT_USER}> what now?", attachments=[FORWARDED]))
    assert bot.inbox.questions[0].history == (Turn(Speaker.PERSON, "quiet 00:00-23:59"),)


async def test_a_mention_in_a_thread_is_asked_in_that_thread(bot: SlackBot) -> None:
    await bot.event(mention(thread_ts="1773480000.000001"))
    assert bot.inbox.questions[0].place.thread == "1773480000.000001"


async def test_a_message_that_arrives_as_mention_and_as_message_is_one_question(bot: SlackBot) -> None:
    text = f"<@{BOT_USER}> help"
    await bot.event(mention(text), event_id="Ev1")
    await bot.event(message(text), event_id="Ev2")
    assert len(bot.inbox.questions) == 1


async def test_what_people_say_to_each_other_in_a_thread_is_handed_in_to_be_overheard(bot: SlackBot) -> None:
    await bot.event(message("it is not the canary", thread_ts="1773480000.000001"))
    (remark,) = bot.inbox.overheard
    assert (remark.text, remark.place) == (
        "it is not the canary",
        Place(Platform.SLACK, CHANNEL, "1773480000.000001"),
    )
    assert bot.inbox.names == ["ines"]
    assert bot.inbox.questions == []
    await bot.event(message("it is not the canary"), event_id="Ev2")
    assert len(bot.inbox.overheard) == 1, "outside of a thread nothing is overheard"


async def test_a_retried_event_is_one_question(bot: SlackBot) -> None:
    for _ in range(3):
        assert (await bot.event(mention())).status == 200
    assert len(bot.inbox.questions) == 1


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(message("the canary is fine"), id="said to others"),
        pytest.param(message("thanks <@U0OTHER>", thread_ts=TS), id="said to others in a thread"),
        pytest.param(mention(bot_id="B0OTHER"), id="by another bot"),
        pytest.param(mention(user=BOT_USER, bot_id=BOT), id="by itself"),
        pytest.param(message(f"<@{BOT_USER}> hi", subtype="bot_message", user=None), id="by a webhook"),
        pytest.param(deletion(), id="deleted"),
        pytest.param(
            {
                "type": "message",
                "subtype": "message_changed",
                "channel": CHANNEL,
                "ts": "1773480601.000200",
                "message": mention(),
            },
            id="edited",
        ),
        pytest.param(message(f"<@{BOT_USER}> has joined", subtype="channel_join"), id="joined"),
    ],
)
async def test_what_is_not_said_to_the_bot_is_no_question(bot: SlackBot, event: dict[str, object]) -> None:
    assert (await bot.event(event)).status == 200
    assert bot.inbox.questions == []


async def test_a_deleted_message_is_retracted_in_case_it_was_a_question(bot: SlackBot) -> None:
    await bot.event(mention())
    assert (await bot.event(deletion())).status == 200
    assert bot.inbox.retracted == [(bot.inbox.questions[0].id, bot.inbox.questions[0].place)]


async def test_a_deleted_message_in_a_thread_is_retracted_there(bot: SlackBot) -> None:
    await bot.event(deletion({"ts": TS, "thread_ts": "1773480000.000001"}))
    assert bot.inbox.retracted == [(f"slack:{CHANNEL}:{TS}", Place(Platform.SLACK, CHANNEL, "1773480000.000001"))]


@pytest.mark.parametrize("previous", [{"text": "said to others"}, {"bot_id": BOT, "user": BOT_USER}])
async def test_a_deleted_message_that_was_no_question_is_none_of_its_business(
    bot: SlackBot, previous: dict[str, object]
) -> None:
    assert (await bot.event(deletion(previous))).status == 200
    assert bot.inbox.retracted == []


async def test_a_deleted_message_with_replies_is_retracted_although_a_stone_stays(bot: SlackBot) -> None:
    await bot.event(mention())
    stone = {"subtype": "tombstone", "user": "USLACKBOT", "edited": None, "thread_ts": TS}
    assert (await bot.event(edit(mention(), "This message was deleted.", **stone))).status == 200
    assert bot.inbox.retracted == [(bot.inbox.questions[0].id, bot.inbox.questions[0].place)]


async def test_an_edited_question_is_asked_again_under_its_own_id(bot: SlackBot) -> None:
    await bot.event(mention())
    changed = edit(mention(), f"<@{BOT_USER}> how do I drain a runner?")
    for _ in range(2):  # Slack may send it twice
        assert (await bot.event(changed)).status == 200
    first, again = bot.inbox.questions
    assert (again.id, again.place, again.asked_at) == (first.id, first.place, first.asked_at)
    assert (again.text, again.revision) == ("how do I drain a runner?", "1773480650.000000")


async def test_an_edited_direct_message_is_asked_again_with_its_own_audience(bot: SlackBot) -> None:
    said = message("how?", channel=DIRECT, channel_type="im", ts=TS)
    await bot.event(edit(said, "how do I drain a runner?"))
    (again,) = bot.inbox.questions
    assert again.audience.readers == {PUBLIC, f"person:slack:{PERSON}"}


async def test_a_mention_that_an_edit_adds_is_a_question(bot: SlackBot) -> None:
    await bot.event(edit(message("how do I drain a runner?"), f"<@{BOT_USER}> how do I drain a runner?"))
    assert [question.text for question in bot.inbox.questions] == ["how do I drain a runner?"]


async def test_a_question_from_which_an_edit_takes_the_mention_is_retracted(bot: SlackBot) -> None:
    await bot.event(edit(mention(), "never mind"))
    assert bot.inbox.questions == []
    assert [id_ for id_, _ in bot.inbox.retracted] == [f"slack:{CHANNEL}:{TS}"]


@pytest.mark.parametrize(
    "event",
    [
        pytest.param(edit(mention(), str(mention()["text"])), id="a link was unfurled"),
        pytest.param(edit(mention(), f"<@{BOT_USER}> what?", edited=None), id="a reply was added"),
        pytest.param(edit(message("one"), "two"), id="said to others"),
        pytest.param(edit(mention(user=BOT_USER), "its own", bot_id=BOT), id="its own message"),
    ],
)
async def test_a_change_that_is_no_edit_of_a_question_is_none_of_its_business(
    bot: SlackBot, event: dict[str, object]
) -> None:
    assert (await bot.event(event)).status == 200
    assert (bot.inbox.questions, bot.inbox.retracted) == ([], [])


async def test_a_direct_message_needs_no_mention(bot: SlackBot) -> None:
    await bot.event(message("how do I drain a runner?", channel=DIRECT, channel_type="im"))
    (question,) = bot.inbox.questions
    assert question.text == "how do I drain a runner?"
    assert question.place == Place(Platform.SLACK, DIRECT, TS)


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        (f"<@{BOT_USER}>", ""),
        (f"hey <@{BOT_USER}>, why?", "hey , why?"),
        (f"<@{BOT_USER}|plumbline> ask <@U0DANA|dana> or <@U0YUSUF>", "ask @dana or @U0YUSUF"),
        (f"<@{BOT_USER}> in <#C0INC|incidents> and <#C0PLATFORM>", "in #incidents and #C0PLATFORM"),
        (f"<@{BOT_USER}> <!here> <!subteam^S0OPS|@ops>", "@here @ops"),
        (f"<@{BOT_USER}> since <!date^1773480600^{{time}}|09:30>", "since 09:30"),
        (f"<@{BOT_USER}> <https://ci.example/run/7>", "https://ci.example/run/7"),
        (f"<@{BOT_USER}> <http://ci.example|ci.example>", "http://ci.example"),
        (f"<@{BOT_USER}> <https://ci.example/run/7|this run>", "this run (https://ci.example/run/7)"),
        (
            f"<@{BOT_USER}> <mailto:ops@marigold-ferries.example|ops@marigold-ferries.example>",
            "ops@marigold-ferries.example",
        ),
        (f"<@{BOT_USER}> a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"),
        (f"<@{BOT_USER}> what is &amp;lt; in HTML", "what is &lt; in HTML"),
        (f"<@{BOT_USER}>   triage\n  pasted   alert ", "triage\npasted alert"),
    ],
)
async def test_slack_s_markup_becomes_plain_text(bot: SlackBot, sent: str, read: str) -> None:
    await bot.event(mention(sent))
    assert bot.inbox.questions[0].text == read


async def test_a_channel_reads_what_is_public_and_what_is_shared_with_it(bot: SlackBot) -> None:
    await bot.event(mention(channel=CHANNEL))
    assert bot.inbox.questions[0].audience.readers == {PUBLIC, "channel:ask-plumbline", f"channel:slack:{CHANNEL}"}


async def test_a_private_channel_reads_what_is_shared_with_it(bot: SlackBot) -> None:
    await bot.event(mention(channel=PRIVATE_CHANNEL))
    assert "channel:payments-private" in bot.inbox.questions[0].audience.readers


async def test_a_person_reads_what_is_shared_with_them(bot: SlackBot) -> None:
    await bot.event(message("hello", channel=DIRECT, channel_type="im"))
    assert bot.inbox.questions[0].audience.readers == {PUBLIC, f"person:slack:{PERSON}"}


@pytest.mark.parametrize("channel", [SHARED_CHANNEL, CHANNEL])
async def test_a_channel_shared_with_another_organisation_reads_nothing_public(bot: SlackBot, channel: str) -> None:
    # The event itself says so for the one, conversations.info for the other.
    await bot.event(mention(channel=channel), is_ext_shared_channel=channel == CHANNEL)
    readers = bot.inbox.questions[0].audience.readers
    assert PUBLIC not in readers
    assert f"channel:slack:{channel}" in readers


async def test_a_direct_message_from_another_organisation_reads_nothing_public(bot: SlackBot) -> None:
    await bot.event(message("hello", channel=DIRECT, channel_type="im"), is_ext_shared_channel=True)
    assert bot.inbox.questions[0].audience.readers == {f"channel:slack:{DIRECT}"}


@pytest.mark.parametrize(
    "refusal",
    [
        pytest.param((500, "down"), id="down"),
        pytest.param((200, '{"ok": false, "error": "missing_scope"}'), id="without the scope"),
        pytest.param((200, '{"ok": true, "channel": {}}'), id="says nothing about it"),
    ],
)
async def test_a_channel_that_slack_does_not_describe_reads_nothing_public(
    bot: SlackBot, refusal: tuple[int, str]
) -> None:
    bot.slack.refuse(*refusal, method="conversations.info")
    await bot.event(mention())
    assert PUBLIC not in bot.inbox.questions[0].audience.readers


async def test_a_slack_that_is_slow_to_describe_a_channel_holds_nobody_up(
    bot: SlackBot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("adapters.slack.channels.CALL_TIMEOUT", 0.0)
    assert (await bot.event(mention())).status == 200
    assert PUBLIC not in bot.inbox.questions[0].audience.readers


@pytest.mark.parametrize(
    ("described", "public"),
    [
        ({"is_group": True, "is_private": True, "is_member": True}, True),
        ({"is_mpim": True, "is_member": True}, True),
        ({"is_channel": True, "is_member": True, "is_pending_ext_shared": True}, False),
        ({"is_channel": True, "is_member": True, "is_org_shared": True}, True),
    ],
)
async def test_who_reads_along_follows_from_the_kind_of_channel(
    bot: SlackBot, described: dict[str, bool], public: bool
) -> None:
    bot.slack.channels[CHANNEL] = described
    await bot.event(mention())
    assert (PUBLIC in bot.inbox.questions[0].audience.readers) is public


async def test_what_slack_says_about_a_channel_is_believed_for_a_minute(bot: SlackBot) -> None:
    await bot.event(mention(ts="1773480600.000100"))
    bot.slack.channels[CHANNEL]["is_ext_shared"] = True
    await bot.event(mention(ts="1773480600.000200"))
    bot.clock.advance(61)
    await bot.event(mention(ts="1773480600.000300"))
    assert [PUBLIC in question.audience.readers for question in bot.inbox.questions] == [True, True, False]
    assert len(bot.slack.called("conversations.info")) == 2


async def test_a_slash_command_is_a_question_in_the_channel(bot: SlackBot) -> None:
    response = await bot.command("how big may a payload be? ask <@U0DANA|dana>")
    assert response.status == 200
    assert await response.json() == {"response_type": "in_channel"}
    (question,) = bot.inbox.questions
    assert question.text == "how big may a payload be? ask @dana"
    assert question.place == Place(Platform.SLACK, CHANNEL)
    assert question.asker == Person(Platform.SLACK, PERSON, "ines")
    assert PUBLIC in question.audience.readers


async def test_two_slash_commands_with_the_same_words_are_two_questions(bot: SlackBot) -> None:
    await bot.command("status", trigger_id="1.1.a")
    await bot.command("status", trigger_id="1.1.b")
    assert len(bot.inbox.questions) == 2


@pytest.mark.parametrize("channel", ["C0UNKNOWN", "C0LEFT"])
async def test_a_slash_command_where_the_bot_is_no_member_says_how_to_invite_it(bot: SlackBot, channel: str) -> None:
    bot.slack.channels["C0LEFT"] = {"is_channel": True, "is_member": False}
    response = await bot.command("status", channel_id=channel)
    assert response.status == 200
    said = await response.json()
    assert said["response_type"] == "ephemeral"
    assert "/invite" in said["text"]
    assert bot.inbox.questions == []


async def test_what_is_said_in_a_channel_that_slack_calls_private_is_for_it_alone(bot: SlackBot) -> None:
    await bot.event(mention(ts="1773480600.000100"))
    bot.slack.channels[CHANNEL]["is_private"] = True
    bot.clock.advance(61)
    await bot.event(mention(ts="1773480600.000200"))
    assert [PUBLIC in question.audience.disclosed_to for question in bot.inbox.questions] == [True, False]
    assert PUBLIC in bot.inbox.questions[1].audience.readers
