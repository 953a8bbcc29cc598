"""A folder of Markdown, HTML, PDF, Word and text files as a knowledge source."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Literal

from adapters.section import Host
from adapters.sources.formats import has_format, max_bytes, parser, published
from adapters.sources.parsing import FileOrigin, documents_of, of_other_formats
from adapters.sources.section import Entry, FileSection, Indexed, ListingPart, OnePlace, Position, Readers
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.ports import LeftOut


class FolderSource(OnePlace):
    """Every document in a folder and its subfolders. Each page of a PDF file is a document.

    The family is the first folder of a document's path, or the source's name for a file at the top. Links out of the
    folder are not followed. Files that cannot be parsed are left out, and those of other formats are counted.
    """

    def __init__(
        self,
        name: str,
        folder: Path,
        url: str = "",
        readers: frozenset[str] = frozenset({PUBLIC}),
        open_labels: tuple[str, ...] = (),
    ) -> None:
        """Create the source. `url` is the public address of the folder, to which a document's path is appended; may be
        empty.

        `readers` applies to documents that do not name their readers, also to those with one of `open_labels`.
        """
        self.name = name
        self._folder = folder
        self._url = url
        self._readers = readers
        self._open_labels = open_labels

    async def listing(self, position: Position, indexed: Indexed) -> AsyncIterator[ListingPart]:
        """Yield the files. Their version is a digest: those whose bytes have not changed are not even parsed."""
        entries, others = await asyncio.to_thread(self._entries)
        yield ListingPart(entries, left_out=others, is_whole=True)

    def _entries(self) -> tuple[list[Entry], list[LeftOut]]:
        root = self._folder.resolve()
        files = {PurePosixPath(path.relative_to(root)): path for path in sorted(self._files())}
        entries, left_out = list[Entry](), list(of_other_formats(files))
        for relative, path in files.items():
            name, version, read = str(relative), "", partial(self._read, relative, path)
            if has_format(relative) and not name.isprintable():
                left_out.append(LeftOut(ascii(name), "The file's name contains characters that cannot be shown."))
            elif has_format(relative):
                with suppress(MalformedInput):
                    version = hashlib.blake2b(parser() + self._content(path, relative), digest_size=16).hexdigest()
                entries.append(Entry(name, self._readers, version, read, name))
        return entries, left_out

    async def _read(self, relative: PurePosixPath, path: Path) -> list[Document | LeftOut]:
        content = await asyncio.to_thread(self._content, path, relative)
        origin = FileOrigin(self.name, relative, published(self._url, relative), self._readers, self._open_labels)
        return await documents_of(origin, content)

    def _files(self) -> Iterator[Path]:
        def fail(error: OSError) -> None:
            raise SourceUnavailable(f"The folder {error.filename} cannot be read: {error.strerror}.") from error

        root = self._folder.resolve()
        for parent, _, names in os.walk(root, onerror=fail):
            for path in (Path(parent) / name for name in names):
                if path.resolve().is_relative_to(root) and path.is_file():
                    yield path

    def _content(self, path: Path, relative: PurePosixPath) -> bytes:
        try:
            with path.open("rb") as file:
                return file.read(max_bytes(relative) + 1)
        except FileNotFoundError as error:
            raise MalformedInput("The file is gone.") from error
        except PermissionError as error:
            raise MalformedInput("Plumbline may not read the file: check its permissions.") from error
        except OSError as error:  # the disk or server may recover, so the indexed documents are kept
            raise SourceUnavailable(f"The file {path} cannot be read: {error.strerror}.") from error


class FolderSection(FileSection):
    """Markdown, HTML, PDF, Word and text files. `readers` applies to files that do not name their readers.

    `open_labels` are labels and other statements on access with which files stay open, such as `General`.
    """

    kind: Literal["folder"]
    url: str = ""
    readers: Readers = (PUBLIC,)
    open_labels: tuple[str, ...] = ()

    def open(self, host: Host) -> FolderSource:
        return FolderSource(self.name, self.path, self.url, frozenset(self.readers), self.open_labels)
