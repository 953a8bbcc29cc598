"""Parsing of documents in an isolated process, which a document may crash without further effect.

One process parses one file after the other and is kept between files; it is killed for a file that takes too long, and
the next file gets a new one. It has no access to our environment and its secrets. Its replies are JSON, so a process
that a document has taken over can only return false content of that document.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adapters.sources.formats import Part, has_format, max_bytes, title_from
from adapters.sources.parsing_process import IDLE_SECONDS
from core.knowledge.clean_text import with_whole_links
from core.model.conversation import PUBLIC
from core.model.document import Document
from core.model.errors import MalformedInput, SourceUnavailable
from core.model.text import counted
from core.ports import LeftOut

PROCESSOR_SECONDS = 60.0  # of processor time per file; a manual of 2,000 pages takes about half of it
WAITING_SECONDS = 180.0  # until the reply, on a busy machine
MEMORY = 1 << 30  # bytes of the process
ENDING_SECONDS = 1.0  # for an unresponsive process to exit on its own, with a reason
MAX_REPLY = 64 << 20  # bytes
MAX_ENDINGS = 5  # of files of other formats that are counted

_COMMAND = (sys.executable, "-P", "-X", "utf8", "-m", "adapters.sources.parsing_process")


@dataclass(frozen=True, slots=True)
class FileOrigin:
    """The facts about a file apart from its content. `path` is relative to the source, `url` is its public address.

    `readers` and `updated_at` apply unless the file states its own. `open_labels` are labels with which a file is open.
    """

    source: str
    path: PurePosixPath
    url: str = ""
    readers: frozenset[str] = frozenset({PUBLIC})
    open_labels: tuple[str, ...] = ()
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _FileReply:
    parts: list[Part]
    unread: list[tuple[int, str]]


_FILE = TypeAdapter(_FileReply)


def of_other_formats(paths: Iterable[PurePosixPath]) -> tuple[LeftOut, ...]:
    """Return how many files are no documents, for each of their commonest endings.

    Hidden files, and files without an ending, do not count.
    """
    shown = (path for path in paths if not any(part.startswith(".") for part in path.parts))
    counts = Counter(path.suffix.lower() for path in shown if path.suffix and not has_format(path))
    return tuple(
        LeftOut(f"*{ending}", f"{counted(count, 'file')} of a format that is not read.")
        for ending, count in counts.most_common(MAX_ENDINGS)
    )


async def documents_of(
    origin: FileOrigin, content: bytes, storage: Mapping[str, Any] | None = None
) -> list[Document | LeftOut]:
    """Return the documents in a file, one for each page of a PDF, and the pages that cannot be read.

    `storage` are the arguments of the reader of Confluence's format, if the content has it.

    The family is the first folder of the path, or the source's name for a file at the top. A file that cannot be parsed
    within the limits of time and memory is left out as a whole. Raises SourceUnavailable if no process can be started.
    """
    path = str(origin.path)
    if len(content) > max_bytes(origin.path):
        return [LeftOut(path, f"The file is larger than {max_bytes(origin.path)} bytes.")]
    try:
        request = {"suffix": origin.path.suffix.lower(), "open_labels": origin.open_labels, "storage": storage}
        reply = _FILE.validate_json(await _reply_to(request, content))
    except MalformedInput as error:
        return [LeftOut(path, str(error))]
    except ValidationError:
        return [LeftOut(path, "The file cannot be read: the process that parses it sent an invalid reply.")]
    return [
        *(_document(origin, part) for part in reply.parts),
        *(LeftOut(f"{path}, page {page}", reason) for page, reason in reply.unread),
        *(LeftOut(path, part.note, is_indexed=True) for part in reply.parts if part.note),
    ]


def placed(parts: Iterable[Document | LeftOut], name: str, **facts: Any) -> list[Document | LeftOut]:
    """Return what was read of a page, with the facts that its system knows. What is left out of it is named after it."""
    return [replace(part, **facts) if isinstance(part, Document) else replace(part, path=name) for part in parts]


def _document(origin: FileOrigin, part: Part) -> Document:
    parts = origin.path.parts
    document = Document(
        id=f"{origin.source}/{origin.path}",
        source=origin.source,
        family=parts[0] if len(parts) > 1 else origin.source,
        title=part.title or title_from(origin.path),
        text=with_whole_links(part.text, origin.url),
        url=origin.url,
        owner=part.owner,
        updated_at=part.updated_at or origin.updated_at,
        readers=origin.readers if part.readers is None else part.readers,
    )
    if part.page is None:
        return document
    anchor = f"#page={part.page}"
    return replace(
        document,
        id=f"{document.id}{anchor}",
        title=f"{part.title or origin.path.stem}, page {part.page}",
        url=f"{document.url}{anchor}" if document.url else "",
    )


async def _reply_to(request: Mapping[str, Any], content: bytes) -> bytes:
    """Return the reply of an idle process, or of a new one. Raises MalformedInput and SourceUnavailable."""
    limits = {"size": len(content), "seconds": PROCESSOR_SECONDS, "memory": MEMORY}
    process = _waiting_or_new()
    try:
        async with asyncio.timeout(WAITING_SECONDS):
            reply = await asyncio.to_thread(process.reply, json.dumps({**request, **limits}).encode(), content)
    except TimeoutError as error:
        process.kill()
        raise MalformedInput(f"The file cannot be read within {WAITING_SECONDS:.0f} seconds.") from error
    except BaseException:  # mainly cancellation: without a kill, the thread would wait for the process
        process.kill()
        raise
    refusal = json.loads(reply) if reply.startswith(b'{"error"') else {}
    if refusal.get("ends"):
        process.kill()
    else:
        process.waits_since = time.monotonic()
        _waiting.append(process)
    if refusal:
        raise MalformedInput(str(refusal["error"]))
    return reply


class _Process:
    """A process that parses one file after the other."""

    def __init__(self) -> None:
        paths = os.pathsep.join(str(Path(path).absolute()) for path in sys.path)
        try:
            self._process = subprocess.Popen(  # noqa: S603 — a command of ours
                _COMMAND,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={"PYTHONPATH": paths},
                start_new_session=True,  # so that Ctrl+C in a terminal is handled by the bot only
            )
        except OSError as error:
            raise SourceUnavailable(f"The process that parses documents cannot be started: {error}.") from error
        self.waits_since = time.monotonic()

    @property
    def still_waits(self) -> bool:
        """Return whether the process is idle and will not exit before it can be used."""
        return self._process.poll() is None and time.monotonic() - self.waits_since < IDLE_SECONDS / 2

    def reply(self, request: bytes, content: bytes) -> bytes:
        """Return the reply, a line of JSON.

        Blocks until then, or until the process is killed. Raises MalformedInput.
        """
        requests, replies = self._process.stdin, self._process.stdout
        assert requests is not None and replies is not None  # noqa: PT018 — both are pipes
        with contextlib.suppress(BrokenPipeError):
            requests.write(request + b"\n" + content)
            requests.flush()
        reply = replies.readline(MAX_REPLY)
        if reply.endswith(b"\n"):
            return reply
        if not reply:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDING_SECONDS)
        self.kill()
        too_long = f"The text of the file is longer than {MAX_REPLY} bytes."
        raise MalformedInput(too_long if reply else _reason(self._process.returncode))

    def kill(self) -> None:
        """Kill the process."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()


def _reason(code: int) -> str:
    if code == -signal.SIGXCPU:
        return f"The file takes more than {PROCESSOR_SECONDS:.0f} seconds of processor time to read."
    return f"The file crashed the process that reads it (status {code})."


_waiting = list[_Process]()


def _waiting_or_new() -> _Process:
    while _waiting:
        process = _waiting.pop()
        if process.still_waits:
            return process
        process.kill()
    return _Process()


@atexit.register
def end_waiting_processes() -> None:
    """Kill idle processes, which otherwise exit after a while."""
    while _waiting:
        _waiting.pop().kill()
