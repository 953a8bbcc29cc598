"""Cursors of sources, which say how far each part of a source was read, and digests by which a change is seen."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TypeVar

from pydantic import TypeAdapter
from pydantic_core import to_json

P = TypeVar("P")


def mark(name: str, texts: Iterable[str]) -> str:
    """Return a digest that changes exactly when a name or a set of readers, or of other texts, does."""
    return hashlib.blake2b("\x00".join((name, *sorted(texts))).encode(), digest_size=8).hexdigest()


def positions_of(cursor: str, kind: TypeAdapter[dict[str, P]]) -> dict[str, P]:
    """Return the position of each channel, page or item by its id; empty for an empty or invalid cursor."""
    try:
        return kind.validate_json(cursor)
    except ValueError:
        return {}


def cursor_of(positions: Mapping[str, object]) -> str:
    """Return the cursor for `positions_of`."""
    return to_json(positions).decode()
