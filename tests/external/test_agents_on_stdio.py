"""`plumbline mcp`, started by the official client of the protocol as an editor would start it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import TextContent

from tests.scenario.company import SECRET_WORD, write_company

pytestmark = pytest.mark.external


async def test_an_editor_asks_over_standard_input_and_output(tmp_path: Path) -> None:
    config = write_company(tmp_path / "company")
    environment = {**os.environ, "PLUMBLINE_CONFIG": str(config), "PLUMBLINE_DATA_DIR": str(tmp_path / "data")}
    ingested = await _run("ingest", environment)
    assert ingested == 0
    server = StdioServerParameters(command=sys.executable, args=["-m", "bot", "mcp"], env=environment)
    async with Client(stdio_client(server, errlog=sys.stderr)) as client:  # by default, that of the time of import
        answer = await client.call_tool("ask", {"question": "How do I roll back a canary?"})
        hidden = await client.call_tool("ask", {"question": "Where is the master key kept?"})
    assert "slip rollback SERVICE" in _text(answer.content)
    assert SECRET_WORD not in _text(hidden.content)


async def _run(command: str, environment: dict[str, str]) -> int:
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "bot", command, env=environment)
    return await process.wait()


def _text(content: object) -> str:
    assert isinstance(content, list)
    return "\n".join(block.text for block in content if isinstance(block, TextContent))
