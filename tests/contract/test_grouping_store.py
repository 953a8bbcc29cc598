"""The contract of Store, over the fake and every database: incidents that belong together, dead letters, silences."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from core.model.conversation import Place, Platform
from core.model.findings import Relation, RelationKind
from core.model.incident import Incident, IncidentState
from core.model.messages import Notice
from core.model.silences import Matcher, Silence
from core.ports import Store
from tests.samples import SAMPLES, alert, explained_incident

NOW = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)
HOUR = timedelta(hours=1)
PLACE = Place(Platform.SLACK, "C0INC", workspace="T0MARI")
MANY = 100


def incident(incident_id: str, **fields: object) -> Incident:
    usual = {"id": incident_id, "group_key": "group", "revision": 1, "opened_at": NOW}
    return explained_incident(**(usual | fields))


async def near(store: Store, of: Incident, services: frozenset[str] = frozenset(), limit: int = MANY) -> list[str]:
    async with store.transaction() as transaction:
        return [each.id for each in await transaction.incidents.near(of, services, NOW - HOUR, limit)]


async def test_near_are_open_incidents_of_these_services_of_the_same_alert_or_from_another_source(store: Store) -> None:
    twin = replace(alert(), fingerprint="same")
    mine = incident("mine", service="till", alerts=(twin,))
    others = [
        incident("same alert", group_key="1", service="x", alerts=(twin, alert(2))),
        incident("service", group_key="2", service="db", alerts=(alert(3),)),
        incident("source", group_key="3", service="till", source="pagerduty", alerts=(alert(4),)),
        incident("neither", group_key="4", service="till", alerts=(alert(5),)),
        incident("old", group_key="5", service="db", opened_at=NOW - 2 * HOUR, alerts=(alert(6),)),
        incident("over", group_key="6", service="db", state=IncidentState.RESOLVED, alerts=(alert(7),)),
    ]
    async with store.transaction() as transaction:
        for each in (mine, *others):
            await transaction.incidents.save(each)
    assert set(await near(store, mine, frozenset({"db"}))) == {"same alert", "service", "source"}
    assert set(await near(store, mine)) == {"same alert", "source"}
    assert len(await near(store, mine, frozenset({"db"}), limit=2)) == 2


async def test_what_an_incident_leads_and_what_is_open_is_told_oldest_first(store: Store) -> None:
    relations = (Relation(RelationKind.PART_OF, "leader", reasons=("it depends on it",), at=NOW),)
    async with store.transaction() as transaction:
        for number in (2, 1):
            part = incident(f"part {number}", group_key=str(number), opened_at=NOW + number * HOUR, relations=relations)
            await transaction.incidents.save(part)
        await transaction.incidents.save(incident("leader", group_key="leader"))
        assert [each.id for each in await transaction.incidents.merged_into("leader", MANY)] == ["part 1", "part 2"]
        assert [each.id for each in await transaction.incidents.open(2)] == ["leader", "part 1"]
        assert [each.id for each in await transaction.incidents.latest_open(2)] == ["part 2", "part 1"]
        part = await transaction.incidents.get("part 1")
        assert [each.id for each in await transaction.incidents.open(2, part)] == ["part 2"]
        part = (await transaction.incidents.merged_into("leader", 1))[0]
        await transaction.incidents.save(replace(part, relations=(), revision=2))
        assert [each.id for each in await transaction.incidents.merged_into("leader", MANY)] == ["part 2"]


async def test_of_many_wishes_to_bring_a_message_up_to_date_one_asks_until_it_was_done(store: Store) -> None:
    patience = HOUR
    async with store.transaction() as transaction:
        posts = transaction.posts
        assert await posts.pending_updates("post") == 0
        assert [await posts.mark_stale("post", PLACE, NOW, patience) for _ in range(3)] == [1, None, None]
        assert await posts.pending_updates("post") == 3
        assert not await posts.mark_current("post", 2), "there was another wish"
        assert await posts.mark_stale("post", PLACE, NOW, patience) is None
        assert await posts.mark_current("post", 4)
        assert await posts.mark_stale("post", PLACE, NOW, patience)
        assert await posts.mark_stale("post", PLACE, NOW + patience, patience), "whoever was asked has failed"
        assert await posts.mark_stale("post", PLACE, NOW - timedelta(days=1), patience), "the clock was set back since"
        assert await posts.mark_current("never wished", 0)


async def test_a_dead_letter_is_kept_with_its_message_until_it_is_removed(store: Store) -> None:
    async with store.transaction() as transaction:
        letters = transaction.dead_letters
        assert await letters.get("i1") is None
        for intent in ("i1", "i2"):
            await letters.add(intent, PLACE, Notice(intent), "The channel is archived.")
        kept = await letters.get("i1")
        assert kept is not None
        assert (kept.intent, kept.place, kept.message, kept.reason) == (
            "i1",
            PLACE,
            Notice("i1"),
            "The channel is archived.",
        )
        assert [letter.intent for letter in await letters.latest(1)] == ["i2"]
        await letters.add("i1", PLACE, Notice("again"), "It still is.")
        assert await letters.count() == 2
        await letters.remove("i1")
        assert (await letters.get("i1"), await letters.count()) == (None, 1)


async def test_a_dead_letter_that_goes_on_waiting_keeps_its_time(store: Store) -> None:
    async with store.transaction() as transaction:
        letters = transaction.dead_letters
        await letters.add("refused", PLACE, Notice("refused"), "It is too long.")
        for intent in ("first", "second", "first"):
            await letters.add(intent, PLACE, Notice(intent), "The token is revoked.", waits=True)
        assert [letter.intent for letter in await letters.waiting()] == ["first", "second"]
        first = await letters.get("first")
        assert first is not None
        assert first.waiting_since is not None
        assert first.waiting_since < first.at
        await letters.add("first", PLACE, Notice("first"), "It is too long.")
        assert [letter.intent for letter in await letters.waiting()] == ["second"]


async def test_a_dead_letter_holds_every_kind_of_message(store: Store) -> None:
    async with store.transaction() as transaction:
        for name, message in SAMPLES.items():
            await transaction.dead_letters.add(name, PLACE, message, "It is refused.")
            kept = await transaction.dead_letters.get(name)
            assert kept is not None
            assert kept.message == message


async def test_silences_are_told_until_they_are_over_and_can_be_ended(store: Store) -> None:
    window = Silence("w1", (Matcher("service", frozenset({"till", "shelf"})),), NOW, NOW + HOUR, reason="new ledger")
    async with store.transaction() as transaction:
        await transaction.silences.save(window)
        await transaction.silences.save(replace(window, id="w2", ends_at=NOW + 2 * HOUR))
        assert [each.id for each in await transaction.silences.not_over(NOW)] == ["w1", "w2"]
        assert [each.id for each in await transaction.silences.not_over(NOW + HOUR)] == ["w2"]
        assert (await transaction.silences.not_over(NOW))[0] == window
        await transaction.silences.save(replace(window, ends_at=NOW))
        assert [each.id for each in await transaction.silences.not_over(NOW)] == ["w2"]
