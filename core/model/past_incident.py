"""Past incidents, from which later ones are judged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.model.alert import Severity
from core.model.conversation import PUBLIC


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A similar past incident; `similarity` is in [0, 1]. All texts are untrusted.

    `same_cause`: its cause is the cause found now, so its fix may help again.
    """

    id: str
    title: str
    owner: str
    root_cause: str
    fix: str
    similarity: float
    url: str = ""
    same_cause: bool = False


@dataclass(frozen=True, slots=True)
class PastIncident:
    """A closed incident of the history that triage and root-cause analysis learn from.

    `readers` are the reader names that may see it (see `Audience`), `veiled` those of the fields that fewer may see, who
    must be among all of them.
    """

    id: str
    title: str
    description: str
    service: str
    severity: Severity
    started_at: datetime
    owner: str
    environment: str = ""
    resolved_at: datetime | None = None
    reassignments: tuple[str, ...] = ()
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    veiled: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict[str, tuple[frozenset[str], ...]])

    def without(self, hidden: Collection[frozenset[str]]) -> PastIncident:
        """Return the incident with the fields empty whose readers are among the hidden ones."""
        blank = {name: "" for name, readers in self.veiled.items() if any(each in hidden for each in readers)}
        return replace(self, **blank) if blank else self


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A past incident and its cosine similarity to the text that was asked for, in (0, 1]."""

    incident: PastIncident
    similarity: float
