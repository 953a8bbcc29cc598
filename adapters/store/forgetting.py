"""Deletion of a person's or a thread's data, and removal of the person's name from the rest."""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.store.channels import SEPARATOR
from adapters.store.database import outages_as
from adapters.store.retention import BATCH
from adapters.store.tables import Json, metadata
from core.model.conversation import Platform, Speaker, turn_key
from core.model.curated import answer_id
from core.model.errors import StoreUnavailable
from core.model.incident import EvidenceKind


def _plain_tables() -> sa.MetaData:
    """Return the tables with lists and dictionaries in place of objects of the domain."""
    plain = sa.MetaData()
    for table in metadata.sorted_tables:
        for column in table.to_metadata(plain).columns:
            if isinstance(column.type, Json):
                column.type = sa.JSON()
    return plain


_TABLES = _plain_tables()
audit, build_failures, console_messages, curated_answers, dead_letters, incidents, outcomes, posts = (
    _TABLES.tables[name]
    for name in (
        "audit",
        "build_failures",
        "console_messages",
        "curated_answers",
        "dead_letters",
        "incidents",
        "outcomes",
        "posts",
    )
)
predictions, reactions, silences, tasks, teams_conversations, turns = (
    _TABLES.tables[name] for name in ("predictions", "reactions", "silences", "tasks", "teams_conversations", "turns")
)

NOBODY = "forgotten"  # replaces a person who asked to be forgotten

_NOTE = frozenset({"person", "text", "at"})  # the fields of a `ThreadNote`
_NAMING = frozenset(
    {"taken_by", "person", "by", "severity_by", "silenced_by", "author"}
)  # fields that contain a person's name
_SAID = "person"  # the kind of a person's message on the local page


@dataclass(slots=True)
class _Events:
    """The events of a person or a thread.

    It contains the keys and subjects of tasks, threads of the local page, names, and ids of the person's private chats
    with the bot.
    """

    keys: list[str] = field(default_factory=list[str])
    subjects: list[str] = field(default_factory=list[str])
    threads: set[int] = field(default_factory=set[int])
    names: set[str] = field(default_factory=set[str])
    chats: set[str] = field(default_factory=set[str])


async def _no_workflows(_keys: list[str]) -> None:
    """Do nothing."""


async def forget(
    engine: AsyncEngine,
    *,
    person: str = "",
    thread: str = "",
    forget_workflows: Callable[[list[str]], Awaitable[None]] = _no_workflows,
) -> list[str]:
    """Delete what a person (platform id) said and pressed, or what was said in a thread (id of its root), including the
    local page.

    The id of a person's private chat with the bot may be given instead of the person's id, and is deleted too. Labels
    are kept for calibration without words and name. Acts in the audit log, incidents, silences, corrected answers and
    the local page are kept with NOBODY as the actor. Names in other people's text are not searched for.

    Returns the keys of the deleted tasks. `forget_workflows` is called with them first; if it fails, nothing is deleted
    and the call can be repeated. Unfinished tasks are kept. Raises StoreUnavailable, and the errors of
    `forget_workflows`.
    """
    with outages_as(StoreUnavailable):
        async with engine.begin() as connection:
            person = await _who_speaks_in(connection, person) or person
            events = await _theirs(connection, person, thread)
        await forget_workflows(
            events.keys
        )  # outside of a transaction, because workflows may be in the same SQLite file
        async with engine.begin() as connection:
            said = [turn_key(subject, speaker) for subject in events.subjects for speaker in Speaker]
            await _delete(connection, turns.c.key, said)
            await _delete(connection, tasks.c.key, events.keys)
            await _forget_on_the_page(connection, events)
            if thread:
                in_thread = turns.c.thread.endswith(f"{SEPARATOR}{thread}", autoescape=True)
                await connection.execute(turns.delete().where(in_thread))
            if person:
                await _forget_labels(connection, person)
                await connection.execute(reactions.delete().where(_is_by(reactions.c.reacted_by, person)))
                await _forget_ids(connection, person)
                await _forget_presses(connection, person, events.keys)
                await _forget_names(connection, person, events.names)
                await _forget_acts(connection, person)
            for chat in events.chats:
                await _forget_chat(connection, chat)
        return events.keys


async def _who_speaks_in(connection: AsyncConnection, chat: str) -> str:
    """Return the person of a private chat with the bot; empty if it is no private chat, or unknown."""
    known = await connection.scalar(sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == chat))
    if not (known and known.get("personal")):
        return ""
    if known.get("person"):
        return known["person"]
    payload = tasks.c.payload
    spoken = sa.select(payload).where(payload["place"]["channel"].as_string() == chat).limit(1)
    said = await connection.scalar(spoken) or {}
    return (said.get("asker") or said.get("person") or {}).get("id", "")


async def _delete(connection: AsyncConnection, column: sa.Column[Any], values: Sequence[Any]) -> None:
    """Delete rows in batches, because statements have a limited number of parameters."""
    for start in range(0, len(values), BATCH):
        await connection.execute(sa.delete(column.table).where(column.in_(values[start : start + BATCH])))


async def _theirs(connection: AsyncConnection, person: str, thread: str) -> _Events:
    ended = sa.select(tasks.c.key, tasks.c.subject, tasks.c.payload).where(tasks.c.ended_at.is_not(None))
    found = _Events()
    personal: set[str] = set()
    for row in await connection.execute(sa.select(teams_conversations)):
        if row.reference.get("personal"):
            personal.add(row.id)
            if (person and row.reference.get("person") == person) or row.id == thread:
                found.chats.add(row.id)
    async for row in await connection.stream(ended):
        who = row.payload.get("asker") or row.payload.get("person") or {}
        where = row.payload.get("place") or {}
        if (person and who.get("id") == person) or (thread and where.get("thread") == thread):
            found.keys.append(row.key)
            found.subjects.append(row.subject)
            if where.get("platform") == Platform.CONSOLE and str(where.get("thread")).isdecimal():
                found.threads.add(int(where["thread"]))
            if who.get("id") == person and who.get("name"):
                found.names.add(who["name"])
            if where.get("channel") in personal:
                found.chats.add(where["channel"])
    return found


async def _forget_on_the_page(connection: AsyncConnection, events: _Events) -> None:
    """Delete the threads that they began, and their messages and the replies to them in other threads."""
    table = console_messages
    subjects = {*events.subjects, *map(answer_id, events.subjects)}
    rows = await connection.execute(sa.select(table.c.id, table.c.thread, table.c.kind, table.c.intent))
    gone: list[int] = []
    began: set[int] = set()
    for row in rows:
        root = row.id if row.thread is None else row.thread
        if row.id == root and row.id in events.threads and row.kind == _SAID:
            began.add(row.id)
        is_theirs = f"{Platform.CONSOLE}:{row.id}" in subjects or row.intent.partition(":")[2] in subjects
        if root in began or (root in events.threads and is_theirs):
            gone.append(row.id)
    await _delete(connection, table.c.id, gone)


def _is_by(column: sa.Column[str], person: str) -> sa.ColumnElement[bool]:
    """Return whether a column contains their id, with or without the platform."""
    return sa.or_(column == person, column.endswith(f":{person}", autoescape=True))


async def _forget_labels(connection: AsyncConnection, person: str) -> None:
    """Anonymise labels. Two forgotten people may have labelled the same prediction."""
    labels = await connection.execute(
        sa.select(outcomes.c.prediction_id, outcomes.c.labelled_by).where(_is_by(outcomes.c.labelled_by, person))
    )
    for prediction_id, labelled_by in list(labels):
        taken = await connection.scalar(
            sa.select(sa.func.count())
            .select_from(outcomes)
            .where(outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by.startswith(NOBODY))
        )
        await connection.execute(
            outcomes.update()
            .where(outcomes.c.prediction_id == prediction_id, outcomes.c.labelled_by == labelled_by)
            .values(labelled_by=f"{NOBODY}-{taken}", comment="")
        )


async def _forget_ids(connection: AsyncConnection, person: str) -> None:
    """Replace ids of proposals that contain a person's id with ids as generated today."""
    named = sa.select(curated_answers.c.id).where(curated_answers.c.id.contains(person, autoescape=True))
    for old in list((await connection.execute(named)).scalars()):
        if _without(old, person) == old:
            continue
        await connection.execute(curated_answers.update().where(curated_answers.c.id == old).values(id=answer_id(old)))
        for intent in (posts.c.intent, dead_letters.c.intent):
            posted = await connection.execute(sa.select(intent).where(intent.endswith(f":{old}", autoescape=True)))
            for each in list(posted.scalars()):
                renamed = f"{each.removesuffix(old)}{answer_id(old)}"
                await connection.execute(sa.update(intent.table).where(intent == each).values(intent=renamed))


async def _forget_presses(connection: AsyncConnection, person: str, keys: Collection[str]) -> None:
    """Delete the records of posts for their button presses, whose keys contain the person's id."""
    pressed = frozenset(keys)
    for intent in (posts.c.intent, dead_letters.c.intent):
        named = await connection.execute(sa.select(intent).where(intent.contains(person, autoescape=True)))
        await _delete(connection, intent, [each for each in named.scalars() if each.partition(":")[2] in pressed])


async def _forget_names(connection: AsyncConnection, person: str, names: Collection[str]) -> None:
    for column in (
        curated_answers.c.body,
        build_failures.c.body,
        console_messages.c.payload,
        dead_letters.c.message,
        silences.c.body,
    ):
        for key, nameless in await _renamed(connection, column, person, names):
            own = next(iter(column.table.primary_key))
            await connection.execute(sa.update(column.table).where(own == key).values({column.name: nameless}))
    for key, body in await _renamed(connection, incidents.c.body, person, names):
        # With a new revision, so that concurrent writers read the incident again.
        revision = body["revision"] + 1
        await connection.execute(
            incidents.update()
            .where(incidents.c.id == key)
            .values(revision=revision, body=body | {"revision": revision})
        )


async def _renamed(
    connection: AsyncConnection, column: sa.Column[Any], person: str, names: Collection[str]
) -> list[tuple[Any, Any]]:
    """Return the keys of rows that name them, with the column's content without the names."""
    own = next(iter(column.table.primary_key))
    found: list[tuple[Any, Any]] = []
    async for row in await connection.stream(sa.select(own.label("own"), column.label("body")).with_for_update()):
        nameless = _nameless(row.body, person, frozenset(names) | {person})
        if nameless != row.body:
            found.append((row.own, nameless))
    return found


def _unsaid(value: dict[str, Any], names: frozenset[str]) -> dict[str, Any]:
    """Return a thread note of theirs, or evidence made from it, without its words."""
    if value.keys() == _NOTE and value["person"] in names:
        return value | {"text": ""}
    if value.get("kind") == EvidenceKind.NOTE and value.get("source") in names:
        return value | {"source": NOBODY, "quote": ""}
    return value


def _nameless(value: Any, person: str, names: frozenset[str]) -> Any:
    if isinstance(value, list):
        return [_nameless(each, person, names) for each in value]
    if isinstance(value, dict):
        if "platform" in value and value.get("id") == person:
            return value | {"id": NOBODY, "name": ""}
        value = _unsaid(value, names)
        if "proposed_at" in value and _without(value["id"], person) != value["id"]:
            value = value | {"id": answer_id(value["id"])}
        return {
            key: NOBODY
            if key in _NAMING and isinstance(each, str) and each in names
            else _nameless(each, person, names)
            for key, each in value.items()
        }
    if isinstance(value, str) and value.removeprefix("person:") in {f"{platform}:{person}" for platform in Platform}:
        return NOBODY
    return value


async def _forget_acts(connection: AsyncConnection, person: str) -> None:
    """Replace audit entries that name them with entries that do not, because entries cannot be changed."""
    columns = (audit.c.key, audit.c.actor, audit.c.subject, audit.c.place, audit.c.detail)
    texts = (*columns, sa.cast(audit.c.documents, sa.Text))
    named = sa.select(audit).where(sa.or_(*(text.contains(person, autoescape=True) for text in texts)))
    for row in list(await connection.execute(named)):
        entry = dict(row._mapping)  # noqa: SLF001 -- SQLAlchemy's public name of it
        nameless = entry | {column.name: _without(entry[column.name], person) for column in columns}
        nameless["documents"] = [_without(each, person) for each in entry["documents"]]
        if nameless == entry:
            continue
        if nameless["key"] != entry["key"]:
            nameless["key"] = f"{nameless['key']}:{row.number}"
        await connection.execute(audit.delete().where(audit.c.number == row.number))
        await connection.execute(audit.insert().values(nameless))


async def _forget_chat(connection: AsyncConnection, chat: str) -> None:
    """Delete how a private chat is reached, and replace its id everywhere else with a random alias.

    The alias keeps different records apart. Unfinished tasks keep the id.
    """
    await connection.execute(teams_conversations.delete().where(teams_conversations.c.id == chat))
    await connection.execute(turns.delete().where(turns.c.thread.contains(chat, autoescape=True)))
    await _forget_acts(connection, chat)
    id_ = re.compile(rf"(?<![\w-]){re.escape(chat)}(?![\w-])")
    alias = f"{NOBODY}-{secrets.token_hex(4)}"
    waiting = await connection.execute(sa.select(tasks.c.key, tasks.c.subject).where(tasks.c.ended_at.is_(None)))
    kept = {text for row in waiting for text in row}
    for table in (predictions, *(each for each in _TABLES.sorted_tables if each not in (audit, predictions))):
        columns = [column for column in table.columns if isinstance(column.type, (sa.Text, sa.JSON))]
        named = sa.or_(*(sa.cast(column, sa.Text).contains(chat, autoescape=True) for column in columns))
        for row in list(await connection.execute(sa.select(table).where(named))):
            held = dict(row._mapping)  # noqa: SLF001 -- SQLAlchemy's public name of it
            if held.get("key") in kept or held.get("intent", "").partition(":")[2] in kept:
                continue
            renamed = held | {column.name: _replaced(held[column.name], id_, alias) for column in columns}
            await _replace_row(connection, table, held, renamed)


def _replaced(value: Any, id_: re.Pattern[str], alias: str) -> Any:
    if isinstance(value, str):
        return id_.sub(alias, value)
    if isinstance(value, list):
        return [_replaced(each, id_, alias) for each in value]
    if isinstance(value, dict):
        return {key: _replaced(each, id_, alias) for key, each in value.items()}
    return value


async def _replace_row(
    connection: AsyncConnection, table: sa.Table, held: dict[str, Any], renamed: dict[str, Any]
) -> None:
    is_held = sa.and_(*(column == held[column.name] for column in table.primary_key))
    if table is not predictions or held["id"] == renamed["id"]:
        await connection.execute(sa.update(table).where(is_held).values(renamed))
        return
    await connection.execute(sa.insert(table).values(renamed))
    for judged in (outcomes, reactions):  # these refer to the prediction by its id
        moved = sa.update(judged).where(judged.c.prediction_id == held["id"])
        await connection.execute(moved.values(prediction_id=renamed["id"]))
    await connection.execute(sa.delete(table).where(is_held))


def _without(text: str, person: str) -> str:
    """Replace the person's id between colons. The id itself may contain colons."""
    return re.sub(rf"(?<![^:]){re.escape(person)}(?![^:])", NOBODY, text)
