"""Where an incident is posted."""

from __future__ import annotations

from collections.abc import Sequence

from core.conversation import Channel, Place, Platform
from core.errors import ConfigurationError
from core.team import Route


def incident_place(
    labels: dict[str, str], routes: Sequence[Route], channels: Sequence[Channel], platforms: Sequence[Platform]
) -> Place:
    """The channel that the first matching route names, on the first of `platforms` that has it.

    Raises ConfigurationError if no route leads to a channel on a platform that is switched on.
    """
    by_name = {channel.name: channel for channel in channels}
    for route in routes:
        if not route.matches(labels):
            continue
        for platform in platforms:
            for name in route.channels:
                channel_id = by_name[name].ids.get(platform) if name in by_name else None
                if channel_id is not None:
                    return Place(platform, channel_id)
    raise ConfigurationError(
        f"No route in plumbline.yaml leads an incident with the labels {labels} to a channel on "
        f"{' or '.join(platforms)}: add a route without `match` as the last one."
    )
