"""An answer that is still being checked: streamed where Slack streams, one edited message elsewhere, and never final."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core import samples as messages
from core.answering.answer import Answer, Sentence
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.messages import AnswerMessage, Message, Notice
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PERSON, TEAM, FakeSlack

ROOT = "1773480500.000100"
THREAD = Place(Platform.SLACK, CHANNEL, ROOT)
ASKER = Person(Platform.SLACK, PERSON)
WHOLE = messages.answer()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as started:
        started.messages.append({"channel": CHANNEL, "ts": ROOT, "text": "how?", "user": PERSON})
        yield started


@pytest.fixture
def messenger(slack: FakeSlack) -> SlackMessenger:
    return SlackMessenger(slack_client(BOT_TOKEN, slack.url))


def draft(count: int, answer: Answer = WHOLE) -> AnswerMessage:
    said = replace(answer, sentences=answer.sentences[:count], badge=None, prediction_id=None, note="Still checking.")
    return AnswerMessage(said, draft_for=ASKER)


def text(slack: FakeSlack, reference: MessageReference) -> str:
    return slack.message(CHANNEL, reference.message_id)["text"]


async def test_an_answer_is_streamed_sentence_by_sentence_and_ends_as_any_other(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    reference = await messenger.post(THREAD, draft(1), "intent")
    assert "rollback" in text(slack, reference)
    (started,) = slack.called("chat.startStream")
    assert (started["recipient_user_id"], started["recipient_team_id"]) == (PERSON, TEAM)
    await messenger.edit(reference, draft(2))
    assert text(slack, reference).count("rollback") == 1, "what stands there is not sent again"
    assert "release captain" in text(slack, reference)
    await messenger.edit(reference, AnswerMessage(WHOLE))
    shown = slack.message(CHANNEL, reference.message_id)
    assert shown["blocks"][-1]["elements"][0]["action_id"] == "feedback:helpful"
    assert slack.streaming == set()
    assert await messenger.find(THREAD, "intent") == reference


@pytest.mark.parametrize(("error", "asked"), [("unknown_method", 1), ("missing_scope", 1), ("internal_error", 2)])
async def test_where_slack_does_not_stream_one_message_is_edited(
    slack: FakeSlack, messenger: SlackMessenger, error: str, asked: int
) -> None:
    slack.refuse(200, f'{{"ok": false, "error": "{error}"}}', method="chat.startStream", times=2)
    for intent in ("first", "second"):
        reference = await messenger.post(THREAD, draft(1), intent)
        await messenger.edit(reference, draft(2))
        await messenger.edit(reference, AnswerMessage(WHOLE))
        assert await messenger.find(THREAD, intent) == reference
    assert len(slack.called("chat.postMessage")) == 2
    assert len(slack.called("chat.startStream")) == asked, "what Slack cannot do is found out once"


async def test_a_stream_that_slack_has_closed_is_edited(slack: FakeSlack, messenger: SlackMessenger) -> None:
    reference = await messenger.post(THREAD, draft(1), "intent")
    slack.streaming.clear()
    await messenger.edit(reference, draft(2))
    await messenger.edit(reference, AnswerMessage(WHOLE))
    assert "blocks" in slack.message(CHANNEL, reference.message_id)


async def test_a_stream_of_a_process_that_died_is_ended_by_the_next_one(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    reference = await messenger.post(THREAD, draft(1), "intent")
    heir = SlackMessenger(slack_client(BOT_TOKEN, slack.url))
    await heir.edit(reference, AnswerMessage(WHOLE))
    assert slack.streaming == set()
    assert "blocks" in slack.message(CHANNEL, reference.message_id)


async def test_a_draft_that_says_something_else_replaces_what_was_streamed(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    reference = await messenger.post(THREAD, draft(2), "intent")
    other = replace(WHOLE, sentences=(Sentence("Drain it first.", (1,)),))
    await messenger.edit(reference, draft(1, other))
    assert "rollback" not in text(slack, reference)


async def test_nothing_is_streamed_outside_a_thread(slack: FakeSlack, messenger: SlackMessenger) -> None:
    await messenger.post(replace(THREAD, thread=None), draft(1), "intent")
    assert slack.called("chat.startStream") == []


async def test_text_from_outside_addresses_nobody_in_a_stream(slack: FakeSlack, messenger: SlackMessenger) -> None:
    said = replace(WHOLE, sentences=(Sentence("<!channel> <@U0DANA> [x](https://evil.example)", (1,)),))
    reference = await messenger.post(THREAD, draft(1, said), "intent")
    assert "<" not in text(slack, reference)
    assert "](" not in text(slack, reference)


async def test_an_answer_that_is_too_long_for_a_message_comes_as_a_file_as_well(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    long = replace(WHOLE, sentences=tuple(Sentence(f"Step {number}: " + "wait " * 130, (1,)) for number in range(12)))
    reference = await messenger.post(THREAD, AnswerMessage(long), "intent")
    assert "more sentences" in str(slack.message(CHANNEL, reference.message_id)["blocks"])
    (content,) = slack.files.values()
    assert "Step 11" in content.decode()
    (shared,) = slack.shared
    assert (shared["channel_id"], shared["thread_ts"]) == (CHANNEL, ROOT)
    await messenger.edit(reference, AnswerMessage(replace(long, sentences=long.sentences[::-1])))
    (content,) = slack.files.values()
    assert content.decode().index("Step 11") < content.decode().index("Step 10"), "the new one instead of the old one"
    await messenger.delete(reference)
    assert slack.files == {}, "the file goes with its answer"


@pytest.mark.parametrize("message", [AnswerMessage(WHOLE), Notice("Something went wrong.")])
async def test_the_file_goes_when_a_question_is_changed_and_its_answer_is_short(
    slack: FakeSlack, messenger: SlackMessenger, message: Message
) -> None:
    """Also if another process, or this one before it was started again, put it there."""
    long = replace(WHOLE, sentences=tuple(Sentence(f"Step {number}: " + "wait " * 130, (1,)) for number in range(12)))
    for editor in (messenger, SlackMessenger(slack_client(BOT_TOKEN, slack.url))):
        reference = await messenger.post(THREAD, AnswerMessage(long), "intent")
        assert len(slack.files) == 1
        await editor.edit(reference, message)
        assert slack.files == {}, "nobody reads what it no longer says"


async def test_a_file_that_slack_did_not_let_go_goes_with_the_next_edit(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    long = replace(WHOLE, sentences=tuple(Sentence(f"Step {number}: " + "wait " * 130, (1,)) for number in range(12)))
    reference = await messenger.post(THREAD, AnswerMessage(long), "intent")
    slack.refuse(503, method="conversations.replies")
    await messenger.edit(reference, AnswerMessage(WHOLE))
    assert len(slack.files) == 1
    await messenger.edit(reference, AnswerMessage(replace(WHOLE, sentences=WHOLE.sentences[:1])))
    assert slack.files == {}


async def test_no_thread_is_looked_through_for_a_file_that_was_never_put_there(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    reference = await messenger.post(THREAD, Notice("I am on it."), "intent")
    await messenger.edit(reference, AnswerMessage(WHOLE))
    assert slack.called("conversations.replies") == []


async def test_somebody_else_s_file_of_the_same_name_does_not_keep_an_answer_from_being_deleted(
    slack: FakeSlack, messenger: SlackMessenger
) -> None:
    reference = await messenger.post(THREAD, AnswerMessage(WHOLE), "intent")
    theirs = {"id": "F0THEIRS", "name": f"answer-{reference.message_id}.md"}
    slack.messages.append({"channel": CHANNEL, "ts": "1999.1", "thread_ts": ROOT, "text": "mine", "files": [theirs]})
    slack.refuse(200, '{"ok": false, "error": "cant_delete_file"}', method="files.delete")
    await messenger.delete(reference)


async def test_an_answer_that_fits_needs_no_file(slack: FakeSlack, messenger: SlackMessenger) -> None:
    await messenger.post(THREAD, AnswerMessage(WHOLE), "intent")
    assert slack.files == {}
