from dataclasses import replace
from datetime import UTC, datetime

from adapters.secret_detector import SecretPatterns
from core.knowledge.redactor import Redactor
from core.model.conversation import PUBLIC, Audience, Channel, Person, Place, Platform, Question
from core.model.incident import Incident, Stage
from core.model.messages import IncidentMessage, Notice
from handlers.common.post_message import Poster
from handlers.incidents.explain_incident import LOOKS_CLOSER, Show
from handlers.incidents.investigate_incident import (
    FOR_THE_WORKSPACE,
    NO_INCIDENT,
    Analysis,
    incident_from,
    investigate_on_demand,
)
from handlers.incidents.investigate_with_model import Progress
from tests.fakes.messenger import RecordingMessenger, Trouble
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident

QUESTION = Question(
    id="slack:C1:17.5",
    text="PaymentGatewayLatencyHigh\np99 of payment-gateway is 4 s since 10:02",
    asker=Person(Platform.SLACK, "U1"),
    place=Place(Platform.SLACK, "C1", "17.5"),
    audience=Audience(),
    asked_at=datetime(2026, 3, 19, 10, 5, tzinfo=UTC),
)


CHANNELS = (
    Channel("one", {Platform.SLACK: "C1"}),
    Channel("two", {Platform.SLACK: "C2"}),
    Channel("secret", {Platform.SLACK: "C3"}, private=True),
)


async def ask(question: Question, investigate: Analysis, store: InMemoryStore, poster: Poster) -> None:
    await investigate_on_demand(
        question,
        some_ports(channels=CHANNELS, store=store, poster=poster),
        investigate=investigate,
        stage=Stage.EXPLAINING,
    )


def test_a_pasted_alert_is_an_incident_named_by_its_first_line():
    incident = incident_from(QUESTION, ["booking-api", "payment", "payment-gateway"])
    assert incident.title == "PaymentGatewayLatencyHigh"
    assert incident.service == "payment-gateway"
    assert "p99 of payment-gateway is 4 s" in incident.description
    assert (incident.id, incident.placement.place, incident.stage) == (QUESTION.id, QUESTION.place, Stage.TRIAGING)


def test_a_service_is_named_by_a_word_of_its_own_in_any_case():
    services = ["till", "shelf", "pg-booking", "c++"]
    for text, named in {
        "Closed until noon at the distillery, says the bookshelf": "",
        "nothing of still/distill": "",
        "the TILL is slow": "till",
        "shelf_2 waits for http://till:8080/charge": "shelf",
        "pg-booking-7f9c restarts": "pg-booking",
        "支付till超时": "till",
        "c++ builds fail": "c++",
    }.items():
        assert incident_from(replace(QUESTION, text=text), services).service == named, text


def test_a_pasted_essay_has_a_short_title_and_loses_nothing():
    incident = incident_from(replace(QUESTION, text="slow " * 1000), ["booking-api"])
    assert len(incident.title) <= 150
    assert not incident.service
    assert incident.description.count("slow") >= 1000


async def test_the_secrets_of_a_pasted_alert_reach_no_investigation():
    seen: list[Incident] = []

    async def investigate(incident: Incident, _audience: Audience, _progress: Progress, _show: Show) -> Incident:
        seen.append(incident)
        return incident

    store, chat = InMemoryStore(), RecordingMessenger()
    pasted = replace(QUESTION, text="password: Otter-1234\npayment-gateway: token=u7Hh2kd93jf8dk2l refused")
    redactor = Redactor(SecretPatterns())
    await investigate_on_demand(
        pasted,
        some_ports(store=store, poster=Poster(store, {Platform.SLACK: chat}), redact=redactor),
        investigate=investigate,
        stage=Stage.EXPLAINING,
    )
    (incident,) = seen
    assert incident.title == "password: [secret]"
    assert not any(secret in repr((seen, chat.posted, chat.edited)) for secret in ("Otter-1234", "u7Hh2kd93jf8dk2l"))


async def test_a_pasted_alert_is_not_looked_into_where_outsiders_read_along():
    async def investigate(_incident: Incident, _audience: Audience, _progress: Progress, _show: Show) -> Incident:
        raise AssertionError("nothing may be read")

    store, chat = InMemoryStore(), RecordingMessenger()
    question = replace(QUESTION, audience=Audience(frozenset({"channel:slack:C1"})))
    await ask(question, investigate, store, Poster(store, {Platform.SLACK: chat}))
    assert chat.posted == [(QUESTION.place, Notice(FOR_THE_WORKSPACE))]


async def test_what_is_found_out_is_for_the_audience_of_the_question():
    asked: list[Audience] = []

    async def investigate(incident: Incident, audience: Audience, _progress: Progress, _show: Show) -> Incident:
        asked.append(audience)
        return incident

    store = InMemoryStore()
    poster = Poster(store, {Platform.SLACK: RecordingMessenger()})
    await ask(QUESTION, investigate, store, poster)
    assert asked == [QUESTION.audience]


async def test_what_is_found_out_in_a_thread_is_fit_for_every_place_that_shows_the_incident():
    asked: list[Audience] = []

    async def investigate(incident: Incident, audience: Audience, _progress: Progress, _show: Show) -> Incident:
        asked.append(audience)
        return incident

    store, chat = InMemoryStore(), RecordingMessenger()
    poster = Poster(store, {Platform.SLACK: chat})
    private = Audience(frozenset({PUBLIC, "channel:slack:C1", "channel:one", "channel:two"}))
    message = await chat.post(Place(Platform.SLACK, "C1"), Notice("the incident"), "incident")
    question = replace(QUESTION, text="", audience=private, place=Place(Platform.SLACK, "C1", message.message_id))
    for also_in in ((), (Place(Platform.SLACK, "C2"),), (Place(Platform.SLACK, "C1"),)):
        question = replace(question, id=f"{question.id}+")
        store.incidents.by_id["i1"] = explained_incident(
            id="i1", place=Place(Platform.SLACK, "C1"), message=message, also_in=also_in
        )
        await ask(question, investigate, store, poster)
    assert [audience.readers for audience in asked] == [
        private.readers,
        frozenset({PUBLIC}),
        frozenset({PUBLIC, "channel:slack:C1", "channel:one"}),
    ]


async def test_the_message_stands_there_at_once_and_says_at_every_step_what_is_done():
    seen: list[tuple[Stage, str]] = []
    store, chat = InMemoryStore(), RecordingMessenger()

    def shown() -> tuple[Stage, str]:
        (message,) = chat.standing.values()
        assert isinstance(message, IncidentMessage)
        return message.incident.stage, message.incident.progress

    async def investigate(incident: Incident, _audience: Audience, progress: Progress, _show: Show) -> Incident:
        seen.append(shown())
        await progress("read_logs(shop)")
        seen.append(shown())
        return incident

    await ask(QUESTION, investigate, store, Poster(store, {Platform.SLACK: chat}))
    assert seen == [(Stage.EXPLAINING, ""), (Stage.EXPLAINING, "read_logs(shop)")]
    assert shown() == (Stage.DONE, "")


async def test_what_the_evidence_says_stands_there_while_a_model_is_asked():
    seen: list[Incident] = []
    store, chat = InMemoryStore(), RecordingMessenger()

    def shown() -> Incident:
        (message,) = chat.standing.values()
        assert isinstance(message, IncidentMessage)
        return message.incident

    async def investigate(incident: Incident, _audience: Audience, progress: Progress, show: Show) -> Incident:
        known = explained_incident()
        await progress("read_logs(shop)")
        await show(replace(incident.with_findings(owner=known.findings.owner), stage=Stage.DONE))
        seen.append(shown())
        await show(incident.with_findings(owner=known.findings.owner, explanation=known.findings.explanation))
        seen.append(shown())
        await progress("read_logs(till)")
        seen.append(shown())
        return incident.with_findings(owner=known.findings.owner, explanation=None)

    await ask(QUESTION, investigate, store, Poster(store, {Platform.SLACK: chat}))
    assert {each.stage for each in seen} == {Stage.EXPLAINING}, "more may come"
    assert [each.progress for each in seen] == [LOOKS_CLOSER, LOOKS_CLOSER, "read_logs(till)"]
    assert [(each.findings.owner is None, each.findings.explanation is None) for each in seen] == [
        (False, True),
        (False, False),
        (False, False),
    ]
    assert (shown().stage, shown().progress, shown().findings.explanation) == (Stage.DONE, "", None), (
        "the model knew better"
    )


async def test_a_chat_that_is_down_on_the_way_does_not_stop_the_work():
    store, chat = InMemoryStore(), RecordingMessenger()

    async def investigate(incident: Incident, _audience: Audience, progress: Progress, _show: Show) -> Incident:
        chat.trouble.append(Trouble.DOWN)
        await progress("read_logs(shop)")
        return incident

    await ask(QUESTION, investigate, store, Poster(store, {Platform.SLACK: chat}))
    assert [message.incident.stage for message in chat.standing.values() if isinstance(message, IncidentMessage)] == [
        Stage.DONE
    ]


async def test_a_command_in_the_thread_of_a_copy_is_about_the_incident():
    asked: list[str] = []

    async def investigate(incident: Incident, _audience: Audience, _progress: Progress, _show: Show) -> Incident:
        asked.append(incident.id)
        return incident

    store, chat = InMemoryStore(), RecordingMessenger()
    poster = Poster(store, {Platform.SLACK: chat})
    here, there = Place(Platform.SLACK, "C1"), Place(Platform.SLACK, "C2")
    message = await poster.post_once("incident:i1", here, Notice("the incident"))
    copy = await poster.post_once("incident:i1@slack:C2", there, Notice("the incident"))
    other = await poster.post_once("digest:1", there, Notice("something else"))
    store.incidents.by_id["i1"] = explained_incident(id="i1", message=message, also_in=(there,))
    in_copy = replace(QUESTION, text="", place=replace(there, thread=copy.message_id))
    await ask(in_copy, investigate, store, poster)
    await ask(replace(in_copy, id="q2", place=replace(there, thread=other.message_id)), investigate, store, poster)
    assert asked == ["i1"]
    assert chat.posted[-1][1] == Notice(NO_INCIDENT)
