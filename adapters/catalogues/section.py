"""The sections of `catalogues` in plumbline.yaml, and the files that a catalogue reads: of a folder, or of a source."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Protocol, Self

import structlog
from pydantic import model_validator

from adapters.section import Section
from adapters.text_files import decoded
from core.model.errors import SourceUnavailable
from core.model.team import Catalogue


class CatalogueSection(Section):
    """A catalogue in the folder `path`, or in the repository of the git_repository `source` with this name."""

    path: Path | None = None
    source: str = ""

    @model_validator(mode="after")
    def _from_one_place(self) -> Self:
        if (self.path is None) == (not self.source):
            raise ValueError("name either a folder (`path`) or a git_repository source (`source`)")
        return self

    @property
    def place(self) -> str:
        return self.source or str(self.path)

    @property
    def team_ids(self) -> Mapping[str, str]:
        """Return the ids of teams by the names that the catalogue has for them, as far as they differ."""
        return {}

    async def read(self, files: CatalogueFiles) -> Catalogue:
        """Return the catalogue in these files. Raises SourceUnavailable if there is none."""
        raise NotImplementedError


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
