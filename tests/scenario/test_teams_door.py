"""What may come in at POST /api/messages, on both transports."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.teams.inbound import MAX_BODY
from core.model.conversation import MAX_MESSAGE
from core.model.errors import ChatUnavailable, ConfigurationError
from tests.cases import every_case
from tests.fakes.teams_adapter import TeamsAdapter, open_teams
from tests.fakes.teams_connector import TeamsConnector

SDKS = ("builtin", "botbuilder")

BAD_TOKENS: dict[str, Callable[[TeamsConnector], str]] = {
    "garbage": lambda teams: "garbage",
    "garbage in three parts": lambda teams: "a.b.c",
    "not UTF-8": lambda teams: "\xff\xfe.\xff.\xff",
    "a header that is no object": lambda teams: "W10.W10.W10",
    "empty": lambda teams: "",
    "expired": lambda teams: teams.token(exp=int(teams.now().timestamp()) - 301),
    "not valid yet": lambda teams: teams.token(nbf=int(teams.now().timestamp()) + 3600),
    "without expiry": lambda teams: teams.token(exp=None),
    "an expiry that is no number": lambda teams: teams.token(exp="tomorrow"),
    "wrong issuer": lambda teams: teams.token(iss="https://sts.windows.net/elsewhere/"),
    "no issuer": lambda teams: teams.token(iss=None),
    "wrong audience": lambda teams: teams.token(aud="another-app"),
    "no audience": lambda teams: teams.token(aud=None),
    "an audience that is no text": lambda teams: teams.token(aud=7),
    "another service URL": lambda teams: teams.token(serviceurl="https://smba.trafficmanager.net/emea/"),
    "no service URL": lambda teams: teams.token(serviceurl=None),
    "a key that is not published": lambda teams: teams.token(key_id="key-9", key="key-9"),
    "another key under a published id": lambda teams: teams.token(key="key-9"),
    "no key id": lambda teams: teams.token(key_id=""),
    "signed with a shared secret": lambda teams: teams.token(algorithm="HS256"),
    "signed with nothing": lambda teams: teams.token(algorithm="none"),
    "tampered with": lambda teams: teams.token()[:-8] + "AAAAAAAA",
}


@pytest.fixture(params=SDKS)
async def teams(request: pytest.FixtureRequest) -> AsyncIterator[TeamsAdapter]:
    async with open_teams(request.param) as chat:
        yield chat


@pytest.fixture
async def chat() -> AsyncIterator[TeamsAdapter]:
    """One transport, where none is used."""
    async with open_teams("builtin") as chat:
        yield chat


def assert_nothing_happened(teams: TeamsAdapter) -> None:
    assert teams.inbox.questions == []
    assert teams.inbox.feedback == []
    assert teams.references.stored == {}
    assert teams.connector.sent == []


async def test_a_bad_token_is_refused_and_nothing_happens(teams: TeamsAdapter, subtests: pytest.Subtests) -> None:
    for name, token in BAD_TOKENS.items():
        with subtests.test(name=name):
            answered = await teams.deliver(teams.connector.activity(), token(teams.connector))
            assert answered.status == 401
            assert answered.text.count(".") >= 1
            assert "Traceback" not in answered.text
            assert_nothing_happened(teams)


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": ""}, {"Authorization": "Bearer"}, {"Authorization": "Basic a:b"}]
)
async def test_no_token_is_refused_and_nothing_happens(teams: TeamsAdapter, headers: dict[str, str]) -> None:
    answered = await teams.post(teams.connector.activity(), **headers)
    assert answered.status == 401
    assert_nothing_happened(teams)


async def test_a_key_that_is_not_endorsed_for_teams_is_refused(teams: TeamsAdapter) -> None:
    teams.connector.endorsements = ["webchat"]
    assert (await teams.deliver(teams.connector.activity())).status == 401
    assert_nothing_happened(teams)


async def test_a_service_url_that_is_not_teams_is_refused_even_if_it_was_signed(teams: TeamsAdapter) -> None:
    elsewhere = "https://smba.trafficmanager.net.attacker.example/"
    answered = await teams.deliver(
        teams.connector.activity(serviceUrl=elsewhere), teams.connector.token(serviceurl=elsewhere)
    )
    assert answered.status == 401
    assert_nothing_happened(teams)


async def test_a_good_token_is_let_in(teams: TeamsAdapter) -> None:
    assert (await teams.deliver(teams.connector.activity())).status == 200
    assert [question.text for question in teams.inbox.questions] == ["how do I roll back a canary?"]


async def test_the_signing_keys_are_fetched_once(teams: TeamsAdapter) -> None:
    for number in range(5):
        assert (await teams.deliver(teams.connector.activity(id=str(number)))).status == 200
    assert teams.connector.key_requests == 1


async def test_a_new_signing_key_is_fetched_when_it_is_first_used(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.key_ids = ["key-2"]
    teams.clock.advance(301)
    answered = await teams.deliver(teams.connector.activity(), teams.connector.token(key_id="key-2", key="key-2"))
    assert answered.status == 200


async def test_unknown_keys_do_not_make_us_fetch_with_every_request(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    for number in range(5):
        token = teams.connector.token(key_id=f"unknown-{number}", key="key-9")
        assert (await teams.deliver(teams.connector.activity(), token)).status == 401
    assert teams.connector.key_requests == 1


async def test_known_keys_go_on_being_used_when_the_keys_cannot_be_fetched(teams: TeamsAdapter) -> None:
    await teams.deliver(teams.connector.activity())
    teams.connector.keys_down = True
    teams.clock.advance(25 * 3600)
    assert (await teams.deliver(teams.connector.activity(id="2"))).status == 200


async def test_a_token_that_cannot_be_checked_yet_is_asked_to_come_again(teams: TeamsAdapter) -> None:
    teams.connector.keys_down = True
    assert (await teams.deliver(teams.connector.activity())).status == 503
    assert_nothing_happened(teams)
    teams.connector.keys_down = False
    teams.clock.advance(11)
    assert (await teams.deliver(teams.connector.activity())).status == 200


@every_case(
    "body",
    [
        b"",
        b"{",
        b"null",
        b"[]",
        b'"text"',
        b"\xff\xfe",
        b"{}",
        b'{"type": "message"}',
        b'{"type": "message", "channelId": "msteams", "serviceUrl": "x", "conversation": {"id": ""}}',
        b'{"type": "message", "channelId": "msteams", "serviceUrl": "x", "conversation": {"id": "a/../b"}}',
        b"[" * 100_000,
        b'{"a":' * 100_000,
    ],
)
async def test_a_malformed_body_is_answered_with_one_sentence(teams: TeamsAdapter, body: bytes) -> None:
    answered = await teams.deliver(body)
    assert answered.status == 400
    assert len(answered.text) < 500
    assert_nothing_happened(teams)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ["type", "id", "from", "recipient", "conversation", "text", "textFormat", "entities", "channelData", "value"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    fields=st.dictionaries(st.sampled_from(FIELDS), JSON_VALUES, min_size=1),
    kind=st.sampled_from(["message", "invoke"]),
)
async def test_no_activity_is_our_fault(chat: TeamsAdapter, fields: dict[str, Any], kind: str) -> None:
    activity = chat.connector.activity(type=kind, name="adaptiveCard/action") | fields
    assert (await chat.deliver(activity)).status in (200, 400, 413)


async def test_only_json_is_taken(teams: TeamsAdapter) -> None:
    answered = await teams.deliver(b"{}", **{"Content-Type": "text/plain"})
    assert answered.status == 400
    assert_nothing_happened(teams)


@pytest.mark.parametrize("size", [MAX_BODY + 1, 10_000_000])
async def test_a_body_that_is_too_large_is_refused(teams: TeamsAdapter, size: int) -> None:
    assert (await teams.deliver(b" " * size)).status == 413
    assert_nothing_happened(teams)


async def test_of_a_message_that_nobody_types_the_beginning_is_read(teams: TeamsAdapter) -> None:
    assert (await teams.deliver(teams.connector.personal(text="a" * (MAX_MESSAGE + 1)))).status == 200
    (question,) = teams.inbox.questions
    assert len(question.text) <= MAX_MESSAGE


async def test_an_inbox_that_is_down_is_not_acknowledged(teams: TeamsAdapter) -> None:
    teams.inbox.broken = ChatUnavailable("The database is down.")
    assert (await teams.deliver(teams.connector.activity())).status == 503


async def test_without_credentials_only_this_machine_is_spoken_to() -> None:
    async with open_teams("builtin", anonymous=True, tenant_ids=frozenset()) as teams:
        assert (await teams.post(teams.connector.activity())).status == 200
        assert len(teams.inbox.questions) == 1
        elsewhere = teams.connector.activity(id="2", serviceUrl="https://smba.trafficmanager.net/emea/")
        assert (await teams.post(elsewhere)).status == 401
        assert len(teams.inbox.questions) == 1


@pytest.mark.parametrize(("app_id", "anonymous"), [("", False), ("an-app", True)])
async def test_it_is_either_credentials_or_anonymous(app_id: str, anonymous: bool) -> None:
    from adapters.teams.inbound import TeamsInbound

    nothing: Any = None
    with pytest.raises(ConfigurationError):
        TeamsInbound(
            app_id=app_id,
            tenant_ids=frozenset(),
            anonymous=anonymous,
            audiences=nothing,
            inbox=nothing,
            forms=nothing,
            refresher=nothing,
            references=nothing,
            clock=nothing,
            session=nothing,
        )
