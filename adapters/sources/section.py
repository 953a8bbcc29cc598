"""The sections of `sources` in plumbline.yaml, and cursors, which say how far each part of a source was read."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

from pydantic import Field, TypeAdapter
from pydantic_core import to_json

from adapters.catalogues.section import CatalogueFiles
from adapters.section import Host, Section
from core.model.findings import PastIncident
from core.ports import ChangingSource, KnowledgeSource

Readers = Annotated[tuple[str, ...], Field(min_length=1)]  # `public`, `channel:NAME`, `person:PLATFORM:ID`
SourceName = Annotated[str, Field(pattern="^[^/]+$")]  # the first part of its documents' ids
Identities = Annotated[dict[str, tuple[str, ...]], Field(default_factory=dict)]  # of another system, to reader names


class SourceSection(Section):
    """A source. Documents are marked as stale `fresh_for_days` after their last change; null disables that."""

    has_pages: ClassVar[bool] = True  # which tell people what to do; a record of what happened does not
    has_files: ClassVar[bool] = False  # that a catalogue may be in, see `files`

    name: SourceName
    fresh_for_days: Annotated[int, Field(ge=1)] | None = 365

    @property
    def place(self) -> str:
        """Return a short description of the location."""
        raise NotImplementedError

    def open(self, host: Host) -> KnowledgeSource | ChangingSource:
        """Return the source. Raises ConfigurationError, for example for a missing secret."""
        raise NotImplementedError

    def files(self, host: Host) -> CatalogueFiles:
        """Return the files of the source. Raises ConfigurationError, as `open` does."""
        raise NotImplementedError

    def past_incidents(self) -> Sequence[PastIncident]:
        """Return the closed incidents in the source, from which triage learns."""
        return ()


class FileSection(SourceSection):
    """A source in a file or a folder of this machine."""

    path: Path

    @property
    def place(self) -> str:
        return self.path.name


def readers_of(identities: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """Return the readers by identity."""
    return {identity: frozenset(readers) for identity, readers in identities.items()}


P = TypeVar("P")


def mark(name: str, texts: Iterable[str]) -> str:
    """Return a digest that changes exactly when a name or a set of readers, or of other texts, does."""
    return hashlib.blake2b("\x00".join((name, *sorted(texts))).encode(), digest_size=8).hexdigest()


def positions_of(cursor: str, kind: TypeAdapter[dict[str, P]]) -> dict[str, P]:
    """Return the position of each channel, page or item by its id; empty for an empty or invalid cursor."""
    try:
        return kind.validate_json(cursor)
    except ValueError:
        return {}


def cursor_of(positions: Mapping[str, object]) -> str:
    """Return the cursor for `positions_of`."""
    return to_json(positions).decode()
