"""Incidents of the past: an export of PagerDuty, Jira, incident.io or Slack, a CSV file, or JSON lines with our own names."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import datetime
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from adapters.alerts.fields import severity
from adapters.posted.recognise import recognise
from adapters.posted.slack import posted_of
from adapters.readers.values import moment, text_of
from adapters.sources.section import open_archive
from core.incidents.thread_notes import read_resolution
from core.model.alert import Alert, AlertDelivery, AlertStatus, Posted, PostedKind, Recognised
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.findings import PastIncident


def _time(given: object) -> datetime | None:
    """Return a time, in UTC if it names no zone."""
    if not given:
        return None
    try:
        return moment(given)
    except ValueError:
        return moment(f"{given}Z")


Text = Annotated[str, BeforeValidator(lambda given: text_of(given).strip())]


class Recorded(BaseModel):
    """An incident of an export. `owner`, `root_cause` and `cause_service` are labels; empty if unknown.

    Not everybody may read a `private` one.
    """

    model_config = ConfigDict(frozen=True)

    id: Annotated[Text, Field(min_length=1)]
    title: Annotated[Text, Field(min_length=1)]
    started_at: Annotated[datetime, BeforeValidator(_time)]
    resolved_at: Annotated[datetime | None, BeforeValidator(_time)] = None
    description: Text = ""
    service: Text = ""
    severity: Text = ""
    owner: Text = ""
    root_cause: Text = ""
    cause_service: Text = ""
    private: bool = False
    url: Text = ""

    @property
    def past(self) -> PastIncident:
        """Return the incident as one that later ones learn from."""
        return PastIncident(
            self.id,
            self.title,
            self.description,
            self.service,
            severity(self.severity),
            self.started_at,
            self.owner,
            resolved_at=self.resolved_at,
            root_cause=self.root_cause,
        )

    @property
    def delivery(self) -> AlertDelivery:
        """Return the alert with which it began."""
        alert = Alert(
            fingerprint=self.id,
            name=self.title,
            status=AlertStatus.FIRING,
            severity=severity(self.severity),
            starts_at=self.started_at,
            service=self.service,
            summary=self.title,
            description=self.description,
            labels={},
            url=self.url,
        )
        return AlertDelivery(f"backtest:{self.id}", "backtest", self.id, (alert,), self.started_at)


def read_export(file: Path, *, may_be_empty: bool = False) -> tuple[list[Recorded], list[str]]:
    """Return the incidents of an export, oldest first, and what was left out, with the reason.

    A folder or an archive is a Slack export. Raises MalformedInput if the file cannot be read, or holds no incident, unless
    it may.
    """
    items = posted_alerts(file) if file.is_dir() or file.suffix.lower() == ".zip" else _items_of(file)
    incidents, left_out = dict[str, Recorded](), list[str]()
    for number, item in enumerate(items, 1):
        try:
            one = Recorded.model_validate(_fields_of(item))
            incidents[one.id] = one
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            left_out.append(f"incident {number}: {'.'.join(map(str, first['loc']))}: {first['msg']}")
    if not incidents and not may_be_empty:
        reason = f": {left_out[0]}" if left_out else ""
        raise MalformedInput(f"{file} has no incident that can be read{reason}.")
    return sorted(incidents.values(), key=lambda each: (each.started_at, each.id)), left_out


def _items_of(file: Path) -> Iterator[Any]:
    try:
        text = file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError as error:
        raise MalformedInput(f"{file} cannot be read: {error.strerror}.") from None
    if file.suffix.lower() == ".csv":
        for row in csv.DictReader(io.StringIO(text)):
            named = {
                "".join(each if each.isalnum() else " " for each in name or ""): value for name, value in row.items()
            }
            yield {"_".join(name.lower().split()): value for name, value in named.items()}
        return
    try:
        document = json.loads(text)
    except ValueError:
        for line in filter(str.strip, text.splitlines()):
            try:
                yield json.loads(line)
            except ValueError as error:
                yield {"title": "", "error": str(error)}
        return
    listed = next((match.obj for path in _places()["lists"] if (match := path.match(document)) is not None), document)
    yield from listed if isinstance(listed, list) else [listed]


def _fields_of(item: Any) -> dict[str, Any]:
    matched = {name: [path.match(item) for path in paths] for name, paths in _places()["fields"].items()}
    texts = {name: [each.obj for each in matches if each is not None] for name, matches in matched.items()}
    plain = {name: [each for each in given if isinstance(each, str | int | float)] for name, given in texts.items()}
    return {
        name: next(each for each in given if each != "") for name, given in plain.items() if any(x != "" for x in given)
    }


@cache
def _places() -> Any:
    import jsonpath  # slow to load

    read = yaml.safe_load((resources.files("bot.backtest") / "exports.yaml").read_text("utf-8"))
    fields = {name: [jsonpath.compile(path) for path in paths] for name, paths in read["fields"].items()}
    return {"lists": [jsonpath.compile(path) for path in read["lists"]], "fields": fields}


PRIVATE = "groups.json"  # channels


def posted_alerts(export: Path) -> list[dict[str, Any]]:
    """Return an entry for each time that an alert fired until it ended, oldest first. Raises MalformedInput.

    An export has of an edited message its last form alone: one that tells an end began when it was posted. What people said
    of the cause and the owner in the thread (“root cause: …; owner: …”) are the labels.
    """
    try:
        with open_archive(export) as archive:
            channels = [(row, name == PRIVATE) for name in ("channels.json", PRIVATE) for row in archive.rows(name)]
            messages = [
                (message, str(channel.get("id")), is_private)
                for channel, is_private in channels
                for file in archive.files(str(channel.get("name")))
                for message in archive.rows(file)
            ]
    except SourceUnavailable as error:
        raise MalformedInput(str(error)) from None
    entries, latest = list[dict[str, Any]](), dict[tuple[str, str], dict[str, Any]]()
    for message, channel, is_private in sorted(messages, key=lambda each: str(each[0].get("ts"))):
        root = (channel, str(message.get("thread_ts") or message.get("ts")))
        posted = posted_of(message, channel)
        if posted is None:
            if root in latest:
                _label(latest[root], str(message.get("text")))
            continue
        recognised = recognise(posted)
        entry = next((latest[each] for each in (root, *_groups(posted, recognised)) if each in latest), None)
        (alert,) = recognised.delivery.alerts
        if entry is None or entry["resolved_at"]:
            if recognised.kind is not PostedKind.ALERT or posted.place.thread is not None:
                continue
            if alert.status is AlertStatus.RESOLVED and not posted.revision:
                continue  # of an alert that fired before the export begins
            entry = _entry(posted, recognised) | {"private": is_private}
            entries.append(entry)
        if alert.status is AlertStatus.RESOLVED:
            entry["resolved_at"] = posted.at.timestamp()
        latest |= dict.fromkeys((root, *_groups(posted, recognised)), entry)
    return entries


def _groups(posted: Posted, recognised: Recognised) -> list[tuple[str, str]]:
    return [(posted.sender, key) for key in recognised.keys]


def _entry(posted: Posted, recognised: Recognised) -> dict[str, Any]:
    (alert,) = recognised.delivery.alerts
    return {
        "id": f"{posted.place.channel}:{posted.message_id}",
        "title": recognised.title,
        "description": alert.description,
        "service": alert.service,
        "severity": str(alert.severity),
        "started_at": float(posted.message_id),
        "resolved_at": None,
        "url": alert.url,
    }


def _label(entry: dict[str, Any], text: str) -> None:
    note = read_resolution(text)
    labels = {"owner": note.owner, "root_cause": note.root_cause}
    entry.update({name: text for name, text in labels.items() if text})
