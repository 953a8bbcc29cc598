"""Find the functions and files in a stack trace."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_FRAMES = 40  # of one record
MAX_TRACE = 20_000  # characters read of a record

_PYTHON = re.compile(
    r'^[^\S\n]*+File "(?P<path>[^"\n]{1,300})", line (?P<line>\d{1,7}), in (?P<symbol>[\w<>.]{1,200})', re.MULTILINE
)
_JAVA = re.compile(
    r"^[^\S\n]*+at (?P<symbol>[\w$.]{1,300})\.(?P<method>[\w$<>]{1,200})\((?P<file>[\w$]{1,200}\.\w{1,10}):(?P<line>\d{1,7})\)",
    re.MULTILINE,
)
_NODE = re.compile(
    r"^[^\S\n]*+at (?:(?:async |new )?(?P<symbol>[\w$.<>]{1,300}) )?\(?(?:file://)?(?P<path>[^\s():]{1,300}):(?P<line>\d{1,7}):\d{1,7}\)?",
    re.MULTILINE,
)
_GO = re.compile(
    r"^(?P<symbol>[\w./\-()*]{1,300})\([^\n]{0,300}\)\n\s+(?P<path>/?[^\s:]{1,300}\.go):(?P<line>\d{1,7})", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class Frame:
    """A function that was running. `symbol` may be qualified; `path` is as in the trace, with `/` between its parts."""

    symbol: str
    path: str
    line: int


def frames(text: str) -> tuple[Frame, ...]:
    """Return the frames of the stack traces in a record: Python, Java, Go and Node.js."""
    if "\n" not in text:
        return ()
    distinct = dict.fromkeys(frame for frame in _frames(text[:MAX_TRACE]))
    return tuple(distinct)[:MAX_FRAMES]


def _frames(text: str) -> Iterator[Frame]:
    for match in _PYTHON.finditer(text):
        yield Frame(match["symbol"], match["path"].replace("\\", "/"), int(match["line"]))
    for match in _JAVA.finditer(text):
        package = match["symbol"].split(".")[:-1]
        yield Frame(f"{match['symbol']}.{match['method']}", "/".join([*package, match["file"]]), int(match["line"]))
    for match in _GO.finditer(text):
        yield Frame(match["symbol"].rpartition("/")[2], match["path"], int(match["line"]))
    for match in _NODE.finditer(text):
        yield Frame(match["symbol"] or "", match["path"], int(match["line"]))
