"""A company that is small enough for a test: five documents, two teams, six past incidents, one service's telemetry."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, open_core
from tests.fakes.monitoring_systems.systems import SYSTEMS

SECRET_WORD = "heliotrope"  # stands in the private document and nowhere else

PLUMBLINE_YAML = """\
name: Lanternfish
channels:
  - {name: help, console: help}
  - {name: incidents, console: incidents}
  - {name: vault, private: true, console: vault}
  - {name: pages, slack: C0PAGES}
  - {name: keepers, private: true, slack: C0PAYPRIV}
  - {name: partners, slack: C0SHARED}
  - {name: alerts, slack: C0ALERTS, adopt: true}
sources:
  - {kind: folder, name: handbook, path: documents}
  - {kind: past_incidents, name: incidents, path: incidents.jsonl}
teams:
  - {id: payments, name: Payments, document: teams/payments.md, services: [till], on_call: [Ada Quist]}
  - {id: catalogue, name: Catalogue, document: teams/catalogue.md, services: [shelf], on_call: [Bo Lindgren]}
routes:
  - channels: [pages]
    also: [incidents]
    match:
      source: [SOURCES]
      team: payments
  - {channels: [alerts], match: {audience: bots}}
  - {channels: [pages], also: [keepers], match: {audience: split}}
  - {channels: [partners], match: {audience: partners}}
  - {channels: [incidents]}
webhooks:
  generic:
    title: $.check.name
    group: $.check.id
    status: $.check.state
    by: $.by[0]
    service: $.where.service
    severity: $.check.level
    updated_at: $.check.at
    statuses: {worse: updated}
dependencies:
  till: [shelf]
storm: {messages_per_minute: 1000}  # scenarios post more in a minute than people want to read
tools:
  - {kind: log_files, path: live}
  - {kind: metric_files, path: live}
  - {kind: change_files, path: live}
""".replace("SOURCES", ", ".join(sorted({system.source for system in SYSTEMS})))

DOCUMENTS = {
    "release/canary.md": """\
        # Rolling back a canary
        ## By hand
        Run `slip rollback SERVICE` to roll back a canary; the traffic returns to the old version within 90 seconds.
        Tell the release channel afterwards.
        """,
    "release/freeze.md": """\
        # Deployment freeze
        ## When
        The deployment freeze begins on 15 December and ends on 6 January. Only the duty manager grants exceptions.
        """,
    "runbooks/till-latency.md": """\
        # Till latency
        ## Connection pool exhausted
        When the till waits for a connection, look at the pool size in its configuration and restore the old value.
        """,
    "runbooks/shelf-index.md": """\
        # Shelf index
        ## Rebuild
        Rebuild the shelf index with `shelf reindex --all`; it takes 20 minutes.
        """,
    "vault/keys.md": f"""\
        ---
        readers: ["channel:vault"]
        ---
        # Master keys
        ## Where
        The master key is kept in the {SECRET_WORD} safe.
        """,
}

TEAMS = {
    "payments": "# Payments\nWe run the till: charges, refunds, receipts and the connection pool of the till.",
    "catalogue": "# Catalogue\nWe run the shelf: search, stock, and the index of the shelf.",
}


@asynccontextmanager
async def open_company(folder: Path) -> AsyncIterator[Core]:
    """The core of a bot that works for a company in this folder, of which it has read nothing yet."""
    config = write_company(folder / "company")
    settings = Settings.model_validate({"PLUMBLINE_DATA_DIR": folder / "data", "PLUMBLINE_CONFIG": config})
    async with open_core(settings, load_workspace(config)) as core:
        yield core


def write_company(folder: Path, incidents_on_slack: str = "", incidents_on_teams: str = "") -> Path:
    """Write the workspace into the folder; returns the path of its plumbline.yaml.

    Incidents are posted on the local page, or in the Slack or Teams channel of this id.
    """
    for name, text in DOCUMENTS.items():
        _write(folder / "documents" / name, "\n".join(line.strip() for line in text.splitlines()))
    for name, text in TEAMS.items():
        _write(folder / "teams" / f"{name}.md", text)
    _write(folder / "incidents.jsonl", "".join(json.dumps(incident) + "\n" for incident in _past_incidents()))
    _write_telemetry(folder / "live", datetime.now(UTC) - timedelta(minutes=4))
    in_chats = f"slack: {incidents_on_slack}, " if incidents_on_slack else ""
    in_chats += f'teams: "{incidents_on_teams}", ' if incidents_on_teams else ""
    _write(folder / "plumbline.yaml", PLUMBLINE_YAML.replace("{name: incidents, ", f"{{name: incidents, {in_chats}"))
    return folder / "plumbline.yaml"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _past_incidents() -> list[dict[str, Any]]:
    rows = [
        ("payments", "till", "till p99 latency above 2 s", "The connection pool of the till was too small."),
        ("payments", "till", "till charges time out", "A configuration change halved the connection pool of the till."),
        ("payments", "till", "refunds of the till fail", "The refund key had expired."),
        ("catalogue", "shelf", "shelf search returns nothing", "The index of the shelf was empty after a rebuild."),
        ("catalogue", "shelf", "shelf search is slow", "The index of the shelf was being rebuilt by day."),
        ("catalogue", "shelf", "stock is out of date", "The stock feed had stopped."),
    ]
    return [
        {
            "id": f"OLD-{number}",
            "title": title,
            "description": f"{title}. {cause}",
            "service": service,
            "severity": "critical",
            "started_at": f"2026-0{number}-01T09:00:00Z",
            "owner": owner,
            "root_cause": cause,
            "fix": "Restored the old value.",
        }
        for number, (owner, service, title, cause) in enumerate(rows, start=1)
    ]


def _write_telemetry(folder: Path, began: datetime) -> None:
    """Ten quiet minutes and four bad ones of the till, and the change that came just before the bad ones."""
    quiet = [began + timedelta(seconds=second) for second in range(-600, 0, 10)]
    bad = [began + timedelta(seconds=second) for second in range(0, 240, 2)]
    lines = [f"{_time(at)} INFO till charge accepted in 40 ms" for at in quiet]
    lines += [f"{_time(at)} ERROR till PoolTimeout: no connection within 1000 ms (total=4, active=4)" for at in bad]
    _write(folder / "now/logs/till.log", "\n".join(lines) + "\n")
    rows = [f"{_time(at)},40,12" for at in quiet] + [f"{_time(at)},2400,4" for at in bad[::5]]
    _write(folder / "now/metrics/till.csv", "timestamp,p99_ms,connections\n" + "\n".join(rows) + "\n")
    change = {
        "id": "cfg-17",
        "at": _time(began - timedelta(minutes=2)),
        "kind": "configuration",
        "service": "till",
        "author": "ada",
        "title": "Lower the connection pool of the till from 12 to 4",
        "detail": "pool.maximum: 12 -> 4",
    }
    _write(folder / "now/changes.jsonl", json.dumps(change) + "\n")


def _time(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
