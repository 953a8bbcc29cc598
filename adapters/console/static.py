"""The page's own files: style, script, mark. Small enough to be held in memory."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("static")
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def files() -> dict[str, bytes]:
    """File name → content."""
    return {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in TYPES}


def url(name: str) -> str:
    """Return the address of a file; it changes with the content, so that a browser may keep the file for ever."""
    return f"/console/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return hashlib.blake2b(files()[name], digest_size=6).hexdigest()
