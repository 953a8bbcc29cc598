"""Changes of a source: the one engine for every source whose things are listed and read one by one.

A source names its places, such as channels or libraries, each of which may fail by itself. A place lists its entries: what
is there, its version, who may read it, and how it is read. The engine reads those that are new or changed, or that have
other readers, and keeps in the cursor what it read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from adapters.http import Gone, Refused
from adapters.sources.section import cursor_of, mark, positions_of
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.ports import LeftOut, SourceChanges

BATCH = 100  # entries that are read before they are passed on
UNAUTHORIZED = 401
PAGE = "#page="  # what follows the id of an entry in that of one of its documents

Indexed = Mapping[str, Collection[str]]
"""The ids of the indexed documents of each entry."""


T = TypeVar("T")


def valid(kind: TypeAdapter[T], value: object, problem: str) -> T:
    """Return what a server answered, as JSON or read. Raises Refused with the problem for anything else."""
    try:
        return kind.validate_json(value) if isinstance(value, bytes) else kind.validate_python(value)
    except ValidationError as error:
        raise Refused(problem, 0) from error


@dataclass(frozen=True, slots=True)
class Entry:
    """A page, file or thread that is there. The ids of its documents begin with the source's name, the place's id and `id`.

    `version` changes with its content; it is empty if that may change without another version, and None if the content is as
    before, as far as is known. `read` raises Refused and MalformedInput; other entries that it returns are read too.
    """

    id: str
    readers: frozenset[str]
    version: str | None
    read: Callable[[], Awaitable[Sequence[Document | LeftOut | Entry]]]
    name: str = ""


class Mark(NamedTuple):
    """The state in which an entry was read: digests of its version, empty if it must be read again, and of its readers."""

    version: str
    readers: str
    name: str
    has_text: bool


@dataclass(frozen=True, slots=True)
class Position:
    """The position in a place: read completely at `full_at` (seconds), then up to `link`, which only the place understands.

    `others` is left out of it until it is read completely again. All of it is only valid for the `state` of the place.
    """

    state: str = ""
    link: str = ""
    full_at: float = 0.0
    others: tuple[LeftOut, ...] = ()
    marks: Mapping[str, Mark] = field(default_factory=dict[str, Mark])


@dataclass(frozen=True, slots=True)
class ListingPart:
    """A part of a listing, and the position that is reached with it. `gone` are ids of entries.

    `documents` are those that the listing itself contains. `is_whole`: with those before, these are all entries of the place.
    """

    entries: Sequence[Entry] = ()
    position: Position = Position()
    documents: Sequence[Document] = ()
    gone: Collection[str] = ()
    left_out: Sequence[LeftOut] = ()
    is_whole: bool = False


class SourcePlace(ABC):
    """A part of a source that is read, and may fail, by itself. `label` names it for people."""

    id = ""
    label = ""

    async def state(self) -> str:
        """Return a text that changes when everything must be read again. Raises Gone if nobody may read the place now."""
        return ""

    @abstractmethod
    def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        """Yield the entries in parts: all, or what changed since the position. Raises SourceUnavailable."""

    async def prepare(self, batch: Sequence[Entry]) -> None:  # noqa: B027 — few places need it
        """Request what several entries, which are read next, have in common."""


@dataclass(frozen=True, slots=True)
class SourcePlaces:
    """The places of a source, and sentences about what is not there. Unless they are all, what others had stays."""

    places: Sequence[SourcePlace]
    refusals: Sequence[str] = ()
    are_all: bool = True


_POSITIONS = TypeAdapter(dict[str, Position])


class TrackedSource(ABC):
    """A source of which the changes are tracked. With `is_divided`, the ids of its documents name their place."""

    name: str
    is_divided = False

    @abstractmethod
    async def places(self) -> SourcePlaces:
        """Return the places. Raises SourceUnavailable."""

    async def changes(self, cursor: str, known_ids: frozenset[str]) -> AsyncIterator[SourceChanges]:
        """Yield the changes, as `ChangingSource` says. A place that refuses keeps no other from being read."""
        positions, there = positions_of(cursor, _POSITIONS), await self.places()
        indexed, refusals = self._indexed(known_ids), list(there.refusals)
        for place in there.places:
            position = positions.get(place.id, Position())
            try:
                async for part, reached in _read(place, position, indexed.get(place.id, {})):
                    positions[place.id] = reached
                    yield replace(part, cursor=cursor_of(positions))
            except Refused as error:
                refusals.append(f"{place.label}: {error}" if place.label else str(error))
        left = {*indexed, *positions} - {place.id for place in there.places} if there.are_all else set[str]()
        removed = frozenset(known_id for place in left for ids in indexed.get(place, {}).values() for known_id in ids)
        kept = {place: position for place, position in positions.items() if place not in left}
        yield SourceChanges((), removed, cursor_of(kept))
        if refusals:
            raise SourceUnavailable(" ".join(refusals))

    def _indexed(self, known_ids: frozenset[str]) -> dict[str, dict[str, set[str]]]:
        """Return the indexed documents of each entry, by place."""
        places = dict[str, dict[str, set[str]]]()
        for known_id in known_ids:
            place, _, entry = known_id.removeprefix(f"{self.name}/" if self.is_divided else self.name).partition("/")
            places.setdefault(place, {}).setdefault(entry.partition(PAGE)[0], set()).add(known_id)
        return places


class OnePlace(TrackedSource, SourcePlace):
    """A source that is read as a whole."""

    async def places(self) -> SourcePlaces:
        return SourcePlaces([self])


async def _read(
    place: SourcePlace, position: Position, indexed: Indexed
) -> AsyncIterator[tuple[SourceChanges, Position]]:
    try:
        state = await place.state()
    except Gone:
        if removed := {known_id for ids in indexed.values() for known_id in ids}:
            yield SourceChanges((), frozenset(removed), ""), Position()
        raise
    if position.state != state:
        position = Position(state)
    reading = _Reading(indexed, dict(position.marks))
    async for chunk in place.listing(position, indexed):
        due = deque(reading.due(chunk.entries))
        while True:
            batch = [due.popleft() for _ in range(min(BATCH, len(due)))]
            await place.prepare(batch)
            for entry in batch:
                due += reading.due(await reading.read(entry))
            if not due:
                reading.end(chunk)
                position = replace(chunk.position, state=state)
            yield reading.part(), replace(position, marks=dict(reading.marks))
            if not due:
                break


class _Reading:
    """A reading of a place: what was read of it since the last part, and what is known of its entries."""

    def __init__(self, indexed: Indexed, marks: dict[str, Mark]) -> None:
        self.marks = marks
        self._indexed = indexed
        self._listed = set[str]()
        self._documents = list[Document]()
        self._removed = set[str]()
        self._left_out = list[LeftOut]()

    def due(self, entries: Sequence[Entry]) -> list[Entry]:
        """Return those of the listed entries that must be read."""
        self._listed |= {entry.id for entry in entries}
        return [entry for entry in entries if self._is_due(entry, self.marks.get(entry.id))]

    def _is_due(self, entry: Entry, read: Mark | None) -> bool:
        return (
            read is None
            or not read.version
            or read.readers != mark("", entry.readers)
            or read.has_text != (entry.id in self._indexed)
            or entry.version not in (None, read.version)
        )

    async def read(self, entry: Entry) -> list[Entry]:
        """Read an entry, and return those that were found in it.

        One that cannot be read is named, and stays as it was if its readers are the same.
        """
        before, old, readers = self._indexed.get(entry.id, ()), self.marks.get(entry.id), mark("", entry.readers)
        try:
            parts = await entry.read()
        except Refused as error:
            if error.status == UNAUTHORIZED:
                raise
            if isinstance(error, Gone) and not before:  # since it was listed
                return []
            self._left_out.append(LeftOut(entry.name, str(error)))
            self._removed |= {*before} if old is None or old.readers != readers else set()
            self.marks[entry.id] = Mark("", readers, entry.name, bool(before))
            return []
        except MalformedInput as error:
            parts = [LeftOut(entry.name, str(error))]
        documents = [part for part in parts if isinstance(part, Document) and part.text.strip()]
        left_out = [part for part in parts if isinstance(part, LeftOut)]
        self._documents += documents
        self._left_out += left_out
        self._removed |= {*before} - {document.id for document in documents}
        version = old.version if entry.version is None and old else entry.version
        if version is not None:
            self.marks[entry.id] = Mark("" if left_out else version, readers, entry.name, bool(documents))
        return [part for part in parts if isinstance(part, Entry) and part.id not in self._listed]

    def end(self, chunk: ListingPart) -> None:
        """Take note of what else a part of the listing says, once all of its entries are read."""
        gone = {*chunk.gone, *((self._indexed.keys() | self.marks.keys()) - self._listed if chunk.is_whole else ())}
        self._removed |= {known_id for entry in gone for known_id in self._indexed.get(entry, ())}
        self._documents += chunk.documents
        self._left_out += chunk.left_out
        for entry in gone & self.marks.keys():
            del self.marks[entry]

    def part(self) -> SourceChanges:
        """Return what was read since the last part."""
        part = SourceChanges(tuple(self._documents), frozenset(self._removed), "", tuple(self._left_out))
        self._documents, self._removed, self._left_out = [], set(), []
        return part
