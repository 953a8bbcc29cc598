"""The home page of a person in a chat: their incidents, the bot's knowledge, its settings and its abilities."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.model.incident import Incident


@dataclass(frozen=True, slots=True)
class KnownSource:
    """How fresh what is known from a source is. `is_read` is False while it could not be read since then."""

    name: str
    documents: int
    read_at: datetime
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Home:
    """`mine` are the open incidents that the person took, or that their team is called for, newest first.

    `others` are further open ones that they may know of. `settings` are names and values, `can` what can be said.
    """

    mine: tuple[Incident, ...]
    others: tuple[Incident, ...]
    passages: int
    sources: tuple[KnownSource, ...]
    settings: tuple[tuple[str, str], ...]
    can: tuple[str, ...]
