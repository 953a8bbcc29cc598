"""A person's home page in a chat: their incidents, the bot's knowledge, its settings and its commands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from core.model.incident import Incident


@dataclass(frozen=True, slots=True)
class KnownSource:
    """The freshness of a knowledge source. `is_read` is False if the last attempt to read it failed.

    `read_at` is None while it is read for the first time.
    """

    name: str
    documents: int
    read_at: datetime | None
    is_read: bool = True


@dataclass(frozen=True, slots=True)
class Home:
    """The content of a home page.

    `mine` are the open incidents that the person took, or that their team is on call for, newest first; `others` are
    further open ones that they may see. `settings` are names and values, `can` the available commands.
    """

    mine: tuple[Incident, ...]
    others: tuple[Incident, ...]
    passages: int
    sources: tuple[KnownSource, ...]
    settings: tuple[tuple[str, str], ...]
    can: tuple[str, ...]
