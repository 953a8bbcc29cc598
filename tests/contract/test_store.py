"""The contract of Store, over the fake and every database."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from core import samples as messages
from core.confidence.prediction import Estimator, Evaluation, Outcome, Prediction, PredictionKind
from core.confidence.resolution import Resolution
from core.conversation import MessageReference, Place, Platform, Speaker, Turn
from core.errors import Conflict
from core.incident import Incident, IncidentState
from core.ports import Ingestion, Post, SourceCursor, Store, Task
from core.rca.recorded_failure import RecordedFailure
from tests.fakes.calibrators import calibrator

NOW = datetime(2026, 3, 14, 9, 30, 5, 250_000, tzinfo=UTC)
CHANNEL = Place(Platform.SLACK, "C0INC", workspace="T0MARI")
THREAD = replace(CHANNEL, thread="17.25")
MANY = 100


class Undone(Exception):
    """Ends a transaction without a commit."""


def incident(incident_id: str = "i1", **fields: object) -> Incident:
    return replace(messages.explained_incident(), id=incident_id, **({"group_key": "group", "revision": 1} | fields))


ESTIMATOR = Estimator(PredictionKind.OWNER, "evidence", "1")


def prediction(prediction_id: str = "p1", minute: int = 0, **fields: object) -> Prediction:
    usual = Prediction(
        id=prediction_id,
        kind=PredictionKind.OWNER,
        subject="i1",
        value="payments",
        evaluation=Evaluation(0.7, 0.3),
        engine="evidence",
        estimator_version="1",
        made_at=NOW + timedelta(minutes=minute),
    )
    return replace(usual, **fields)


def label(prediction_id: str = "p1", *, correct: bool = True, by: str = "slack:U1", minute: int = 0) -> Outcome:
    return Outcome(prediction_id, correct, by, NOW + timedelta(minutes=minute), "because")


async def saved(store: Store, *incidents: Incident) -> None:
    for each in incidents:
        async with store.transaction() as transaction:
            await transaction.incidents.save(each)


async def got(store: Store, incident_id: str) -> Incident | None:
    async with store.transaction() as transaction:
        return await transaction.incidents.get(incident_id)


# --- transactions ----------------------------------------------------------------------------------------------------


async def test_a_transaction_that_raises_leaves_nothing_behind(store: Store) -> None:
    async def write_everything_and_raise() -> None:
        async with store.transaction() as transaction:
            await transaction.incidents.save(incident())
            await transaction.incidents.add_delivery("delivery", NOW)
            await transaction.tasks.add(Task("task", "workflow", "subject", {}))
            await transaction.posts.intend("post", CHANNEL)
            await transaction.predictions.add(prediction())
            await transaction.conversations.add("turn", THREAD, Turn(Speaker.PERSON, "hello"), NOW)
            await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
            raise Undone

    with pytest.raises(Undone):
        await write_everything_and_raise()
    async with store.transaction() as transaction:
        assert await transaction.incidents.get("i1") is None
        assert await transaction.incidents.add_delivery("delivery", NOW)
        assert await transaction.tasks.claim("us", MANY) == []
        assert await transaction.predictions.get("p1") is None
        assert await transaction.conversations.history(THREAD, MANY) == ()
        assert await transaction.ingestions.all() == []


async def test_a_transaction_sees_what_it_has_written(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.incidents.save(incident())
        assert await transaction.incidents.latest_for("alertmanager", "group") == incident()


async def test_a_conflict_undoes_only_what_its_own_transaction_wrote(store: Store) -> None:
    async def add_task_and_lose() -> None:
        async with store.transaction() as transaction:
            await transaction.tasks.add(Task("task", "workflow", "subject", {}))
            await transaction.incidents.save(incident("second"))

    await saved(store, incident("first"))
    with pytest.raises(Conflict):
        await add_task_and_lose()
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("us", MANY) == []
        assert await transaction.incidents.get("first") == incident("first")


# --- tasks -----------------------------------------------------------------------------------------------------------


async def test_a_task_is_recorded_once_however_often_it_is_added(store: Store) -> None:
    first, again = Task("key", "answer", "q1", {"text": "one ☃"}), Task("key", "other", "q2", {})
    async with store.transaction() as transaction:
        assert await transaction.tasks.add(first)
    async with store.transaction() as transaction:
        assert not await transaction.tasks.add(again)
        assert await transaction.tasks.claim("us", MANY) == [first]


async def test_a_task_that_has_ended_is_not_recorded_again(store: Store) -> None:
    task = Task("key", "answer", "q1", {})
    async with store.transaction() as transaction:
        await transaction.tasks.add(task)
        await transaction.tasks.end(["key", "unknown"])
        assert not await transaction.tasks.add(task)
        assert await transaction.tasks.claim("us", MANY) == []


async def test_a_task_is_known_for_as_long_as_its_key_is(store: Store) -> None:
    async with store.transaction() as transaction:
        assert not await transaction.tasks.is_known("key")
        await transaction.tasks.add(Task("key", "answer", "q1", {}))
        assert await transaction.tasks.is_known("key")
        await transaction.tasks.end(["key"])
        assert await transaction.tasks.is_known("key")
        assert not await transaction.tasks.is_known("q1")


async def test_tasks_are_claimed_oldest_first_and_by_one_replica_each(store: Store) -> None:
    tasks = [Task(f"key {number}", "answer", str(number), {}) for number in (3, 1, 2)]
    for task in tasks:
        async with store.transaction() as transaction:
            await transaction.tasks.add(task)
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("us", 2) == tasks[:2]
    async with store.transaction() as transaction:
        assert await transaction.tasks.claim("them", MANY) == tasks[2:]
        assert await transaction.tasks.claim("us", MANY) == []


async def test_what_a_replica_lets_go_is_claimed_by_another_one_unless_it_has_ended(store: Store) -> None:
    tasks = [Task(key, "answer", key, {}) for key in ("ended", "kept", "left")]
    async with store.transaction() as transaction:
        for task in tasks:
            await transaction.tasks.add(task)
        await transaction.tasks.claim("us", MANY)
        await transaction.tasks.end(["ended"])
        assert await transaction.tasks.release(["us"], ["kept"]) == 1
        assert await transaction.tasks.claim("them", MANY) == tasks[2:]
        assert await transaction.tasks.release(["us"]) == 1
        assert await transaction.tasks.claim("them", MANY) == tasks[1:2]


async def test_a_task_that_is_reopened_belongs_to_a_replica_until_that_lets_go(store: Store) -> None:
    task = Task("key", "answer", "q1", {})
    async with store.transaction() as transaction:
        await transaction.tasks.add(task)
        await transaction.tasks.claim("us", MANY)
        await transaction.tasks.end(["key"])
        await transaction.tasks.reopen(["key"], "us")
        assert await transaction.tasks.claim("them", MANY) == []
        await transaction.tasks.release(["us"])
        assert await transaction.tasks.claim("them", MANY) == [task]


async def test_a_task_waits_until_it_is_claimed(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task("key", "present", "i1", {}))
        assert await transaction.tasks.has_waiting("present", "i1")
        assert not await transaction.tasks.has_waiting("present", "i2")
        assert not await transaction.tasks.has_waiting("answer", "i1")
        await transaction.tasks.claim("us", MANY)
        assert not await transaction.tasks.has_waiting("present", "i1")
        await transaction.tasks.release(["us"])
        assert not await transaction.tasks.has_waiting("present", "i1"), "it may have run, and seen an older state"


async def test_a_claim_waits_for_a_writer_who_relies_on_the_waiting_task(store: Store) -> None:
    """Whoever runs the task must see what was written by those who therefore added no other."""
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task("key", "present", "i1", {}))
    relies, claimed = asyncio.Event(), asyncio.Event()

    async def write() -> None:
        async with store.transaction() as transaction:
            assert await transaction.tasks.has_waiting("present", "i1")
            relies.set()
            await transaction.incidents.save(incident())

    async def run() -> Incident | None:
        await relies.wait()
        async with store.transaction() as transaction:
            await transaction.tasks.claim("us", MANY)
        claimed.set()
        return await got(store, "i1")

    _, seen = await asyncio.gather(write(), run())
    assert seen is not None


# --- replicas --------------------------------------------------------------------------------------------------------


async def test_a_replica_is_known_from_when_it_was_seen_until_it_is_removed(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.replicas.seen("us", NOW)
        await transaction.replicas.seen("them", NOW)
        await transaction.replicas.seen("us", NOW + timedelta(seconds=2))
        assert await transaction.replicas.all() == {"us": NOW + timedelta(seconds=2), "them": NOW}
        await transaction.replicas.remove("them")
        assert list(await transaction.replicas.all()) == ["us"]


async def test_a_lock_is_held_by_one_at_a_time(store: Store) -> None:
    order: list[str] = []
    held = asyncio.Event()

    async def first() -> None:
        async with store.lock("message"):
            held.set()
            await asyncio.sleep(0)
            order.append("first")

    async def second() -> None:
        await held.wait()
        async with store.lock("another message"):
            order.append("elsewhere")
        async with store.lock("message"):
            order.append("second")

    await asyncio.gather(first(), second())
    assert order.index("first") < order.index("second")
    async with store.lock("message"):
        order.append("third")


# --- incidents -------------------------------------------------------------------------------------------------------


async def test_a_delivery_is_new_once(store: Store) -> None:
    for expected in (True, False):
        async with store.transaction() as transaction:
            assert await transaction.incidents.add_delivery("key", NOW) is expected


async def test_an_incident_comes_back_as_it_was_saved(store: Store) -> None:
    await saved(store, incident(also_firing=("a", "b"), labels={"pod": "naïve ☃"}))
    assert await got(store, "i1") == incident(also_firing=("a", "b"), labels={"pod": "naïve ☃"})
    assert await got(store, "i2") is None


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


async def test_an_incident_is_found_by_the_thread_of_its_message(store: Store) -> None:
    await saved(store, incident(message=MessageReference(CHANNEL, "17.25")))
    async with store.transaction() as transaction:
        found = await transaction.incidents.in_thread(THREAD)
        assert found is not None
        assert found.id == "i1"
        assert await transaction.incidents.in_thread(replace(THREAD, thread="17.26")) is None
        assert await transaction.incidents.in_thread(replace(THREAD, channel="C0ASK")) is None
        assert await transaction.incidents.in_thread(CHANNEL) is None


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


# --- posts -----------------------------------------------------------------------------------------------------------


async def test_a_post_goes_from_wish_to_attempt_to_message(store: Store) -> None:
    reference = MessageReference(THREAD, "17.30")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", THREAD) == Post("intent", THREAD)
        await transaction.posts.attempted("intent")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", THREAD) == Post("intent", THREAD, attempted=True)
        await transaction.posts.posted("intent", reference, "v1")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", THREAD) == Post("intent", THREAD, True, reference, "v1")
        await transaction.posts.edited("intent", "v2")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", CHANNEL) == Post("intent", THREAD, True, reference, "v2")


async def test_a_post_that_is_forgotten_is_a_wish_again(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.posts.intend("intent", CHANNEL)
        await transaction.posts.attempted("intent")
        await transaction.posts.posted("intent", MessageReference(CHANNEL, "17.30"), "v1")
        await transaction.posts.forget("intent")
    async with store.transaction() as transaction:
        assert await transaction.posts.intend("intent", CHANNEL) == Post("intent", CHANNEL)


async def test_a_withdrawn_post_keeps_its_record_and_is_never_a_wish_again(store: Store) -> None:
    reference = MessageReference(CHANNEL, "17.30")
    async with store.transaction() as transaction:
        await transaction.posts.intend("intent", CHANNEL)
        await transaction.posts.posted("intent", reference, "v1")
        assert await transaction.posts.withdraw("intent", CHANNEL) == Post(
            "intent", CHANNEL, False, reference, "v1", True
        )
        assert (await transaction.posts.withdraw("never meant", CHANNEL)).withdrawn
    async with store.transaction() as transaction:
        assert (await transaction.posts.intend("intent", CHANNEL)).withdrawn
        assert (await transaction.posts.intend("never meant", CHANNEL)).withdrawn


async def test_two_who_intend_the_same_share_one_record(store: Store) -> None:
    async def intend() -> Post:
        async with store.transaction() as transaction:
            return await transaction.posts.intend("intent", CHANNEL)

    assert await asyncio.gather(*(intend() for _ in range(5))) == [Post("intent", CHANNEL)] * 5


# --- predictions -----------------------------------------------------------------------------------------------------


async def test_a_prediction_is_stored_once(store: Store) -> None:
    first = prediction(probability=0.8, calibrator_version="v1")
    async with store.transaction() as transaction:
        await transaction.predictions.add(first)
        await transaction.predictions.add(prediction(value="another"))
        assert await transaction.predictions.get("p1") == first
        assert await transaction.predictions.get("p2") is None


async def test_the_later_label_of_one_person_replaces_the_earlier(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=True))
        await transaction.predictions.label(label(correct=False, minute=1))
        assert await transaction.predictions.labelled(ESTIMATOR) == [(prediction(), label(correct=False, minute=1))]


async def test_a_label_that_comes_late_does_not_replace_what_the_person_said_since(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=False, minute=1))
        await transaction.predictions.label(label(correct=True))
        assert await transaction.predictions.labels_of("p1") == [label(correct=False, minute=1)]


async def test_a_reaction_is_what_its_last_event_says_whatever_comes_last(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())

        async def react(minute: int, *, taken_back: bool = False, approves: bool = True, by: str = "slack:U1") -> bool:
            at = NOW + timedelta(minutes=minute)
            return await transaction.predictions.react("p1", by, approves=approves, at=at, taken_back=taken_back)

        assert await react(2, taken_back=True)
        assert not await react(1)
        assert await transaction.predictions.reactions("p1", "slack:U1") == {}
        assert await react(3)
        assert await react(3), "whoever tries again says nothing older"
        assert not await react(2, taken_back=True)
        assert await react(1, approves=False)
        standing = {True: NOW + timedelta(minutes=3), False: NOW + timedelta(minutes=1)}
        assert await transaction.predictions.reactions("p1", "slack:U1") == standing
        assert await transaction.predictions.reactions("p1", "slack:U2") == {}


async def test_what_was_judged_since_is_told_by_kind(store: Store) -> None:
    async with store.transaction() as transaction:
        for number, kind in enumerate((PredictionKind.OWNER, PredictionKind.OWNER, PredictionKind.CAUSE)):
            made = prediction(f"p{number}", kind=kind, subject=f"i{number}")
            await transaction.predictions.add(made)
            await transaction.predictions.label(label(made.id, minute=number))
        await transaction.predictions.label(label("p1", by="slack:U2", minute=5))
        judged_since = transaction.predictions.judged_since
        assert await judged_since(PredictionKind.OWNER, NOW) == ["i0", "i1"]
        assert await judged_since(PredictionKind.OWNER, NOW + timedelta(minutes=1)) == ["i1"]
        assert await judged_since(PredictionKind.OWNER, NOW + timedelta(minutes=6)) == []


async def test_of_two_persons_labels_the_latest_counts_and_one_prediction_counts_once(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.predictions.add(prediction())
        await transaction.predictions.label(label(correct=False, by="slack:U2", minute=5))
        await transaction.predictions.label(label(correct=True, by="slack:U1", minute=3))
        latest = label(correct=False, by="slack:U2", minute=5)
        assert await transaction.predictions.labelled(ESTIMATOR) == [(prediction(), latest)]
        assert await transaction.predictions.recent(PredictionKind.OWNER, MANY) == [(prediction(), latest)]
        assert await transaction.predictions.count_labelled(ESTIMATOR) == 1


async def test_every_persons_label_on_a_prediction_is_kept_oldest_first(store: Store) -> None:
    async with store.transaction() as transaction:
        for number in (1, 2):
            await transaction.predictions.add(prediction(f"p{number}"))
        await transaction.predictions.label(label(by="note", minute=2))
        await transaction.predictions.label(label(by="slack:U1", minute=1, correct=False))
        await transaction.predictions.label(label("p2"))
        labels = await transaction.predictions.labels_of("p1")
        assert [(each.labelled_by, each.correct) for each in labels] == [("slack:U1", False), ("note", True)]
        assert await transaction.predictions.labels_of("p3") == []


async def test_labels_are_those_of_one_kind_and_engine_oldest_prediction_first(store: Store) -> None:
    mine = [prediction("p2", minute=1), prediction("p1", minute=2)]
    others = [prediction("p3", kind=PredictionKind.CAUSE), prediction("p4", engine="model")]
    async with store.transaction() as transaction:
        for each in (*mine[::-1], *others):
            await transaction.predictions.add(each)
            await transaction.predictions.label(label(each.id))
        await transaction.predictions.add(prediction("unlabelled"))
        labelled = await transaction.predictions.labelled(ESTIMATOR)
        assert [each for each, _ in labelled] == mine
        assert await transaction.predictions.count_labelled(ESTIMATOR) == 2
        assert await transaction.predictions.estimators() == sorted({each.estimator for each in (*mine, *others)})


async def test_recent_predictions_come_newest_first_with_their_label_or_none(store: Store) -> None:
    made = [prediction(f"p{minute}", minute) for minute in range(3)]
    async with store.transaction() as transaction:
        for each in made:
            await transaction.predictions.add(each)
        await transaction.predictions.label(label("p1"))
        recent = await transaction.predictions.recent(PredictionKind.OWNER, 2)
    assert recent == [(made[2], None), (made[1], label("p1"))]


async def test_the_calibrator_in_use_is_the_one_adopted_last(store: Store) -> None:
    first, second = calibrator(0.25, 0.75), calibrator(0.1, 0.9, outcomes=80, version="v2")
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(ESTIMATOR) is None
        for each in (first, second):
            await transaction.predictions.adopt(ESTIMATOR, each)
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(ESTIMATOR) == second
        for other in (
            replace(ESTIMATOR, engine="model"),
            replace(ESTIMATOR, kind=PredictionKind.CAUSE),
            replace(ESTIMATOR, version="other"),
        ):
            assert await transaction.predictions.calibrator(other) is None
        assert await transaction.predictions.calibrator_version(first.version) == first
        assert await transaction.predictions.calibrator_version("unknown") is None


# --- conversations and ingestions ------------------------------------------------------------------------------------


async def test_a_history_holds_the_last_turns_of_its_thread_oldest_first(store: Store) -> None:
    turns = [Turn(Speaker.PERSON if number % 2 else Speaker.PLUMBLINE, f"turn {number}") for number in range(4)]
    async with store.transaction() as transaction:
        for number, turn in enumerate(turns):
            await transaction.conversations.add(f"key {number}", THREAD, turn, NOW)
        await transaction.conversations.add("key 3", THREAD, Turn(Speaker.PERSON, "again"), NOW)
        await transaction.conversations.add("other", replace(THREAD, thread="18.1"), turns[0], NOW)
        await transaction.conversations.add("no thread", CHANNEL, turns[0], NOW)
    async with store.transaction() as transaction:
        assert await transaction.conversations.history(THREAD, 3) == tuple(turns[1:])
        assert await transaction.conversations.history(CHANNEL, MANY) == ()
        assert await transaction.conversations.history(replace(THREAD, workspace="T0OTHER"), MANY) == ()


async def test_a_turn_is_found_by_its_key_in_its_channel(store: Store) -> None:
    turn = Turn(Speaker.PERSON, "how?")
    async with store.transaction() as transaction:
        await transaction.conversations.add("key", THREAD, turn, NOW)
        assert await transaction.conversations.get("key", THREAD) == turn
        assert await transaction.conversations.get("key", CHANNEL) == turn
        assert await transaction.conversations.get("key", replace(THREAD, channel="C0ELSE")) is None
        assert await transaction.conversations.get("another key", THREAD) is None


async def test_a_curated_answer_comes_back_as_it_was_saved_last(store: Store) -> None:
    proposal = messages.proposed(id="a")
    answer = messages.confirmed(id="a", readers=frozenset({"channel:vault", "person:slack:U1"}))
    async with store.transaction() as transaction:
        await transaction.curated.save(proposal)
        assert await transaction.curated.get("a") == proposal
        await transaction.curated.save(answer)
    async with store.transaction() as transaction:
        assert await transaction.curated.get("a") == answer
        assert await transaction.curated.get("b") is None


async def test_a_curated_answer_is_current_from_its_confirmation_until_it_expires(store: Store) -> None:
    second = messages.confirmed(id="b", expires_at=NOW + timedelta(seconds=1))
    first = messages.confirmed(id="a", expires_at=NOW + timedelta(seconds=2))
    async with store.transaction() as transaction:
        for answer in (messages.proposed(id="c"), second, first):
            await transaction.curated.save(answer)
        assert await transaction.curated.current(NOW) == [first, second]
        assert await transaction.curated.current(NOW + timedelta(seconds=1)) == [first]


async def test_the_last_ingestion_of_every_source_is_kept(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", NOW, 7))
        await transaction.ingestions.record(Ingestion("handbook", NOW, 3))
        await transaction.ingestions.record(Ingestion("wiki", NOW + timedelta(hours=1), 7, "It is down."))
        assert await transaction.ingestions.all() == [
            Ingestion("handbook", NOW, 3),
            Ingestion("wiki", NOW + timedelta(hours=1), 7, "It is down."),
        ]


async def test_how_far_a_source_was_read_is_kept_per_source(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.cursors.save("wiki", SourceCursor("page 1", 10))
        await transaction.cursors.save("chat", SourceCursor("", 0))
        await transaction.cursors.save("wiki", SourceCursor("page 2", 20))
    async with store.transaction() as transaction:
        assert await transaction.cursors.load("wiki") == SourceCursor("page 2", 20)
        assert await transaction.cursors.load("chat") == SourceCursor("", 0)
        assert await transaction.cursors.load("handbook") is None


async def test_a_time_of_any_zone_comes_back_as_the_same_moment(store: Store) -> None:
    elsewhere = datetime.fromisoformat("2026-03-14T11:30:05.250+02:00")
    async with store.transaction() as transaction:
        await transaction.ingestions.record(Ingestion("wiki", elsewhere, 7))
        (ingestion,) = await transaction.ingestions.all()
    assert ingestion.finished_at == NOW


def failure(failure_id: str, minute: int = 0, **fields: object) -> RecordedFailure:
    at = NOW + timedelta(minutes=minute)
    return replace(RecordedFailure(failure_id, "ci/acme/api", "one\n  zwei ü\n", 0, 1, at, THREAD), **fields)


async def test_a_failed_build_comes_back_as_it_was_saved_last(store: Store) -> None:
    async with store.transaction() as transaction:
        await transaction.build_failures.save(failure("f"))
        assert await transaction.build_failures.get("f") == failure("f")
        confirmed = failure("f", last=0, confirmed_by="slack:U1", place=None)
        await transaction.build_failures.save(confirmed)
    async with store.transaction() as transaction:
        assert await transaction.build_failures.get("f") == confirmed
        assert await transaction.build_failures.get("g") is None


async def test_the_confirmed_failures_of_a_project_come_newest_first(store: Store) -> None:
    known = [failure(str(number), number, confirmed_by="U1") for number in range(3)]
    async with store.transaction() as transaction:
        for each in (*known, failure("open", 7), failure("other", 8, confirmed_by="U1", project="another")):
            await transaction.build_failures.save(each)
        assert await transaction.build_failures.confirmed("ci/acme/api", 2) == [known[2], known[1]]


async def test_the_failure_of_a_thread_is_the_one_that_was_asked_for_last(store: Store) -> None:
    elsewhere = replace(THREAD, thread="18.1")
    async with store.transaction() as transaction:
        for each in (failure("a"), failure("b", 1), failure("c", 2, place=elsewhere), failure("d", 3, place=None)):
            await transaction.build_failures.save(each)
        assert await transaction.build_failures.in_thread(THREAD) == failure("b", 1)
        assert await transaction.build_failures.in_thread(replace(THREAD, platform=Platform.TEAMS)) is None
        assert await transaction.build_failures.in_thread(CHANNEL) is None


async def test_only_the_latest_failures_of_a_project_are_kept(store: Store) -> None:
    async with store.transaction() as transaction:
        for number in range(3):
            await transaction.build_failures.save(failure(f"open {number}", number))
            await transaction.build_failures.save(failure(f"told {number}", number, confirmed_by="U1"))
            await transaction.build_failures.save(failure(f"other {number}", number, project="another"))
        await transaction.build_failures.forget_older("ci/acme/api", 2)
        kept = {
            name: await transaction.build_failures.get(f"{name} 0") is not None for name in ("open", "told", "other")
        }
        assert kept == {"open": False, "told": False, "other": True}
        assert await transaction.build_failures.get("open 1") == failure("open 1", 1)


async def test_a_post_is_found_by_its_message_whatever_thread_that_stands_in(store: Store) -> None:
    reference = MessageReference(THREAD, "17.31")
    async with store.transaction() as transaction:
        await transaction.posts.intend("intent", THREAD)
        await transaction.posts.posted("intent", reference, "v1", "answer-1")
        await transaction.posts.intend("another", CHANNEL)
        await transaction.posts.posted("another", MessageReference(CHANNEL, "17.32"), "v1")
    async with store.transaction() as transaction:
        found = await transaction.posts.at(MessageReference(replace(THREAD, thread=None), "17.31"))
        assert found == Post("intent", THREAD, False, reference, "v1", claim="answer-1")
        assert await transaction.posts.at(MessageReference(replace(THREAD, channel="C0OTHER"), "17.31")) is None
        assert await transaction.posts.at(MessageReference(THREAD, "17.33")) is None
        await transaction.posts.edited("intent", "v2", "answer-2")
    async with store.transaction() as transaction:
        post = await transaction.posts.at(reference)
        assert post is not None
        assert post.claim == "answer-2"
        await transaction.posts.forget("intent")
    async with store.transaction() as transaction:
        assert await transaction.posts.at(reference) is None


async def test_a_turn_that_is_forgotten_is_gone(store: Store) -> None:
    async with store.transaction() as transaction:
        for key in ("first", "second"):
            await transaction.conversations.add(key, THREAD, Turn(Speaker.PERSON, key), NOW)
    async with store.transaction() as transaction:
        await transaction.conversations.forget("first")
        await transaction.conversations.forget("never said")
    async with store.transaction() as transaction:
        assert [turn.text for turn in await transaction.conversations.history(THREAD, 10)] == ["second"]
