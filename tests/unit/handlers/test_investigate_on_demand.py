from dataclasses import replace
from datetime import UTC, datetime

from core.conversation import PUBLIC, Audience, Person, Place, Platform, Question
from core.incident import Incident, Stage
from core.messages import Notice
from handlers.investigate_on_demand import FOR_THE_WORKSPACE, incident_from, investigate_on_demand
from handlers.post_message import Poster
from tests.fakes.messages import explained_incident
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.store import InMemoryStore

QUESTION = Question(
    id="slack:C1:17.5",
    text="PaymentGatewayLatencyHigh\np99 of payment-gateway is 4 s since 10:02",
    asker=Person(Platform.SLACK, "U1"),
    place=Place(Platform.SLACK, "C1", "17.5"),
    audience=Audience(),
    asked_at=datetime(2026, 3, 19, 10, 5, tzinfo=UTC),
)


def test_a_pasted_alert_is_an_incident_named_by_its_first_line():
    incident = incident_from(QUESTION, ["booking-api", "payment", "payment-gateway"])
    assert incident.title == "PaymentGatewayLatencyHigh"
    assert incident.service == "payment-gateway"
    assert "p99 of payment-gateway is 4 s" in incident.description
    assert (incident.id, incident.place, incident.stage) == (QUESTION.id, QUESTION.place, Stage.TRIAGING)


def test_a_pasted_essay_has_a_short_title_and_loses_nothing():
    incident = incident_from(replace(QUESTION, text="slow " * 1000), ["booking-api"])
    assert len(incident.title) <= 150
    assert not incident.service
    assert incident.description.count("slow") >= 1000


async def test_a_pasted_alert_is_not_looked_into_where_outsiders_read_along():
    async def investigate(_incident: Incident, _audience: Audience) -> Incident:
        raise AssertionError("nothing may be read")

    store, chat = InMemoryStore(), RecordingMessenger()
    await investigate_on_demand(
        replace(QUESTION, audience=Audience(frozenset({"channel:slack:C1"}))),
        investigate=investigate,
        services=(),
        store=store,
        poster=Poster(store, {Platform.SLACK: chat}),
    )
    assert chat.posted == [(QUESTION.place, Notice(FOR_THE_WORKSPACE))]


async def test_what_is_found_out_is_for_the_audience_of_the_question():
    asked: list[Audience] = []

    async def investigate(incident: Incident, audience: Audience) -> Incident:
        asked.append(audience)
        return incident

    store = InMemoryStore()
    poster = Poster(store, {Platform.SLACK: RecordingMessenger()})
    await investigate_on_demand(QUESTION, investigate=investigate, services=(), store=store, poster=poster)
    assert asked == [QUESTION.audience]


async def test_what_is_found_out_in_a_thread_is_fit_for_every_place_that_shows_the_incident():
    asked: list[Audience] = []

    async def investigate(incident: Incident, audience: Audience) -> Incident:
        asked.append(audience)
        return incident

    store, chat = InMemoryStore(), RecordingMessenger()
    poster = Poster(store, {Platform.SLACK: chat})
    private = Audience(frozenset({PUBLIC, "channel:slack:C1", "channel:secret"}))
    message = await chat.post(Place(Platform.SLACK, "C1"), Notice("the incident"), "incident")
    question = replace(QUESTION, text="", audience=private, place=Place(Platform.SLACK, "C1", message.message_id))
    for also_in in ((), (Place(Platform.SLACK, "C2"),)):
        store.incidents.by_id["i1"] = explained_incident(id="i1", message=message, also_in=also_in)
        await investigate_on_demand(question, investigate=investigate, services=(), store=store, poster=poster)
    assert [audience.readers for audience in asked] == [private.readers, frozenset({PUBLIC})]
