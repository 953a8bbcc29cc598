from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest

from core.incidents.folding import FLAP_WINDOW, FLAPS, REOPEN_WINDOW, REPLICA_LAG
from core.model.alert import Acknowledgement, Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.document import Document
from core.model.errors import ConfigurationError, Conflict
from core.model.incident import Incident, IncidentState, Recurrence, Stage
from core.model.running import correlated, new_correlation
from core.ports import Task
from handlers.common.stored_incident import incident_intent
from handlers.incidents.open_incident import MAX_ATTEMPTS, UPDATE_TIMEOUT, open_incident, open_incidents
from tests.fakes.store import InMemoryStore

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
PLACE = Place(Platform.CONSOLE, "incidents")
FIRING = Alert("a", "LatencyHigh", AlertStatus.FIRING, Severity.WARNING, NOW, "till", labels={"service": "till"})
RESOLVED = replace(FIRING, status=AlertStatus.RESOLVED)
OTHER = replace(FIRING, fingerprint="b")

_numbers = count(1)


def delivery(*alerts: Alert, key: str = "", group: str = "group") -> AlertDelivery:
    return AlertDelivery(key or f"key {next(_numbers)}", "alertmanager", group, alerts, NOW)


def at(time: datetime, arrived: AlertDelivery) -> AlertDelivery:
    return replace(arrived, received_at=time)


async def opened(
    store: InMemoryStore,
    arrived: AlertDelivery,
    places_for: Callable[[AlertDelivery], tuple[Place, ...]] = lambda _: (PLACE,),
) -> Incident | None:
    return await open_incident(arrived, store=store, places_for=places_for, new_id=lambda: f"i{next(_numbers)}")


async def shown(store: InMemoryStore, task: Task) -> None:
    """What is known of the task's incident is shown."""
    intent = incident_intent(task.subject)
    assert await store.posts.mark_current(intent, await store.posts.pending_updates(intent))


async def run_all(store: InMemoryStore) -> list[Task]:
    """Take up everything that waits, as the dispatcher does, and show what is known."""
    tasks = await store.tasks.claim("us", 100)
    for task in tasks:
        await store.tasks.end([task.key])
        await shown(store, task)
    return tasks


async def test_a_firing_alert_opens_an_incident_and_asks_for_its_investigation(store: InMemoryStore) -> None:
    incident = await opened(store, delivery(FIRING))
    assert incident is not None
    assert store.incidents.by_id == {incident.id: incident}
    assert incident.placement.place == PLACE
    assert await run_all(store) == [
        Task(f"investigate_incident:{incident.id}", "investigate_incident", incident.id, {})
    ]


async def test_what_deliveries_that_are_stored_together_ask_for_belongs_to_the_request_of_each(
    store: InMemoryStore,
) -> None:
    requests = [new_correlation() for _ in range(2)]
    arrived: list[AlertDelivery] = []
    for request in requests:
        with correlated(request):
            arrived.append(delivery(FIRING, group=str(request)))
    with correlated(requests[0]):
        await open_incidents(arrived, store=store, places_for=lambda _: (PLACE,), new_id=lambda: f"i{next(_numbers)}")
    assert [task.correlation for task in await run_all(store)] == [str(request) for request in requests]


async def test_the_place_follows_from_the_delivery_that_opens_an_incident(store: InMemoryStore) -> None:
    asked: list[AlertDelivery] = []
    elsewhere = Place(Platform.SLACK, "C0INC")

    def places_for(arrived: AlertDelivery) -> tuple[Place, ...]:
        asked.append(arrived)
        return PLACE, elsewhere

    opening = delivery(FIRING)
    await opened(store, opening, places_for)
    await opened(store, delivery(OTHER), places_for)
    assert asked == [opening]
    (incident,) = store.incidents.by_id.values()
    assert (incident.placement.place, incident.placement.also_in) == (PLACE, (elsewhere,))


async def test_a_delivery_that_was_seen_before_is_dropped(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING, key="same"))
    assert await opened(store, delivery(FIRING, key="same")) is None
    assert list(store.incidents.by_id.values()) == [first]


async def test_a_resolved_alert_that_nobody_knew_opens_nothing(store: InMemoryStore) -> None:
    assert await opened(store, delivery(RESOLVED)) is None
    assert store.incidents.by_id == {}
    assert store.tasks.added == {}


async def test_another_alert_of_the_group_is_folded_into_the_open_incident(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING))
    await run_all(store)
    second = await opened(store, delivery(FIRING, OTHER))
    assert first is not None
    assert second is not None
    assert (second.id, second.alert_count, second.revision) == (first.id, 2, 2)
    assert [task.workflow for task in await run_all(store)] == ["present_incident"]


async def test_another_group_is_another_incident(store: InMemoryStore) -> None:
    await opened(store, delivery(FIRING))
    await opened(store, delivery(FIRING, group="another"))
    assert len(store.incidents.by_id) == 2


async def test_an_alert_that_fires_again_soon_after_it_was_resolved_reopens_its_incident(store: InMemoryStore) -> None:
    """In the very words of the first time: Alertmanager says nothing else if the start is the same."""
    first = await opened(store, delivery(FIRING, key="fires"))
    resolved = await opened(store, delivery(RESOLVED, key="is over"))
    await run_all(store)
    again = await opened(store, at(NOW + REOPEN_WINDOW, delivery(FIRING, key="fires")))
    assert first is not None
    assert resolved is not None
    assert again is not None
    assert (resolved.id, resolved.state) == (first.id, IncidentState.RESOLVED)
    assert (again.id, again.state, again.reopened_count) == (first.id, IncidentState.OPEN, 1)
    assert [task.workflow for task in await run_all(store)] == ["present_incident"]


async def test_what_was_reopened_is_resolved_in_the_same_words_again(store: InMemoryStore) -> None:
    for _ in range(3):
        fired = await opened(store, delivery(FIRING, key="fires"))
        over = await opened(store, delivery(RESOLVED, key="is over"))
        assert fired is not None
        assert over is not None
        assert (fired.state, over.state) == (IncidentState.OPEN, IncidentState.RESOLVED)
        assert await opened(store, delivery(RESOLVED, key="is over")) is None, "its sender tries again"
    assert len(store.incidents.by_id) == 1


async def test_an_alert_that_fires_again_long_after_it_was_resolved_opens_another(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING, key="fires"))
    await opened(store, delivery(RESOLVED))
    later = at(NOW + REOPEN_WINDOW + timedelta(seconds=1), delivery(FIRING, key="fires"))
    again = await opened(store, later)
    assert first is not None
    assert again is not None
    assert again.id != first.id
    assert await opened(store, later) is None, "its sender tries again"


@pytest.mark.parametrize("after", [timedelta(minutes=1), REOPEN_WINDOW * 2])
async def test_one_event_that_is_sent_again_after_it_was_resolved_opens_nothing(
    store: InMemoryStore, after: timedelta
) -> None:
    event = replace(delivery(FIRING), one_event=True)
    incident = await opened(store, event)
    await opened(store, replace(delivery(RESOLVED), one_event=True))
    assert await opened(store, at(NOW + after, event)) is None
    assert len(store.incidents.by_id) == 1
    anew = await opened(store, at(NOW + after, replace(delivery(FIRING), one_event=True)))
    assert anew is not None
    assert incident is not None
    assert (anew.id == incident.id) is (after < REOPEN_WINDOW), "what is news is taken"


async def test_what_is_older_than_the_resolution_reopens_nothing(store: InMemoryStore) -> None:
    """Where events have a time, one that was overtaken on its way is known by it."""
    await opened(store, delivery(replace(FIRING, as_of=NOW)))
    await opened(store, delivery(replace(RESOLVED, as_of=NOW + timedelta(minutes=2))))
    assert await opened(store, delivery(replace(FIRING, as_of=NOW + timedelta(minutes=1)))) is None
    (incident,) = store.incidents.by_id.values()
    assert incident.state is IncidentState.RESOLVED


async def test_news_of_an_alert_that_nobody_knew_opens_nothing(store: InMemoryStore) -> None:
    assert await opened(store, delivery(replace(FIRING, status=AlertStatus.UPDATED))) is None
    assert store.tasks.added == {}


async def test_a_storm_asks_for_one_presentation_until_somebody_reads_the_incident(store: InMemoryStore) -> None:
    await opened(store, delivery(FIRING))
    await run_all(store)
    for _ in range(20):
        await opened(store, delivery(FIRING))
    (task,) = await store.tasks.claim("us", 100)
    await opened(store, delivery(FIRING))
    assert await store.tasks.claim("us", 100) == [], "the one under way has not read the incident yet"
    await shown(store, task)
    await opened(store, delivery(FIRING))
    assert len(await run_all(store)) == 1, "it has read it, and does not know of this"


async def test_what_arrives_before_an_incident_is_first_shown_asks_for_nothing_more(store: InMemoryStore) -> None:
    await opened(store, delivery(FIRING))
    await opened(store, delivery(FIRING, OTHER))
    assert [task.workflow for task in await run_all(store)] == ["investigate_incident"]


async def test_a_presentation_that_never_comes_is_asked_for_again(store: InMemoryStore) -> None:
    first = await opened(store, delivery(FIRING))
    assert first is not None
    await store.tasks.claim("us", 100)
    await opened(store, at(NOW + UPDATE_TIMEOUT, delivery(FIRING)))
    assert [task.workflow for task in await store.tasks.claim("us", 100)] == ["present_incident"]


def twin(arrived: AlertDelivery) -> AlertDelivery:
    return replace(arrived, replicated=True)


async def test_a_replica_that_tells_late_reopens_nothing_and_what_fires_anew_does(store: InMemoryStore) -> None:
    await opened(store, twin(delivery(FIRING)))
    await opened(store, twin(delivery(RESOLVED)))
    soon = NOW + REPLICA_LAG
    assert await opened(store, at(soon, twin(delivery(FIRING)))) is None
    anew = replace(FIRING, starts_at=NOW + timedelta(seconds=10))
    again = await opened(store, at(soon, twin(delivery(anew))))
    assert again is not None
    assert again.state is IncidentState.OPEN


async def test_what_its_sender_repeats_after_a_while_fires_again_though_its_start_is_the_same(
    store: InMemoryStore,
) -> None:
    await opened(store, twin(delivery(FIRING)))
    await opened(store, twin(delivery(RESOLVED)))
    later = NOW + REPLICA_LAG + timedelta(seconds=1)
    assert await opened(store, at(later, twin(delivery(FIRING)))) is not None


async def test_an_incident_that_flaps_is_called_so_and_stays_one_incident(store: InMemoryStore) -> None:
    incident = None
    for minute in range(0, 40, 10):
        now = NOW + timedelta(minutes=minute)
        fired = replace(FIRING, starts_at=now)
        incident = await opened(store, at(now, delivery(fired)))
        await opened(store, at(now + timedelta(minutes=5), delivery(replace(fired, status=AlertStatus.RESOLVED))))
    assert incident is not None
    assert (incident.flapping, incident.reopened_count) == (True, FLAPS)
    again = await opened(store, at(NOW + timedelta(minutes=35) + FLAP_WINDOW, delivery(FIRING)))
    assert again is not None
    assert again.id == incident.id, "a flapping incident is reopened for longer"
    assert [task.workflow for task in store.tasks.added.values()].count("investigate_incident") == 1


async def test_an_analysis_that_was_cut_short_is_made_up_for_when_the_incident_fires_again(
    store: InMemoryStore,
) -> None:
    first = await opened(store, delivery(FIRING))
    over = await opened(store, delivery(RESOLVED))
    assert first is not None
    assert over is not None
    await store.incidents.save(replace(over.with_findings(cut_short="It was over."), revision=over.revision + 1))
    again = await opened(store, at(NOW + timedelta(minutes=5), delivery(FIRING)))
    assert again is not None
    assert (again.findings.cut_short, again.stage) == ("", Stage.TRIAGING)
    assert [task.workflow for task in store.tasks.added.values()].count("investigate_incident") == 2


async def test_a_writer_who_loses_a_race_tries_again(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS - 1
    assert await opened(store, delivery(FIRING)) is not None
    assert len(store.incidents.by_id) == len(store.tasks.added) == 1


async def test_a_writer_who_always_loses_gives_up_and_leaves_nothing_behind(store: InMemoryStore) -> None:
    store.conflicts = MAX_ATTEMPTS
    with pytest.raises(Conflict, match="Alert group group: 10 attempts"):
        await opened(store, delivery(FIRING, key="same"))
    assert await opened(store, delivery(FIRING, key="same")) is not None, "its sender tries again"


async def test_an_alert_without_a_place_is_not_accepted(store: InMemoryStore) -> None:
    def nowhere(arrived: AlertDelivery) -> tuple[Place, ...]:
        raise ConfigurationError("No route.")

    with pytest.raises(ConfigurationError):
        await opened(store, delivery(FIRING, key="same"), nowhere)
    assert await opened(store, delivery(FIRING, key="same")) is not None, "its sender tries again"


async def test_names_and_secrets_in_the_note_on_how_an_alert_ended_are_not_kept(store: InMemoryStore) -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("hunter2", "[secret]"))

    await opened(store, delivery(FIRING))
    closing = delivery(replace(RESOLVED, note="root cause: the password hunter2 had expired"))
    (incident,) = await open_incidents(
        [closing], store=store, places_for=lambda _: (PLACE,), new_id=lambda: "new", redact=redact
    )
    assert incident is not None
    assert incident.resolution is not None
    assert incident.resolution.root_cause == "the password [secret] had expired"
    assert "hunter2" not in repr(store.incidents.by_id)


async def test_no_text_of_an_alert_is_kept_with_its_secrets(store: InMemoryStore) -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("hunter2", "[secret]"))

    alert = replace(
        FIRING,
        fingerprint="fp-hunter2",
        name="Login hunter2 refused",
        service="hunter2",
        summary="hunter2",
        description="psql: hunter2",
        labels={"dsn": "hunter2", "pod": "api-1"},
        url="https://grafana.example/d/1?token=hunter2",
        runbook_url="https://u:hunter2@wiki.example/x",
    )
    sent = replace(delivery(alert), group_key="{dsn=hunter2}")
    for _ in range(2):
        await open_incidents([sent], store=store, places_for=lambda _: (PLACE,), new_id=lambda: "new", redact=redact)
    assert len(store.incidents.by_id) == 1, "the same alert, sent again, is the same"
    (kept,) = store.incidents.by_id.values()
    assert "hunter2" not in repr(store.incidents.by_id)
    assert kept.alerts[0].labels == {"dsn": "[secret]", "pod": "api-1"}
    assert (kept.alerts[0].url, kept.alerts[0].runbook_url) == ("https://grafana.example/d/1", "")


async def test_a_label_whose_name_speaks_of_a_secret_loses_its_value_and_others_stay(store: InMemoryStore) -> None:
    labels = {
        "db_password": "Otter-1234",
        "secret": "tls-cert",
        "pod": "api-7d9f8b6c5-x2x4z",
        "instance": "10.0.0.1:80",
    }
    (incident,) = await open_incidents(
        [delivery(replace(FIRING, labels=labels))],
        store=store,
        places_for=lambda _: (PLACE,),
        new_id=lambda: "new",
        redact=lambda document: replace(
            document, text=document.text.replace("db_password: Otter-1234", "db_password: [secret]")
        ),
    )
    assert incident is not None
    assert incident.alerts[0].labels == labels | {"db_password": "[secret]"}


@pytest.mark.parametrize(
    ("alert", "matches"),
    [
        (replace(FIRING, labels={"owner": "hunter2"}), lambda alert: alert.labels["owner"] == "hunter2"),
        (replace(FIRING, service="hunter2"), lambda alert: alert.service == "hunter2"),
        (replace(FIRING, name="hunter2 is down"), lambda alert: alert.name.startswith("hunter2")),
    ],
    ids=["a label", "a service", "a name"],
)
async def test_a_route_matches_what_is_redacted_before_it_is_kept(
    store: InMemoryStore, alert: Alert, matches: Callable[[Alert], bool]
) -> None:
    matched = Place(Platform.CONSOLE, "matched")
    incident = await open_incident(
        delivery(alert),
        store=store,
        places_for=lambda sent: (matched if matches(sent.alerts[0]) else PLACE,),
        new_id=lambda: "new",
        redact=lambda document: replace(document, text=document.text.replace("hunter2", "[e-mail]")),
    )
    assert incident is not None
    assert incident.placement.place == matched
    assert "hunter2" not in repr(store.incidents.by_id)


async def test_the_address_of_who_acknowledged_is_not_kept(store: InMemoryStore) -> None:
    taken = replace(FIRING, acknowledged=Acknowledgement("ada@example.com", NOW))
    await open_incident(
        delivery(taken),
        store=store,
        places_for=lambda _: (PLACE,),
        new_id=lambda: "new",
        redact=lambda document: replace(document, text=document.text.replace("ada@example.com", "[e-mail]")),
    )
    (incident,) = store.incidents.by_id.values()
    assert incident.acknowledged == Acknowledgement("[e-mail]", NOW)


async def test_an_alert_that_fires_again_after_the_window_opens_an_incident_that_counts_the_last_one(
    store: InMemoryStore,
) -> None:
    first = await opened(store, delivery(FIRING))
    assert first is not None
    assert first.recurrence is None
    for number in (2, 3):
        last = await opened(store, at(NOW + number * 2 * REOPEN_WINDOW, delivery(RESOLVED)))
        again = await opened(store, at(NOW + (number * 2 + 1.5) * REOPEN_WINDOW, delivery(FIRING)))
        assert last is not None
        assert again is not None
        assert again.recurrence == Recurrence(last.id, number, FIRING.starts_at)
