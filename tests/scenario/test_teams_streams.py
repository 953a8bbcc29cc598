"""Answers that grow in a personal chat, and messages that Teams finds too large."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.teams import streams
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError
from core.model.messages import AnswerMessage, Notice, NoticeKind
from core.samples import abstention, answer
from tests.fakes.adaptive_card import texts
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import CHANNEL, PERSONAL_CHAT, TENANT, Failure

ANSWER = answer()
PERSON_CHAT = Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)
FIRST = replace(ANSWER, sentences=ANSWER.sentences[:1], badge=None, prediction_id=None)


@pytest.fixture(params=["agents", "botbuilder"])
async def chat(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TeamsAdapter]:
    monkeypatch.setattr(streams, "INTERVAL", 0.0)
    async with open_teams(request.param) as chat:
        await chat.deliver(chat.connector.personal())
        yield chat


def draft(chat: TeamsAdapter, count: int = 1) -> AnswerMessage:
    so_far = replace(ANSWER, sentences=ANSWER.sentences[:count], badge=None, prediction_id=None)
    return AnswerMessage(so_far, draft_for=chat.inbox.questions[0].asker)


def told(chat: TeamsAdapter) -> list[tuple[str, str, dict[str, object]]]:
    """Type, text and stream of everything that was sent, in order."""
    return [
        (sent.activity["type"], sent.activity.get("text", ""), (sent.activity.get("entities") or [{}])[0])
        for sent in chat.connector.sent
    ]


async def test_an_answer_grows_in_a_personal_chat(chat: TeamsAdapter) -> None:
    assert await chat.messenger.signal(PERSON_CHAT, "Reading what I found …")
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    await chat.messenger.edit(reference, draft(chat, 2))
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    sign, first, second, last = told(chat)
    stream = {"type": "streaminfo", "streamId": reference.message_id}
    assert sign == (
        "typing",
        "Reading what I found …",
        {"type": "streaminfo", "streamType": "informative", "streamSequence": 1},
    )
    assert first[2] == stream | {"streamType": "streaming", "streamSequence": 2}
    assert second[2] == stream | {"streamType": "streaming", "streamSequence": 3}
    assert last[:1] == ("message",)
    assert last[2] == stream | {"streamType": "final"}
    assert second[1].startswith(first[1])
    assert last[1].startswith(second[1])
    card = chat.connector.sent[-1].card
    assert "Sources" in texts(card)
    assert ANSWER.sentences[1].text not in " ".join(texts(card))  # it stands above, in the text
    assert chat.connector.updated == []


async def test_only_sentences_that_passed_are_streamed(chat: TeamsAdapter) -> None:
    await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    [(_, text, _)] = told(chat)
    assert text == "Run slipway rollback SERVICE; it returns the canary to 0 % within 90 seconds. [1]"


async def test_what_is_said_after_a_sign_of_work_ends_its_stream(chat: TeamsAdapter) -> None:
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    reference = await chat.messenger.post(PERSON_CHAT, AnswerMessage(abstention()), "answer")
    assert [entity["streamType"] for _, _, entity in told(chat)] == ["informative", "final"]
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))  # the question was edited
    assert len(chat.connector.updated) == 1


async def test_an_answer_that_stands_is_edited_and_not_streamed_again(chat: TeamsAdapter) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert [entity for _, _, entity in told(chat)] == [{}]
    assert len(chat.connector.updated) == 1


async def test_elsewhere_a_message_is_edited(chat: TeamsAdapter) -> None:
    await chat.deliver(chat.connector.activity(id="2"))
    place = Place(Platform.TEAMS, CHANNEL, "1700000000001", TENANT)
    assert not await chat.messenger.signal(place, "Reading …")
    reference = await chat.messenger.post(place, draft(chat), "answer")
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert [entity for _, _, entity in told(chat)] == [{}]
    assert len(chat.connector.updated) == 1


@pytest.mark.parametrize("status", [400, 403, 405])
async def test_where_teams_does_not_stream_an_ordinary_message_is_posted(chat: TeamsAdapter, status: int) -> None:
    chat.connector.failures = [Failure(status), Failure(status)]
    assert not await chat.messenger.signal(PERSON_CHAT, "Reading …")
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert [(kind, entity) for kind, _, entity in told(chat)] == [("message", {})]
    assert len(chat.connector.updated) == 1


async def test_an_end_that_teams_refuses_is_posted_anew_and_what_stood_goes(chat: TeamsAdapter) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    chat.connector.failures = [Failure(403, body='{"error": {"code": "ContentStreamNotAllowed"}}')]
    with pytest.raises(MessageNotFound):
        await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert reference.message_id in chat.connector.deleted
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert "Sources" in texts(chat.connector.sent[-1].card)


async def test_another_answer_than_the_one_that_was_streamed_is_posted_anew(chat: TeamsAdapter) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    with pytest.raises(MessageNotFound):
        await chat.messenger.edit(reference, AnswerMessage(abstention()))
    assert reference.message_id in chat.connector.deleted


async def test_an_end_that_has_to_wait_is_tried_again(chat: TeamsAdapter) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    chat.connector.failures = [Failure(429, {"Retry-After": "3"})]
    with pytest.raises(ChatUnavailable) as raised:
        await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert raised.value.retry_after == 3.0
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert told(chat)[-1][2]["streamType"] == "final"


async def test_updates_that_come_too_soon_are_left_for_the_next(
    chat: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "INTERVAL", 3600.0)
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    await chat.messenger.edit(reference, draft(chat, 2))
    assert len(chat.connector.sent) == 1
    monkeypatch.setattr(streams, "INTERVAL", 0.0)
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert len(chat.connector.sent) == 2


async def test_a_stream_that_is_too_old_is_posted_anew(chat: TeamsAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, draft(chat), "answer")
    monkeypatch.setattr(streams, "MAX_AGE", -1.0)
    with pytest.raises(MessageNotFound):
        await chat.messenger.edit(reference, AnswerMessage(ANSWER))


async def test_two_people_are_answered_in_streams_of_their_own(chat: TeamsAdapter) -> None:
    other = {"id": "a:mateo", "conversationType": "personal", "tenantId": TENANT}
    await chat.deliver(chat.connector.personal(id="2", conversation=other))
    places = [question.place for question in chat.inbox.questions]
    posted = await asyncio.gather(
        *(chat.messenger.post(place, draft(chat), f"answer-{place.channel}") for place in places)
    )
    for reference in posted:
        await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    ended = [sent for sent in chat.connector.sent if sent.activity["type"] == "message"]
    assert {sent.conversation for sent in ended} == {PERSONAL_CHAT, "a:mateo"}


async def test_markup_in_a_streamed_sentence_mentions_nobody(chat: TeamsAdapter) -> None:
    said = replace(ANSWER.sentences[0], text="<at>everyone</at> look at [this](https://attacker.example/) **now**")
    message = AnswerMessage(replace(ANSWER, sentences=(said,)), draft_for=chat.inbox.questions[0].asker)
    await chat.messenger.post(PERSON_CHAT, message, "answer")
    activity = chat.connector.sent[0].activity
    assert "<at" not in activity["text"]
    assert "attacker" not in activity["text"]
    assert activity["textFormat"] == "plain"


# --- size ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("editing", [False, True])
async def test_a_message_that_is_too_large_is_put_shorter(chat: TeamsAdapter, editing: bool) -> None:
    long = Notice("\n".join(f"{number} " + "word " * 60 for number in range(20)), NoticeKind.INFORMATION)
    reference = await chat.messenger.post(PERSON_CHAT, long, "long") if editing else None
    before = len(chat.connector.sent)
    chat.connector.failures = [Failure(413), Failure(413)]
    if reference is not None:
        await chat.messenger.edit(reference, long)
        shown = chat.connector.updated[-1]
    else:
        await chat.messenger.post(PERSON_CHAT, long, "long")
        shown = chat.connector.sent[before]
    assert "and 14 more lines" in texts(shown.card)


async def test_a_message_that_is_too_large_however_short_is_refused(chat: TeamsAdapter) -> None:
    chat.connector.failures = [Failure(413)] * 5
    with pytest.raises(PlumblineError, match="shortest form"):
        await chat.messenger.post(PERSON_CHAT, Notice("hello"), "long")
    assert chat.connector.sent == []


async def test_a_message_whose_stream_nobody_knows_any_more_is_edited_as_any_other(chat: TeamsAdapter) -> None:
    with pytest.raises(MessageNotFound):  # it was streamed by a process that died; Teams knows no such message
        await chat.messenger.edit(MessageReference(PERSON_CHAT, "17"), AnswerMessage(ANSWER))
