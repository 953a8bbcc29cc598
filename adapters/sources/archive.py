"""Access to JSON files in a zip file or a folder, without unpacking."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from adapters.text_files import decoded
from core.model.errors import SourceUnavailable
from core.model.lenient_formats import json_text
from core.ports import LeftOut

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
