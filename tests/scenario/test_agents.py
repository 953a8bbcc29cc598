"""An agent calls the read-only tools over HTTP, through the official client of the protocol."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import aiohttp
import httpx2
import pytest
import pytest_asyncio
from aiohttp.test_utils import TestServer
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.client.auth.utils import build_protected_resource_metadata_discovery_urls as metadata_addresses
from mcp.client.auth.utils import extract_resource_metadata_from_www_auth
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent

from adapters.agents import CALLER, CALLS, MAX_BODY, agent_server
from bot.config.workspace import AgentSection
from bot.web import routes
from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import describe
from bot.wiring.application import Core, ingest, new_incident_id
from bot.wiring.ports import agent_tools, open_agents
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.audit import Act, AuditEntry
from core.model.conversation import Audience, Place, Platform
from core.ports import AgentCaller
from handlers.incidents.open_incident import open_incident
from tests.scenario.company import SECRET_WORD, open_company

EDITOR, KEEPER = "the-token-of-the-editor", "the-token-of-the-keeper"
PUBLIC_URL = "https://bot.example/plumbline/"
http_client = partial(httpx2.AsyncClient, verify=False)  # reading the certificates of all authorities takes 50 ms
ALERT = "till p99 latency above 2 s: PoolTimeout, no connection within 1000 ms"


class Bot:
    def __init__(self, core: Core, address: str) -> None:
        self.core, self.address = core, address

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            http_client(headers=headers) as http,
            Client(streamable_http_client(self.address, http_client=http)) as client,
        ):
            yield client

    async def call(self, token: str, tool: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Return the text and the structured content of a reply."""
        async with self.client(token) as client:
            result = await client.call_tool(tool, arguments)
        text = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
        return text, result.structured_content or {"is_error": result.is_error}

    async def incident_in(self, channel: str, title: str) -> str:
        """Open an incident in a channel of the local page, and return its id."""
        place = Place(Platform.CONSOLE, channel)
        now = self.core.clock.now()
        alert = Alert(title, title, AlertStatus.FIRING, Severity.WARNING, now, "till", title, "")
        incident = await open_incident(
            AlertDelivery(title, "generic", title, (alert,), now),
            store=self.core.store,
            places_for=lambda _: (place,),
            new_id=new_incident_id,
        )
        assert incident is not None
        return incident.id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bot(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Bot]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("EDITOR_TOKEN", EDITOR)
        environment.setenv("KEEPER_TOKEN", KEEPER)
        async with AsyncExitStack() as stack:
            core = await stack.enter_async_context(open_company(tmp_path_factory.mktemp("company")))
            agents = (
                AgentSection(name="editor", token_env="EDITOR_TOKEN"),
                AgentSection(name="keeper", token_env="KEEPER_TOKEN", channels=("vault",)),
            )
            core = replace(
                core,
                workspace=core.workspace.model_copy(update={"agents": agents}),
                settings=core.settings.model_copy(update={"public_url": PUBLIC_URL}),
            )
            await ingest(core)
            yield Bot(core, await _served(core, stack))


async def _served(core: Core, stack: AsyncExitStack) -> str:
    async def accept(_: object) -> None:
        raise AssertionError("No webhook is sent here.")

    async def ready() -> str:
        return ""

    app = build_app(
        webhooks=Webhooks({}, accept, None, core.clock),
        chats={},
        agents=await open_agents(core, None, stack),
        ready=ready,
        add_console=lambda _: None,
    )
    server = await stack.enter_async_context(TestServer(app))
    return str(server.make_url("/mcp"))


def _call(tool: str, arguments: dict[str, object]) -> bytes:
    params = {"name": tool, "arguments": arguments}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_every_tool_is_offered_as_read_only(bot: Bot) -> None:
    async with bot.client(EDITOR) as client:
        offered = (await client.list_tools()).tools
    assert {tool.name for tool in offered} == {
        *("ask", "triage", "explain_incident", "find_incidents", "get_incident", "similar_incidents")
    }
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in offered)


async def test_a_question_is_answered_with_its_source_and_without_a_badge_until_answers_were_judged(bot: Bot) -> None:
    text, reply = await bot.call(EDITOR, "ask", question="How do I roll back a canary?")
    assert "slip rollback SERVICE" in text
    assert reply["citations"][0]["title"].startswith("Rolling back a canary")
    assert reply["badges"] == {}


async def test_a_document_is_shown_only_to_the_agent_whose_channels_may_read_it(bot: Bot) -> None:
    hidden, _ = await bot.call(EDITOR, "ask", question="Where is the master key kept?")
    shown, _ = await bot.call(KEEPER, "ask", question="Where is the master key kept?")
    assert SECRET_WORD not in hidden
    assert SECRET_WORD in shown


async def test_an_incident_of_a_private_channel_is_found_only_by_an_agent_of_that_channel(bot: Bot) -> None:
    private, public = await bot.incident_in("vault", "vault door open"), await bot.incident_in("help", "till is slow")
    found, _ = await bot.call(EDITOR, "find_incidents")
    assert public in found
    assert private not in found
    assert private in (await bot.call(KEEPER, "find_incidents", words="vault"))[0]
    refused, reply = await bot.call(EDITOR, "get_incident", incident_id=private)
    assert reply == {"is_error": True}
    assert refused == f"There is no incident {private} that this caller may see."
    assert "till is slow" in (await bot.call(EDITOR, "get_incident", incident_id=public))[0]


async def test_a_pasted_alert_gets_an_owner_and_a_cause(bot: Bot) -> None:
    owner, triaged = await bot.call(EDITOR, "triage", incident=ALERT)
    assert "Payments" in owner
    assert set(triaged["badges"]) <= {"owner"}
    cause, explained = await bot.call(EDITOR, "explain_incident", incident=ALERT)
    assert "cfg-17" in cause
    assert explained["badges"]["cause"] in ("strong", "unsure")


async def test_past_incidents_are_found_by_their_symptoms(bot: Bot) -> None:
    text, _ = await bot.call(EDITOR, "similar_incidents", text="charges of the till time out")
    assert text.splitlines()[0].startswith("- OLD-2 till charges time out")


async def test_every_call_is_in_the_audit_log(bot: Bot) -> None:
    await bot.call(KEEPER, "ask", question="When is the deployment freeze?")
    async with bot.core.store.transaction() as transaction:
        entries = [each.entry for each in await transaction.audit.latest(20)]
    shown, called = [each for each in entries if each.detail != "list"][:2]
    assert (called.act, called.actor, called.detail) == (Act.CALLED, "agent:keeper", "ask")
    assert (shown.act, shown.subject, shown.documents) == (
        Act.ANSWERED,
        called.subject,
        ("handbook/release/freeze.md",),
    )
    await bot.call(KEEPER, "get_incident", incident_id="0123456789")
    async with bot.core.store.transaction() as transaction:
        entries = [each.entry for each in await transaction.audit.latest(20)]
    refused, latest = [each for each in entries if each.detail != "list"][:2]
    assert (latest.actor, latest.detail, latest.subject) == ("agent:keeper", "get", "0123456789"), "refused ones, too"
    assert (refused.act, refused.actor, refused.detail) == (Act.REFUSED, "agent:keeper", "error")


@pytest.mark.parametrize(
    ("token", "body", "reason"),
    [
        (EDITOR, b"{", "malformed"),
        (EDITOR, b"[]", "malformed"),
        ("nobody's", b"{}", "wrong token"),
        (EDITOR, _call("no_such_tool", {}), "error"),
        (EDITOR, _call("ask", {"quest": 1}), "error"),
        (EDITOR, _call("ask", {"question": " "}), "error"),
    ],
)
async def test_a_call_that_reaches_no_tool_is_in_the_audit_log(bot: Bot, token: str, body: bytes, reason: str) -> None:
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json", "Accept": "application/json"}
    before = await _refused(bot)
    async with http_client() as http:
        await http.post(bot.address, headers=headers, content=body)
    (entry,) = (await _refused(bot))[len(before) :]
    assert entry.detail == reason


async def test_a_call_whose_body_does_not_arrive_is_given_up(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(routes, "BODY_TIMEOUT", 0.05)
    never = asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield b"{"
        await never.wait()

    before = await _refused(bot)
    async with (
        aiohttp.ClientSession(headers={"Authorization": f"Bearer {KEEPER}"}) as http,
        http.post(bot.address, data=slowly()) as answer,
    ):
        assert answer.status == 408
    assert [entry.detail for entry in (await _refused(bot))[len(before) :]] == ["unreadable"]


@pytest.mark.parametrize("token", ["none", "the-token-of-the-editoR", "é"])
async def test_a_request_without_a_valid_token_is_refused(bot: Bot, token: str) -> None:
    async with http_client() as http:
        answer = await http.post(bot.address, headers={b"Authorization": f"Bearer {token}".encode()}, json={})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("headers", "reason"), [({}, ""), ({"Authorization": "Bearer none"}, 'error="invalid_token", ')]
)
async def test_a_refusal_names_the_metadata_at_the_public_address_whatever_the_request_says(
    bot: Bot, headers: dict[str, str], reason: str
) -> None:
    foreign = {"Host": "evil.example", "X-Forwarded-Host": "evil.example", "Forwarded": "host=evil.example"}
    async with http_client(headers=foreign) as http:
        refused = await http.post(bot.address, headers=headers, json={})
        described = [await http.get(address) for address in metadata_addresses(None, bot.address)]
    address = "https://bot.example/plumbline/.well-known/oauth-protected-resource/mcp"
    assert refused.headers["WWW-Authenticate"] == f'Bearer realm="plumbline", {reason}resource_metadata="{address}"'
    assert extract_resource_metadata_from_www_auth(refused) == address  # as the official client reads it
    schema = describe()["components"]["schemas"]["ProtectedResource"] | {"additionalProperties": False}
    for answer in described:
        assert answer.status_code == 200
        assert answer.json()["resource"] == "https://bot.example/plumbline/mcp"
        assert [error.message for error in Draft202012Validator(schema).iter_errors(answer.json())] == []


@pytest.mark.parametrize(("agents", "remedy"), [(True, "set PLUMBLINE_PUBLIC_URL"), (False, "list the agents")])
async def test_without_an_address_or_agents_there_is_no_metadata_but_a_remedy(
    bot: Bot, monkeypatch: pytest.MonkeyPatch, agents: bool, remedy: str
) -> None:
    monkeypatch.setenv("EDITOR_TOKEN", EDITOR)
    monkeypatch.setenv("KEEPER_TOKEN", KEEPER)
    settings = bot.core.settings.model_copy(update={"public_url": ""})
    workspace = bot.core.workspace if agents else bot.core.workspace.model_copy(update={"agents": ()})
    async with AsyncExitStack() as stack:
        address = await _served(replace(bot.core, settings=settings, workspace=workspace), stack)
        async with http_client() as http:
            refused = await http.post(address, json={})
            answers = [await http.get(known) for known in metadata_addresses(None, address)]
    assert all(answer.status_code == 404 and remedy in answer.json()["error"] for answer in answers)
    assert refused.headers.get("WWW-Authenticate") == ('Bearer realm="plumbline"' if agents else None)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"jsonrpc": "2.0"}', b"\xff" * 300_000])
async def test_what_is_no_request_of_the_protocol_is_refused(bot: Bot, body: bytes) -> None:
    headers = {"Authorization": f"Bearer {EDITOR}", "Content-Type": "application/json", "Accept": "application/json"}
    async with http_client() as http:
        answer = await http.post(bot.address, headers=headers, content=body)
    assert 400 <= answer.status_code < 500


async def test_an_agent_that_sends_too_many_requests_is_told_how_long_to_wait(bot: Bot) -> None:
    async with http_client(headers={"Authorization": f"Bearer {EDITOR}"}) as http:
        answers = [await http.post(bot.address, content=b"") for _ in range(CALLS + 1)]
    assert answers[-1].status_code == 429
    assert answers[-1].headers["Retry-After"] == "1"


async def test_a_refused_call_over_standard_input_is_recorded(bot: Bot) -> None:
    """The server is the same as over HTTP; only its transport differs."""
    CALLER.set(AgentCaller("local", Audience()))
    server = agent_server(agent_tools(bot.core))
    before = await _refused(bot)
    for name, arguments in (("no_such_tool", {}), ("ask", {"quest": 1}), ("get_incident", {"incident_id": "0"})):
        with suppress(Exception):
            await server.call_tool(name, arguments)
    entries = (await _refused(bot))[len(before) :]
    assert [(each.actor, each.detail) for each in entries] == [("agent:local", "error")] * 3


async def test_a_malformed_message_over_standard_input_is_recorded(bot: Bot, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [b"{", b"[]", b'{"jsonrpc": "2.0", "id": 7, "method": "tools/remove", "params": {}}', b"\xff\xfe"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\n".join(lines) + b"\n")))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO()))
    before = await _refused(bot)
    CALLER.set(AgentCaller("terminal", Audience()))
    await agent_server(agent_tools(bot.core)).run_stdio_async()
    entries = (await _refused(bot))[len(before) :]
    assert [(each.actor, each.detail) for each in entries] == [("agent:terminal", "malformed")] * len(lines)


async def test_who_was_shown_the_list_of_tools_is_recorded(bot: Bot) -> None:
    async with bot.client(KEEPER) as client:
        await client.list_tools()
    async with bot.core.store.transaction() as transaction:
        (entry,) = [each.entry for each in await transaction.audit.latest(1, act=Act.CALLED)]
    assert (entry.actor, entry.subject, entry.detail) == ("agent:keeper", "tools", "list")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "https://bot.example.evil.example", "http://[::2"])
async def test_page_of_another_site_is_refused_whatever_its_token(bot: Bot, origin: str) -> None:
    answer = await _post(bot, _call("find_incidents", {}), Origin=origin)
    assert answer.status_code == 403
    assert "origin" in answer.json()["error"]
    assert (await _refused(bot))[-1].detail == "foreign origin"


@pytest.mark.parametrize("origin", ["https://bot.example", "http://localhost:6274"])
async def test_page_of_the_bot_or_of_this_machine_may_call(bot: Bot, origin: str) -> None:
    assert (await _post(bot, _call("find_incidents", {}), Origin=origin)).status_code == 200


async def test_body_that_is_too_large_is_refused_and_recorded(bot: Bot) -> None:
    answer = await _post(bot, b" " * (MAX_BODY + 1))
    assert answer.status_code == 413
    assert "KiB" in answer.json()["error"]
    assert (await _refused(bot))[-1].detail == "too large"


async def test_lists_of_resources_and_prompts_are_in_the_audit_log(bot: Bot) -> None:
    CALLER.set(AgentCaller("reader", Audience()))
    server = agent_server(agent_tools(bot.core))
    for show in (server.list_resources, server.list_resource_templates, server.list_prompts):
        assert await show() == []
    async with bot.core.store.transaction() as transaction:
        latest = await transaction.audit.latest(10_000, act=Act.CALLED)
    listed = {each.entry.subject for each in latest if each.entry.detail == "list"}
    assert {"resources", "resource templates", "prompts"} <= listed


async def _post(bot: Bot, body: bytes, **more: str) -> httpx2.Response:
    accepted = "application/json, text/event-stream"
    headers = {"Authorization": f"Bearer {KEEPER}", "Content-Type": "application/json", "Accept": accepted}
    async with http_client() as http:
        return await http.post(bot.address, headers=headers | more, content=body)


async def _refused(bot: Bot) -> list[AuditEntry]:
    """Return the refused calls, oldest first."""
    async with bot.core.store.transaction() as transaction:
        latest = await transaction.audit.latest(10_000, act=Act.REFUSED)
    return [each.entry for each in reversed(latest)]
