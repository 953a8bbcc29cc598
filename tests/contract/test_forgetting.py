"""A person or a thread can be forgotten: nothing that is kept names them any more."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.console.messages import PersonMessage, encode
from adapters.store import forgetting
from adapters.store.conversations import SqlConsoleMessages, SqlTeamsConversations
from adapters.store.store import SqlStore
from adapters.store.tables import metadata, outcomes, posts, tasks
from adapters.teams.connector import ConversationReference, remember
from core.model.audit import Act, audit_entry
from core.model.badge import Evaluation, Outcome, Prediction, PredictionKind, RecordedFailure
from core.model.conversation import Person, Place, Platform, Speaker, Turn, person_audience, turn_key
from core.model.document import CuratedAnswer, answer_id
from core.model.errors import StoreUnavailable
from core.model.findings import TeamScore, ThreadNote
from core.model.incident import Filed, Filing, FilingKind, Hop
from core.model.messages import IncidentMessage, Notice, ProposalMessage
from core.model.silences import Matcher, Silence
from core.ports import Task
from tests.contract.records import add_ended_task, task_keys
from tests.samples import explained_incident, unclear_owner

NOW = datetime.now(UTC)
NOBODY = Person(Platform.SLACK, "forgotten", "")
THREAD = Place(Platform.SLACK, "C0ASK", "17.25", "T0MARI")


async def stored_rows(engine: AsyncEngine) -> list[str]:
    """Return each row of every table, with the name of the table."""
    async with engine.begin() as connection:
        return [
            f"{table.name} {tuple(row)}"
            for table in metadata.sorted_tables
            for row in await connection.execute(sa.select(table))
        ]


async def test_a_person_is_forgotten_and_others_are_not(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    for person in ("U1", "U2"):
        await add_ended_task(store, f"asked by {person}", asker={"id": person}, place={"thread": "17.25"})
        async with store.transaction() as transaction:
            key = turn_key(f"asked by {person}", Speaker.PERSON)
            await transaction.conversations.put(key, THREAD, Turn(Speaker.PERSON, f"I am {person}"), NOW)
    assert await forgetting.forget(engine, person="U1") == ["asked by U1"]
    async with store.transaction() as transaction:
        assert await transaction.conversations.history(THREAD, 10) == (Turn(Speaker.PERSON, "I am U2"),)
    assert await task_keys(engine) == {"asked by U2"}


async def test_whoever_said_very_much_is_forgotten_in_parts(engine: AsyncEngine) -> None:
    rows = [
        {"key": f"asked {number}", "workflow": "answer", "subject": f"q{number}", "payload": {"asker": {"id": "U1"}}}
        for number in range(forgetting.BATCH + 1)
    ]
    async with engine.begin() as connection:
        await connection.execute(
            tasks.insert(), [row | {"added_at": NOW, "ended_at": NOW, "correlation": ""} for row in rows]
        )
    lengths: list[int] = []

    @event.listens_for(engine.sync_engine, "before_cursor_execute")
    def count(*call: Any) -> None:
        lengths.append(len(call[3]))

    assert len(await forgetting.forget(engine, person="U1")) == len(rows)
    assert await task_keys(engine) == set()
    assert max(lengths) <= forgetting.BATCH


async def test_a_thread_is_forgotten(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    await add_ended_task(store, "asked", asker={"id": "U1"}, place={"thread": "17.25"})
    await add_ended_task(store, "elsewhere", asker={"id": "U1"}, place={"thread": "18.25"})
    async with store.transaction() as transaction:
        await transaction.conversations.put("said by somebody", THREAD, Turn(Speaker.PERSON, "hello"), NOW)
    assert await forgetting.forget(engine, thread="17.25") == ["asked"]
    async with store.transaction() as transaction:
        assert await transaction.conversations.history(THREAD, 10) == ()
    assert await task_keys(engine) == {"elsewhere"}


async def test_what_a_forgotten_person_labelled_stays_without_a_name(engine: AsyncEngine) -> None:
    async with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            await connection.execute(sa.text("PRAGMA defer_foreign_keys = ON"))
        await connection.execute(
            sa.text(
                "INSERT INTO predictions (id, kind, engine, estimator_version, made_at, body) "
                "VALUES ('p1', 'answer', 'evidence', '1', '2026-01-01 00:00:00', '{}')"
            )
        )
        for name in ("slack:U1", "slack:U2"):
            values = {"prediction_id": "p1", "labelled_by": name, "correct": True, "labelled_at": NOW, "comment": name}
            await connection.execute(outcomes.insert().values(values))
    for person in ("U1", "U2"):
        await forgetting.forget(engine, person=person)
    async with engine.begin() as connection:
        labels = list(await connection.execute(sa.select(outcomes.c.labelled_by, outcomes.c.comment)))
    assert sorted(labels) == [("forgotten-0", ""), ("forgotten-1", "")]


async def test_what_a_forgotten_person_did_stays_in_the_audit_log_without_who_did_it(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    entries = [
        audit_entry("asked:q1", NOW, Act.ASKED, Person(Platform.SLACK, "U1", "Ada"), "q1", place=THREAD),
        audit_entry("pressed:slack:C0ASK:U1:1", NOW, Act.PRESSED, Person(Platform.SLACK, "U1"), "p1", detail="wrong"),
        audit_entry("viewed:1", NOW, Act.VIEWED, "console:operator", "home:U1"),
        audit_entry("asked:q2", NOW, Act.ASKED, Person(Platform.SLACK, "U12"), "q2", place=THREAD),
    ]
    async with store.transaction() as transaction:
        for entry in entries:
            await transaction.audit.add(entry)
        before = await transaction.audit.latest(9)
    for _ in range(2):
        await forgetting.forget(engine, person="U1")
    async with store.transaction() as transaction:
        after = await transaction.audit.latest(9)
    assert [each.number for each in after] == [each.number for each in before], "none is gone, and none has moved"
    other, viewed, pressed, asked = (each.entry for each in after)
    assert other == entries[3], "somebody else's id may begin with it"
    assert (asked.act, asked.actor, asked.subject, asked.place) == (
        Act.ASKED,
        "slack:forgotten",
        "q1",
        entries[0].place,
    )
    assert (pressed.act, pressed.actor, pressed.subject, pressed.detail) == (
        Act.PRESSED,
        "slack:forgotten",
        "p1",
        "wrong",
    )
    assert "U1" not in f"{asked}{pressed}{viewed}"


async def test_an_id_with_colons_is_forgotten_in_the_audit_log_too(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    async with store.transaction() as transaction:
        for guest in ("29:1a", "29:1ab"):
            person = Person(Platform.TEAMS, guest)
            await transaction.audit.add(audit_entry(f"asked:{guest}", NOW, Act.ASKED, person, "q1"))
    await forgetting.forget(engine, person="29:1a")
    async with store.transaction() as transaction:
        assert [each.entry.actor for each in await transaction.audit.latest(9)] == ["teams:29:1ab", "teams:forgotten"]


async def test_nothing_is_forgotten_if_the_workflows_cannot_be_so_that_another_try_finds_them(
    engine: AsyncEngine,
) -> None:
    await add_ended_task(SqlStore(engine), "asked", asker={"id": "U1"}, place={"thread": "17.25"})
    given: list[list[str]] = []

    async def forgotten(keys: list[str]) -> None:
        given.append(keys)
        if len(given) == 1:
            raise OSError("The workflow engine's database is not there.")

    with pytest.raises(StoreUnavailable):
        await forgetting.forget(engine, person="U1", forget_workflows=forgotten)
    assert await forgetting.forget(engine, person="U1", forget_workflows=forgotten) == ["asked"]
    assert given == [["asked"], ["asked"]]
    assert await task_keys(engine) == set()


async def test_what_a_forgotten_person_said_on_the_local_page_is_deleted_and_incidents_stay_there(
    engine: AsyncEngine,
) -> None:
    store, page = SqlStore(engine), SqlConsoleMessages(engine)

    async def says(name: str, thread: int | None = None) -> int:
        kind, payload = encode(PersonMessage("You", f"{name} asks"))
        return await page.append("help", thread, kind, payload, f"person:{name}{thread}", NOW)

    async def is_told(question: int, thread: int) -> None:
        kind, payload = encode(Notice("An answer."))
        await page.append("help", thread, kind, payload, f"answer:console:{question}", NOW)

    async def proposed(question: int, thread: int) -> None:
        kind, payload = encode(Notice("A correction."))
        await page.append("help", thread, kind, payload, f"proposal:{answer_id(f'console:{question}')}", NOW)

    async def asked(question: int, thread: int, person: str) -> None:
        place = {"platform": "console", "channel": "help", "thread": str(thread)}
        key = f"console:{question}"
        async with store.transaction() as transaction:
            await transaction.tasks.add(
                Task(key, "answer", key, {"asker": {"id": person, "name": "You"}, "place": place})
            )
            await transaction.tasks.end([key])

    kind, payload = encode(IncidentMessage(explained_incident(taken_by="Ada")))
    incident = await page.append("help", None, kind, payload, "incident:i1", NOW)
    for person in ("operator", "somebody else"):
        root = await says(person)
        await is_told(root, root)
        await asked(root, root, person)
        reply = await says(person, incident)
        await is_told(reply, incident)
        await proposed(reply, incident)
        await asked(reply, incident, person)
    await forgetting.forget(engine, person="operator")
    left = await page.page("help", 99)
    assert [each.kind for each in left] == ["incident", "person", "notice", "person", "notice", "notice"]
    assert not any("operator asks" in str(each.payload) for each in left)


async def test_a_forgotten_person_is_named_in_no_table(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    ada = Person(Platform.SLACK, "U1", "ada")
    own = person_audience(ada).disclosed_to
    pressed = "slack:C0ASK:17.25:17.26:U1"
    await add_ended_task(store, pressed, person={"id": "U1", "name": "ada"}, place={"platform": "slack"})
    matcher = Matcher("service", frozenset({"U12"}))
    window = Silence("m1", (matcher,), NOW, NOW + timedelta(days=1), author="U1", readers=own)
    async with store.transaction() as transaction:
        await transaction.silences.save(window)
        await transaction.curated.save(CuratedAnswer("c1", "how?", "so", ada, own, NOW))
        for intent in (f"join:{pressed}", "join:slack:C0ASK:17.25:17.26:U2"):
            await transaction.posts.intend(intent, THREAD)
        await transaction.dead_letters.add(f"pick-one:{pressed}", THREAD, Notice("Pick one."), "It was archived.")
        typed = CuratedAnswer(answer_id(pressed), "when?", "now", ada, own, NOW)
        await transaction.curated.save(typed)
        await transaction.posts.intend(f"proposal:{typed.id}", THREAD)
        await transaction.dead_letters.add(f"proposal:{typed.id}", THREAD, ProposalMessage(typed), "It was archived.")
    await forgetting.forget(engine, person="U1")
    rows = await stored_rows(engine)
    assert [row for row in rows if re.search(r"U1\b|\bada\b", row)] == []
    async with store.transaction() as transaction:
        (kept,) = await transaction.silences.not_over(NOW)
        answer = await transaction.curated.get(typed.id)
        assert answer is not None
        assert answer == replace(typed, author=NOBODY, readers=answer.readers)
        letter = await transaction.dead_letters.get(f"proposal:{typed.id}")
        assert letter is not None
        assert letter.message == ProposalMessage(answer)
    assert (kept.matchers, kept.ends_at) == (window.matchers, window.ends_at), "it is in force as before"
    assert [row for row in rows if row.startswith("posts") and "U2" in row]
    assert [row for row in rows if row.startswith("posts") and f"proposal:{typed.id}" in row]


async def test_who_took_an_incident_or_gave_an_answer_is_nobody_once_forgotten(engine: AsyncEngine) -> None:
    store, page = SqlStore(engine), SqlConsoleMessages(engine)
    ada = Person(Platform.SLACK, "U1", "Ada")
    await add_ended_task(store, "pressed", person={"id": "U1", "name": "Ada"}, place={"platform": "slack"})
    note = ThreadNote("Ada", "it is not the pool, says Ada's gut", NOW)
    press = "slack:C0INC:17.25:17.26:U1"
    filing = Filing("Wiki", FilingKind.POSTMORTEM, "Till", "said Ada", "Ada", press, NOW, NOW, problem="Slow down.")
    taken = replace(
        explained_incident(), id="i1", group_key="1", revision=1, taken_by="Ada", notes=(note,), filings=(filing,)
    )
    other = replace(taken, id="i2", group_key="2", taken_by="Grace", notes=(), filings=())
    async with store.transaction() as transaction:
        for each in (taken, other):
            await transaction.incidents.save(each)
        answer = CuratedAnswer("c1", "how?", "so", ada, frozenset({"public"}), NOW)
        await transaction.curated.save(answer)
        await transaction.build_failures.save(RecordedFailure("p1", "shop", "a", 0, 0, NOW, confirmed_by="slack:U1"))
    kind, payload = encode(IncidentMessage(taken))
    message = await page.append("help", None, kind, payload, "incident:i1", NOW)
    await forgetting.forget(engine, person="U1")
    async with store.transaction() as transaction:
        kept = await transaction.incidents.get("i1")
        assert kept is not None
        forgotten = replace(note, person="forgotten", text="")
        draft = replace(filing, person="forgotten", press=answer_id(press), text="", problem="")
        assert kept == replace(taken, taken_by="forgotten", notes=(forgotten,), filings=(draft,), revision=2)
        await transaction.incidents.save(replace(kept, revision=3))
        assert await transaction.incidents.get("i2") == other
        known = await transaction.curated.get("c1")
        assert known == replace(answer, author=Person(Platform.SLACK, "forgotten", ""))
        failure = await transaction.build_failures.get("p1")
        assert failure is not None
        assert failure.confirmed_by == "forgotten", "what was learned from it stays"
    shown = await page.get(message)
    assert shown is not None
    assert "Ada" not in str(shown.payload)


async def test_what_a_forgotten_person_wrote_in_a_form_of_an_incident_is_deleted(engine: AsyncEngine) -> None:
    store, press = SqlStore(engine), "slack:C0ASK:17.25:17.26:U1"
    await add_ended_task(store, press, person={"id": "U1", "name": "ada"}, place={"platform": "slack"})
    hop = Hop("payments", "", "ada", "ada says it is the network", NOW)
    filed = Filing("Board", FilingKind.ISSUE, "Slow till", "", "ada", press, NOW, NOW, Filed("SHOP-7", "https://b/7"))
    draft = replace(filed, target="Wiki", text="as ada wrote", filed=None)
    other = Filing(
        "Pages", FilingKind.POSTMORTEM, "Why", "as grace wrote", "grace", "slack:C0ASK:17.25:17.26:U2", NOW, NOW
    )
    given = TeamScore("payments", "Payments", 1.0, ("ada gave it to Payments", "3 similar incidents"))
    owner = replace(unclear_owner(), owner=given, candidates=(given,), on_call=("ada", "grace"))
    incident = replace(explained_incident(), id="i1", revision=1, hops=(hop,), filings=(filed, draft, other))
    incident = replace(incident, labels={"on_call": "grace"})
    async with store.transaction() as transaction:
        await transaction.incidents.save(incident.with_findings(owner=owner))
    await forgetting.forget(engine, person="U1")
    assert [row for row in await stored_rows(engine) if re.search(r"U1\b|\bada\b", row)] == []
    async with store.transaction() as transaction:
        kept = await transaction.incidents.get("i1")
    assert kept is not None
    assert kept.hops == (replace(hop, person="forgotten", reason=""),)
    assert kept.findings.owner is not None
    assert kept.findings.owner.on_call == ("forgotten", "grace")
    assert kept.findings.owner.candidates == (
        replace(given, reasons=("forgotten gave it to Payments", "3 similar incidents")),
    )
    nameless = [replace(each, person="forgotten", press=answer_id(press), text="") for each in (filed, draft)]
    assert kept.filings == (*nameless, other)


async def test_the_teams_chat_of_a_forgotten_person_is_named_in_no_table(engine: AsyncEngine) -> None:
    store, references = SqlStore(engine), SqlTeamsConversations(engine)
    chats = {"u1": "a:1xyz-_9", "u2": "a:1xyz-_98"}
    for person, chat in chats.items():
        known = ConversationReference("https://smba.trafficmanager.net/", "t1", False, personal=True, person=person)
        await remember(references, chat, known)
        place, asked = Place(Platform.TEAMS, chat, chat, "t1"), f"teams:{chat}:17"
        who = Person(Platform.TEAMS, person, "Ada")
        await add_ended_task(store, asked, asker={"id": person}, place={"platform": "teams", "channel": chat})
        async with store.transaction() as transaction:
            await transaction.conversations.put(
                turn_key(asked, Speaker.PLUMBLINE), place, Turn(Speaker.PERSON, "x"), NOW
            )
            await transaction.posts.intend(f"answer:{asked}", place)
            await transaction.dead_letters.add(f"answer:{asked}", place, Notice("An answer."), "It was archived.")
            evaluation = Evaluation(0.5, 0.5)
            claim = Prediction(
                f"answer:evidence:{asked}", PredictionKind.ANSWER, asked, "so", evaluation, "e", "1", NOW
            )
            await transaction.predictions.add(claim)
            await transaction.predictions.label(Outcome(claim.id, True, f"teams:{person}", NOW))
            await transaction.audit.add(audit_entry(f"asked:{asked}", NOW, Act.ASKED, who, asked, place=place))
    await forgetting.forget(engine, person="u1")
    rows = await stored_rows(engine)
    assert [row for row in rows if re.search(rf"{chats['u1']}\b|\bu1\b", row)] == []
    assert len([row for row in rows if chats["u2"] in row]) > 6, "somebody else's stays"
    async with store.transaction() as transaction:
        assert len(await transaction.predictions.recent(PredictionKind.ANSWER, 9)) == 2, "what was learned stays"
    await forgetting.forget(engine, person=chats["u2"])
    assert [row for row in await stored_rows(engine) if "a:1xyz" in row or "u2" in row] == [], (
        "the id of the chat says who is meant"
    )


async def test_the_teams_chat_of_a_task_under_way_is_left_to_it(engine: AsyncEngine) -> None:
    store, asked, place = SqlStore(engine), "teams:a:1xyz:17", Place(Platform.TEAMS, "a:1xyz", "a:1xyz", "t1")
    known = ConversationReference("https://smba.trafficmanager.net/", "t1", False, personal=True, person="u1")
    await remember(SqlTeamsConversations(engine), "a:1xyz", known)
    async with store.transaction() as transaction:
        await transaction.tasks.add(Task(asked, "answer", asked, {"place": {"channel": "a:1xyz"}}))
        await transaction.posts.intend(f"answer:{asked}", place)
    await forgetting.forget(engine, person="u1")
    assert await task_keys(engine) == {asked}
    async with engine.begin() as connection:
        assert list((await connection.execute(sa.select(posts.c.intent))).scalars()) == [f"answer:{asked}"]
