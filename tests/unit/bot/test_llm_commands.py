from __future__ import annotations

import io

import pytest
from rich.console import Console

from bot.commands.llm_commands import run_check
from bot.config.settings import load_settings
from core.model.errors import ConfigurationError

QUIET = Console(quiet=True)


async def test_a_check_without_a_server_says_what_to_set() -> None:
    with pytest.raises(ConfigurationError, match="PLUMBLINE_LLM_URL"):
        await run_check(load_settings(), "", QUIET)


async def test_a_server_that_is_not_there_fails_the_check(unused_tcp_port: int) -> None:
    written = io.StringIO()
    assert (
        await run_check(load_settings(), f"http://127.0.0.1:{unused_tcp_port}", Console(file=written, width=200)) == 1
    )
    assert f"127.0.0.1:{unused_tcp_port} cannot be reached" in written.getvalue()
