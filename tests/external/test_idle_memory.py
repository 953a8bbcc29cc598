"""What a bot needs that nobody talks to: with both Teams SDKs and Slack's in memory, and the sample company indexed."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import aiohttp
import pytest

from tests.external.slack_emulator import ARTIFACTS, eventually, free_port, process
from tests.external.teams_playground import STARTED_WITHIN, answers, environment

pytestmark = pytest.mark.external

LIMIT = 420.0  # MiB
SETTLING = 30.0  # seconds after which the sample company is embedded, and what was needed to start given back

EVERYTHING = "import slack_bolt.async_app, adapters.teams.sdk_botbuilder"
START = f"{EVERYTHING}; from bot.cli import main; main()"


async def test_an_idle_bot_with_every_sdk_in_memory_is_small(tmp_path: Path) -> None:
    port = free_port()
    command = [sys.executable, "-c", START, "serve"]
    async with (
        aiohttp.ClientSession() as session,
        process(command, tmp_path / "bot.log", environment(tmp_path, port, "builtin")) as pid,
    ):
        await eventually(lambda: answers(session, f"http://127.0.0.1:{port}/readyz"), "it is ready", STARTED_WITHIN)
        await asyncio.sleep(SETTLING)
        resident = _resident(pid)
    ARTIFACTS.mkdir(exist_ok=True)
    (ARTIFACTS / "idle-memory.json").write_text(json.dumps({"resident_mib": round(resident, 1), "limit_mib": LIMIT}))
    assert resident < LIMIT


def _resident(pid: int) -> float:
    """MiB of a process and its children."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS:")) / 1024
    return own + sum(_resident(int(child)) for child in children)
