"""Past incidents from a file, both as documents and as history for triage."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, Field

from adapters.http import Moment
from adapters.section import Host
from adapters.sources.section import FileSection, Readers, records
from core.knowledge.clean_text import without_struck
from core.model.alert import Severity
from core.model.conversation import PUBLIC
from core.model.document import Document, DocumentKind
from core.model.findings import PastIncident
from core.model.text import FIX, ROOT_CAUSE, SERVICE
from core.ports import LeftOut

FAMILY = "incidents"


class _Record(BaseModel, frozen=True):
    """One line of the file, as exported by an incident tracker."""

    id: str
    title: str
    description: str
    service: str
    severity: Severity
    started_at: Moment
    resolved_at: Moment | None = None
    owner: str
    reassignments: list[str] = []
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = {}
    url: str = ""
    readers: Annotated[list[str], Field(min_length=1)] | None = None


class PastIncidentSource:
    """A JSON lines file of closed incidents. Invalid lines are left out.

    `readers` applies to incidents that do not name their readers.
    """

    def __init__(self, name: str, path: Path, readers: frozenset[str] = frozenset({PUBLIC})) -> None:
        self.name = name
        self._path = path
        self._readers = readers

    async def documents(self) -> AsyncIterator[Document | LeftOut]:
        left_out = list[LeftOut]()
        for incident in _incidents(self._path, self._readers, left_out):
            yield Document(
                id=f"{self.name}/{incident.id}",
                source=self.name,
                family=FAMILY,
                title=f"{incident.id}: {incident.title}",
                text=_text(incident),
                kind=DocumentKind.INCIDENT,
                url=incident.url,
                owner=incident.owner,
                updated_at=incident.resolved_at or incident.started_at,
                readers=incident.readers,
            )
        for each in left_out:
            yield each


def load_past_incidents(path: Path, readers: frozenset[str] = frozenset({PUBLIC})) -> list[PastIncident]:
    """Return every incident of the file. Raises SourceUnavailable if it cannot be read."""
    return list(_incidents(path, readers, []))


def _incidents(path: Path, readers: frozenset[str], left_out: list[LeftOut]) -> Iterator[PastIncident]:
    for record in records(path, _Record, left_out):
        yield PastIncident(
            **record.model_dump(exclude={"reassignments", "readers"}),
            reassignments=tuple(record.reassignments),
            readers=readers if record.readers is None else frozenset(record.readers),
        )


def _text(incident: PastIncident) -> str:
    parts = (
        ("", incident.description),
        (SERVICE, incident.service),
        (ROOT_CAUSE, incident.root_cause),
        (FIX, incident.fix),
    )
    seen = ((label, without_struck(text).strip()) for label, text in parts)
    return "\n\n".join(f"{label}{text}" for label, text in seen if text)


class PastIncidentsSection(FileSection):
    """Past incidents. `readers` applies to incidents that do not name their readers. They never become stale."""

    has_pages: ClassVar[bool] = False

    kind: Literal["past_incidents"]
    fresh_for_days: Annotated[int, Field(ge=1)] | None = None
    readers: Readers = (PUBLIC,)

    def open(self, host: Host) -> PastIncidentSource:
        return PastIncidentSource(self.name, self.path, frozenset(self.readers))

    def past_incidents(self) -> list[PastIncident]:
        return list(load_past_incidents(self.path, frozenset(self.readers)))
