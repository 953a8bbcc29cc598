from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.incidents.thread_notes import MIN_LABELS
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind
from core.model.conversation import Audience, Person, Place, Platform, Question
from core.model.document import Document
from core.model.incident import Resolution
from core.model.messages import Notice, NoticeKind
from core.model.team import Team
from handlers.common.post_message import Poster
from handlers.incidents.label_incident import (
    NOTE,
    label_incident,
    label_noted_incidents,
    record_resolution,
    redacted_note,
)
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.samples import explained_incident, explanation, owner
from tests.samples.parts import disagreed

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
LATER = NOW.replace(hour=12)
CHANNEL = Place(Platform.SLACK, "C0INC")
THREAD = replace(CHANNEL, thread="1")
TEAMS = (Team("payments", "Payments"), Team("bookings", "Bookings", aliases=("reservations",)))
CAUSE = "A configuration change lowered the maximum pool size of payment-gateway from 40 to 4."
SAID_TO = Audience(disclosed_to=frozenset({"channel:payments"}))
RIGHT_NOTE = "root cause: the maximum pool size of payment-gateway was lowered to 4; fix: pool back to 40"


def claims(number: int = 1, cause: str = CAUSE) -> list[Prediction]:
    made = Prediction(f"c{number}", PredictionKind.CAUSE, f"i{number}", cause, Evaluation(0.5, 0.5), "e", "1", NOW)
    return [made, replace(made, id=f"o{number}", kind=PredictionKind.OWNER, value="payments")]


@pytest.fixture
async def store(chat: RecordingMessenger) -> InMemoryStore:
    store = InMemoryStore()
    message = await chat.post(CHANNEL, Notice("the incident"), "incident")
    store.incidents.by_id["i1"] = explained_incident(
        id="i1", message=message, owner=owner(prediction_id="o1"), explanation=explanation(prediction_id="c1")
    )
    for each in claims():
        await store.predictions.add(each)
    return store


class Bot:
    """Records a note, and remembers what it learned and what it passed on as a question."""

    def __init__(self, store: InMemoryStore, chat: RecordingMessenger) -> None:
        self._store, self._poster = store, Poster(store, {Platform.SLACK: chat})
        self.learned = 0
        self.asked: list[str] = []

    async def note(self, text: str, place: Place = THREAD, at: datetime = NOW) -> None:
        question = Question(f"q{at} {text}", text, Person(Platform.SLACK, "U1", "Ada"), place, SAID_TO, at)
        ports = some_ports(teams=TEAMS, store=self._store, poster=self._poster, redact=_redacted, learn=self._learn)
        if not await record_resolution(question, ports):
            self.asked.append(text)

    async def _learn(self) -> None:
        self.learned += 1


def _redacted(document: Document) -> Document:
    return replace(document, text=document.text.replace("Ada Quist", "[person]"))


@pytest.fixture
def bot(store: InMemoryStore, chat: RecordingMessenger) -> Bot:
    return Bot(store, chat)


def labels(store: InMemoryStore) -> dict[str, bool]:
    return {about: outcome.correct for (about, _), outcome in store.predictions.outcomes.items()}


async def test_a_note_is_kept_labels_both_claims_and_is_acknowledged_in_a_line(
    bot: Bot, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await bot.note(f"{RIGHT_NOTE}; owner: Payments team")
    incident = store.incidents.by_id["i1"]
    assert incident.resolution == Resolution(
        "the maximum pool size of payment-gateway was lowered to 4",
        "pool back to 40",
        "Payments team",
        dict.fromkeys(("root_cause", "fix", "owner"), ("channel:payments",)),
        "Ada",
        "Ada",
        "Ada",
    )
    assert labels(store) == {"c1": True, "o1": True}
    assert {outcome.labelled_by for outcome in store.predictions.outcomes.values()} == {NOTE}
    assert bot.learned == 1
    (_, acknowledgement) = chat.posted[-1]
    assert isinstance(acknowledgement, Notice)
    assert acknowledgement.kind is NoticeKind.THANKS
    assert acknowledgement.text.startswith("Noted the root cause, the fix, the owner.")


async def test_a_note_that_says_otherwise_makes_them_wrong(bot: Bot, store: InMemoryStore) -> None:
    await bot.note("root cause: a certificate had expired\nowner: reservations")
    assert labels(store) == {"c1": False, "o1": False}


async def test_a_note_labels_each_of_two_causes_on_which_the_engines_disagree(bot: Bot, store: InMemoryStore) -> None:
    both = replace(disagreed(), prediction_id="c1")
    store.incidents.by_id["i1"] = store.incidents.by_id["i1"].with_findings(explanation=both)
    other = "A batch job holds all 4 connections."
    await store.predictions.add(replace(claims()[0], id="cause-2", value=other, engine="qwen3-32b"))
    await bot.note(RIGHT_NOTE)
    assert labels(store) == {"c1": True, "cause-2": False}


@pytest.mark.parametrize("note", ["fix: pool back to 40", "fix: pool back to 40; owner: somebody"])
async def test_what_the_note_does_not_say_is_not_labelled(bot: Bot, store: InMemoryStore, note: str) -> None:
    await bot.note(note)
    assert labels(store) == {}


async def test_a_later_note_adds_to_the_earlier_one_and_replaces_its_label(bot: Bot, store: InMemoryStore) -> None:
    await bot.note("root cause: a certificate had expired; fix: renewed it")
    await bot.note(RIGHT_NOTE.partition(";")[0], at=LATER)
    resolution = store.incidents.by_id["i1"].resolution
    assert resolution is not None
    assert resolution.fix == "renewed it"
    assert labels(store) == {"c1": True}


async def test_a_person_knows_better_than_a_comparison_of_words(bot: Bot, store: InMemoryStore) -> None:
    await store.predictions.label(Outcome("c1", False, "slack:U1", NOW))
    await bot.note(RIGHT_NOTE)
    assert labels(store) == {"c1": False}


async def test_names_are_taken_out_of_a_note_before_it_is_kept(bot: Bot, store: InMemoryStore) -> None:
    await bot.note("root cause: Ada Quist lowered the pool")
    resolution = store.incidents.by_id["i1"].resolution
    assert resolution is not None
    assert resolution.root_cause == "[person] lowered the pool"


async def test_outside_an_incidents_thread_it_is_a_question(
    bot: Bot, store: InMemoryStore, chat: RecordingMessenger
) -> None:
    await bot.note("owner: who owns the till?", place=replace(CHANNEL, thread="99"))
    assert bot.asked == ["owner: who owns the till?"]
    assert (labels(store), bot.learned, len(chat.posted)) == ({}, 0, 1)


async def test_the_threshold_is_fitted_on_what_people_said_of_causes_with_a_note(
    bot: Bot, store: InMemoryStore
) -> None:
    """Here people call right only what holds nearly every word of the note."""
    for number in range(2, MIN_LABELS + 2):
        is_right = number % 2 == 0
        cause = "alpha beta gamma delta" if is_right else "alpha beta gamma"
        store.incidents.by_id[f"i{number}"] = explained_incident(
            id=f"i{number}",
            explanation=explanation(prediction_id=f"c{number}"),
            resolution=Resolution("alpha beta gamma delta"),
        )
        for each in claims(number, cause):
            await store.predictions.add(each)
        await store.predictions.label(Outcome(f"c{number}", is_right, "slack:U1", NOW))
    await store.predictions.add(replace(claims(99, "alpha beta gamma")[0]))
    noted = explained_incident(
        id="i99", explanation=explanation(prediction_id="c99"), resolution=Resolution("alpha beta gamma delta")
    )
    await label_incident(noted, NOW, some_ports(teams=TEAMS, store=store))
    assert labels(store)["c99"] is False


async def test_notes_of_a_webhook_are_labelled_nightly_and_once(store: InMemoryStore) -> None:
    incident = replace(store.incidents.by_id["i1"], resolution=Resolution(CAUSE), updated_at=NOW)
    store.incidents.by_id["i1"] = incident
    await label_noted_incidents(some_ports(teams=TEAMS, store=store))
    assert labels(store) == {"c1": True}
    store.incidents.by_id["i1"] = replace(incident, updated_at=LATER)
    await label_noted_incidents(some_ports(teams=TEAMS, store=store))
    assert [outcome.labelled_at for outcome in store.predictions.outcomes.values()] == [NOW]


async def test_by_night_the_threshold_is_fitted_once_however_many_incidents_are_labelled(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    fits: list[int] = []

    def fit(agreements: Sequence[float], _correct: Sequence[bool]) -> float:
        fits.append(len(agreements))
        return 0.5

    monkeypatch.setattr("handlers.incidents.label_incident.fit_threshold", fit)
    for number in range(1, 4):
        store.incidents.by_id[f"i{number}"] = explained_incident(
            id=f"i{number}", explanation=explanation(prediction_id=f"c{number}"), resolution=Resolution(CAUSE)
        )
        if number > 1:
            for each in claims(number):
                await store.predictions.add(each)
    await label_noted_incidents(some_ports(teams=TEAMS, store=store))
    assert {name: right for name, right in labels(store).items() if name.startswith("c")} == {
        "c1": True,
        "c2": True,
        "c3": True,
    }
    assert fits == [0]


def test_the_name_of_a_team_stays_and_any_other_owner_is_redacted() -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("Ada", "[name]"))

    teams = [Team("pay", "Ada Payments")]
    kept = redacted_note(Resolution("Ada's disk", "Ada called", "Ada Payments"), redact, teams)
    assert kept == Resolution("[name]'s disk", "[name] called", "Ada Payments")
    assert redacted_note(Resolution(owner="Ada Quist"), redact, teams).owner == "[name] Quist"
