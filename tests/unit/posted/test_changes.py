"""Deployments that bots tell of in a channel, as changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from adapters.posted.changes import LATEST, PostedChanges
from core.model.alert import Posted
from core.model.conversation import Place, Platform
from core.model.errors import ChatUnavailable, ToolUnavailable
from core.ports import Partial, TimeWindow

NOW = datetime(2026, 3, 14, 10, tzinfo=UTC)
PLACE = Place(Platform.SLACK, "C0ALERTS")
DEPLOY = Posted(PLACE, "1", "A0SHIP", "ship", NOW, (":rocket: ines deploys till v2.1 to production",))
WINDOW = TimeWindow(NOW - timedelta(hours=1), NOW + timedelta(hours=1))


class FakeChannel:
    def __init__(self, *posted: Posted, count: int = 3, error: Exception | None = None) -> None:
        self.posted, self.count, self.error = posted, count, error

    async def recent(self, place: Place, limit: int) -> tuple[int, tuple[Posted, ...]]:
        if self.error is not None:
            raise self.error
        return self.count, self.posted

    async def first(self, place: Place) -> Posted | None:
        raise NotImplementedError

    async def look(self, place: Place, since: datetime) -> bool:
        raise NotImplementedError


async def test_deployments_within_the_window_are_changes_of_the_service_that_they_name() -> None:
    alert = replace(DEPLOY, message_id="2", lines=("[FIRING:1] Lamp",))
    build = replace(DEPLOY, message_id="3", lines=("Pipeline #4 of till failed",))
    review = replace(DEPLOY, message_id="4", lines=("Pull request opened: deploy faster",))
    early = replace(DEPLOY, message_id="5", at=NOW - timedelta(hours=2))
    reader = PostedChanges("alerts", PLACE, FakeChannel(alert, build, review, early, DEPLOY), ["shelf", "till"])
    (change,) = await reader.changes(WINDOW)
    assert (change.service, change.kind, change.at) == ("till", "deployment", NOW)


async def test_what_was_not_read_is_said() -> None:
    read = await PostedChanges("alerts", PLACE, FakeChannel(DEPLOY, count=LATEST), []).changes(WINDOW)
    assert isinstance(read, Partial)
    assert [gap.tool for gap in read.gaps] == ["#alerts"]
    closed = PostedChanges("alerts", PLACE, FakeChannel(error=ChatUnavailable("Slack is down.")), [])
    with pytest.raises(ToolUnavailable, match="Slack is down"):
        await closed.changes(WINDOW)
