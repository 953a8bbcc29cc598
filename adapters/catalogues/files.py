"""File access for catalogues: a local folder, or a source that has files, such as a repository."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol

import structlog

from adapters.text_files import decoded
from core.model.errors import SourceUnavailable

log = structlog.get_logger()

MAX_FILES = 2_000  # per catalogue
MAX_BYTES = 1_000_000  # per file

Wanted = Callable[[PurePosixPath], bool]
Files = Mapping[PurePosixPath, str]


class CatalogueFiles(Protocol):
    """Reads text files by their path within the catalogue's place."""

    async def read(self, wanted: Wanted) -> Files:
        """Return the files with a wanted path, sorted by path. Raises SourceUnavailable."""
        ...


class FolderFiles:
    """The files under a folder. Links are not followed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def read(self, wanted: Wanted) -> Files:
        return await asyncio.to_thread(self._read, wanted)

    def _read(self, wanted: Wanted) -> Files:
        if not self._folder.is_dir():
            raise SourceUnavailable(f"Catalogue {self._folder} is not a folder.")
        texts: dict[PurePosixPath, str] = {}
        for file in sorted(self._folder.rglob("*")):
            path = PurePosixPath(file.relative_to(self._folder).as_posix())
            if ".git" in path.parts or not wanted(path) or file.is_symlink() or not file.is_file():
                continue
            if len(texts) == MAX_FILES:
                raise SourceUnavailable(f"Catalogue {self._folder} has more than {MAX_FILES} files.")
            try:
                with file.open("rb") as opened:
                    texts[path] = decoded(opened.read(MAX_BYTES))
            except OSError as error:
                log.warning("catalogue_file_left_out", path=str(path), error=error.strerror)
        return texts
