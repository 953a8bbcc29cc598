"""What Teams refuses, or does not answer, is told as what it is, on both transports."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from adapters.teams.connector import Connector
from core.model.conversation import MessageReference, Person, Place, Platform
from core.model.errors import ChatClosed, ChatUnavailable, MessageNotFound, PlumblineError
from core.model.messages import Notice
from tests.cases import every_case
from tests.fakes.teams_adapter import TeamsAdapter
from tests.fakes.teams_connector import CHANNEL, MEMBER, PERSONAL_CHAT, TENANT, Failure, access_token
from tests.scenario.teams import ANSWER, THREAD, teams

__all__ = ["teams"]  # the fixture


@every_case(
    ("failure", "error", "retry_after"),
    [
        (Failure(429, {"Retry-After": "7"}), ChatUnavailable, 7.0),
        (Failure(429, {"Retry-After": "soon"}), ChatUnavailable, None),
        (Failure(429), ChatUnavailable, None),
        (Failure(412), ChatUnavailable, None),
        (Failure(500), ChatUnavailable, None),
        (Failure(502, body="<html>Bad gateway</html>", content_type="text/html"), ChatUnavailable, None),
        (Failure(503, {"Retry-After": "60"}), ChatUnavailable, 60.0),
        (Failure(503, body="{"), ChatUnavailable, None),
        (Failure(504), ChatUnavailable, None),
        (Failure(404, body='{"error": {"code": "ConversationNotFound", "message": "gone"}}'), MessageNotFound, None),
        (Failure(403, body='{"error": {"code": "BotNotInConversationRoster"}}'), ChatClosed, None),
        (Failure(400, body='{"error": {"code": "BadSyntax", "message": "no"}}'), PlumblineError, None),
    ],
)
@every_case("editing", [False, True])
async def test_a_refusal_is_translated_and_not_repeated_by_the_sdk(
    teams: TeamsAdapter, failure: Failure, error: type[Exception], retry_after: float | None, editing: bool
) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [failure]
    edit, post = teams.messenger.edit(MessageReference(THREAD, "1"), ANSWER), teams.messenger.post(THREAD, ANSWER, "a")
    (post if editing else edit).close()
    with pytest.raises(error) as raised:
        await (edit if editing else post)
    assert getattr(raised.value, "retry_after", None) == retry_after
    assert teams.connector.failures == []
    assert teams.connector.sent == teams.connector.updated == []


@every_case("status", [400, 403, 404])
async def test_what_one_member_alone_may_not_see_is_shown_to_everybody(teams: TeamsAdapter, status: int) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [Failure(status)]
    notice = Notice("Nothing was filed.", only_for=Person(Platform.TEAMS, MEMBER["aadObjectId"]))
    await teams.messenger.post(THREAD, notice, "refused")
    await teams.messenger.post(THREAD, notice, "taken")
    assert [sent.only_for for sent in teams.connector.sent[-2:]] == ["", MEMBER["id"]]


async def test_in_a_chat_with_one_person_nothing_is_for_one_member_alone(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.personal())
    notice = Notice("Nothing was filed.", only_for=Person(Platform.TEAMS, MEMBER["aadObjectId"]))
    await teams.messenger.post(Place(Platform.TEAMS, PERSONAL_CHAT, workspace=TENANT), notice, "refused")
    assert teams.connector.sent[-1].only_for == ""


async def test_a_service_that_is_not_there_is_unavailable(teams: TeamsAdapter) -> None:
    nowhere = {"service_url": "http://127.0.0.1:9/teams/", "tenant_id": TENANT, "threaded": True}
    await teams.references.put(CHANNEL, nowhere)
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")


async def test_nothing_is_ever_said_about_an_exception_in_the_chat(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.failures = [Failure(500)]
    with pytest.raises(ChatUnavailable):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert teams.connector.sent == []


async def test_the_access_token_is_fetched_once(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    await asyncio.gather(*(teams.messenger.post(THREAD, ANSWER, f"answer-{number}") for number in range(5)))
    assert teams.connector.tokens_issued == 1
    assert len(teams.connector.sent) == 5


@pytest.mark.parametrize(
    ("token_answer", "error"),
    [
        ((401, {"error": "invalid_client"}), ChatClosed),
        ((400, {"error": "unauthorized_client"}), ChatClosed),
        ((503, {}), ChatUnavailable),
        ((429, {}), ChatUnavailable),
        ((200, {}), ChatUnavailable),
        ((200, {"access_token": "x", "expires_in": "never"}), ChatUnavailable),
    ],
)
async def test_without_an_access_token_nothing_is_sent(
    teams: TeamsAdapter, token_answer: tuple[int, dict[str, Any]], error: type[Exception]
) -> None:
    await teams.deliver(teams.connector.activity(type="typing"))
    teams.connector.token_answer = token_answer
    with pytest.raises(error):
        await teams.messenger.post(THREAD, ANSWER, "answer")
    assert teams.connector.sent == []


async def test_a_wrong_password_is_a_matter_of_the_configuration(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    async with aiohttp.ClientSession() as session:
        token = access_token(teams.connector.cloud, session, "wrong")
        teams.messenger._connector = Connector(token, session)
        with pytest.raises(ChatClosed, match="TEAMS_APP_PASSWORD"):
            await teams.messenger.post(THREAD, ANSWER, "answer")
