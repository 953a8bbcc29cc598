"""Reading of untrusted JSON: lines of a file, files of an archive, and rows of an answer. Invalid ones are left out and named."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from adapters.text_files import decoded, open_text
from core.model.errors import SourceUnavailable
from core.model.text import counted, json_text
from core.ports import LeftOut

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
