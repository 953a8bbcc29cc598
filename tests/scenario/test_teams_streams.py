"""Signs of work in a personal chat that become the answer, and messages that Teams finds too large."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from adapters.teams import messenger as streams
from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import ChatUnavailable, MessageNotFound, PlumblineError, StoppedByPerson
from core.model.messages import AnswerMessage, Notice, NoticeKind
from tests.fakes.adaptive_card import texts
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import CHANNEL, PERSONAL_CHAT, STREAM_CANCELLED, TENANT, Failure
from tests.samples import abstention, answer

ANSWER = answer()
PERSON_CHAT = Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)

SOURCE = "[2] Change freeze › Exceptions · updated 2026-02-11"


@pytest.fixture(params=["builtin", "botbuilder"])
async def chat(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TeamsAdapter]:
    monkeypatch.setattr(streams, "INTERVAL", 0.0)
    async with open_teams(request.param) as chat:
        await chat.deliver(chat.connector.personal())
        yield chat


def told(chat: TeamsAdapter) -> list[tuple[str, str, dict[str, object]]]:
    """Type, text and stream of everything that was sent, in order."""
    return [
        (sent.activity["type"], sent.activity.get("text", ""), _stream(sent.activity.get("entities", [])))
        for sent in chat.connector.sent
    ]


def _stream(entities: list[dict[str, object]]) -> dict[str, object]:
    return next((each for each in entities if each["type"] == "streaminfo"), {})


async def test_a_sign_of_work_becomes_the_answer(chat: TeamsAdapter) -> None:
    assert await chat.messenger.signal(PERSON_CHAT, "Reading what I found …")
    reference = await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    sign, last = told(chat)
    assert sign == (
        "typing",
        "Reading what I found …",
        {"type": "streaminfo", "streamType": "informative", "streamSequence": 1},
    )
    assert last[:1] == ("message",)
    assert last[2] == {"type": "streaminfo", "streamId": reference.message_id, "streamType": "final"}
    card = chat.connector.sent[-1].card
    assert SOURCE in texts(card)
    assert ANSWER.sentences[1].text not in " ".join(texts(card))  # it stands above, in the text
    assert chat.connector.updated == []
    _, about = chat.connector.sent[-1].activity["entities"]
    assert [claim["position"] for claim in about["citation"]] == [1, 2]


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
    reference = await chat.messenger.post(place, AnswerMessage(ANSWER), "answer")
    await chat.messenger.edit(reference, AnswerMessage(ANSWER))
    assert [entity for _, _, entity in told(chat)] == [{}]
    assert len(chat.connector.updated) == 1


@pytest.mark.parametrize("status", [400, 403, 405])
async def test_where_teams_does_not_stream_an_ordinary_message_is_posted(chat: TeamsAdapter, status: int) -> None:
    chat.connector.failures = [Failure(status)]
    assert not await chat.messenger.signal(PERSON_CHAT, "Reading …")
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert [(kind, entity) for kind, _, entity in told(chat)] == [("message", {})]


async def test_an_end_that_teams_refuses_is_posted_anew_and_what_stood_goes(chat: TeamsAdapter) -> None:
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    chat.connector.failures = [Failure(403, body='{"error": {"code": "ContentStreamNotAllowed"}}')]
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert len(chat.connector.deleted) == 1
    assert SOURCE in texts(chat.connector.sent[-1].card)


async def test_a_person_who_stops_a_stream_stops_the_work_and_reads_what_is_said_of_it(chat: TeamsAdapter) -> None:
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    chat.connector.failures = [Failure(403, body=STREAM_CANCELLED)]
    with pytest.raises(StoppedByPerson):
        await chat.messenger.signal(PERSON_CHAT, "Reading on …")
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert told(chat)[-1][2] == {}, "the stream has ended"
    assert SOURCE in texts(chat.connector.sent[-1].card)


async def test_an_end_that_has_to_wait_is_tried_again(chat: TeamsAdapter) -> None:
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    chat.connector.failures = [Failure(429, {"Retry-After": "3"})]
    with pytest.raises(ChatUnavailable) as raised:
        await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert raised.value.retry_after == 3.0
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert told(chat)[-1][2]["streamType"] == "final"


async def test_signs_that_come_too_soon_are_left_out(chat: TeamsAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "INTERVAL", 3600.0)
    assert await chat.messenger.signal(PERSON_CHAT, "Reading …")
    assert await chat.messenger.signal(PERSON_CHAT, "Reading on …")
    assert len(chat.connector.sent) == 1


async def test_a_sign_that_is_too_old_is_taken_away(chat: TeamsAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    monkeypatch.setattr(streams, "MAX_AGE", -1.0)
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(ANSWER), "answer")
    assert told(chat)[-1][2] == {}
    assert len(chat.connector.deleted) == 1


async def test_two_people_are_answered_in_streams_of_their_own(chat: TeamsAdapter) -> None:
    other = {"id": "a:mateo", "conversationType": "personal", "tenantId": TENANT}
    await chat.deliver(chat.connector.personal(id="2", conversation=other))
    places = [question.place for question in chat.inbox.questions]
    for place in places:
        await chat.messenger.signal(place, "Reading …")
    await asyncio.gather(*(chat.messenger.post(place, AnswerMessage(ANSWER), place.channel) for place in places))
    ended = [sent for sent in chat.connector.sent if sent.activity["type"] == "message"]
    assert {sent.conversation for sent in ended} == {PERSONAL_CHAT, "a:mateo"}


async def test_markup_in_a_streamed_answer_mentions_nobody(chat: TeamsAdapter) -> None:
    said = replace(ANSWER.sentences[0], text="<at>everyone</at> look at [this](https://attacker.example/) **now**")
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(replace(ANSWER, sentences=(said,))), "answer")
    activity = chat.connector.sent[-1].activity
    assert "<at" not in activity["text"]
    assert "attacker" not in activity["text"]
    assert activity["textFormat"] == "plain"


async def test_commands_in_a_streamed_answer_keep_their_lines(chat: TeamsAdapter) -> None:
    steps = "kubectl config use-context prod\n  kubectl rollout undo deploy/till\nkubectl rollout status deploy/till"
    said = replace(ANSWER.sentences[0], text=f"Roll back:\n```sh\n{steps}\n```\nThen tell the team.")
    await chat.messenger.signal(PERSON_CHAT, "Reading …")
    await chat.messenger.post(PERSON_CHAT, AnswerMessage(replace(ANSWER, sentences=(said,))), "answer")
    text = chat.connector.sent[-1].activity["text"]
    assert text.splitlines() == ["Roll back:", *steps.splitlines(), "Then tell the team. [1]"]


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
