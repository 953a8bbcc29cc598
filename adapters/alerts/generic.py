"""Arbitrary JSON, read with the paths in plumbline.yaml (JSONPath, RFC 9535)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import jsonpath
from pydantic import AwareDatetime, TypeAdapter, ValidationError
from pydantic_core import from_json

from adapters.alerts import fields
from core.model.errors import ConfigurationError, MalformedInput
from core.model.incident import Acknowledgement, Alert, AlertDelivery, AlertStatus

SOURCE = "generic"

MEANINGS = {
    "firing": "firing fired triggered open opened new created create alert alerting active critical problem error "
    "failed failing failure down warning",
    "updated": "updated update changed",
    "acknowledged": "acknowledged acknowledge ack acked",
    "resolved": "resolved resolve closed close ok up recovered recovery normal healthy success fixed cleared",
    "test": "test ping",
}
"""What a status can mean, and the words that are taken to mean it."""

MEANING_OF = {word: meaning for meaning, words in MEANINGS.items() for word in words.split()}
STATUSES = {
    "firing": AlertStatus.FIRING,
    "acknowledged": AlertStatus.FIRING,
    "updated": AlertStatus.UPDATED,
    "resolved": AlertStatus.RESOLVED,
}

MAX_SHOWN = 60  # characters of an unknown status in an error

_TIME = TypeAdapter[datetime](AwareDatetime)


@dataclass(frozen=True, slots=True)
class Paths:
    """The JSONPaths of the fields of a body. An empty path reads nothing.

    `group` identifies the incident of a request; without it, the title does. `status` is its state; without it, every
    request fires. `by` is the person who acknowledged. `statuses` adds words to the usual ones, each with a key of
    MEANINGS.
    """

    title: str
    group: str = ""
    status: str = ""
    by: str = ""
    service: str = ""
    severity: str = ""
    description: str = ""
    url: str = ""
    runbook: str = ""
    starts_at: str = ""
    updated_at: str = ""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    statuses: Mapping[str, str] = field(default_factory=dict[str, str])


class GenericFormat:
    """The format described by paths."""

    def __init__(self, paths: Paths) -> None:
        """Create the format. Raises ConfigurationError for an invalid JSONPath."""
        self._title = _compiled(paths.title)
        self._group = _compiled(paths.group or paths.title)
        self._status = _compiled(paths.status)
        self._by = _compiled(paths.by)
        self._service = _compiled(paths.service)
        self._severity = _compiled(paths.severity)
        self._description = _compiled(paths.description)
        self._url = _compiled(paths.url)
        self._runbook = _compiled(paths.runbook)
        self._starts_at = _compiled(paths.starts_at)
        self._updated_at = _compiled(paths.updated_at)
        self._labels = {name: _compiled(path) for name, path in paths.labels.items()}
        self._meanings = MEANING_OF | {word.lower(): meaning for word, meaning in paths.statuses.items()}

    def parse(self, body: bytes, received_at: datetime) -> AlertDelivery | None:
        """Return the delivery in a body; None for a test. Raises MalformedInput if its title or group is missing."""
        try:
            value = from_json(body)
        except ValueError as error:
            raise MalformedInput(f"The generic webhook is not valid: {str(error)[:200]}; send JSON.") from None
        if not isinstance(value, dict | list):
            raise MalformedInput("The generic webhook holds a single value: send a JSON object.")
        meaning = self._meaning(value)
        if meaning == "test":
            return None
        group = fields.identity(_needed("group", self._group, value))
        return AlertDelivery(
            key=f"{SOURCE}:{fields.digest(body)}",
            source=SOURCE,
            group_key=group,
            alerts=(self._alert(value, meaning, group, received_at),),
            received_at=received_at,
        )

    def _meaning(self, value: Any) -> str:
        if self._status is None:
            return "firing"
        word = _needed("status", self._status, value)
        meaning = self._meanings.get(word.strip().lower())
        if meaning is None:
            raise MalformedInput(
                f"The generic webhook has the status {word[:MAX_SHOWN]!r}, which is not understood: say what it means "
                "under `webhooks: generic: statuses:` in plumbline.yaml."
            )
        return meaning

    def _alert(self, value: Any, meaning: str, group: str, received_at: datetime) -> Alert:
        status = STATUSES[meaning]
        as_of = _time(_said(self._updated_at, value), received_at)
        title = fields.text(_needed("title", self._title, value), fields.MAX_SUMMARY_LENGTH)
        by = fields.text(_said(self._by, value), fields.MAX_NAME_LENGTH)
        labels = fields.labels((name, _said(path, value)) for name, path in self._labels.items())
        service = fields.text(_said(self._service, value), fields.MAX_VALUE_LENGTH)
        return Alert(
            fingerprint=group,
            name=title,
            status=status,
            severity=fields.severity(_said(self._severity, value)),
            starts_at=_time(_said(self._starts_at, value), received_at) or as_of or received_at,
            service=service or fields.first(labels, fields.SERVICE_LABELS),
            summary=title,
            description=fields.text(_said(self._description, value), fields.MAX_DESCRIPTION_LENGTH),
            labels=labels,
            ends_at=(as_of or received_at) if status is AlertStatus.RESOLVED else None,
            url=fields.web_address(_said(self._url, value)),
            runbook_url=fields.web_address(_said(self._runbook, value)) or fields.runbook(labels),
            acknowledged=Acknowledgement(by, as_of or received_at) if meaning == "acknowledged" else None,
            as_of=as_of,
        )


def _compiled(path: str) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath | None:
    if not path:
        return None
    try:
        return jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"{path!r} in plumbline.yaml is not a JSONPath: {problem}; write $.name.name."
        ) from None


def _said(path: jsonpath.JSONPath | jsonpath.CompoundJSONPath | None, value: Any) -> str:
    """Return the first text, number or boolean at a path; empty if there is none."""
    try:
        found = path.match(value) if path is not None else None
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0][:200]
        raise MalformedInput(
            f"The generic webhook cannot be searched for {path}: {problem}; send it flatter."
        ) from None
    match found.obj if found is not None else None:
        case bool(said):
            return str(said).lower()
        case str(said):
            return said
        case int(said) | float(said):
            return str(said)
        case _:
            return ""


def _needed(name: str, path: jsonpath.JSONPath | jsonpath.CompoundJSONPath | None, value: Any) -> str:
    said = _said(path, value)
    if not said.strip():
        raise MalformedInput(f"The generic webhook has no {name} at {path}: send one, or correct the path.")
    return said


def _time(said: str, received_at: datetime) -> datetime | None:
    """Return a time with its zone, or a number of seconds since 1970; None for anything else."""
    counted = fields.epoch(said)
    if counted is not None:
        return fields.past(counted, received_at)
    try:
        return fields.past(_TIME.validate_python(said), received_at)
    except ValidationError:
        return None
