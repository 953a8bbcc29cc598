"""Commands of `plumbline eval` that are benchmarks now."""

from __future__ import annotations

import re

import pytest
import typer
from typer.testing import CliRunner

from bot.cli import app
from bot.evaluation.commands import MOVED
from tests.benchmarks import __main__ as benchmarks


def printed(*words: str, of: typer.Typer = app) -> tuple[int, str]:
    """Return the exit code and the words that a command prints, on one line."""
    result = CliRunner().invoke(of, words)
    return result.exit_code, " ".join(re.sub("[│╭╮╰╯─]", " ", result.output).split())


@pytest.mark.parametrize("name", sorted(MOVED))
def test_a_command_that_is_a_benchmark_now_names_its_new_place(name: str) -> None:
    code, text = printed("eval", name, "--cases", "anything")
    assert code == 2
    assert f"`python -m tests.benchmarks {name}`" in text
    assert printed(name, "--help", of=benchmarks.app)[0] == 0


@pytest.mark.parametrize("name", ["answers", "triage"])
@pytest.mark.parametrize("option", [("--simulate", "0.9"), ("--simulate=0.9",)])
def test_the_simulation_of_a_model_names_its_new_place(name: str, option: tuple[str, ...]) -> None:
    code, text = printed("eval", name, *option)
    assert code == 2
    assert f"`python -m tests.benchmarks simulate {name} --right P`" in text
    code, text = printed("simulate", name, "--help", of=benchmarks.app)
    assert (code, "--right" in text) == (0, True)
