"""The sections of `sources` in plumbline.yaml, the engine that tracks what changed, and cursors, which say how far each part
of a source was read.

The engine serves every source whose things are listed and read one by one. A source names its places, such as channels or
libraries, each of which may fail by itself. A place lists its entries: what is there, its version, who may read it, and how
it is read. The engine reads those that are new or changed, or that have other readers, and keeps in the cursor what it read.

Untrusted JSON is read here, too: lines of a file, files of an archive, and rows of an answer. Invalid ones are left out and
named.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import to_json

from adapters.catalogues.section import CatalogueFiles
from adapters.http import Gone, Refused
from adapters.section import Host, Section
from adapters.text_files import decoded, open_text
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.findings import PastIncident
from core.model.text import counted, json_text
from core.ports import ChangingSource, KnowledgeSource, LeftOut, SourceChanges

MAX_LINE = 1_000_000  # bytes of one object

M = TypeVar("M", bound=BaseModel)


def records(path: Path, kind: type[M], left_out: list[LeftOut]) -> Iterator[M]:
    """Yield the valid lines of a file, and add the others to `left_out`.

    Raises SourceUnavailable if the file cannot be read.
    """
    try:
        with open_text(path) as file:
            for number, line in enumerate(file, start=1):
                if len(line) > MAX_LINE:
                    left_out.append(LeftOut(f"line {number}", f"The line is longer than {MAX_LINE} bytes."))
                elif line.strip():
                    try:
                        yield kind.model_validate_json(json_text(line))
                    except ValidationError as error:
                        problem = error.errors(include_input=False)[0]
                        reason = f"`{'.'.join(map(str, problem['loc']))}`: {problem['msg']}."
                        left_out.append(LeftOut(f"line {number}", reason))
    except OSError as error:
        raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error


def messages_in(rows: Iterable[Any], kind: type[M], left_out: list[LeftOut], path: str) -> list[M]:
    """Return the valid messages of a chat, and add the number of the others, at `path`, to `left_out`."""
    messages, errors = list[M](), list[str]()
    for row in rows:
        try:
            messages.append(kind.model_validate(row))
        except ValidationError as error:
            errors.append(str(error.errors()[0]["msg"]))
    if errors:
        reason = f"{counted(len(errors), 'message')} cannot be read: {errors[0]}."
        left_out.append(LeftOut(path, reason, is_indexed=True))
    return messages


MAX_FILE = 256 * 1024 * 1024  # bytes of one file in an archive; larger ones are left out


class Archive:
    """Files by their path within the archive. `left_out` are those, and the messages in them, that cannot be read."""

    def __init__(self, sizes: Mapping[str, int], read: Callable[[str], bytes]) -> None:
        """Create the archive of files with these sizes in bytes, of which `read` returns the content."""
        self.left_out: list[LeftOut] = []
        self._read = read
        # Some tools put everything into one top-level folder.
        tops = {name.partition("/")[0] for name in sizes}
        self._root = f"{tops.pop()}/" if len(tops) == 1 and all("/" in name for name in sizes) else ""
        self._sizes = {name.removeprefix(self._root): size for name, size in sorted(sizes.items())}

    @property
    def folders(self) -> frozenset[str]:
        """Return the top-level folders that contain JSON files."""
        return frozenset(name.partition("/")[0] for name in self._sizes if "/" in name)

    def files(self, folder: str) -> list[str]:
        """Return the JSON files in a folder and its subfolders, sorted by name."""
        return [name for name in self._sizes if name.startswith(f"{folder}/") and name.endswith(".json")]

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return the objects of a file with a list of objects; empty if the file is missing or contains something else."""
        if name not in self._sizes:
            return []
        if self._sizes[name] > MAX_FILE:
            self.left_out.append(LeftOut(name, f"The file is larger than {MAX_FILE} bytes."))
            return []
        try:
            value = json.loads(json_text(decoded(self._read(self._root + name))))
        except (
            ValueError,
            zipfile.BadZipFile,
            zlib.error,
            RuntimeError,
        ) as error:  # RuntimeError: encrypted, or nested too deeply
            self.left_out.append(LeftOut(name, f"The file cannot be read: {error}."))
            return []
        rows = [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []
        if not isinstance(value, list) or len(rows) < len(value):
            self.left_out.append(LeftOut(name, "The file is no list of objects.", is_indexed=bool(rows)))
        return rows


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Open an archive. Raises SourceUnavailable if it does not exist or cannot be read."""
    try:
        if path.is_dir():
            folder = path.resolve()
            inside = (file for file in folder.rglob("*.json") if file.resolve().is_relative_to(folder))
            sizes = {file.relative_to(folder).as_posix(): file.stat().st_size for file in inside if file.is_file()}
            yield Archive(sizes, lambda name: (folder / name).read_bytes())
            return
        with zipfile.ZipFile(path) as file:
            sizes = {info.filename: info.file_size for info in file.infolist() if info.filename.endswith(".json")}
            yield Archive(sizes, file.read)
    except (OSError, zipfile.BadZipFile) as error:
        raise SourceUnavailable(f"The archive {path} cannot be read: {error}.") from error


BATCH = 100  # entries that are read before they are passed on
UNAUTHORIZED = 401
PAGE = "#page="  # what follows the id of an entry in that of one of its documents

Indexed = Mapping[str, Collection[str]]
"""The ids of the indexed documents of each entry."""


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
