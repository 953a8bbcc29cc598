"""`/mcp` of a running bot and `plumbline mcp`, called by the Inspector, the protocol's reference tool for looking at servers."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.external.slack_emulator import HERE, STARTED_WITHIN, eventually, free_port, process
from tests.scenario.company import SECRET_WORD, write_company

pytestmark = pytest.mark.external

INSPECTOR = HERE / "node_modules" / ".bin" / "mcp-inspector"
TOKEN = "the-token-of-the-inspector"
TOOLS = {"ask", "triage", "explain_incident", "get_incident", "find_incidents", "similar_incidents"}
ASKED = ("--method", "tools/call", "--tool-name", "ask", "--tool-arg")
QUESTION, SECRET = "question=How do I roll back a canary?", "question=Where is the master key kept?"


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[str]:
    """Serve the company, and return the address of the MCP server."""
    config, port = write_company(folder / "company"), free_port()
    with config.open("a") as file:
        file.write("agents:\n  - {name: inspector, token_env: AGENT_TOKEN}\n")
    address = f"http://127.0.0.1:{port}"
    variables = {"PLUMBLINE_PORT": str(port), "PLUMBLINE_PUBLIC_URL": address, "AGENT_TOKEN": TOKEN}
    bot = process([sys.executable, "-m", "bot", "serve"], folder / "bot.log", environment(folder, config) | variables)
    async with bot, aiohttp.ClientSession() as session:

        async def is_ready() -> bool:
            try:
                async with session.get(f"{address}/readyz") as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

        await eventually(is_ready, "the bot is ready", STARTED_WITHIN)
        yield f"{address}/mcp"


def environment(folder: Path, config: Path) -> dict[str, str]:
    own = {"PLUMBLINE_CONFIG": str(config), "PLUMBLINE_DATA_DIR": str(folder / "data")}
    foreign = ("PLUMBLINE_", "SLACK_", "TEAMS_")
    return {name: value for name, value in os.environ.items() if not name.startswith(foreign)} | own


async def inspect(home: Path, *arguments: str) -> dict[str, Any]:
    """Return what the Inspector prints. Raises AssertionError with its complaint if it fails."""
    inspector = await asyncio.create_subprocess_exec(
        *(str(INSPECTOR), "--cli", *arguments),
        env=os.environ | {"HOME": str(home)},  # where it keeps a list of servers
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    printed, complaint = await inspector.communicate()
    assert inspector.returncode == 0, complaint.decode()
    return json.loads(printed)


async def test_the_inspector_lists_the_tools_and_asks_over_http(tmp_path: Path) -> None:
    async with served(tmp_path) as address:
        over_http = (address, "--header", f"Authorization: Bearer {TOKEN}")
        listed = (await inspect(tmp_path, *over_http, "--method", "tools/list"))["tools"]
        answer = await inspect(tmp_path, *over_http, *ASKED, QUESTION)
        hidden = await inspect(tmp_path, *over_http, *ASKED, SECRET)
        with pytest.raises(AssertionError, match="auth_required"):
            await inspect(tmp_path, address, "--method", "tools/list")
    assert {tool["name"] for tool in listed} == TOOLS
    assert all(tool["annotations"]["readOnlyHint"] for tool in listed)
    assert "slip rollback SERVICE" in answer["content"][0]["text"]
    assert answer["structuredContent"]["citations"][0]["title"].startswith("Rolling back a canary")
    assert SECRET_WORD not in json.dumps(hidden)


async def test_the_inspector_starts_the_server_on_its_standard_input_and_output(tmp_path: Path) -> None:
    config = write_company(tmp_path / "company")
    own = environment(tmp_path, config)
    ingestion = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", "ingest", env=own)
    assert await ingestion.wait() == 0
    named = [argument for name in own if name.startswith("PLUMBLINE_") for argument in ("-e", f"{name}={own[name]}")]
    answer = await inspect(tmp_path, *named, sys.executable, "-m", "bot", "mcp", *ASKED, QUESTION)
    assert "slip rollback SERVICE" in answer["content"][0]["text"]
