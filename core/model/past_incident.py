"""Past incidents, from which later ones are judged."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import datetime

from core.model.alert import Severity
from core.model.conversation import PUBLIC, PersonName, Words


@dataclass(frozen=True, slots=True)
class SimilarIncident:
    """A similar past incident; `similarity` is in [0, 1]. All texts are untrusted.

    `same_cause`: its cause is the cause found now, so its fix may help again. An audience must be among all `readers`.
    """

    id: str
    title: str
    owner: str
    root_cause: Words
    fix: Words
    similarity: float
    url: str = ""
    same_cause: bool = False
    readers: tuple[tuple[str, ...], ...] = ()
    root_cause_by: PersonName = ""
    fix_by: PersonName = ""


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
    resolved_at: datetime | None = None
    reassignments: tuple[str, ...] = ()
    root_cause: str = ""
    fix: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    veiled: dict[str, tuple[frozenset[str], ...]] = field(default_factory=dict[str, tuple[frozenset[str], ...]])
    root_cause_by: str = ""
    fix_by: str = ""

    def as_similar(self, similarity: float, *, same_cause: bool = False) -> SimilarIncident:
        """Return the incident as one that resembles another."""
        shown = [self.readers, *(each for name, veils in self.veiled.items() if getattr(self, name) for each in veils)]
        readers = tuple(tuple(sorted(each)) for each in shown)
        return SimilarIncident(
            self.id,
            self.title,
            self.owner,
            self.root_cause,
            self.fix,
            similarity,
            self.url,
            same_cause,
            readers,
            self.root_cause_by,
            self.fix_by,
        )

    def without(self, hidden: Collection[frozenset[str]]) -> PastIncident:
        """Return the incident with the fields empty whose readers are among the hidden ones."""
        blank = {name: "" for name, readers in self.veiled.items() if any(each in hidden for each in readers)}
        return replace(self, **blank) if blank else self


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A past incident and its cosine similarity to the text that was asked for, in (0, 1]."""

    incident: PastIncident
    similarity: float
