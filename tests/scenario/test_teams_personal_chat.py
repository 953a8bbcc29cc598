"""Messages in a personal chat: found too large by Teams, and edited where none is known any more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from core.model.conversation import MessageReference, Place, Platform
from core.model.errors import MessageNotFound, PlumblineError
from core.model.messages import AnswerMessage, Notice, NoticeKind
from tests.fakes.adaptive_card import texts
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import PERSONAL_CHAT, TENANT, Failure
from tests.samples import answer

PERSON_CHAT = Place(Platform.TEAMS, PERSONAL_CHAT, PERSONAL_CHAT, TENANT)
WORKING = Notice("Reading what I found …", NoticeKind.PROGRESS, stop_id="q1")


@pytest.fixture(params=["builtin", "botbuilder"])
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[TeamsAdapter]:
    async with open_teams(request.param) as chat:
        await chat.deliver(chat.connector.personal())
        yield chat


async def test_a_sign_of_work_becomes_the_answer(chat: TeamsAdapter) -> None:
    reference = await chat.messenger.post(PERSON_CHAT, WORKING, "answer:1")
    assert "Stop" in str(chat.connector.sent[-1].card)
    await chat.messenger.edit(reference, AnswerMessage(answer()))
    shown = chat.connector.updated[-1].card
    assert "Sources" in texts(shown)
    assert "Stop" not in str(shown)
    assert await chat.messenger.find(PERSON_CHAT, "answer:1") == reference


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


async def test_a_message_that_nobody_knows_any_more_is_not_edited(chat: TeamsAdapter) -> None:
    with pytest.raises(MessageNotFound):
        await chat.messenger.edit(MessageReference(PERSON_CHAT, "17"), AnswerMessage(answer()))
