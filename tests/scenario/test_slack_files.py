"""An answer that is too long for a message comes as a file as well, which goes with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.slack.client import slack_client
from adapters.slack.messenger import SlackMessenger
from core.model.answer import Sentence
from core.model.conversation import Place, Platform
from core.model.messages import AnswerMessage, Message, Notice
from tests import samples as messages
from tests.fakes.slack_api import BOT_TOKEN, CHANNEL, PERSON, FakeSlack

ROOT = "1773480500.000100"
THREAD = Place(Platform.SLACK, CHANNEL, ROOT)
WHOLE = messages.answer()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with FakeSlack() as started:
        started.messages.append({"channel": CHANNEL, "ts": ROOT, "text": "how?", "user": PERSON})
        yield started


@pytest.fixture
def messenger(slack: FakeSlack) -> SlackMessenger:
    return SlackMessenger(slack_client(BOT_TOKEN, slack.url))


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
