"""How far each channel of a chat has been read, as the text of a cursor."""

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
    """Changes exactly when the channel's name or its readers do."""
    return hashlib.blake2b("\x00".join((name, *sorted(readers))).encode(), digest_size=8).hexdigest()


def positions_of(cursor: str, position: Callable[..., P]) -> dict[str, P]:
    """Channel → position; empty for a cursor that is empty or cannot be understood."""
    try:
        return {str(channel): position(**value) for channel, value in json.loads(cursor).items()}
    except (ValueError, TypeError, AttributeError):
        return {}


def cursor_of(positions: Mapping[str, DataclassInstance]) -> str:
    """The cursor that `positions_of` reads."""
    return json.dumps({channel: asdict(position) for channel, position in positions.items()}, sort_keys=True)
