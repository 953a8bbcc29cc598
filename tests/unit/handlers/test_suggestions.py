"""Duplicates: suggested, judged by people or by how it ended, and never decided."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from core.model.badge import PredictionKind
from core.model.conversation import PUBLIC, Audience, Channel, Person, Place, Platform
from core.model.findings import Relation, RelationKind
from core.model.incident import Incident, IncidentState, Resolution
from core.model.message_view import Feedback
from core.model.messages import ButtonAction
from core.ports import Task
from handlers.feedback.record_feedback import judge_suggestion
from handlers.incidents.label_incident import label_suggestions
from handlers.incidents.suggestions import suggest_duplicate
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import Crash
from tests.fakes.outage import CALLS, START, incident, minutes
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore

CHANNELS = (Channel("incidents", {Platform.CONSOLE: "incidents"}), Channel("vault", {Platform.CONSOLE: "vault"}, True))
EVERYBODY = Audience(frozenset({PUBLIC}))
KNOWN = replace(
    incident(title="shop is slow, 4 s"), id="known", group_key="k", opened_at=minutes(-5), started_at=minutes(-5)
)
AGAIN = incident(title="shop is slow, 5 s")


def duplicate(store: InMemoryStore, audience: Audience = EVERYBODY):
    return partial(
        suggest_duplicate,
        ports=some_ports(channels=CHANNELS, dependencies=CALLS, store=store, clock=FakeClock()),
        audience=audience,
    )


def keep(store: InMemoryStore, *incidents: Incident) -> None:
    store.incidents.by_id |= {each.id: each for each in incidents}


async def press(store: InMemoryStore, verdict: ButtonAction, subject: str) -> None:
    feedback = Feedback(
        "f", verdict, subject, Person(Platform.CONSOLE, "ada", "Ada"), Place(Platform.CONSOLE, "x"), START
    )
    await judge_suggestion(feedback, some_ports(store=store))


async def test_an_incident_that_is_probably_another_sign_of_a_known_one_says_so_with_evidence(
    store: InMemoryStore,
) -> None:
    keep(store, KNOWN, AGAIN)
    found = (await duplicate(store)(AGAIN)).relation(RelationKind.MAY_DUPLICATE)
    assert found is not None
    assert (found.incident_id, found.title) == ("known", "shop is slow, 4 s")
    assert "the same service, shop" in found.reasons
    prediction = store.predictions.by_id[found.prediction_id]
    assert (prediction.kind, prediction.value) == (PredictionKind.DUPLICATE, "known")


async def test_nothing_is_said_of_an_incident_that_its_readers_may_not_see(store: InMemoryStore) -> None:
    keep(store, KNOWN.with_placement(place=Place(Platform.CONSOLE, "vault")), AGAIN)
    assert (await duplicate(store)(AGAIN)).relations == ()
    insiders = Audience(frozenset({PUBLIC, "channel:vault"}), frozenset({"channel:vault"}))
    assert len((await duplicate(store, audience=insiders)(AGAIN)).relations) == 1


async def test_of_one_that_is_confirmed_as_anothers_sign_that_other_one_is_named(store: InMemoryStore) -> None:
    root = replace(KNOWN, id="root", group_key="r", title="the first", service="moon", opened_at=minutes(-9))
    keep(store, root, KNOWN.with_relation(Relation(RelationKind.DUPLICATE_OF, "root")), AGAIN)
    found = (await duplicate(store)(AGAIN)).relation(RelationKind.MAY_DUPLICATE)
    assert found is not None
    assert found.incident_id == "root"


async def test_whoever_confirms_a_duplicate_says_what_it_is_one_of(store: InMemoryStore) -> None:
    keep(store, KNOWN)
    suggested = await duplicate(store)(AGAIN)
    keep(store, suggested)
    (suggestion,) = suggested.relations
    claim = suggestion.prediction_id
    await press(store, ButtonAction.DUPLICATE_RIGHT, claim)
    confirmed = store.incidents.by_id["I-1"].relations
    assert confirmed == (Relation(RelationKind.DUPLICATE_OF, "known"), suggestion)
    await press(store, ButtonAction.DUPLICATE_WRONG, claim)
    kept = store.incidents.by_id["I-1"]
    assert kept.relations == ()
    assert (await duplicate(store)(kept)).relations == ()


@pytest.mark.parametrize(
    ("own", "other", "labels"),
    [
        ("the pool of the shop was too small", "the shop's pool was too small", [True]),
        ("duplicate of known", "", [True]),
        ("the pool of the shop was too small", "a certificate had expired", [False]),
        ("the pool of the shop was too small", "", []),
        ("", "the pool was too small", []),
    ],
)
async def test_the_notes_on_both_causes_label_a_duplicate(
    store: InMemoryStore, own: str, other: str, labels: list[bool]
) -> None:
    keep(store, KNOWN)
    suggested = await duplicate(store)(AGAIN)
    over = {"state": IncidentState.RESOLVED, "resolved_at": minutes(9)}
    keep(
        store,
        replace(suggested, resolution=Resolution(own) if own else None, **over),
        replace(KNOWN, resolution=Resolution(other) if other else None, **over),
    )
    await label_suggestions(store=store)
    (suggestion,) = suggested.relations
    found = await store.predictions.labels_of(suggestion.prediction_id)
    assert [label.correct for label in found] == labels


async def test_what_a_person_said_is_not_labelled_over_and_an_open_incident_is_not_labelled(
    store: InMemoryStore,
) -> None:
    keep(store, KNOWN)
    suggested = await duplicate(store)(AGAIN)
    (suggestion,) = suggested.relations
    noted = replace(suggested, resolution=Resolution("duplicate of known"))
    keep(store, noted)
    await label_suggestions(store=store)
    assert await store.predictions.labels_of(suggestion.prediction_id) == []
    await press(store, ButtonAction.DUPLICATE_WRONG, suggestion.prediction_id)
    keep(store, replace(noted, state=IncidentState.RESOLVED, resolved_at=minutes(9)))
    await label_suggestions(store=store)
    assert [label.correct for label in await store.predictions.labels_of(suggestion.prediction_id)] == [False]


async def test_what_was_confirmed_is_shown_although_the_process_was_killed_meanwhile(
    store: InMemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(store, KNOWN)
    suggested = await duplicate(store)(AGAIN)
    keep(store, suggested)
    (suggestion,) = suggested.relations

    async def killed(_: Task) -> None:
        raise Crash

    with monkeypatch.context() as patched:
        patched.setattr(type(store.tasks), "add", lambda _, task: killed(task))
        with pytest.raises(Crash):
            await press(store, ButtonAction.DUPLICATE_RIGHT, suggestion.prediction_id)
    await press(store, ButtonAction.DUPLICATE_RIGHT, suggestion.prediction_id)
    assert store.incidents.by_id["I-1"].relation(RelationKind.DUPLICATE_OF) is not None
    assert [task.workflow for task in store.tasks.added.values()] == ["present_incident"]


async def test_a_button_of_something_that_is_gone_does_nothing(store: InMemoryStore) -> None:
    await press(store, ButtonAction.DUPLICATE_RIGHT, "no such claim")
    assert not store.incidents.by_id
