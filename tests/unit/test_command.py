from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.command import Command, CommandName, parse_command


@pytest.mark.parametrize("text", ["help", " HELP\n", "", "  \n"])
def test_help_and_empty_text_ask_for_help(text: str) -> None:
    assert parse_command(text) == Command(CommandName.HELP)


def test_status_alone_is_a_command() -> None:
    assert parse_command("Status") == Command(CommandName.STATUS)


@pytest.mark.parametrize("text", ["status of the canary?", "help me with the till", "asking for a friend"])
def test_a_question_that_begins_like_a_command_stays_a_question(text: str) -> None:
    assert parse_command(text) == Command(CommandName.ASK, text)


def test_ask_takes_the_rest_as_its_question() -> None:
    assert parse_command("ask  how do I roll back?") == Command(CommandName.ASK, "how do I roll back?")


def test_ask_alone_is_a_question_of_one_word() -> None:
    assert parse_command("ask") == Command(CommandName.ASK, "ask")


@pytest.mark.parametrize("name", [CommandName.TRIAGE, CommandName.RCA])
def test_triage_and_rca_take_pasted_text_or_none(name: CommandName) -> None:
    assert parse_command(name) == Command(name)
    assert parse_command(f"{name}\nLatencyHigh on till\nfiring") == Command(name, "LatencyHigh on till\nfiring")


@given(st.text())
def test_no_word_of_a_question_is_lost(text: str) -> None:
    command = parse_command(text)
    assert text.split()[-len(command.argument.split()) or len(text) :] == command.argument.split()
