"""An incident whose change nobody recorded, from the webhook through `serve` to Slack, investigated by a language model.

The model is a server of its own that a test scripts; the bot is a process of its own.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.block_kit import in_utc, texts
from tests.fakes.investigation import call, finalise
from tests.fakes.llama_server import FakeLlamaServer, fake_llama_server
from tests.folders import copy_folder
from tests.scenario.home import Home, alarm
from tests.scenario.slack import WatchedSlack

QUOTE = "PoolTimeout: no connection within 1000 ms (total=4, active=4)"
CAUSE = "All 4 connections of the till are in use, so charges wait for one"
SOLUTION = "Raise the maximum of connections of the till again."
DISPROOF = "The till has free connections while charges wait."
FOUND = finalise(CAUSE, "till", solution=SOLUTION, disproof=DISPROOF, evidence=[QUOTE], responsibility="own code")
MODELS = "models: {use: never, causes: always, investigation: {seconds: SECONDS}}\n"

Script = Callable[[dict[str, Any]], str]


def looking(*replies: str) -> Script:
    """A model that takes one step after the other, by the results that it was given."""

    def reply(body: dict[str, Any]) -> str:
        prompt = json.dumps(body)
        if "The statements of the report" in prompt:
            return json.dumps({str(number): "said" for number in range(1, prompt.count("Nearest: ") + 1)})
        results = prompt.count("Result of ")
        return replies[min(results, len(replies) - 1)]

    return reply


LOOKS = (call("read_logs", service="till"), call("read_metrics", service="till"))


@asynccontextmanager
async def told(furnished: Path, folder: Path, script: Script | None, *, seconds: int = 60) -> AsyncIterator[list[str]]:
    """Yield the texts of the incident's message and of its details, investigated with a model or without one (None)."""
    copy_folder(furnished, folder)
    (folder / "company/live/now/changes.jsonl").write_text("")
    config = folder / "company/plumbline.yaml"
    config.write_text(config.read_text() + MODELS.replace("SECONDS", str(seconds)))
    async with WatchedSlack() as slack, fake_llama_server(context=200_000) as server:
        await _scripted(server, script)
        home = Home(folder, slack, PLUMBLINE_LLM_URL=server.url if script is not None else "")
        async with home.life() as bot:
            assert (await alarm(await bot.address()))[0] == 202
            await bot.finishes("details")
            await bot.stop()
        yield ["\n".join(texts(message["blocks"])) for message in slack.messages]


async def _scripted(server: FakeLlamaServer, script: Script | None) -> None:
    if script is hanging:
        server.waits = asyncio.Event()
    elif script is not None:
        server.script = script


def hanging(_: dict[str, Any]) -> str:
    raise AssertionError("It never replies.")


async def test_what_the_agent_finds_where_the_evidence_has_no_cause_is_what_people_read(
    furnished: Path, tmp_path: Path
) -> None:
    async with told(furnished, tmp_path, looking(*LOOKS, FOUND)) as (message, details):
        assert CAUSE.partition(",")[0] in message
        assert "Possibly: " in message
        assert CAUSE in details
        assert SOLUTION not in message  # what only a model proposes is not the next step
        assert "the language model" in message
        assert "%" not in message
        assert QUOTE in details
        assert DISPROOF in details
        assert SOLUTION in details
        assert "read_logs(till)" in details


LYING = finalise("The vault was robbed.", "till", solution="Run `rob --back`.", evidence=["a robber entered at noon"])


@pytest.mark.parametrize(
    ("script", "seconds"),
    [
        pytest.param(hanging, 1, id="hanging"),
        pytest.param(looking(*LOOKS, LYING), 60, id="lying", marks=pytest.mark.external),
        pytest.param(looking("?"), 60, id="babbling", marks=pytest.mark.external),
    ],
)
async def test_a_model_that_hangs_lies_or_babbles_leaves_the_message_as_it_is_without_one(
    script: Script, seconds: int, furnished: Path, tmp_path: Path
) -> None:
    async with told(furnished, tmp_path / "without", None) as (without, _):
        pass
    async with told(furnished, tmp_path / "with", script, seconds=seconds) as (message, _):
        assert _lines(message) == _lines(without)


def _lines(message: str) -> list[str]:
    """Return the owner, the cause and the next step, which do not depend on the clock but for its seconds."""
    return [line for line in in_utc(message).splitlines() if any(label in line for label in ("Owner", "Cause", "Next"))]
