"""The process that parses documents: `python -m adapters.sources.parsing_process`.

It reads requests from standard input and writes replies to standard output, as expected by `adapters.sources.parsing`.
A frame is one line of JSON; a request states the `size` of the content that follows it. Harmful documents affect only
this process, which has no secrets and is limited in memory and processor time.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO

try:
    import resource
except ImportError:  # a platform without such limits; only the other side's timeout applies
    resource = None

from core.model.errors import MalformedInput

IDLE_SECONDS = 60.0  # without a request, after which the process exits


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer requests until there are no more, or none arrives for a while."""
    while select.select([requests], [], [], IDLE_SECONDS)[0]:
        line = requests.readline()
        if not line:
            return
        request = json.loads(line)
        content = requests.read(request["size"])
        _limit(request["memory"], request["seconds"])
        reason = f"The file takes more than {request['memory'] >> 20} MiB of memory to read."
        too_large = json.dumps({"error": reason, "ends": True})
        try:
            reply = json.dumps(_reply(request, content), default=_plain)
        except MemoryError:
            reply = ""  # the memory is still in use here, so nothing else is done
        replies.write((reply or too_large).encode() + b"\n")
        replies.flush()
        if not reply:
            return


def _reply(request: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return the content of a document, or the reason why it cannot be read. Raises MemoryError."""
    try:
        return _parsed(request, content)
    except MalformedInput as error:
        return {"error": str(error)}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 — a document can make a library raise anything, and must not affect others
        return {"error": f"The file cannot be read: {type(error).__name__}."}


def _parsed(request: dict[str, Any], content: bytes) -> dict[str, Any]:
    # Imported with the first document, so that the process starts sooner.
    from adapters.sources.formats import parse
    from core.knowledge.markdown import blocks

    parts, unread = parse(request["suffix"], content, request["open_labels"], request["storage"])
    for part in parts:
        blocks(part.text)  # the caller does this again; here it is done within the limits
    return {"parts": [asdict(part) for part in parts], "unread": unread}


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else sorted(value) if isinstance(value, frozenset) else None


def _limit(memory: int, seconds: float) -> None:
    """Allow the next document this much memory in total, and this much additional processor time."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime + seconds),
    }
    for kind, limit in limits.items():
        try:
            resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))
        except (ValueError, OSError):  # the platform does not support this limit, or has a lower one
            continue


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that output of libraries does not mix with replies
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
