"""The contract of IncidentStore, over the fake and every database."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex

import pytest

from adapters.alerts import alertmanager
from core.model.conversation import MessageReference, Placement
from core.model.errors import Conflict
from core.model.incident import IncidentState, Resolution
from core.ports import Store
from tests.contract.records import CHANNEL, MANY, NOW, THREAD, got, incident, saved
from tests.samples import unclear_owner


async def test_deliveries_are_known_once_they_were_added_however_often(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.incidents.add_deliveries({"a": NOW, "b": NOW})
        await transaction.incidents.add_deliveries({"b": NOW, "c": NOW})
        await transaction.incidents.add_deliveries({})
    async with store.transaction() as transaction:
        assert await transaction.incidents.known_deliveries(["a", "c", "d"]) == {"a", "c"}
        assert await transaction.incidents.known_deliveries([]) == frozenset()


async def test_an_incident_comes_back_as_it_was_saved(store: Store) -> None:
    await saved(store, incident(also_firing=("a", "b"), labels={"pod": "naïve ☃"}))
    assert await got(store, "i1") == incident(also_firing=("a", "b"), labels={"pod": "naïve ☃"})
    assert await got(store, "i2") is None


async def test_characters_that_postgresql_refuses_stop_no_query(store: Store) -> None:
    text = "NUL \x00, half a pair \ud83d, a whole one \U0001f600, a backslash \\u0000 \\"
    await saved(store, incident(title=text, resolution=Resolution(text)))
    async with store.transaction() as transaction:
        for found in (await transaction.incidents.noted(9), await transaction.incidents.ended(9)):
            assert [each.title.endswith("a whole one \U0001f600, a backslash \\u0000 \\") for each in found] == [True]


async def test_a_group_with_very_many_labels_is_stored(store: Store) -> None:
    labels = ", ".join(f'{token_hex(4)}="{token_hex(30)}ä"' for _ in range(60))
    group = {"groupKey": f"{{}}:{{{labels}}}", "version": "4", "alerts": [{"status": "firing", "labels": {}}]}
    group["alerts"][0]["startsAt"] = NOW.isoformat()
    delivery, other = (
        alertmanager.parse(json.dumps(group | {"groupKey": group["groupKey"] + end}).encode(), NOW) for end in ("", "b")
    )
    await saved(store, incident(group_key=delivery.group_key), incident("i2", group_key=other.group_key))
    assert await got(store, "i2")


async def test_the_teams_that_were_asked_come_back(store: Store) -> None:
    await saved(store, incident(owner=unclear_owner()))
    assert await got(store, "i1") == incident(owner=unclear_owner())


async def test_a_revision_replaces_the_one_before_it(store: Store) -> None:
    await saved(store, incident(), incident(revision=2, title="changed"))
    assert await got(store, "i1") == incident(revision=2, title="changed")


@pytest.mark.parametrize("revision", [2, 4])
async def test_a_revision_that_does_not_follow_is_a_conflict(store: Store, revision: int) -> None:
    await saved(store, incident(), incident(revision=2))
    with pytest.raises(Conflict):
        await saved(store, incident(revision=revision, title="too late"))
    assert await got(store, "i1") == incident(revision=2)


async def test_of_two_writers_of_one_revision_one_wins(store: Store) -> None:
    await saved(store, incident())
    rivals = [incident(revision=2, title=f"rival {number}") for number in range(5)]
    results = await asyncio.gather(*(saved(store, rival) for rival in rivals), return_exceptions=True)
    assert results.count(None) == 1
    assert sum(isinstance(result, Conflict) for result in results) == len(rivals) - 1
    assert await got(store, "i1") == rivals[results.index(None)]


async def test_of_two_writers_who_open_an_incident_for_one_group_one_wins(store: Store) -> None:
    rivals = [incident(f"rival {number}") for number in range(5)]
    results = await asyncio.gather(*(saved(store, rival) for rival in rivals), return_exceptions=True)
    assert results.count(None) == 1
    assert sum(isinstance(result, Conflict) for result in results) == len(rivals) - 1
    async with store.transaction() as transaction:
        assert await transaction.incidents.recent(MANY) == [rivals[results.index(None)]]


async def test_a_group_may_have_many_incidents_of_which_one_is_open(store: Store) -> None:
    resolved = incident("old", state=IncidentState.RESOLVED)
    await saved(store, resolved, replace(resolved, id="older"), incident("new"))
    async with store.transaction() as transaction:
        assert await transaction.incidents.latest_for("alertmanager", "group") == incident("new")
        assert await transaction.incidents.latest_for("alertmanager", "other") is None
        assert await transaction.incidents.latest_for("grafana", "group") is None


async def test_the_incident_of_a_group_that_was_opened_last_is_found_once_none_is_open(store: Store) -> None:
    resolved = incident("old", state=IncidentState.RESOLVED)
    last = replace(resolved, id="last", opened_at=NOW + timedelta(minutes=1))
    await saved(store, last, resolved)
    async with store.transaction() as transaction:
        assert await transaction.incidents.latest_for("alertmanager", "group") == last


async def test_the_latest_incidents_come_first(store: Store) -> None:
    ids = ["a", "c", "b"]
    for minute, incident_id in enumerate(ids):
        opened_at = NOW + timedelta(minutes=minute)
        await saved(store, incident(incident_id, group_key=incident_id, opened_at=opened_at))
    async with store.transaction() as transaction:
        assert [each.id for each in await transaction.incidents.recent(2)] == ["b", "c"]


async def test_the_latest_open_incidents_of_some_sources_are_those_whose_source_begins_so(store: Store) -> None:
    await saved(store, incident("a", group_key="a", source="chat:A1"), incident("b", group_key="b", source="chats"))
    async with store.transaction() as transaction:
        assert [each.id for each in await transaction.incidents.latest_open(MANY, "chat:")] == ["a"]
        assert len(await transaction.incidents.latest_open(MANY)) == 2


async def test_an_incident_is_found_by_the_thread_of_its_message(store: Store) -> None:
    await saved(store, incident(message=MessageReference(CHANNEL, "17.25")))
    async with store.transaction() as transaction:
        found = await transaction.incidents.in_thread(THREAD)
        assert found is not None
        assert found.id == "i1"
        assert await transaction.incidents.in_thread(replace(THREAD, thread="17.26")) is None
        assert await transaction.incidents.in_thread(replace(THREAD, channel="C0ASK")) is None
        assert await transaction.incidents.in_thread(CHANNEL) is None


async def test_an_incident_in_a_thread_of_somebody_else_is_found_by_it_before_and_after_its_message(
    store: Store,
) -> None:
    waiting = incident(placement=Placement(THREAD))
    await saved(store, waiting)
    async with store.transaction() as transaction:
        assert await transaction.incidents.in_thread(THREAD) == waiting
    posted = replace(waiting, revision=2, placement=Placement(THREAD, (), MessageReference(THREAD, "17.99")))
    await saved(store, posted)
    async with store.transaction() as transaction:
        assert await transaction.incidents.in_thread(THREAD) == posted
        assert await transaction.incidents.in_thread(replace(THREAD, thread="17.99")) is None


async def test_an_incident_without_a_message_is_in_no_thread(store: Store) -> None:
    await saved(store, incident(message=None))
    async with store.transaction() as transaction:
        assert await transaction.incidents.in_thread(CHANNEL) is None


async def test_incidents_with_a_note_come_newest_first(store: Store) -> None:
    noted = [
        incident(f"i{n}", group_key=f"g{n}", opened_at=NOW + timedelta(minutes=n), resolution=Resolution("", fix="x"))
        for n in range(3)
    ]
    await saved(store, incident("without", group_key="w"), *noted)
    async with store.transaction() as transaction:
        assert await transaction.incidents.noted(2) == [noted[2], noted[1]]
        assert len(await transaction.incidents.noted(MANY)) == 3


async def test_incidents_that_ended_are_those_that_are_resolved_or_noted_newest_first(store: Store) -> None:
    over = {"state": IncidentState.RESOLVED, "resolved_at": NOW}
    resolved = incident("resolved", group_key="r", opened_at=NOW + timedelta(minutes=1), **over)
    noted = incident("noted", group_key="n", opened_at=NOW + timedelta(minutes=2), resolution=Resolution("a cause"))
    await saved(store, incident("open", group_key="o"), resolved, noted)
    async with store.transaction() as transaction:
        assert await transaction.incidents.ended(MANY) == [noted, resolved]
        assert await transaction.incidents.ended(1) == [noted]


async def test_of_incidents_that_ended_those_that_were_saved_since_are_told_apart(store: Store) -> None:
    """When something happened does not matter to that: it may be told late."""
    began = datetime.now(UTC)
    over = incident("over", state=IncidentState.RESOLVED, resolved_at=NOW - timedelta(days=9))
    await saved(store, incident("open", group_key="o"), over)
    async with store.transaction() as transaction:
        assert await transaction.incidents.ended(MANY, began) == [over]
        assert await transaction.incidents.ended(MANY, datetime.now(UTC) + timedelta(seconds=1)) == []
    again = datetime.now(UTC)
    noted = replace(over, resolution=Resolution("a cause"), revision=2)
    await saved(store, noted)
    async with store.transaction() as transaction:
        assert await transaction.incidents.ended(MANY, again) == [noted]
