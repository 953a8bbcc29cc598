"""What a stored type says about people, by the marks of its fields: it is forgotten, redacted and kept from outsiders."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, make_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import sqlalchemy as sa
from pydantic import TypeAdapter
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.console.messages import KINDS, encode
from adapters.store import forgetting
from adapters.store.conversations import SqlConsoleMessages
from adapters.store.forgetting import NOBODY, Forgotten, is_personal, nameless
from adapters.store.store import SqlStore
from adapters.store.tables import Json, incidents, metadata
from core.incidents.readable import readable
from core.model.alert import AlertDelivery, Severity
from core.model.badge import RecordedFailure
from core.model.conversation import PUBLIC, Audience, Personal, PersonName, Place, Platform, Words
from core.model.document import CuratedAnswer, Document
from core.model.findings import PastIncident, SimilarIncident
from core.model.incident import Incident, Resolution
from core.model.messages import Message
from core.model.silences import Silence
from handlers.incidents.open_incident import redacted_delivery
from tests.contract.records import add_ended_task

NOW = datetime.now(UTC)
EVENT = "slack:C0ASK:17.25:17.26:U1"
TEXTS = {
    Personal.NAME: "Ada",
    Personal.NAME_FIRST: "Ada gave it to Payments",
    Personal.WORDS: "as Ada says",
    Personal.EVENT: EVENT,
}
ADA = Forgotten(frozenset({"Ada", "U1"}), re.compile("(person:)?slack:U1"), re.compile("U1"))

STORED = [column.type.kind for table in metadata.sorted_tables for column in table.columns if type(column.type) is Json]
ROOTS = [*filter(is_personal, STORED), *KINDS.values(), *get_args(Message)]

NAMES_OF_THINGS = """
    also_firing anchor arguments asked basis by change channel choice choices claim command deploys document_id
    engine files fingerprint first_failing for_experts found_by given_to group_key heading id
    incident_id into key kind kinds labels links log mention message_id model name on_call_unknown owner passage_id
    prediction_id project question_id readers reference runbook_url service services shared silenced_by snapshot
    source stop_id subject system target targets team_id team_name teams thread tool turned_away url values version voter
    voter_name workspace
""".split()
TEXTS_OF_OTHERS = """
    cause cut_short description detail disproof evidence fault fix incidents lead marked missing moved next_action
    next_check note progress question quote reason reasons reply root_cause ruled_out sentences shown solution steps summary
    text thought title unchecked what word
""".split()  # redacted when they came, and not searched for names


def filled(kind: Any) -> Any:
    """Return a value of this type with a text for each mark and one item in each collection."""
    mark = next(iter(getattr(kind, "__metadata__", ())), None)
    if isinstance(mark, Personal):
        return TEXTS[mark]
    if is_dataclass(kind):
        hints = get_type_hints(kind, include_extras=True)
        values = {each.name: filled(hints[each.name]) for each in fields(kind)}
        needed = {value for hint in hints.values() for value in getattr(hint, "__metadata__", ())[1:]}
        values |= {name: value for value in needed for name in values if type(value) is type(values[name])}
        return kind(**values)  # pyright: ignore[reportCallIssue] -- the type, not an object of it
    inside = [each for each in get_args(kind) if each not in (NoneType, ...)]
    if get_origin(kind) in (dict, Mapping):
        return {filled(inside[0]): filled(inside[1])}
    if get_origin(kind) in (tuple, frozenset):
        return get_origin(kind)(filled(each) for each in inside)
    if inside:
        return filled(inside[0])
    if issubclass(kind, Enum):
        return next(iter(kind))
    return {str: "text", datetime: NOW, timedelta: timedelta(1)}.get(kind) or kind(1)


def types_in(kind: Any) -> Iterator[type[Any]]:
    """Yield the dataclasses that a stored value of this type consists of."""
    if is_dataclass(kind):
        yield kind  # pyright: ignore[reportReturnType] -- the type, not an object of it
    parts = get_type_hints(kind, include_extras=True).values() if is_dataclass(kind) else get_args(kind)
    for part in parts:
        yield from types_in(part)


ALL = sorted({each for root in ROOTS for each in types_in(root)}, key=lambda each: each.__name__)


def unmarked_texts(kind: Any) -> bool:
    return kind is str or (not hasattr(kind, "__metadata__") and any(map(unmarked_texts, get_args(kind))))


async def test_each_marked_text_of_each_stored_type_is_forgotten(engine: AsyncEngine) -> None:
    store, page = SqlStore(engine), SqlConsoleMessages(engine)
    await add_ended_task(store, EVENT, person={"id": "U1", "name": "Ada"}, place={"platform": "slack"})
    saved = [filled(kind) for kind in filter(is_personal, STORED)]
    async with store.transaction() as transaction:
        for each in saved:
            match each:
                case Incident():
                    await transaction.incidents.save(each)
                case CuratedAnswer():
                    await transaction.curated.save(each)
                case Silence():
                    await transaction.silences.save(each)
                case RecordedFailure():
                    await transaction.build_failures.save(each)
                case _:
                    pytest.fail(f"{type(each)} is stored: save it here as well")
        for message in map(filled, get_args(Message)):
            await transaction.dead_letters.add(type(message).__name__, Place(Platform.SLACK, "C1"), message, "archived")
    for kind in KINDS.values():
        await page.append("help", None, *encode(filled(kind)), f"page:{kind.__name__}", NOW)
    assert sum("Ada" in row or "U1" in row for row in await rows(engine)) > len(saved)
    await forgetting.forget(engine, person="U1")
    assert [row for row in await rows(engine) if "Ada" in row or "U1" in row] == []


async def rows(engine: AsyncEngine) -> list[str]:
    async with engine.begin() as connection:
        return [
            f"{table.name} {tuple(row)}"
            for table in metadata.sorted_tables
            for row in await connection.execute(sa.select(table))
        ]


def test_a_field_that_a_later_version_marks_is_forgotten(subtests: pytest.Subtests) -> None:
    for kind in ALL:
        with subtests.test(kind=kind):
            later = make_dataclass(
                "Later",
                [("seen_by", PersonName, "Ada"), ("heard", Words, "as Ada says")],
                bases=(kind,),
                frozen=True,
                kw_only=True,
            )
            written = TypeAdapter(later).dump_python(filled(later), mode="json")
            kept = nameless(written, later, ADA)
            assert (kept["seen_by"], kept["heard"]) == (NOBODY, "")
            assert "Ada" not in str(kept)
            assert kept.keys() == written.keys()


def test_each_stored_text_is_marked_or_is_listed_as_no_persons() -> None:
    unmarked: list[str] = []
    for kind in ALL:
        hints = get_type_hints(kind, include_extras=True)
        texts = {each.name for each in fields(kind) if unmarked_texts(hints[each.name])}
        unmarked += [f"{kind.__name__}.{name}" for name in texts - {*NAMES_OF_THINGS, *TEXTS_OF_OTHERS}]
    assert unmarked == [], "mark it, if it is about a person (see `Personal`)"


def test_a_part_of_a_note_is_forgotten_with_the_person_who_typed_it_and_no_other_part() -> None:
    note = Resolution("a pool of 4", "a pool of 40", root_cause_by="Ada", fix_by="Grace", owner="Payments")
    kept = nameless(TypeAdapter(Resolution).dump_python(note, mode="json"), Resolution, ADA)
    assert (kept["root_cause"], kept["root_cause_by"]) == ("", NOBODY)
    assert (kept["fix"], kept["fix_by"], kept["owner"]) == ("a pool of 40", "Grace", "Payments")


def test_copy_of_a_typed_cause_in_another_incident_is_forgotten_too() -> None:
    past = PastIncident("i1", "till is slow", "", "till", Severity.WARNING, NOW, "", root_cause="a pool of 4")
    similar = replace(past, root_cause_by="Ada").as_similar(0.9)
    kept = nameless(TypeAdapter(SimilarIncident).dump_python(similar, mode="json"), SimilarIncident, ADA)
    assert (kept["title"], kept["root_cause"]) == ("till is slow", "")


async def test_a_name_in_a_field_that_a_later_version_stored_is_forgotten(engine: AsyncEngine) -> None:
    store = SqlStore(engine)
    await add_ended_task(store, EVENT, person={"id": "U1", "name": "Ada"}, place={"platform": "slack"})
    incident = filled(Incident)
    async with store.transaction() as transaction:
        await transaction.incidents.save(incident)
    later = TypeAdapter(Incident).dump_python(incident, mode="json")
    later |= {
        "seen_by": "Ada",
        "watchers": ["Ada", {"who": "Ada", "since": 1}],
        "notes": [{"person": "Ada", "text": "by Ada", "at": "2026-01-01T00:00:00Z"}],
    }
    raw = sa.table("incidents", sa.column("body", sa.JSON))
    async with engine.begin() as connection:
        await connection.execute(raw.update().values(body=later))
    await forgetting.forget(engine, person="U1")
    async with engine.begin() as connection:
        body = await connection.scalar(sa.select(raw.c.body))
        assert "Ada" not in str(body)
        assert await connection.scalar(sa.select(incidents.c.body))


def test_an_outsider_reads_no_persons_words() -> None:
    incident = filled(Incident).with_findings(basis=(PUBLIC,))
    incident = replace(incident, filings=tuple(replace(each, filed=None) for each in incident.filings))
    assert TEXTS[Personal.WORDS] in str(incident)
    seen = readable(incident, Audience(frozenset({PUBLIC})), ())
    assert TEXTS[Personal.WORDS] not in str(seen)
    assert seen.taken_by == "Ada"


def test_a_secret_in_any_text_of_an_alert_is_redacted() -> None:
    def redact(document: Document) -> Document:
        return replace(document, text=document.text.replace("text", "[secret]"))

    delivery = filled(AlertDelivery)
    alerts = redacted_delivery(delivery, redact).alerts
    assert len(alerts) == 1
    texts = {each.name: getattr(alerts[0], each.name) for each in fields(alerts[0])}
    acknowledged = alerts[0].acknowledged
    end = alerts[0].end
    assert acknowledged is not None
    assert end is not None
    # The name of the acknowledging system is the bot's own.
    texts |= {"labels": [*alerts[0].labels.values()], "acknowledged": acknowledged.by}
    texts |= {"end": (end.word, end.into, end.url)}
    assert {name for name, text in texts.items() if "text" in str(text)} == set()
