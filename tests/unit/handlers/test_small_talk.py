"""A greeting, a person's own page as a message, and what a message would show now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.incidents.incident_questions import CommandName, parse_command
from core.model.badge import Policy
from core.model.conversation import PUBLIC, Audience, MessageReference, Person, Place, Platform, Question
from core.model.messages import Home, IncidentMessage, KnownSource, Message, Notice, ProposalMessage
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.questions.doors import ShownAgain
from handlers.questions.show_home import HELLO, SHOWN, format_home, post_home, say_hello
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, proposed

PLACE = Place(Platform.TEAMS, "a:1", "a:1")
INES = Person(Platform.TEAMS, "5c1f", "Ines Okafor")
QUESTION = Question("q1", "", INES, PLACE, Audience(), datetime(2026, 3, 14, tzinfo=UTC))
SOURCE = KnownSource("handbook", 12, datetime(2026, 3, 14, 2, tzinfo=UTC))
HOME = Home((explained_incident(),), (), 340, (SOURCE,), (("Answers", "quoted from the documents"),), ("help",))


@pytest.fixture
def poster(store: InMemoryStore, chat: RecordingMessenger) -> Poster:
    return Poster(store, {Platform.TEAMS: chat})


def only(chat: RecordingMessenger) -> Message:
    (message,) = chat.standing.values()
    return message


@pytest.mark.parametrize("text", ["hello", "Hi!", "hey there", "good morning, Plumbline", "Hallo 👋"])
async def test_whoever_says_hello_is_greeted(text: str, chat: RecordingMessenger, poster: Poster) -> None:
    assert parse_command(text).name is CommandName.HELLO
    await say_hello(QUESTION, some_ports(poster=poster))
    await say_hello(QUESTION, some_ports(poster=poster))
    assert only(chat) == Notice(HELLO)


@pytest.mark.parametrize("text", ["hello world fails in CI", "hi, how do I roll back?", "highlight the till"])
def test_a_question_that_begins_with_a_greeting_stays_one(text: str) -> None:
    assert parse_command(text).name is CommandName.ASK


async def test_home_is_asked_for_by_the_name_of_the_person_and_for_the_audience_of_the_place(
    chat: RecordingMessenger, poster: Poster, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[Sequence[str], Audience]] = []

    async def home_of(names: Sequence[str], audience: Audience, _: Ports) -> Home:
        asked.append((names, audience))
        return HOME

    monkeypatch.setattr("handlers.questions.show_home.home_of", home_of)
    await post_home(QUESTION, some_ports(poster=poster))
    assert asked == [(["Ines Okafor"], QUESTION.audience)]
    message = only(chat)
    assert isinstance(message, Notice)
    assert message.text.splitlines() == [
        "Your open incidents:",
        "• payment-gateway p99 latency above 2 s (critical since 2026-03-14 09:30 UTC, Payments)",
        "What I know:",
        "340 passages indexed.",
        "• handbook: 12 documents, read 2026-03-14 02:00 UTC",
        "Settings:",
        "• Answers: quoted from the documents",
    ]


def test_a_page_with_nothing_in_it_says_so() -> None:
    assert format_home(Home((), (), 0, (), (), ())) == "Your open incidents:\nNone."


@pytest.mark.parametrize(
    ("number", "line"), [(1, "1 passage indexed."), (7, "7 passages indexed."), (4200, "4,200 passages indexed.")]
)
def test_a_page_during_the_first_import_counts_the_passages_in_words_of_their_number(number: int, line: str) -> None:
    assert f"What I know:\n{line}" in format_home(Home((), (), number, (), (), ()))


def test_a_long_list_is_counted() -> None:
    many = tuple(explained_incident(id=str(number)) for number in range(SHOWN + 3))
    assert "• and 3 more" in format_home(replace(HOME, mine=many))


async def test_a_message_that_changes_is_shown_as_it_stands_now(store: InMemoryStore, poster: Poster) -> None:
    incident = explained_incident(id="i1", revision=1, basis=(PUBLIC,))
    copied_to = Place(Platform.TEAMS, "19:copy@thread.tacv2")
    store.incidents.by_id["i1"] = incident
    store.curated.by_id["c1"] = proposed()
    posted = [
        await poster.post_once(intent, place, Notice("as it was"))
        for intent, place in (("incident:i1", PLACE), ("incident:i1@teams:19:copy", copied_to), ("proposal:c1", PLACE))
    ]
    shown = ShownAgain(store, Policy(ask_below=0.99))
    again = [await shown.message(reference) for reference in posted]
    assert again == [
        IncidentMessage(incident, asks_owner=True),
        IncidentMessage(incident, asks_owner=True),
        ProposalMessage(proposed()),
    ]


async def test_a_message_that_does_not_change_is_not_shown_again(store: InMemoryStore, poster: Poster) -> None:
    reference = await poster.post_once("answer:q1", PLACE, Notice("an answer"))
    gone = await poster.post_once("incident:gone", PLACE, Notice("an incident"))
    shown = ShownAgain(store)
    for each in (reference, gone, MessageReference(PLACE, "never-posted")):
        assert await shown.message(each) is None
