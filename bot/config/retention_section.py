"""The `retention` section of plumbline.yaml."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from bot.config.section import Section

Days = Annotated[int, Field(ge=1, le=36_500)]


class RetentionSection(Section):
    """Days for which data is kept, counted from its end; `None` keeps it for good. Active data is never deleted.

    - `events`: tasks, deliveries and finished workflows. An event that is sent again later counts as new.
    - `conversations`: messages to and from the bot, including the local page.
    - `incidents`: resolved incidents, with the record of all posts.
    - `predictions`: the claims that badges are calibrated with. Deleting them deletes calibration data.
    """

    events: Days = 30
    conversations: Days | None = 90
    incidents: Days | None = 730
    dead_letters: Days | None = 90
    build_failures: Days | None = 365
    predictions: Days | None = None
    audit: Days | None = 365
