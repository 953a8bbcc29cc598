from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from bot.commands.doctor import run_doctor
from bot.config.settings import load_settings
from tests.fakes.llama_server import fake_llama_server


async def said(tmp_path: Path, url: str = "") -> str:
    """The doctor's words about the language model."""
    written = io.StringIO()
    await run_doctor(load_settings(llm_url=url, data_dir=tmp_path), Console(file=written, width=200))
    lines = written.getvalue().splitlines()
    first = next(number for number, line in enumerate(lines) if "language model:" in line)
    return "\n".join(lines[first : first + 2])


async def test_no_model_is_well(tmp_path: Path) -> None:
    assert (await said(tmp_path)).startswith("✓ language model: off")


async def test_a_model_that_is_not_there_is_named_with_its_address(tmp_path: Path, unused_tcp_port: int) -> None:
    finding = await said(tmp_path, f"http://127.0.0.1:{unused_tcp_port}")
    assert finding.startswith("✗ language model: fails at answers")
    assert f"127.0.0.1:{unused_tcp_port} cannot be reached" in finding


async def test_a_context_that_is_too_small_is_found(tmp_path: Path) -> None:
    async with fake_llama_server() as server:
        finding = await said(tmp_path, server.url)
    assert finding.startswith("✗ language model: fails at context")
    assert "512 tokens for a prompt and its reply; 4096 are needed" in finding
