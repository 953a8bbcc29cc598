"""`retention:` in plumbline.yaml: how many days what is kept."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.config.section import Section

Days = Annotated[int, Field(ge=1, le=36_500)]


class RetentionSection(Section):
    """Each counts from when the thing ended; `None` keeps it for good. Nothing that is under way is deleted.

    `events` are tasks, deliveries and finished workflows: an event that is sent again after that is taken for a new one.
    `conversations` are what was said to Plumbline and by it, on the local page too. `incidents` are resolved ones, with
    the record of all posts. `predictions` are the claims that badges are calibrated with: without them, badges forget.
    """

    events: Days = 30
    conversations: Days | None = 90
    incidents: Days | None = 730
    dead_letters: Days | None = 90
    build_failures: Days | None = 365
    predictions: Days | None = None
    audit: Days | None = 365
