from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.incidents.incident_questions import Command, CommandName, parse_command
from tests.cases import every_case


@pytest.mark.parametrize("text", ["help", " HELP\n", "", "  \n"])
def test_help_and_empty_text_ask_for_help(text: str) -> None:
    assert parse_command(text) == Command(CommandName.HELP)


def test_status_alone_is_a_command() -> None:
    assert parse_command("Status") == Command(CommandName.STATUS)


def test_a_question_that_begins_like_a_command_stays_a_question() -> None:
    cases: list[str] = [
        "status of the canary?",
        "help me with the till",
        "asking for a friend",
        "a canary failed",
        "incidents of last week?",
        "maintenance of the till?",
        "update of the till failed",
        "quiet hours of the ledger?",
        "settings of the canary?",
        "home page is slow",
        "zebra is slow",
    ]
    for text in cases:
        assert parse_command(text) == Command(CommandName.ASK, text), text


def test_ask_takes_the_rest_as_its_question() -> None:
    assert parse_command("ask  how do I roll back?") == Command(CommandName.ASK, "how do I roll back?")


def test_ask_alone_is_a_question_of_one_word() -> None:
    assert parse_command("ask") == Command(CommandName.ASK, "ask")


@every_case(
    ("text", "name", "argument"),
    [
        ("update", CommandName.UPDATE, ""),
        ("Update till ", CommandName.UPDATE, "till"),
        ("maintenance till 2h", CommandName.MAINTENANCE, "till 2h"),
        ("quiet off", CommandName.QUIET, "off"),
        ("quiet", CommandName.QUIET, ""),
    ],
)
def test_command_takes_its_argument(text: str, name: CommandName, argument: str) -> None:
    assert parse_command(text) == Command(name, argument)


@pytest.mark.parametrize("name", [CommandName.TRIAGE, CommandName.RCA])
def test_triage_and_rca_take_pasted_text_or_none(name: CommandName) -> None:
    assert parse_command(name) == Command(name)
    assert parse_command(f"{name}\nLatencyHigh on till\nfiring") == Command(name, "LatencyHigh on till\nfiring")


def test_thanks_are_no_question() -> None:
    cases: list[str] = [
        "thanks",
        "Thanks!",
        "thank you so much",
        "ok thanks, that worked!",
        "great, thank you 🙏",
        "merci",
        "Danke schön.",
    ]
    for text in cases:
        assert parse_command(text) == Command(CommandName.THANKS), text


@pytest.mark.parametrize("text", ["thanks, and in staging?", "who thanks whom?", "thanks to whom is the till up?"])
def test_a_question_with_thanks_in_it_stays_a_question(text: str) -> None:
    assert parse_command(text) == Command(CommandName.ASK, text)


def test_a_correction_is_what_follows_the_colon() -> None:
    assert parse_command("Correct: run `it`\nand wait") == Command(CommandName.CORRECT, "run `it`\nand wait")
    assert parse_command("correct way to roll back?").name is CommandName.ASK


@given(st.text())
def test_no_word_of_a_question_is_lost(text: str) -> None:
    command = parse_command(text)
    assert text.split()[-len(command.argument.split()) or len(text) :] == command.argument.split()


@pytest.mark.parametrize(
    "text", ["root cause: the pool\nfix: 40", "Fix: rolled back; owner: payments", " *Owner*: payments"]
)
def test_a_note_on_how_an_incident_ended_is_taken_whole(text: str) -> None:
    assert parse_command(text) == Command(CommandName.RESOLUTION, text.strip())


@pytest.mark.parametrize("text", ["what was the root cause: the pool?", "root cause of INC-4?", "fix it"])
def test_a_question_about_a_cause_is_no_note(text: str) -> None:
    assert parse_command(text).name is CommandName.ASK


def test_small_talk_is_understood_and_a_question_that_begins_like_it_stays_one() -> None:
    cases: list[tuple[str, CommandName]] = [
        ("who are you", CommandName.HELLO),
        ("What is Plumbline?", CommandName.HELLO),
        ("what can you do?", CommandName.HELP),
        ("how can you help us?", CommandName.HELP),
        ("hello, what can you do?", CommandName.HELP),
        ("hey there, who are you?", CommandName.HELLO),
        ("good morning Plumbline, any open incidents?", CommandName.INCIDENTS),
        ("hello world, what can you do?", CommandName.ASK),
        ("is anything broken right now?", CommandName.INCIDENTS),
        ("the site is slow", CommandName.INCIDENTS),
        ("Everything is down!!", CommandName.INCIDENTS),
        ("our website seems really slow today", CommandName.INCIDENTS),
        ("nothing works", CommandName.INCIDENTS),
        ("its slow again", CommandName.INCIDENTS),
        ("its slow when a voucher is used", CommandName.ASK),
        ("the site is slow for customers with a voucher", CommandName.ASK),
        ("booking-api is down", CommandName.ASK),
        ("what's down?", CommandName.INCIDENTS),
        ("Is everything ok?", CommandName.INCIDENTS),
        ("what is broken in the canary?", CommandName.ASK),
        ("what can you do about a full disk?", CommandName.ASK),
        ("who are you calling when the till is down?", CommandName.ASK),
    ]
    for text, name in cases:
        assert parse_command(text).name is name, (text, name)


def test_an_alert_is_muted_for_a_length_of_time_only() -> None:
    for text in ("mute this alert for 2 h", "Mute 30 min", "mute it for 1d known noise", "mute 2h"):
        assert parse_command(text) == Command(CommandName.MUTE, text.split(maxsplit=1)[1]), text
    assert parse_command("unmute") == Command(CommandName.UNMUTE)
    assert parse_command("unmute this alert") == Command(CommandName.UNMUTE, "this alert")
    for text in ("mute", "mute this alert until Monday", "mute button 2 is broken", "unmute the microphone?"):
        assert parse_command(text) == Command(CommandName.ASK, text), text
