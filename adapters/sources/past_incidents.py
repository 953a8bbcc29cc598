"""Past incidents from a file: as documents to answer from, and as history to triage by."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError

from adapters.sources.json_lines import objects, skip
from core.errors import MalformedInput
from core.incident import PastIncident, Severity
from core.knowledge.document import Document, DocumentKind
from core.knowledge.layout import FIX, ROOT_CAUSE, SERVICE

FAMILY = "incidents"


class _Record(BaseModel):
    """One line of the file, as an incident tracker exports it."""

    model_config = ConfigDict(frozen=True)

    id: str
    title: str
    description: str
    service: str
    severity: Severity
    environment: str = ""
    started_at: AwareDatetime
    resolved_at: AwareDatetime | None = None
    owner: str
    reassignments: list[str] = []
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = {}
    url: str = ""


class PastIncidentSource:
    """A JSON-lines file of closed incidents. A line that cannot be understood is logged and left out."""

    def __init__(self, name: str, path: Path) -> None:
        self._name = name
        self._path = path

    @property
    def name(self) -> str:
        return self._name

    async def documents(self) -> AsyncIterator[Document]:
        for incident in _incidents(self._path):
            yield Document(
                id=f"{self._name}/{incident.id}",
                source=self._name,
                family=FAMILY,
                title=f"{incident.id}: {incident.title}",
                text=_text(incident),
                kind=DocumentKind.INCIDENT,
                url=incident.url,
                owner=incident.owner,
                updated_at=incident.resolved_at or incident.started_at,
            )


def load_past_incidents(path: Path) -> list[PastIncident]:
    """Every incident of the file. Raises SourceUnavailable if it cannot be read."""
    return list(_incidents(path))


def _incidents(path: Path) -> Iterator[PastIncident]:
    for number, value in objects(path):
        try:
            yield _incident(value)
        except MalformedInput as error:
            skip(path, number, error)


def _incident(value: dict[str, Any]) -> PastIncident:
    try:
        record = _Record.model_validate(value)
    except ValidationError as error:
        detail = error.errors()[0]
        raise MalformedInput(f"`{'.'.join(map(str, detail['loc']))}`: {detail['msg']}.") from error
    return PastIncident(**record.model_dump(exclude={"reassignments"}), reassignments=tuple(record.reassignments))


def _text(incident: PastIncident) -> str:
    parts = (
        ("", incident.description),
        (SERVICE, incident.service),
        (ROOT_CAUSE, incident.root_cause),
        (FIX, incident.fix),
    )
    return "\n\n".join(f"{label}{text.strip()}" for label, text in parts if text.strip())
