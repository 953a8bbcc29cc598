"""What is set for channels in memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from core.model.conversation import Place, Platform
from core.model.silences import ChannelSettings


@dataclass(slots=True)
class InMemoryChannelSettings:
    by_channel: dict[tuple[str, str], ChannelSettings] = field(default_factory=dict)

    async def get(self, place: Place) -> ChannelSettings:
        return self.by_channel.get((place.platform, place.channel), ChannelSettings())

    async def save(self, place: Place, settings: ChannelSettings) -> None:
        self.by_channel[place.platform, place.channel] = settings

    async def adopting(self) -> list[Place]:
        return [
            Place(Platform(platform), channel)
            for (platform, channel), settings in self.by_channel.items()
            if settings.adoption.reads
        ]
