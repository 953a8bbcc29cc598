"""Slack sends twice, refuses for a while and waits three seconds: each question is answered once, and in time."""

from __future__ import annotations

import json
import time
from statistics import median

import pytest

from tests.external.bot_in_slack import QUESTION, over_http, workspace
from tests.external.slack_emulator import ARTIFACTS, SlackWorkspace

__all__ = ["workspace"]  # the fixture

pytestmark = [pytest.mark.external, pytest.mark.asyncio(loop_scope="module")]


@over_http
async def test_an_event_that_slack_sends_three_times_is_answered_once(workspace: SlackWorkspace) -> None:
    workspace.proxy.retries = 2
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    # The answer to a second question comes after all that the first one set off.
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1
    assert set(workspace.proxy.delivered) == {200}
    assert len(workspace.proxy.delivered) >= 4
    workspace.proxy.retries = 0


@over_http
async def test_a_rate_limit_delays_the_answer_and_nothing_is_lost_or_said_twice(workspace: SlackWorkspace) -> None:
    workspace.proxy.rate_limits = 3
    started = time.monotonic()
    asked = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
    assert time.monotonic() - started >= 2 * workspace.proxy.retry_after
    assert workspace.proxy.rate_limits == 0
    again = await workspace.say(QUESTION)
    await workspace.until(lambda said: len(said) == 1, "C0ASK", again)
    assert len(await workspace.from_bot("C0ASK", asked)) == 1


@over_http
async def test_slack_is_acknowledged_in_time_and_the_answer_follows_at_once(workspace: SlackWorkspace) -> None:
    taken: list[float] = []
    for _ in range(10):
        started = time.monotonic()
        asked = await workspace.say(QUESTION)
        await workspace.until(lambda said: len(said) == 1, "C0ASK", asked)
        taken.append(time.monotonic() - started)
    assert max(workspace.proxy.acknowledged_in) < 3.0, "Slack waits no longer than 3 s"
    (ARTIFACTS / "slack-latency.json").write_text(
        json.dumps({"answer_median_s": median(taken), "acknowledgement_max_s": max(workspace.proxy.acknowledged_in)})
    )
