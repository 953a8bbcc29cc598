"""Microsoft Graph says no, or nothing: nothing is posted twice, and nothing waits for ever."""

from __future__ import annotations

import asyncio
import sys
import traceback
from contextlib import suppress
from dataclasses import replace

import pytest

from adapters.http import ONCE
from adapters.teams import history
from adapters.teams.history import GRAPH_OUTAGE_LIMIT
from core.model.errors import ChatUnavailable
from tests.fakes.teams_adapter import TeamsAdapter
from tests.scenario.teams_history import CHANNEL_PLACE, THREAD, asked_of_graph, lost_post, teams

__all__ = ["teams"]  # the fixture


async def test_without_consent_a_post_cannot_be_found_and_the_log_says_what_to_do(
    teams: TeamsAdapter, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    teams.connector.graph.consented = False
    await lost_post(teams)
    for _ in range(3):
        assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    assert len(asked_of_graph(teams)) == 1, "it is not asked again at once"
    said = caplog.text + capsys.readouterr().out
    assert "ChannelMessage.Read.Group" in said
    assert "teams-package" in said


async def test_who_is_refused_again_and_again_does_not_fill_the_memory(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    teams.connector.graph.consented = False
    depths: list[int] = []

    def log(*_: object, **__: object) -> None:
        depths.append(len(list(traceback.walk_tb(sys.exc_info()[2]))))

    monkeypatch.setattr(history.log, "info", log)
    for _ in range(5):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    assert depths[1] == depths[-1], "an error that is raised again holds whoever met it before"


async def test_consent_that_is_given_later_counts(teams: TeamsAdapter) -> None:
    teams.connector.graph.consented = False
    reference = await lost_post(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
    teams.connector.graph.consented = True
    teams.clock.advance(history.CLOSED_FOR.total_seconds())
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_channel_of_a_team_that_is_not_known_is_not_asked_for(teams: TeamsAdapter) -> None:
    elsewhere = replace(CHANNEL_PLACE, channel="19:elsewhere@thread.tacv2")
    assert await teams.messenger.find(elsewhere, "intent") is None
    assert asked_of_graph(teams) == []


async def test_a_team_that_the_app_was_removed_from_is_not_asked_for(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    teams.connector.team_channels.clear()
    assert await teams.messenger.find(reference.place, "intent") is None
    assert asked_of_graph(teams) == []


@pytest.mark.parametrize("headers", [{"Retry-After": "0.1"}, {}])
async def test_a_request_that_is_throttled_for_a_moment_is_made_again(
    teams: TeamsAdapter, headers: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RETRIES", replace(history.RETRIES, first_pause=0.1))
    reference = await lost_post(teams)
    teams.connector.graph.refusals.refuse(429, headers)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_request_that_is_throttled_for_long_says_how_long(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    teams.connector.graph.refusals.refuse(429, {"Retry-After": "17"})
    with pytest.raises(ChatUnavailable) as raised:
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    assert raised.value.retry_after == 17
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_post_does_not_wait_as_long_as_graph_wants_to_be_left_alone(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    teams.connector.graph.refusals.refuse(429, {"Retry-After": "3600"})
    with pytest.raises(ChatUnavailable) as raised:
        await teams.messenger.find(reference.place, "intent")
    assert raised.value.retry_after == GRAPH_OUTAGE_LIMIT.total_seconds()


@pytest.mark.parametrize("status", [429, 502, 503])
async def test_while_graph_is_down_nothing_is_posted_twice_but_nothing_waits_for_ever(
    teams: TeamsAdapter, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RETRIES", ONCE)
    await lost_post(teams)
    teams.connector.graph.refusals.refuse(status, times=99)
    for _ in range(2):
        with pytest.raises(ChatUnavailable):
            await teams.messenger.find(CHANNEL_PLACE, "intent")
    teams.clock.advance(GRAPH_OUTAGE_LIMIT.total_seconds())
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None


async def test_of_a_storm_of_posts_in_doubt_none_waits_for_ever(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "RETRIES", ONCE)
    monkeypatch.setattr(history, "MAX_DOUBTS", 3)
    teams.connector.graph.refusals.refuse(503, times=99)
    waiting = [f"intent {number}" for number in range(8)]
    for _ in range(2):
        for intent in tuple(waiting):
            with suppress(ChatUnavailable):
                assert await teams.messenger.find(CHANNEL_PLACE, intent) is None
                waiting.remove(intent)
        teams.clock.advance(GRAPH_OUTAGE_LIMIT.total_seconds())
    assert waiting == []


async def test_a_graph_that_hangs_is_one_that_is_down(teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "SEARCH_DEADLINE", 0.2)
    monkeypatch.setattr(history, "THREAD_DEADLINE", 0.2)
    hanging = asyncio.Event()
    teams.connector.graph.refusals.hold(hanging)
    with pytest.raises(ChatUnavailable):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    with pytest.raises(ChatUnavailable):
        await teams.threads.earlier(THREAD, teams.clock.now(), 9)
    hanging.set()


async def test_nobody_waits_again_and_again_for_a_graph_that_hangs(
    teams: TeamsAdapter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "THREAD_DEADLINE", 0.2)
    hanging = asyncio.Event()
    teams.connector.graph.refusals.hold(hanging)
    for _ in range(3):
        with pytest.raises(ChatUnavailable):
            await teams.threads.earlier(THREAD, teams.clock.now(), 9)
    assert len(asked_of_graph(teams)) == 1
    hanging.set()
    monkeypatch.undo()
    teams.clock.advance(history.SILENCE.total_seconds())
    assert await teams.threads.earlier(THREAD, teams.clock.now(), 9) == ()
    assert len(asked_of_graph(teams)) == 2


async def test_a_connector_service_that_does_not_tell_the_team_is_unavailable(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    teams.connector.teams_down = True
    with pytest.raises(ChatUnavailable):
        await teams.messenger.find(CHANNEL_PLACE, "intent")
    teams.connector.teams_down = False
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_token_that_expired_is_fetched_anew(teams: TeamsAdapter) -> None:
    reference = await lost_post(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference
    teams.connector.graph.expire_tokens()
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") == reference


async def test_a_token_that_expires_under_several_requests_is_no_missing_consent(teams: TeamsAdapter) -> None:
    posts = [await lost_post(teams, intent=f"intent {number}") for number in range(4)]
    assert await teams.messenger.find(CHANNEL_PLACE, "other") is None
    teams.connector.graph.expire_tokens()
    finding = [teams.messenger.find(CHANNEL_PLACE, f"intent {number}") for number in range(4)]
    assert await asyncio.gather(*finding) == posts


async def test_a_tenant_that_gives_the_app_no_token_for_graph_is_one_without_consent(teams: TeamsAdapter) -> None:
    await lost_post(teams)
    assert await teams.messenger.find(CHANNEL_PLACE, "other") is None
    teams.connector.graph.expire_tokens()
    teams.connector.token_answer = (401, {"error": "invalid_client"})
    assert await teams.messenger.find(CHANNEL_PLACE, "intent") is None
