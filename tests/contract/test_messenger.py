"""The contract of Messenger, over every platform."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from core.answering.answer_view import ALSO, CLOSEST_MATCH, CLOSEST_MATCHES
from core.model.answer import Answer, Contact, Contradiction
from core.model.conversation import MessageReference, Place
from core.model.errors import ChatUnavailable, MessageNotFound
from core.model.messages import AnswerMessage, IncidentMessage, Notice
from tests import samples as messages
from tests.fakes.chats import Chat
from tests.fakes.console_chat import console_chat
from tests.fakes.slack_chat import slack_chat
from tests.fakes.teams_chat import teams_chat
from tests.fakes.text_everywhere import everywhere

CHATS: dict[str, Callable[[], AbstractAsyncContextManager[Chat]]] = {
    "console": console_chat,
    "slack": slack_chat,
    "teams, with the consent that Graph needs": partial(teams_chat, "builtin", consented=True),
    "teams through botbuilder, without it": partial(teams_chat, "botbuilder", consented=False),
}

HELLO = Notice("hello")
# Longer than any text of a platform may be, and more than any message of it may hold.
LARGEST = [*everywhere("<&*`_ x" * 500, count=3).items(), *everywhere("<&*`_ x" * 20, count=60).items()]
LONG_WAIT = 600  # seconds; nobody waits so long within one call


@pytest.fixture(params=CHATS)
async def chat(request: pytest.FixtureRequest) -> AsyncIterator[Chat]:
    async with CHATS[request.param]() as started:
        yield started


def thread(reference: MessageReference) -> Place:
    return replace(reference.place, thread=reference.message_id)


async def test_a_posted_message_stands_where_it_was_meant_to(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    assert "hello" in chat.shown(reference)
    assert reference.place == chat.place
    assert chat.thread_of(reference) is None
    assert chat.count() == 1


async def test_a_notice_for_one_person_is_shown_to_nobody_else_where_the_chat_can(chat: Chat) -> None:
    root = await chat.messenger.post(chat.place, HELLO, "root")
    for place in (chat.place, thread(root)):
        notice = replace(HELLO, only_for=chat.member)
        reference = await chat.messenger.post(place, notice, f"notice {place.thread}")
        assert "hello" in chat.shown(reference)
        assert chat.only_for(reference) == (chat.member.id if chat.targets else None)
        assert chat.thread_of(reference) == reference.place.thread
    assert chat.only_for(root) is None


async def test_a_notice_for_one_person_who_is_not_there_is_shown_to_everybody(chat: Chat) -> None:
    notice = replace(HELLO, only_for=replace(chat.member, id="somebody/else?"))
    reference = await chat.messenger.post(chat.place, notice, "intent")
    assert "hello" in chat.shown(reference)
    assert chat.only_for(reference) is None


async def test_a_reply_stands_in_the_thread_of_its_root(chat: Chat) -> None:
    root = await chat.messenger.post(chat.place, HELLO, "root")
    reply = await chat.messenger.post(thread(root), Notice("reply"), "reply")
    assert reply.place == thread(root)
    assert reply.message_id != root.message_id
    assert chat.thread_of(reply) == root.message_id


async def test_an_edited_message_says_the_new_thing_and_no_longer_the_old_one(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.messenger.edit(reference, Notice("goodbye"))
    assert "goodbye" in chat.shown(reference)
    assert "hello" not in chat.shown(reference)
    assert chat.count() == 1


async def test_a_reply_can_be_edited(chat: Chat) -> None:
    root = await chat.messenger.post(chat.place, HELLO, "root")
    reply = await chat.messenger.post(thread(root), Notice("reply"), "reply")
    await chat.messenger.edit(reply, Notice("corrected"))
    assert "corrected" in chat.shown(reply)
    assert "hello" in chat.shown(root)


async def test_an_edit_may_change_the_kind_of_message(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.messenger.edit(reference, IncidentMessage(messages.explained_incident()))
    assert "Asha Brandt" in chat.shown(reference)


async def test_a_post_is_found_by_its_intent(chat: Chat) -> None:
    first = await chat.messenger.post(chat.place, HELLO, "first")
    second = await chat.messenger.post(chat.place, HELLO, "second")
    assert await chat.successor.find(chat.place, "first") == (first if chat.finds else None)
    assert await chat.successor.find(chat.place, "second") == (second if chat.finds else None)


async def test_a_reply_is_found_in_its_thread(chat: Chat) -> None:
    root = await chat.messenger.post(chat.place, HELLO, "root")
    reply = await chat.messenger.post(thread(root), HELLO, "reply")
    assert await chat.successor.find(thread(root), "reply") == (reply if chat.finds else None)


async def test_an_edited_post_is_still_found(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.messenger.edit(reference, Notice("goodbye"))
    assert await chat.successor.find(chat.place, "intent") == (reference if chat.finds else None)


async def test_what_was_never_posted_is_not_found(chat: Chat) -> None:
    await chat.messenger.post(chat.place, HELLO, "intent")
    assert await chat.successor.find(chat.place, "another intent") is None


async def test_what_was_found_can_be_edited_answered_and_found_again(chat: Chat) -> None:
    await chat.messenger.post(chat.place, HELLO, "intent")
    found = await chat.successor.find(chat.place, "intent")
    if found is None:
        assert not chat.finds
        return
    await chat.successor.edit(found, Notice("goodbye"))
    assert "goodbye" in chat.shown(found)
    assert await chat.messenger.find(chat.place, "intent") == found
    reply = await chat.successor.post(thread(found), Notice("reply"), "reply")
    assert chat.thread_of(reply) == found.message_id


async def test_a_post_that_somebody_deleted_is_not_found(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.delete(reference)
    assert await chat.successor.find(chat.place, "intent") is None


async def test_an_edit_of_a_deleted_message_says_that_it_is_gone(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.delete(reference)
    with pytest.raises(MessageNotFound):
        await chat.messenger.edit(reference, Notice("goodbye"))


async def test_a_message_can_be_taken_away_and_once_gone_that_is_no_error(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    await chat.messenger.delete(reference)
    assert chat.count() == 0 or "hello" not in chat.shown(reference)  # the page says in its place that it is gone
    await chat.messenger.delete(reference)


async def test_taking_away_on_a_platform_that_is_down_leaves_the_message(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    chat.break_down()
    with pytest.raises(ChatUnavailable):
        await chat.messenger.delete(reference)
    assert "hello" in chat.shown(reference)


async def test_a_reply_to_a_deleted_message_says_that_it_is_gone(chat: Chat) -> None:
    root = await chat.messenger.post(chat.place, HELLO, "root")
    await chat.delete(root)
    with pytest.raises(MessageNotFound):
        await chat.messenger.post(thread(root), Notice("reply"), "reply")


async def test_a_platform_that_is_down_is_unavailable_and_nothing_is_posted(chat: Chat) -> None:
    chat.break_down()
    with pytest.raises(ChatUnavailable):
        await chat.messenger.post(chat.place, HELLO, "intent")
    assert chat.count() == 0


async def test_an_edit_on_a_platform_that_is_down_leaves_the_message(chat: Chat) -> None:
    reference = await chat.messenger.post(chat.place, HELLO, "intent")
    chat.break_down()
    with pytest.raises(ChatUnavailable):
        await chat.messenger.edit(reference, Notice("goodbye"))
    assert "hello" in chat.shown(reference)


async def test_a_platform_that_asks_to_wait_says_how_long(chat: Chat) -> None:
    chat.ask_to_wait(LONG_WAIT)
    with pytest.raises(ChatUnavailable) as raised:
        await chat.messenger.post(chat.place, HELLO, "intent")
    assert raised.value.retry_after == LONG_WAIT


async def test_every_message_can_be_posted_and_edited_into_place(chat: Chat) -> None:
    for name, message in messages.SAMPLES.items():
        posted = await chat.messenger.post(chat.place, message, name)
        edited = await chat.messenger.post(chat.place, HELLO, f"another {name}")
        await chat.messenger.edit(edited, message)
        assert chat.shown(edited) == chat.shown(posted), name


async def test_every_message_can_be_posted_however_large_it_is(chat: Chat, request: pytest.FixtureRequest) -> None:
    # The two ways into Teams have one renderer, and share the messages.
    ways = {name: turn for turn, name in enumerate(each for each in CHATS if each.startswith("teams"))}
    turn = ways.get(request.node.callspec.params["chat"])
    for name, message in LARGEST if turn is None else LARGEST[turn :: len(ways)]:
        reference = await chat.messenger.post(chat.place, message, name)
        assert chat.shown(reference), name
        await chat.messenger.delete(reference)


async def test_an_answer_shows_its_sentences_sources_and_badge(chat: Chat) -> None:
    answer = messages.answer()
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert "release captain must agree" in shown
    assert "Change freeze" in shown
    assert "86 %" in shown


@pytest.mark.parametrize("said", [messages.answer, messages.abstention])
async def test_what_is_to_know_about_how_an_answer_was_made_is_shown(chat: Chat, said: Callable[..., Answer]) -> None:
    answer = said(note="Translated from the handbook.")
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert "Translated from the handbook." in shown


async def test_a_tentative_answer_is_called_so_and_a_certain_one_is_not(chat: Chat) -> None:
    for tentative in (True, False):
        message = AnswerMessage(messages.answer(tentative=tentative))
        shown = chat.shown(await chat.messenger.post(chat.place, message, f"intent {tentative}"))
        assert (CLOSEST_MATCH in shown) is tentative


async def test_what_else_may_answer_is_offered_in_a_line_with_its_source(chat: Chat) -> None:
    answer = messages.excerpt_answer(tentative=False)
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    also = " ".join(shown.split()).partition(f"{ALSO}: ")[2]
    assert also.startswith("Roll-backs are never frozen. ·")
    assert "Change freeze › Exceptions" in also


async def test_what_is_not_certain_is_three_whole_quotes_to_choose_from(chat: Chat) -> None:
    answer = messages.closest_matches()
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert CLOSEST_MATCHES in shown
    for quote, source in zip(answer.quotes, answer.citations, strict=True):
        assert source.name in shown
        assert " ".join(quote.text.replace("`", "").split()) in " ".join(shown.replace("`", "").split())


async def test_a_contradicting_source_is_quoted_with_its_date(chat: Chat) -> None:
    other = replace(messages.citation(3, "Old notes", "Canaries"), quote="It returns to 0 % within 10 minutes.")
    answer = messages.answer(conflicts=(Contradiction((messages.citation(), other)),))
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert "Sources disagree" in shown
    assert "Old notes" in shown
    assert "within 10 minutes" in shown


@pytest.mark.parametrize("said", [messages.answer, messages.abstention])
async def test_a_stale_source_is_called_so(chat: Chat, said: Callable[..., Answer]) -> None:
    answer = said(citations=(replace(messages.citation(), stale_for=timedelta(days=430)),))
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert "last changed 14 months ago" in shown


async def test_an_abstention_says_whom_to_ask(chat: Chat) -> None:
    answer = messages.abstention(contacts=(Contact("Delivery", "ci-cd", ("Hana Petrov",)),))
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(answer), "intent"))
    assert "Ask: Delivery (#ci-cd, Hana Petrov)" in shown


async def test_an_abstention_says_so_and_names_the_nearest_documents(chat: Chat) -> None:
    shown = chat.shown(await chat.messenger.post(chat.place, AnswerMessage(messages.abstention()), "intent"))
    assert "I don’t know" in shown
    assert "Rolling back" in shown
