"""The three sample incidents on one running bot: what their messages quote, and what is answered in their threads."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from bot.commands.demo import SAMPLE_COMPANY, stage
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import ingest, open_core
from tests.scenario.bot_client import BotClient, Message, of_kind
from tests.scenario.mortal_bot import MortalBot

POOL, STORM, LAG = "connection-pool", "check-in-storm", "position-lag"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True, slots=True)
class Incidents:
    """A running bot, and the root message of each sample incident's thread."""

    client: BotClient
    roots: Mapping[str, int]

    async def answered(self, name: str, question: str) -> str:
        """Ask in an incident's thread; the answer."""
        root = self.roots[name]
        before = len(await self._replies(root))
        await self.client.submit("console/messages", channel="incidents", thread=str(root), text=question)

        def found(messages: list[Message]) -> str | None:
            replies = [each for each in messages if each["thread"] == root]
            return replies[before + 1]["payload"]["text"] if len(replies) > before + 1 else None

        return await self.client.until("incidents", found)

    async def _replies(self, root: int) -> list[Message]:
        return [each for each in await self.client.messages("incidents") if each["thread"] == root]

    async def shown(self, name: str) -> Message:
        """The incident as its message shows it."""
        (root,) = [each for each in await self.client.messages("incidents") if each["id"] == self.roots[name]]
        return root["payload"]["incident"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sample(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Incidents]:
    folder = tmp_path_factory.mktemp("sample")
    company = folder / "company"
    shutil.copytree(SAMPLE_COMPANY, company, ignore=shutil.ignore_patterns("live", "chat", "__pycache__"))
    for other in [each for each in (company / "documents").iterdir() if each.name != "runbooks"]:
        shutil.rmtree(other)  # what is not asked for here takes long to be indexed
    config = company / "plumbline.yaml"
    config.write_text(
        config.read_text("utf-8").replace("  - {kind: chat_threads, name: chat, path: chat/threads.jsonl}\n", "")
    )
    environment = {
        "PLUMBLINE_CONFIG": str(config),
        "PLUMBLINE_DATA_DIR": str(folder / "data"),
        "PLUMBLINE_PORT": "0",
    }
    settings = Settings.model_validate(environment)
    async with open_core(settings, load_workspace(config)) as core:
        await ingest(core)
    # They are looked at one by one, and happen within a minute only here.
    bot = MortalBot(environment, folder / "log", constants={"core.incidents.folding.STORM": timedelta()})
    try:
        async with aiohttp.ClientSession() as session:
            client = BotClient(await bot.address(), session)
            roots = {name: await _happens(name, company / "live", client) for name in (POOL, STORM, LAG)}
            yield Incidents(client, roots)
    finally:
        await asyncio.to_thread(bot.close)


async def _happens(name: str, live: Path, client: BotClient) -> int:
    body = await asyncio.to_thread(stage, SAMPLE_COMPANY / "live" / name, live / name, datetime.now(UTC))
    async with client.session.post(
        f"{client.address}webhooks/alertmanager", data=body, headers={"Content-Type": "application/json"}
    ) as response:
        assert response.status == 202, await response.text()
        incident_id = (await response.json())["incident"]
    return await client.root_with_details(incident_id)


def expected(name: str) -> dict[str, object]:
    return json.loads((SAMPLE_COMPANY / "live" / name / "expected.json").read_text("utf-8"))


ON_CALL = {
    POOL: "Payments. On call: ",
    STORM: "Identity. On call: Samuel Oyelaran",
    LAG: "Fleet. On call: Kofi Arvidsen",
}
QUESTIONS = {
    "what does the runbook say?": {
        POOL: ["Pool exhaustion", "revert the commit in harbour-config", "hikaricp_connections_max"],
        STORM: ["401 storm", "identityctl keys activate"],
        LAG: ["VesselPositionLagHigh", "topk(14, vessel_position_age_seconds)"],
    },
    "how do I fix this?": {
        POOL: ["revert the commit", "INC-0043", "Reverted the commit in harbour-config"],
        STORM: ["go back to signing with the previous key", "INC-0128", "identityctl jwks publish --force"],
        LAG: ["VesselPositionLagHigh"],
    },
    "what changed?": {
        POOL: ["Most probable cause: config CHG-9212", "CHG-9212 of payment-gateway by Mateo Silvestri"],
        STORM: ["Most probable cause: rotation CHG-9261", "CHG-9258 of check-in"],
        LAG: ["CHG-92"],
    },
    "who is on call?": {name: [told] for name, told in ON_CALL.items()},
    "show me the logs": {
        POOL: ["HikariPool-1 - Connection is not available", "lines of payment-gateway; "],
        STORM: ["JwksPublisher", "lines of check-in; "],
        LAG: ["lines of vessel-tracker; "],
    },
    "postmortem": {
        POOL: [
            "The incident is not over yet",
            "Postmortem: p99 of POST /v1/authorise",
            "CHG-9212",
        ],
        STORM: ["Postmortem: More than 5 % of requests to check-in fail", "CHG-9261"],
        LAG: ["Postmortem: Positions of vessels", "\nCause: not known"],
    },
    "what is the cause? why did it break?": {
        POOL: ["CHG-9212", "maximumPoolSize 40 -> 4"],
        STORM: ["CHG-9261", "jwks"],
        LAG: ["No cause found", "CHG-92"],
    },
    "did this happen before?": {
        POOL: ["INC-0043", "It had a similar cause."],
        STORM: ["INC-0128", "It had a similar cause."],
        LAG: ["INC-0008"],
    },
}


@pytest.mark.parametrize("name", [POOL, STORM, LAG])
@pytest.mark.parametrize("question", QUESTIONS)
async def test_what_is_asked_in_an_incidents_thread_is_answered_about_that_incident(
    sample: Incidents, question: str, name: str
) -> None:
    answer = await sample.answered(name, question)
    assert [part for part in QUESTIONS[question][name] if part not in answer] == [], answer


async def test_the_message_quotes_the_runbooks_command_and_what_fixed_the_same_cause_before(sample: Incidents) -> None:
    commands = {name: (await sample.shown(name))["findings"]["runbook"]["command"] for name in (POOL, STORM)}
    assert commands[POOL].startswith("kubectl -n payments exec deploy/payment-gateway")
    assert commands[STORM] == "identityctl keys activate --kid <previous>"
    for name, precedent in ((POOL, "INC-0043"), (STORM, "INC-0128")):
        shown = (await sample.shown(name))["findings"]["owner"]["precedents"]
        assert [past["id"] for past in shown if past["same_cause"]][:1] == [precedent]


async def test_another_question_in_the_thread_is_answered_from_the_documents(sample: Incidents) -> None:
    root = sample.roots[POOL]
    text = "How do I mute a vessel that lies in the shipyard?"
    await sample.client.submit("console/messages", channel="incidents", thread=str(root), text=text)

    def found(messages: list[Message]) -> Message | None:
        answers = [each for each in of_kind(messages, "answer") if each["thread"] == root]
        return answers[-1] if answers else None

    answer = await sample.client.until("incidents", found)
    assert "trackerctl mute" in json.dumps(answer["payload"])


async def test_a_note_that_rules_out_the_cause_has_it_investigated_again_and_only_the_message_says_so(
    sample: Incidents,
) -> None:
    root = sample.roots[LAG]
    said = "it is not the tideline broker, turns out CHG-9290 is innocent too"
    messages = await sample.client.messages("incidents")
    await sample.client.submit("console/messages", channel="incidents", thread=str(root), text=said)
    rechecked = await sample.client.incident(
        (await sample.shown(LAG))["id"], lambda incident: bool(incident["findings"]["explanation"]["rechecked_after"])
    )
    assert rechecked["findings"]["explanation"]["rechecked_after"]["text"] == said
    assert any(
        "ruled out by a person" in line and "CHG-9290" in line
        for line in rechecked["findings"]["explanation"]["ruled_out"]
    )
    assert len(await sample.client.messages("incidents")) == len(messages) + 1, "only what the person wrote is new"
