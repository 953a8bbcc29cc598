"""Arbitrary JSON, read with the paths in plumbline.yaml (JSONPath, RFC 9535)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AwareDatetime, Field, TypeAdapter, ValidationError

from adapters.alerts import fields
from core.model.alert import AlertDelivery, AlertEnd, AlertStatus, EndReason
from core.model.errors import ConfigurationError, MalformedInput
from core.model.text import load_json, name_key

if TYPE_CHECKING:
    import jsonpath

SOURCE = "generic"

MEANINGS = {
    "firing": "firing fired triggered retriggered open opened reopened new created create alert alerting active critical "
    "problem error failed failing failure down warning warn nodata insufficientdata renotify escalated unknown",
    "updated": "updated update changed pending suppressed muted silenced snoozed paused assigned",
    "acknowledged": "acknowledged acknowledge ack acked",
    "resolved": "resolved resolve closed close ok up recovered recovery normal healthy success fixed cleared",
    EndReason.MERGED: "merged merge",
    EndReason.DUPLICATE: "duplicate",
    EndReason.ARCHIVED: "archived",
    EndReason.IGNORED: "ignored dismissed",
    EndReason.CANCELED: "canceled cancelled declined rejected",
    EndReason.DELETED: "deleted removed",
    EndReason.EXPIRED: "expired timedout",
    "test": "test ping",
}
"""The meanings of a status, and the words for each, in lower case and without separators."""

MEANING_OF: Mapping[str, str] = {word: meaning for meaning, words in MEANINGS.items() for word in words.split()}
STATUSES: dict[str, fields.State] = {
    "firing": AlertStatus.FIRING,
    "acknowledged": AlertStatus.FIRING,
    "updated": AlertStatus.UPDATED,
}
REASONS: dict[str, EndReason] = {"resolved": EndReason.CURED, **{str(reason): reason for reason in EndReason}}

MAX_LEVELS = 12  # in which JSON as a text is looked for
MAX_SHOWN = 60  # characters of an unknown status in an error

_TIME = TypeAdapter[datetime](AwareDatetime)


Path = Annotated[str, Field(max_length=500)]  # JSONPath, RFC 9535
Statuses = dict[str, Literal["firing", "updated", "acknowledged", "resolved", "test"] | EndReason]


class GenericSection(fields.WebhookSection):
    """The paths of the fields in a body. An empty path reads nothing.

    - `title`: required. `group`: identifies the incident of a request; without it, the title does.
    - `status`: the state; without it, every request fires. `statuses` adds words to the usual ones, with their meaning:
      a state, or the reason of an end that is no cure.
    - `by`: the person who acknowledged.
    """

    title: Annotated[Path, Field(min_length=1)]
    group: Path = ""
    status: Path = ""
    by: Path = ""
    service: Path = ""
    severity: Path = ""
    description: Path = ""
    url: Path = ""
    runbook: Path = ""
    starts_at: Path = ""
    updated_at: Path = ""
    labels: dict[str, Path] = Field(default_factory=dict[str, str])
    statuses: Statuses = Field(default_factory=Statuses)


class GenericFormat:
    """A format described by a section."""

    def __init__(self, section: GenericSection) -> None:
        """Create the format. Raises ConfigurationError for an invalid JSONPath."""
        paths = section.model_dump(exclude={"secret_env", "labels", "statuses"})
        self._paths = {name: _compiled(path) for name, path in paths.items()}
        self._labels = {name: _compiled(path) for name, path in section.labels.items()}
        self._meanings = {**MEANING_OF, **{_plain(word): meaning for word, meaning in section.statuses.items()}}
        self._ends = _ends(self._meanings)

    def parse(self, body: bytes, received_at: datetime) -> AlertDelivery | None:
        """Return the delivery in a body; None for a test. Raises MalformedInput if its title or group is missing."""
        try:
            value = load_json(body)
        except ValueError as error:
            raise MalformedInput(f"The generic webhook is not valid: {str(error)[:200]}; send JSON.") from None
        if not isinstance(value, dict | list):
            raise MalformedInput("The generic webhook holds a single value: send a JSON object.")
        values = (value, _opened(value))
        word = self._needed("status", values) if self._paths["status"] is not None else "firing"
        meaning = self._meaning(word)
        if meaning == "test":
            return None
        texts = {name: _text_at(path, values) for name, path in self._paths.items()}
        event = fields.AlertEvent(
            group=self._needed("group" if self._paths["group"] else "title", values),
            title=self._needed("title", values),
            status=STATUSES.get(meaning) or AlertEnd(word=_plain(word)),
            severity=[texts["severity"]],
            labels={name: _text_at(path, values) for name, path in self._labels.items()},
            service=texts["service"],
            description=texts["description"],
            url=texts["url"],
            runbook=texts["runbook"],
            began=_time(texts["starts_at"]),
            as_of=_time(texts["updated_at"]),
            by=texts["by"] if meaning == "acknowledged" else None,
        )
        return event.delivery(SOURCE, body, received_at, ends=self._ends)

    def _meaning(self, word: str) -> str:
        meaning = self._meanings.get(_plain(word))
        if meaning is None:
            raise MalformedInput(
                f"The status {word[:MAX_SHOWN]!r} of the generic webhook is unknown: add its meaning "
                "under `webhooks: generic: statuses:` in plumbline.yaml."
            )
        return meaning

    def _needed(self, name: str, values: Sequence[Any]) -> str:
        text = _text_at(self._paths[name], values)
        if not text.strip():
            raise MalformedInput(
                f"The generic webhook has no {name} at {self._paths[name]}: send one, or correct the path."
            )
        return text


def _ends(meanings: Mapping[str, str]) -> fields.Ends:
    return {word: REASONS[meaning] for word, meaning in meanings.items() if meaning in REASONS}


def _plain(status: str) -> str:
    return "".join(name_key(status).replace("_", " ").replace("-", " ").split())


def _compiled(path: str) -> jsonpath.JSONPath | jsonpath.CompoundJSONPath | None:
    if not path:
        return None
    import jsonpath  # slow to load, and few workspaces need it

    try:
        return jsonpath.compile(path)
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0]
        raise ConfigurationError(
            f"{path!r} in plumbline.yaml is not a JSONPath: {problem}; write $.name.name."
        ) from None


def _opened(value: Any, levels: int = MAX_LEVELS) -> Any:
    """Return a value in which each text that is JSON, as in the envelope of another system, is what it holds."""
    if isinstance(value, dict) and levels:
        return {name: _opened(field, levels - 1) for name, field in value.items()}
    if isinstance(value, list) and levels:
        return [_opened(item, levels - 1) for item in value]
    if isinstance(value, str) and levels and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            return _opened(load_json(value), levels - 1)
    return value


def _text_at(path: jsonpath.JSONPath | jsonpath.CompoundJSONPath | None, values: Sequence[Any]) -> str:
    """Return the first text, number or boolean at a path in one of the values; empty if there is none."""
    return next(filter(None, (_text_in(value, path) for value in values if path is not None)), "")


def _text_in(value: Any, path: jsonpath.JSONPath | jsonpath.CompoundJSONPath) -> str:
    import jsonpath

    try:
        match = path.match(value)
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0][:200]
        raise MalformedInput(
            f"The generic webhook cannot be searched for {path}: {problem}; nest it less deeply."
        ) from None
    match match.obj if match is not None else None:
        case bool(scalar):
            return str(scalar).lower()
        case str(scalar):
            return scalar
        case int(scalar) | float(scalar):
            return str(scalar)
        case _:
            return ""


def _time(text: str) -> datetime | None:
    """Return a time with its zone, or a number of seconds since 1970; None for anything else."""
    counted = fields.epoch(text)
    if counted is not None:
        return counted
    try:
        return _TIME.validate_python(text)
    except ValidationError:
        return None


FORMAT = fields.ConfiguredFormat(
    SOURCE, GenericSection, _ends(MEANING_OF), lambda section: GenericFormat(section).parse
)
