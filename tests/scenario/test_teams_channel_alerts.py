"""Alerts that other bots post in a channel of Teams: read through Microsoft Graph, and answered in their threads."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from adapters.posted.recognise import recognise
from core.model.alert import Adoption
from core.model.conversation import Place, Platform
from core.model.errors import ChatUnavailable
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentMessage
from handlers.common.ports import AdoptionPorts
from handlers.incidents.adopt_alerts import take_posted
from handlers.incidents.open_incident import open_incident
from tests.fakes.graph_server import graph_time
from tests.fakes.store import InMemoryStore
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import APP_ID, CHANNEL
from tests.scenario.teams_history import CHANNEL_PLACE, HELLO, teams

__all__ = ["teams"]  # the fixture

PLACE = Place(Platform.TEAMS, CHANNEL)


def posts(teams: TeamsAdapter, message: str, title: str, colour: str = "attention", **fields: Any) -> None:
    """A workflow posts a card of a monitoring system."""
    card = {
        "type": "AdaptiveCard",
        "body": [
            {"type": "TextBlock", "text": title, "color": colour},
            {
                "type": "FactSet",
                "facts": [{"title": "Severity:", "value": "high"}, {"title": "Host:", "value": "tower-3"}],
            },
        ],
    }
    attachment = {"id": "1", "contentType": "application/vnd.microsoft.card.adaptive", "content": json.dumps(card)}
    sender = {"application": {"id": "bell", "displayName": "Bell"}, "user": None}
    at = graph_time(teams.clock.now())
    shown = {"createdDateTime": at, "attachments": [attachment], "from": fields.pop("sender", sender)} | fields
    teams.connector.graph.post(CHANNEL, message, "", **shown)


async def taken(teams: TeamsAdapter, store: InMemoryStore) -> list[Incident]:
    """Look at the channel, and take what is new there, as the running bot does."""
    await teams.posted.pass_on(PLACE)
    passed, teams.inbox.posted = teams.inbox.posted, []
    ids = iter(range(len(store.incidents.by_id), 99))
    accept = partial(
        open_incident, store=store, places_for=lambda each: (each.at or PLACE,), new_id=lambda: f"i{next(ids)}"
    )
    adoption = AdoptionPorts(recognise=recognise, configured={PLACE: Adoption(is_on=True)})
    for each in passed:
        await take_posted(each, adoption=adoption, accept=accept, store=store)
    return list(store.incidents.by_id.values())


async def test_a_card_that_fires_is_answered_in_its_thread_and_its_edit_ends_the_incident(teams: TeamsAdapter) -> None:
    store = InMemoryStore()
    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    (incident,) = await taken(teams, store)
    assert incident.placement.place == replace(PLACE, thread="1700000000001")
    reference = await teams.messenger.post(incident.placement.place, IncidentMessage(incident), "incident")
    assert reference.thread == incident.placement.place
    assert await taken(teams, store) == [incident], "nothing is new"
    posts(teams, "1700000000001", "[RESOLVED] Lamp is out", lastEditedDateTime=graph_time(teams.clock.now()))
    (over,) = await taken(teams, store)
    assert over.state is IncidentState.RESOLVED


async def test_of_two_messages_of_one_moment_the_earlier_is_taken_first(teams: TeamsAdapter) -> None:
    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    posts(teams, "1700000000002", "[RESOLVED] Lamp is out")
    (over,) = await taken(teams, InMemoryStore())
    assert (over.placement.place.thread, over.state) == ("1700000000001", IncidentState.RESOLVED)


async def test_people_old_messages_and_ours_are_not_passed_on(teams: TeamsAdapter) -> None:
    posts(teams, "1", "[FIRING:1] Lamp", createdDateTime=graph_time(teams.clock.now() - timedelta(hours=2)))
    posts(teams, "2", "[FIRING:1] Lamp", sender={"application": {"id": APP_ID}, "user": None})
    posts(teams, "3", "[FIRING:1] Lamp", sender={"application": None, "user": {"id": "u"}})
    await teams.messenger.post(CHANNEL_PLACE, HELLO, "intent")
    assert await taken(teams, InMemoryStore()) == []


async def test_a_bot_that_starts_anew_keeps_once_what_was_kept_before(teams: TeamsAdapter) -> None:
    store = InMemoryStore()
    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    (incident,) = await taken(teams, store)
    teams.posted._latest.clear()
    assert await taken(teams, store) == [incident]


async def test_of_a_storm_between_two_looks_or_while_the_bot_was_off_every_alert_is_taken(teams: TeamsAdapter) -> None:
    store = InMemoryStore()
    for number in range(70):
        posts(teams, f"17000000{number:05}", f"[FIRING:1] Lamp{number:02} is out")
    assert len(await taken(teams, store)) == 70
    edited = graph_time(teams.clock.now())
    posts(teams, "1700000000063", "[RESOLVED] Lamp63 is out", lastEditedDateTime=edited)
    over = [each.title for each in await taken(teams, store) if each.state is IncidentState.RESOLVED]
    assert over == ["Lamp63 is out (tower-3)"]


async def test_a_page_that_fails_withholds_no_alert_of_the_one_before(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = type(teams.posted)._newest

    async def failing(self: Any, place: Place) -> Any:
        async for page in newest(self, place):
            yield page
        raise ChatUnavailable("504")

    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    monkeypatch.setattr(type(teams.posted), "_newest", failing)
    with pytest.raises(ChatUnavailable, match="504"):
        await teams.posted.pass_on(PLACE)
    assert [each.message_id for each in teams.inbox.posted] == ["1700000000001"]


async def test_a_look_that_a_webhook_asks_for_is_made_once_for_a_time(teams: TeamsAdapter) -> None:
    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    now = teams.clock.now()
    assert await teams.posted.look(PLACE, now)
    posts(teams, "1700000000002", "[FIRING:1] Fan is loud")
    assert not await teams.posted.look(PLACE, now), "it was looked at then"
    teams.clock.advance(1)
    assert await teams.posted.look(PLACE, teams.clock.now())
    teams.connector.graph.consented = False
    teams.clock.advance(1)
    assert not await teams.posted.look(PLACE, teams.clock.now()), "nobody waits for what cannot be read"
    assert [each.message_id for each in teams.inbox.posted] == ["1700000000001", "1700000000002"]


async def test_without_consent_nothing_is_read_and_the_reason_is_given(teams: TeamsAdapter) -> None:
    teams.connector.graph.consented = False
    with pytest.raises(ChatUnavailable, match="consent"):
        await teams.posted.pass_on(PLACE)


async def test_a_reply_of_the_sender_ends_the_incident_and_that_of_another_bot_does_not(teams: TeamsAdapter) -> None:
    store = InMemoryStore()
    posts(teams, "1700000000001", "[FIRING:1] Lamp is out")
    (incident,) = await taken(teams, store)
    echo = {"application": {"id": "echo", "displayName": "Echo"}, "user": None}
    posts(teams, "1700000000002", "Resolved", reply_to="1700000000001", sender=echo)
    assert await taken(teams, store) == [incident]
    posts(teams, "1700000000003", "Resolved", reply_to="1700000000001")
    (over,) = await taken(teams, store)
    assert (over.id, over.state) == (incident.id, IncidentState.RESOLVED)
