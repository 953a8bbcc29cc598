"""What people do in Teams, through both SDKs: question, follow-up, button, form and incident."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest

from tests.external.bot_in_teams import QUESTION, fire, playground, sdk, started
from tests.external.slack_emulator import ANSWERED_WITHIN, eventually
from tests.external.teams_playground import (
    ASK,
    BOT,
    DANA,
    GROUP_CHAT,
    INCIDENTS,
    MENTION,
    PERSONAL_CHAT,
    TENANT,
    Playground,
)
from tests.fakes.adaptive_card import of_type

__all__ = ["playground", "sdk", "started"]  # the fixtures

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]


async def test_a_personal_conversation_with_a_follow_up_and_buttons(playground: Playground) -> None:
    await playground.say(QUESTION)
    (answer,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    assert "[1]" in answer.text
    assert "canary" in answer.text.lower()
    assert "Closest matches" in answer.text

    # A follow-up is understood in its context.
    await playground.say("and how long does that take?")
    _, follow_up = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 2)
    assert "Rolling back" in follow_up.text

    thanked = await playground.press(answer, "Helpful")
    assert "Received." in json.dumps(thanked)

    await playground.submit(answer, "Ask a person")
    *_, called = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 3)
    assert "Ines would like a person to answer this" in called.text


async def test_in_a_channel_the_answer_stands_in_the_thread(playground: Playground) -> None:
    thread = await playground.say(QUESTION, conversation=ASK, mention=True)
    assert thread.startswith(f"{ASK};messageid=")
    (answer,) = await playground.until(thread, lambda said: len(said) == 1)
    assert "canary" in answer.text.lower()

    # What people say to each other is none of its business.
    await playground.say("thanks, that worked", conversation=thread)
    await playground.say("and how long does that take?", conversation=thread, person=DANA, mention=True)
    await playground.until(thread, lambda said: len(said) == 2)
    assert playground.in_(ASK) == []


async def test_in_a_group_chat_it_answers_when_it_is_mentioned(playground: Playground) -> None:
    await playground.say("help", conversation=GROUP_CHAT)
    await playground.say("help", conversation=GROUP_CHAT, person=DANA, mention=True)
    (help_,) = await playground.until(GROUP_CHAT, lambda said: len(said) == 1)
    assert "status" in help_.text


async def test_an_incident_is_posted_edited_and_detailed(playground: Playground) -> None:
    # Nobody has ever spoken in that channel: it is reached the way the tenant is.
    await playground.say("help")
    await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    await fire(playground, "connection-pool")
    (message,) = await playground.until(
        INCIDENTS, lambda said: len(said) == 1 and "Right cause" in json.dumps(said[0].card)
    )
    assert "▲ Critical since" in message.text
    assert "Payments" in message.text
    assert message.edits >= 1
    (details,) = await playground.until(message.thread, lambda said: len(said) == 1)
    assert "Timeline" in details.text

    await playground.press(message, "Take", person=DANA)
    (taken,) = await playground.until(INCIDENTS, lambda said: "taken by" in said[0].text)
    assert "Dana" in taken.text
    assert len(playground.in_(INCIDENTS)) == 1


async def test_an_edited_question_gets_an_edited_answer_and_one_that_is_brought_back_a_new_one(
    playground: Playground,
) -> None:
    asked = await playground.event(type="message", id="edited-1", text=QUESTION, textFormat="plain")
    (answer,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    before = answer.text
    changed = {
        "type": "messageUpdate",
        "channelData": {"eventType": "editMessage"},
        "timestamp": "2026-03-14T10:00:00Z",
    }
    await playground.event(**asked | changed | {"text": "who owns the till?"})
    (answer,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1 and said[0].text != before)
    assert answer.edits >= 1

    # The playground takes no message away: that the answer goes is a scenario of its own.
    await playground.event(**asked | {"type": "messageDelete", "channelData": {"eventType": "softDeleteMessage"}})
    back = {
        "type": "messageUpdate",
        "channelData": {"eventType": "undeleteMessage"},
        "timestamp": "2026-03-14T10:05:00Z",
    }
    await playground.event(**asked | back)
    _, again = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 2)
    assert "canary" in again.text.lower()


async def test_a_reaction_is_feedback_and_taking_it_away_takes_it_back(playground: Playground) -> None:
    await playground.say(QUESTION)
    (answer,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    before = _labels(playground)
    reaction = {"type": "messageReaction", "replyToId": answer.id}
    await playground.event(**reaction, id="r-1", reactionsAdded=[{"type": "like"}])
    await _until(lambda: _labels(playground) == before + 1, "the reaction is a label")
    await playground.event(**reaction, id="r-2", reactionsRemoved=[{"type": "like"}])
    await _until(lambda: _labels(playground) == before, "the label is taken back")


async def test_a_card_is_refreshed_and_an_incident_reassigned(playground: Playground) -> None:
    await playground.say("help")
    await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    await fire(playground, "check-in-storm")
    (message,) = await playground.until(INCIDENTS, lambda said: len(said) == 1 and "Looking for" not in said[0].text)
    fresh = await playground.refresh(message)
    assert "Dana" not in json.dumps(fresh)
    taken = await playground.press(message, "Take", person=DANA)
    assert "Dana" in json.dumps(taken)
    await playground.until(INCIDENTS, lambda said: "taken by" in said[0].text)
    assert "Dana" in json.dumps(await playground.refresh(message))
    await playground.until(message.thread, lambda said: len(said) >= 1)

    # The playground knows no dialogs: the button comes as a message, and the form stands in the thread.
    await playground.submit(message, "Reassign…", person=DANA)
    *_, form = await playground.until(message.thread, lambda said: "Who should own this incident" in said[-1].text)
    (picker,) = of_type(form.card, "Input.ChoiceSet")
    team = picker["choices"][0]
    received = await playground.press(form, "Reassign", person=DANA, choice=team["value"], text="it is their disk")
    assert "Received." in json.dumps(received)
    await playground.until(INCIDENTS, lambda said: team["title"] in said[0].text)

    # What a dialog sends, as a host with dialogs does.
    other = picker["choices"][1]
    data = {"verdict": "reassign", "subject": form.card["actions"][0]["data"]["subject"], "choice": other["value"]}
    here = {"id": message.thread, "conversationType": "channel", "tenantId": TENANT}
    await playground.event(type="invoke", name="task/submit", id="d-1", conversation=here, value={"data": data})
    await playground.until(INCIDENTS, lambda said: other["title"] in said[0].text)


async def test_people_ask_about_a_message(playground: Playground) -> None:
    thread = await playground.say("the canary of booking-api looks bad", conversation=ASK, person=DANA)
    value = {
        "commandId": "ask",
        "commandContext": "message",
        "messagePayload": _payload("how do I roll back a canary?"),
    }
    opened = await playground.invoke("composeExtension/fetchTask", value, thread)
    assert "What would you like to know?" in json.dumps(opened)
    sent = await playground.invoke("composeExtension/submitAction", value | {"data": {"question": ""}}, thread)
    assert "below the message" in json.dumps(sent) or "Add Plumbline" in json.dumps(sent)


async def test_commands_say_what_there_is_and_how_it_is_set(playground: Playground) -> None:
    await playground.say("home")
    (home,) = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 1)
    assert "Your open incidents" in home.text
    assert "What I know" in home.text
    await playground.say("thanks!")
    *_, thanks = await playground.until(PERSONAL_CHAT, lambda said: len(said) == 2)
    assert "welcome" in thanks.text

    thread = await playground.say("quiet 22:00-07:00 Europe/Berlin", conversation=ASK, mention=True)
    (quiet,) = await playground.until(thread, lambda said: len(said) == 1)
    assert "Ines changed the settings of this channel" in quiet.text
    thread = await playground.say("settings", conversation=ASK, mention=True)
    (settings,) = await playground.until(thread, lambda said: len(said) == 1)
    assert "22:00 to 07:00 Europe/Berlin" in settings.text
    # The page always writes as Ines.
    here = {"id": thread, "conversationType": "channel", "isGroup": True, "tenantId": TENANT}
    mentioned = [{"type": "mention", "mentioned": {"id": BOT["id"]}, "text": MENTION}]
    dana = {"id": DANA, "name": "Dana", "aadObjectId": "dana"}
    off = {"type": "message", "text": f"{MENTION} quiet off", "entities": mentioned, "conversation": here}
    await playground.event(**off, **{"from": dana}, id="off-1")
    *_, told = await playground.until(thread, lambda said: len(said) == 2)
    assert told.text.startswith("Dana changed the settings of this channel")
    assert "none" in told.text


async def test_where_it_is_removed_it_forgets_and_where_it_is_added_it_greets_once(playground: Playground) -> None:
    here = {"id": GROUP_CHAT, "conversationType": "groupChat", "tenantId": TENANT}
    for _ in range(2):
        added = {"type": "installationUpdate", "action": "add", "conversation": here}
        await playground.event(**added)
    await playground.until(GROUP_CHAT, lambda said: len(said) >= 1)
    assert _known(playground, GROUP_CHAT)
    await playground.event(type="installationUpdate", action="remove", conversation=here)
    await _until(lambda: not _known(playground, GROUP_CHAT), "the chat is forgotten")
    assert ["Hello, I’m Plumbline" in said.text for said in playground.in_(GROUP_CHAT)] == [True]


async def _until(holds: Callable[[], bool], what: str) -> None:
    async def look() -> bool:
        return await asyncio.to_thread(holds)

    await eventually(look, what, ANSWERED_WITHIN)


def _labels(playground: Playground) -> int:
    """How many judgements are stored."""
    return _count(playground, "SELECT count(*) FROM outcomes")


def _known(playground: Playground, conversation: str) -> bool:
    return _count(playground, "SELECT count(*) FROM teams_conversations WHERE id = ?", conversation) == 1


def _count(playground: Playground, query: str, *values: str) -> int:
    with closing(sqlite3.connect(f"file:{playground.data / 'plumbline.sqlite'}?mode=ro", uri=True)) as database:
        return database.execute(query, values).fetchone()[0]


def _payload(text: str) -> dict[str, Any]:
    return {"id": "1", "body": {"contentType": "text", "content": text}}
