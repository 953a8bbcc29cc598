from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from bot.commands.llm_commands import run_check, run_up
from bot.config.settings import load_settings
from core.model.errors import ConfigurationError, MalformedInput

QUIET = Console(quiet=True)


async def test_a_model_file_is_served_by_the_server_that_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, program = tmp_path / "ferry.gguf", tmp_path / "llama-server"
    model.write_bytes(b"GGUF")
    program.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    started: list[list[str]] = []
    await run_up(load_settings(), str(model), "127.0.0.1", 8099, QUIET, start=started.append)
    (command,) = started
    assert command[0] == str(program)
    assert command[command.index("--model") + 1] == str(model)
    assert command[command.index("--port") + 1] == "8099"


async def test_a_name_that_is_neither_a_file_nor_on_the_hub_starts_nothing() -> None:
    with pytest.raises(MalformedInput, match="is not a model"):
        await run_up(load_settings(), "ferry", "127.0.0.1", 8099, QUIET, hub="http://127.0.0.1:1")


async def test_a_check_without_a_server_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="PLUMBLINE_LLM_URL"):
        await run_check(load_settings(), "", QUIET)


async def test_a_server_that_is_not_there_fails_the_check(unused_tcp_port: int) -> None:
    written = io.StringIO()
    assert (
        await run_check(load_settings(), f"http://127.0.0.1:{unused_tcp_port}", Console(file=written, width=200)) == 1
    )
    assert f"127.0.0.1:{unused_tcp_port} cannot be reached" in written.getvalue()
