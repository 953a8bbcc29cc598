"""Deletion of what exceeds its retention period, and of a person's or a thread's data.

The person's names and words are removed from a stored object by the marks of its fields (`Personal`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass
from datetime import UTC, datetime
from functools import cache, partial
from itertools import chain, groupby, repeat
from types import UnionType
from typing import Any, get_args, get_type_hints

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from adapters.console.messages import KINDS
from adapters.store.conversations import SEPARATOR
from adapters.store.database import outages_as, transaction
from adapters.store.tables import Json, UtcDateTime, metadata
from core.model.conversation import Personal, PersonName, Platform, Speaker, turn_key
from core.model.document import answer_id
from core.model.errors import StoreUnavailable
from core.model.messages import Message

BATCH = 1_000  # rows deleted in one transaction, so that concurrent writers do not wait long
NOBODY = "forgotten"  # replaces a person who asked to be forgotten
UNKNOWN = PersonName  # the type of a field that this version does not know: a text that is just a name is removed


@dataclass(frozen=True, slots=True)
class Forgotten:
    """A person to be forgotten.

    It contains the person's names with the platform's id. `is_key` matches `PLATFORM:ID`. `is_in` matches an id that
    contains the person's, which is between colons and may itself contain some.
    """

    names: frozenset[str]
    is_key: re.Pattern[str]
    is_in: re.Pattern[str]


def is_personal(kind: Any) -> bool:
    """Return whether a type has a marked field, or contains a type that has one."""
    parts = _hints(kind).values() if is_dataclass(kind) else get_args(kind)
    return any(isinstance(part, Personal) or is_personal(part) for part in parts)


def nameless(value: Any, kind: Any, who: Forgotten) -> Any:
    """Return the JSON of a value of this type without a person's names and words, as the fields' marks say."""
    if isinstance(kind, UnionType):  # with None
        kind, _ = get_args(kind)
    if isinstance(value, str):
        return _nameless_text(value, kind, who)
    if isinstance(value, dict) and is_dataclass(kind):
        return _nameless_object(value, _hints(kind), who)
    inside = (not _marks(kind) and get_args(kind)) or (UNKNOWN,)
    if isinstance(value, dict):
        return {key: nameless(each, inside[-1], who) for key, each in value.items()}
    if isinstance(value, list):
        kinds = repeat(inside[0]) if inside[1:] in ((), (...,)) else chain(inside, repeat(UNKNOWN))
        return [nameless(each, of_each, who) for each, of_each in zip(value, kinds, strict=False)]
    return value


def _nameless_object(value: dict[str, Any], hints: Mapping[str, Any], who: Forgotten) -> dict[str, Any]:
    kinds = {key: hints.get(key, UNKNOWN) for key in value}
    kinds |= {key: str for key, kind in kinds.items() if not all(each in value.values() for each in _marks(kind)[1:])}
    texts = {key: nameless(each, kinds[key], who) for key, each in value.items()}
    gone = {key for key, kind in kinds.items() if Personal.NAME in _marks(kind) and texts[key] != value[key]}
    is_of_all = any(not key.endswith("_by") or key.removesuffix("_by") not in kinds for key in gone)
    words = [key for key, kind in kinds.items() if Personal.WORDS in _marks(kind)]
    return texts | {key: "" for key in words if is_of_all or f"{key}_by" in gone}


def _nameless_text(text: str, kind: Any, who: Forgotten) -> str:
    if who.is_key.fullmatch(text):
        return NOBODY
    first = next((name for name in who.names if f"{text} ".startswith(f"{name} ")), "")
    match _marks(kind)[:1]:
        case [Personal.NAME] if text in who.names:
            return NOBODY
        case [Personal.NAME_FIRST] if first:
            return f"{NOBODY}{text.removeprefix(first)}"
        case [Personal.EVENT] if who.is_in.search(text):
            return answer_id(text)
        case _:
            return text


def _marks(kind: Any) -> tuple[Any, ...]:
    return getattr(kind, "__metadata__", ())


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    """Return the types of the fields of a dataclass."""
    return get_type_hints(kind, include_extras=True)


_SAID = "person"  # the kind of a person's message on the local page

# The tables with lists and dictionaries in place of objects of the domain, and the types of these.
_PLAIN = sa.MetaData()
_TYPES: dict[sa.Column[Any], Any] = {}
for _table in metadata.sorted_tables:
    for _column in _table.to_metadata(_PLAIN).columns:
        if isinstance(_column.type, Json):
            _TYPES[_column] = _column.type.kind
            _column.type = sa.JSON()
audit, console_messages, dead_letters, incidents, outcomes, posts, predictions = (
    _PLAIN.tables[name] for name in "audit console_messages dead_letters incidents outcomes posts predictions".split()
)
reactions, sessions, tasks, teams_conversations, turns = (
    _PLAIN.tables[name] for name in "reactions sessions tasks teams_conversations turns".split()
)
build_failures, curated_answers, deliveries, held_incidents, rate_limits, replicas, silences = (
    _PLAIN.tables[name]
    for name in "build_failures curated_answers deliveries held_incidents rate_limits replicas silences".split()
)
_MESSAGES: dict[str, Any] = {**KINDS, **{kind.__name__: kind for kind in get_args(Message)}}  # by kind
_WITH_NAMES = [
    *filter(lambda column: is_personal(_TYPES[column]), _TYPES),
    console_messages.c.payload,
    dead_letters.c.message,
]


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


async def forget(
    engine: AsyncEngine,
    *,
    person: str = "",
    thread: str = "",
    forget_workflows: Callable[[list[str]], Awaitable[None]] | None = None,
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
            events = await _events_of(connection, person, thread)
        if forget_workflows is not None:
            await forget_workflows(events.keys)  # outside of a transaction, because they may be in the same SQLite file
        async with engine.begin() as connection:
            keys = [turn_key(subject, speaker) for subject in events.subjects for speaker in Speaker]
            await _delete(connection, turns.c.key, keys)
            await _delete(connection, tasks.c.key, events.keys)
            await _delete(connection, console_messages.c.id, await _said_on_the_page(connection, events))
            if thread:
                in_thread = turns.c.thread.endswith(f"{SEPARATOR}{thread}", autoescape=True)
                await connection.execute(turns.delete().where(in_thread))
            if person:
                await _forget_person(connection, person, events)
            for chat in events.chats:
                await _forget_chat(connection, chat)
        return events.keys


async def _who_speaks_in(connection: AsyncConnection, chat: str) -> str:
    """Return the person of a private chat with the bot; empty if it is unknown or not a private chat."""
    reference = await connection.scalar(
        sa.select(teams_conversations.c.reference).where(teams_conversations.c.id == chat)
    )
    if not (reference and reference.get("personal")):
        return ""
    if reference.get("person"):
        return reference["person"]
    spoken = sa.select(tasks.c.payload).where(tasks.c.payload["place"]["channel"].as_string() == chat).limit(1)
    return _person_of(await connection.scalar(spoken) or {}).get("id", "")


def _person_of(payload: dict[str, Any]) -> dict[str, Any]:
    return payload.get("asker") or payload.get("person") or {}


async def _events_of(connection: AsyncConnection, person: str, thread: str) -> _Events:
    ended = sa.select(tasks.c.key, tasks.c.subject, tasks.c.payload).where(tasks.c.ended_at.is_not(None))
    events = _Events()
    personal: set[str] = set()
    for row in await connection.execute(sa.select(teams_conversations)):
        if row.reference.get("personal"):
            personal.add(row.id)
            if (person and row.reference.get("person") == person) or row.id == thread:
                events.chats.add(row.id)
    async for row in await connection.stream(ended):
        who, where = _person_of(row.payload), row.payload.get("place") or {}
        if (person and who.get("id") == person) or (thread and where.get("thread") == thread):
            events.keys.append(row.key)
            events.subjects.append(row.subject)
            if where.get("platform") == Platform.CONSOLE and str(where.get("thread")).isdecimal():
                events.threads.add(int(where["thread"]))
            if who.get("id") == person and who.get("name"):
                events.names.add(who["name"])
            if where.get("channel") in personal:
                events.chats.add(where["channel"])
    return events


async def _delete(connection: AsyncConnection, column: sa.Column[Any], values: Sequence[Any]) -> None:
    """Delete rows in batches, because statements have a limited number of parameters."""
    for start in range(0, len(values), BATCH):
        await connection.execute(sa.delete(column.table).where(column.in_(values[start : start + BATCH])))


async def _said_on_the_page(connection: AsyncConnection, events: _Events) -> list[int]:
    """Return the messages of threads that the person began, and the person's messages with their replies elsewhere."""
    table = console_messages
    subjects = {*events.subjects, *map(answer_id, events.subjects)}
    message_ids: list[int] = []
    began: set[int] = set()
    for row in await connection.execute(sa.select(table.c.id, table.c.thread, table.c.kind, table.c.intent)):
        root = row.id if row.thread is None else row.thread
        if row.id == root and row.id in events.threads and row.kind == _SAID:
            began.add(row.id)
        is_theirs = f"{Platform.CONSOLE}:{row.id}" in subjects or row.intent.partition(":")[2] in subjects
        if root in began or (root in events.threads and is_theirs):
            message_ids.append(row.id)
    return message_ids


async def _forget_person(connection: AsyncConnection, person: str, events: _Events) -> None:
    await connection.execute(reactions.delete().where(_is_by(reactions.c.reacted_by, person)))
    await connection.execute(sessions.delete())  # everybody's; the provider lets the others go on without asking them
    labels = sa.select(outcomes.c.prediction_id, outcomes.c.labelled_by).where(_is_by(outcomes.c.labelled_by, person))
    for prediction_id, labelled_by in list(await connection.execute(labels)):
        of_prediction = outcomes.c.prediction_id == prediction_id
        forgotten = sa.select(sa.func.count()).where(of_prediction, outcomes.c.labelled_by.startswith(NOBODY))
        name = f"{NOBODY}-{await connection.scalar(forgotten)}"  # several who labelled it may be forgotten
        theirs = outcomes.update().where(of_prediction, outcomes.c.labelled_by == labelled_by)
        await connection.execute(theirs.values(labelled_by=name, comment=""))
    is_key = re.compile(rf"(person:)?[a-z0-9_]+:{re.escape(person)}")  # on any platform, even a former one
    is_in = re.compile(rf"(?<![^:]){re.escape(person)}(?![^:])")
    who = Forgotten(frozenset(events.names) | {person}, is_key, is_in)
    await _forget_intents(connection, person, frozenset(events.keys))
    for table, columns in groupby(_WITH_NAMES, lambda column: column.table):
        await _rewrite(connection, table, partial(_nameless_row, columns=[*columns], who=who))
    await _rewrite(connection, audit, partial(_replaced, id_=is_in, alias=NOBODY), person)


def _is_by(column: sa.Column[str], person: str) -> sa.ColumnElement[bool]:
    """Return whether a column contains their id, with or without the platform."""
    return sa.or_(column == person, column.endswith(f":{person}", autoescape=True))


async def _forget_intents(connection: AsyncConnection, person: str, pressed: Collection[str]) -> None:
    """Delete the records of posts for their button presses."""
    for table in (posts, dead_letters):
        contains = table.c.intent.contains(person, autoescape=True)
        for intent in list(await connection.scalars(sa.select(table.c.intent).where(contains))):
            if intent.partition(":")[2] in pressed:
                await connection.execute(table.delete().where(table.c.intent == intent))


def _nameless_row(row: Mapping[str, Any], columns: Sequence[sa.Column[Any]], who: Forgotten) -> dict[str, Any]:
    kinds = {each.name: _TYPES.get(each) or _MESSAGES.get(row["kind"], UNKNOWN) for each in columns}
    return {name: nameless(row[name], kind, who) for name, kind in kinds.items()}


async def _forget_chat(connection: AsyncConnection, chat: str) -> None:
    """Delete how a private chat is reached, and replace its id everywhere else with a random alias.

    The alias keeps different records apart. Unfinished tasks keep the id.
    """
    await connection.execute(teams_conversations.delete().where(teams_conversations.c.id == chat))
    await connection.execute(turns.delete().where(turns.c.thread.contains(chat, autoescape=True)))
    id_ = re.compile(rf"(?<![\w-]){re.escape(chat)}(?![\w-])")
    aliased = partial(_replaced, id_=id_, alias=f"{NOBODY}-{secrets.token_hex(4)}")
    waiting = await connection.execute(sa.select(tasks.c.key, tasks.c.subject).where(tasks.c.ended_at.is_(None)))
    kept = frozenset(text for row in waiting for text in row)
    await _rewrite(connection, predictions, aliased, chat)  # before what refers to them
    for table in _PLAIN.sorted_tables:
        await _rewrite(connection, table, aliased, chat, kept)


def _replaced(value: Any, id_: re.Pattern[str], alias: str) -> Any:
    if isinstance(value, str):
        return id_.sub(alias, value)
    if isinstance(value, list):
        return [_replaced(each, id_, alias) for each in value]
    return {key: _replaced(each, id_, alias) for key, each in value.items()} if isinstance(value, dict) else value


async def _rewrite(
    connection: AsyncConnection,
    table: sa.Table,
    change: Callable[[dict[str, Any]], dict[str, Any]],
    text: str = "",
    kept: Collection[str] = (),
) -> None:
    """Apply `change` to the rows that contain the text. Rows of the tasks named in `kept` are left alone."""
    texts = [sa.cast(column, sa.Text) for column in table.columns if isinstance(column.type, (sa.Text, sa.JSON))]
    contain = sa.or_(*(each.contains(text, autoescape=True) for each in texts))
    changed: list[tuple[dict[str, Any], dict[str, Any]]] = []
    async for row in await connection.stream(sa.select(table).where(contain).with_for_update()):
        before = dict(row._mapping)  # noqa: SLF001 -- SQLAlchemy's public name of it
        after = before | change(before)
        if after != before and not {before.get("key"), before.get("intent", "").partition(":")[2]} & {*kept}:
            changed.append((before, after))
    for before, after in changed:
        await _replace_row(connection, table, before, after)


async def _replace_row(
    connection: AsyncConnection, table: sa.Table, before: dict[str, Any], after: dict[str, Any]
) -> None:
    is_it = sa.and_(*(column == before[column.name] for column in table.primary_key))
    if table is audit:  # an entry cannot be changed
        if after["key"] != before["key"]:
            after["key"] = f"{after['key']}:{after['number']}"
        await connection.execute(audit.delete().where(is_it))
        await connection.execute(audit.insert().values(after))
        return
    if table is incidents:  # with a new revision, so that concurrent writers read the incident again
        after["revision"] += 1
        after["body"] |= {"revision": after["revision"]}
        after["changed_at"] = datetime.now(UTC)  # so that running processes drop what they learned from it
    if table is not predictions or before["id"] == after["id"]:
        await connection.execute(table.update().where(is_it).values(after))
        return
    await connection.execute(table.insert().values(after))
    for judged in (outcomes, reactions):  # these refer to the prediction by its id
        moved = judged.update().where(judged.c.prediction_id == before["id"])
        await connection.execute(moved.values(prediction_id=after["id"]))
    await connection.execute(table.delete().where(is_it))


_BEFORE = sa.bindparam("before", type_=UtcDateTime)
_BEFORE_ISO = sa.bindparam("before_iso", type_=sa.Text)  # as in JSON; such texts sort by time
_OF_OPEN_INCIDENT = sa.exists().where(incidents.c.state == "open", posts.c.intent.contains(incidents.c.id))

_Rule = tuple[sa.Table, sa.ColumnElement[bool]]  # the rows to delete

_RULES: Mapping[str, Sequence[_Rule]] = {
    "events": (
        (tasks, tasks.c.ended_at < _BEFORE),
        (deliveries, deliveries.c.received_at < _BEFORE),
        (replicas, replicas.c.seen_at < _BEFORE),
        (silences, silences.c.ends_at < _BEFORE),
        (sessions, sessions.c.ends_at < _BEFORE),
        (rate_limits, rate_limits.c.used_at < _BEFORE),
    ),
    "conversations": (
        (turns, turns.c.at < _BEFORE),
        (console_messages, console_messages.c.at < _BEFORE),
        (curated_answers, curated_answers.c.expires_at < _BEFORE),
        (
            curated_answers,
            curated_answers.c.expires_at.is_(None) & (curated_answers.c.body["proposed_at"].as_string() < _BEFORE_ISO),
        ),
    ),
    "incidents": (
        (incidents, (incidents.c.body["resolved_at"].as_string() < _BEFORE_ISO) & (incidents.c.state != "open")),
        (posts, (posts.c.made_at < _BEFORE) & sa.not_(_OF_OPEN_INCIDENT)),
    ),
    "dead_letters": ((dead_letters, dead_letters.c.at < _BEFORE),),
    "build_failures": ((build_failures, build_failures.c.found_at < _BEFORE),),
    "predictions": ((predictions, predictions.c.made_at < _BEFORE),),
    "audit": ((audit, audit.c.at < _BEFORE),),
}
RETAINED = tuple(_RULES)


async def delete_before(engine: AsyncEngine, kinds: Mapping[str, datetime]) -> dict[str, int]:
    """Delete the data of each kind that ended before the given time.

    Returns the deleted rows per kind. Raises StoreUnavailable.
    """
    deleted = dict.fromkeys(kinds, 0)
    for kind, before in kinds.items():
        for rule in _RULES[kind]:
            while count := await _delete_batch(engine, rule, before):
                deleted[kind] += count
    return deleted


async def _delete_batch(engine: AsyncEngine, rule: _Rule, before: datetime) -> int:
    table, is_old = rule
    (key, *_) = table.primary_key
    old = sa.select(key).where(is_old).limit(BATCH)
    async with transaction(engine) as connection:
        times = {"before": before, "before_iso": before.astimezone(UTC).isoformat()}
        keys = list(await connection.scalars(old, times))
        if not keys:
            return 0
        if table is predictions:
            await connection.execute(outcomes.delete().where(outcomes.c.prediction_id.in_(keys)))
        if table is incidents:
            await connection.execute(held_incidents.delete().where(held_incidents.c.incident_id.in_(keys)))
        return (await connection.execute(table.delete().where(key.in_(keys)))).rowcount
