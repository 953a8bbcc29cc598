"""Serialization of the positions in each channel of a chat as a cursor."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

P = TypeVar("P")


def mark(name: str, readers: Iterable[str]) -> str:
    """Return a digest that changes exactly when the channel's name or readers do."""
    return hashlib.blake2b("\x00".join((name, *sorted(readers))).encode(), digest_size=8).hexdigest()


def positions_of(cursor: str, position: Callable[..., P]) -> dict[str, P]:
    """Return the position of each channel; empty for an empty or invalid cursor."""
    try:
        return {str(channel): position(**value) for channel, value in json.loads(cursor).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def cursor_of(positions: Mapping[str, DataclassInstance]) -> str:
    """Return the cursor for `positions_of`."""
    return json.dumps({channel: asdict(position) for channel, position in positions.items()}, sort_keys=True)
