"""An incident that the version before stored is read whole, and what this version stores is read by the one before."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import sqlalchemy as sa
from pydantic import TypeAdapter
from rich.console import Console
from sqlalchemy.ext.asyncio import AsyncEngine

from adapters.console.messages import KINDS, encode
from adapters.store.forgetting import NOBODY, Forgotten, nameless
from adapters.store.store import SqlStore
from bot.commands.backup import run_backup, run_restore
from bot.config.settings import Settings
from core.model.incident import Incident
from core.model.messages import IncidentMessage
from core.model.relation import Relation, RelationKind
from tests.databases import database, sqlite_url

OLD: dict[str, Any] = json.loads(Path(__file__).with_name("incident_of_schema_0020.json").read_text("utf-8"))
STORED = TypeAdapter(Incident)
RAW = sa.table("incidents", sa.column("body", sa.JSON))
RELATIONS = (
    Relation(
        RelationKind.PART_OF,
        "absorbed.leader",
        reasons=("absorbed.reason",),
        at=datetime(2026, 3, 14, 11, 59, tzinfo=UTC),
        person="absorbed.person",
        provisional=True,
    ),
    Relation(
        RelationKind.MAY_BE_PART_OF,
        "suggested parent.incident id",
        "suggested parent.title",
        ("suggested parent.reason",),
    ),
    Relation(RelationKind.APART_FROM, "apart from"),
    Relation(RelationKind.DUPLICATE_OF, "duplicate of"),
)


def of_version_before(written: Any, known: Any = OLD) -> Any:
    """The JSON as a replica of the version before writes what it reads: it keeps the fields that it knows."""
    if isinstance(written, list) and known:
        return [of_version_before(each, known[0]) for each in cast("list[Any]", written)]
    if isinstance(written, dict) and known:
        return {name: of_version_before(written[name], each) for name, each in known.items()}
    return written


async def test_incident_of_version_before_is_read_whole_from_database(engine: AsyncEngine) -> None:
    incident = STORED.validate_python(OLD)
    async with SqlStore(engine).transaction() as transaction:
        await transaction.incidents.save(replace(incident, revision=1))
    async with engine.begin() as connection:
        written = (await connection.execute(sa.select(RAW.c.body))).scalar_one()
        assert of_version_before(written) == OLD | {"revision": 1}, "replicas of the version before read it"
        await connection.execute(RAW.update().values(body=of_version_before(written)))
    async with SqlStore(engine).transaction() as transaction:
        assert await transaction.incidents.get("incident-1") == replace(incident, revision=1)
        (part,) = await transaction.incidents.merged_into("absorbed.leader", 9)
        assert part.part_of == RELATIONS[0]


def test_relations_of_version_before_become_one_type() -> None:
    *relations, duplicate = STORED.validate_python(OLD).relations
    assert tuple(relations) == RELATIONS
    assert (duplicate.kind, duplicate.incident_id) == (RelationKind.MAY_DUPLICATE, "suggested duplicate.incident id")
    assert (duplicate.title, duplicate.prediction_id) == (
        "suggested duplicate.title",
        "suggested duplicate.prediction id",
    )
    assert duplicate.reasons == ("suggested duplicate.evidence",)
    assert duplicate.badge is not None
    assert duplicate.badge.probability == OLD["suggested_duplicate"]["badge"]["probability"]


def test_parts_of_incident_are_read_from_its_own_fields_in_version_before() -> None:
    incident = STORED.validate_python(OLD)
    for part in (incident.findings, incident.placement):
        assert all(getattr(part, each.name) for each in fields(part))
    assert incident.findings.cause is not None
    assert incident.placement.places[1].channel == "also in.channel"


async def test_incident_of_version_before_is_read_from_its_backup(tmp_path: Path) -> None:
    home, other, file = tmp_path / "home", tmp_path / "other", tmp_path / "backup"
    incident = replace(STORED.validate_python(OLD), revision=1)
    async with database(sqlite_url(home)) as engine:
        async with SqlStore(engine).transaction() as transaction:
            await transaction.incidents.save(incident)
        async with engine.begin() as connection:
            await connection.execute(RAW.update().values(body=OLD | {"revision": 1}))
    quiet = Console(quiet=True)
    run_backup(Settings.model_validate({"PLUMBLINE_DATA_DIR": home}), file, quiet)
    run_restore(Settings.model_validate({"PLUMBLINE_DATA_DIR": other}), file, quiet, force=False)
    async with database(sqlite_url(other)) as engine, SqlStore(engine).transaction() as transaction:
        assert await transaction.incidents.get("incident-1") == incident


def test_incident_without_relations_has_none_after_version_before_wrote_it() -> None:
    alone = replace(STORED.validate_python(OLD), relations=())
    written = STORED.dump_python(alone, mode="json")
    assert STORED.validate_python(written) == STORED.validate_python(of_version_before(written)) == alone


def test_what_version_before_does_not_know_of_relation_is_kept_by_this_one() -> None:
    parts = (
        Relation(RelationKind.PART_OF, "1", "its title", ("one", "two"), prediction_id="p"),
        Relation(RelationKind.APART_FROM, "2", reasons=("why",)),
    )
    incident = replace(STORED.validate_python(OLD), relations=parts)
    written = STORED.dump_python(incident, mode="json")
    assert STORED.validate_python(written) == incident
    merge = {"leader": "1", "reason": "one; two", "at": OLD["updated_at"], "person": "", "provisional": False}
    assert of_version_before(written)["absorbed"] == merge, "a time, without which that version does not read it"


def test_message_with_incident_of_version_before_is_read() -> None:
    incident = STORED.validate_python(OLD)
    kind, payload = encode(IncidentMessage(incident))
    earlier = {**payload, "incident": of_version_before(dict(payload["incident"]))}
    assert earlier["incident"] == OLD
    assert TypeAdapter(KINDS[kind]).validate_python(earlier) == IncidentMessage(incident)


def test_person_in_relation_of_version_before_is_forgotten() -> None:
    who = Forgotten(frozenset({"absorbed.person"}), re.compile("slack:U1"), re.compile("U1"))
    written = STORED.dump_python(STORED.validate_python(OLD), mode="json")
    for stored in (OLD, written):
        forgotten = nameless(stored, Incident, who)
        assert "absorbed.person" not in str(forgotten)
        merge = STORED.validate_python(forgotten).part_of
        assert merge == replace(RELATIONS[0], person=NOBODY)
