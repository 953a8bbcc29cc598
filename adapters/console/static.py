"""Static files of the page (styles, scripts, logo), held in memory."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).with_name("static")
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}


@cache
def files() -> dict[str, bytes]:
    """Return the content of each file by name."""
    return {path.name: path.read_bytes() for path in FOLDER.iterdir() if path.suffix in TYPES}


def url(name: str) -> str:
    """Return the address of a file. It changes with the content, so that browsers may cache the file for good."""
    return f"/console/static/{name}?v={_version(name)}"


@cache
def _version(name: str) -> str:
    return hashlib.blake2b(files()[name], digest_size=6).hexdigest()
