"""A storm against a bot of its own and a Slack that takes one message a second: the short variant of `eval load --storm`.

How soon each alert is acknowledged is measured there: here it would say how busy the machine is.
"""

from __future__ import annotations

import pytest

from tests.benchmarks import storm

pytestmark = pytest.mark.external

MAX_GROWTH = 100.0  # MB of resident memory


async def test_a_storm_is_one_message_for_each_group_within_the_limits_of_the_chat() -> None:
    figures = await storm.run(alerts=600, groups=12, others=60, seconds=10, patience=180)
    assert (figures["lost"], figures["duplicated"], figures["refused"], figures["unfinished"]) == (0, 0, 0, 0)
    assert figures["messages"] == figures["groups"] == 13
    assert figures["settled_s"] is not None
    assert figures["too_early"] == 0
    assert figures["memory_growth_mb"] < MAX_GROWTH
