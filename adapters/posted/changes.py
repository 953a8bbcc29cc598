"""Deployments that bots tell of in adopted channels, as changes. They are read when somebody asks, and not kept."""

from __future__ import annotations

from collections.abc import Collection

from adapters.posted.recognise import recognise
from core.incidents.thread_notes import service_in
from core.model.alert import Posted, PostedKind
from core.model.conversation import Place
from core.model.errors import PlumblineError, ToolUnavailable
from core.model.findings import Gap, GapReason
from core.ports import Change, ChannelReader, Partial, TimeWindow

LATEST = 200  # messages of a channel that are read
UNREAD = "only the latest {count} messages were read, which begin later"


class PostedChanges:
    """Implements `core.ports.ChangeReader` for one channel, whose deployments are told of these services."""

    def __init__(self, channel: str, place: Place, reader: ChannelReader, services: Collection[str]) -> None:
        self.name = f"#{channel}"
        self._place = place
        self._reader = reader
        self._services = services

    async def changes(self, window: TimeWindow) -> list[Change]:
        try:
            count, posted = await self._reader.recent(self._place, LATEST)
        except PlumblineError as error:
            raise ToolUnavailable(str(error)) from error
        changes = [self._change(each) for each in posted if window.start <= each.at < window.end]
        is_whole = count < LATEST or min((each.at for each in posted), default=window.start) <= window.start
        gaps = [] if is_whole else [Gap(self.name, GapReason.LEFT_OUT, UNREAD.format(count=count))]
        return Partial(sorted(filter(None, changes), key=lambda each: each.at), gaps)

    def _change(self, posted: Posted) -> Change | None:
        recognised = recognise(posted)
        if recognised.kind is not PostedKind.CHANGE:
            return None
        text, url = "\n".join(posted.lines), next((address for _, address in posted.links), "")
        return Change(
            posted.message_id,
            posted.at,
            "deployment",
            service_in(text, self._services) or recognised.delivery.alerts[0].service,
            "",
            recognised.title,
            text,
            url=url,
        )
