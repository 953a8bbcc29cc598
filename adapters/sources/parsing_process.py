"""The process in which documents are parsed: `python -m adapters.sources.parsing_process`.

It reads requests from its standard input and writes replies to its standard output, as `adapters.sources.parsing` asks
for them. A frame is a line of JSON; that of a request states the `size` of the content which follows it. Whatever a
document does to a library, it does it here: in a process without secrets, with a limit of memory and of processor time.
"""

from __future__ import annotations

import json
import math
import os
import select
import sys
from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, BinaryIO
from urllib.parse import quote_plus

try:
    import resource
except ImportError:  # a platform without such limits: the time that the other side waits is the only one
    resource = None

from core.model.errors import MalformedInput

IDLE_SECONDS = 60.0  # without a request, after which the process ends


def serve(requests: BinaryIO, replies: BinaryIO) -> None:
    """Answer each request, until there are no more or none comes for a while."""
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
            reply = ""  # and no more here, where what took the memory still stands
        replies.write((reply or too_large).encode() + b"\n")
        replies.flush()
        if not reply:
            return


def _reply(request: dict[str, Any], content: bytes) -> dict[str, Any]:
    """Return what stands in a document, or why it cannot be read. Raises MemoryError."""
    try:
        return _parsed(request, content)
    except MalformedInput as error:
        return {"error": str(error)}
    except MemoryError:
        raise
    except Exception as error:  # noqa: BLE001 — a document can make a library raise anything, and costs only itself
        return {"error": f"The file cannot be read: {type(error).__name__}."}


def _parsed(request: dict[str, Any], content: bytes) -> dict[str, Any]:
    # Loaded with the first document of their kind: whoever waits for the process waits less.
    from adapters.sources.formats import parse, storable
    from core.knowledge.markdown import blocks

    if "storage_of" in request:
        return {"text": storable(_confluence_text(content.decode(), **request["storage_of"]))}
    parts, unread = parse(request["suffix"], content)
    for part in parts:
        blocks(part.text)  # is done again by whoever splits it into passages: it has to end within the limits
    return {"parts": [asdict(part) for part in parts], "unread": unread}


def _confluence_text(storage: str, site: str, space: str, names: Mapping[str, str]) -> str:
    from adapters.sources.confluence_storage import to_markdown

    def page_link(key: str, title: str) -> str:
        return f"{site}/display/{key or space}/{quote_plus(title)}"

    return to_markdown(storage, page_link, lambda user: names.get(user, "somebody"))


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else sorted(value) if isinstance(value, frozenset) else None


def _limit(memory: int, seconds: float) -> None:
    """Let the next document take so many bytes in all, and so many seconds of processor time more than were taken yet."""
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
        except (ValueError, OSError):  # a platform that does not know this limit, or has a lower one
            continue


def main() -> None:
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # so that nothing that a library prints stands among the replies
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
