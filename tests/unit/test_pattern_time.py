"""No text from outside, however it is made, takes more than time that grows with its length."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from adapters.html import markdown_of, parsed
from adapters.readers.definition import shipped
from adapters.secret_detector import SecretPatterns
from adapters.slack.payloads import MessageEvent, SlashCommand
from adapters.slack.payloads import parse as parse_slack
from adapters.sources.confluence_storage import to_markdown
from adapters.sources.formats import whole_words
from adapters.teams.activity import parse_activity
from adapters.teams.activity import plain_text as teams_text
from core.answering.fact_kinds import KINDS
from core.answering.model_text import cleaned
from core.incidents.incident_questions import parse_command, read_maintenance
from core.incidents.thread_notes import is_resolution
from core.knowledge.markdown import blocks
from core.model.conversation import MAX_MESSAGE
from core.rca.cluster.reading import read
from core.rca.failures import EFFECTS, FAULTS
from core.rca.log_lines import frames, message_of
from core.rca.tool_outputs import ToolOutput, records_of
from tests.adversarial import (
    MAX_RATIO,
    PACKAGES,
    adversarial_texts,
    growth_of,
    module_patterns,
    patterns_in_functions,
    reader,
)

Text = tuple[str, str, str]

NOW = datetime(2026, 3, 14, tzinfo=UTC)

BUILT_FROM_DATA = {
    "adapters.console.document._loose": "the words of a quote, escaped, in a document of at most 8 MiB",
    "adapters.readers.builds._current": "the addresses of a definition, which are tried below",
    "adapters.readers.builds.link": "the pages of a definition, which are tried below, with a project escaped",
    "adapters.slack.blocks.mentions": "the bot's own id, escaped",
    "adapters.slack.blocks.plain_text": "the bot's own id, escaped",
    "adapters.slack.interactions.listen": "constants of ours, for the names of buttons",
    "adapters.store.forgetting._forget_chat": "the id of a chat, escaped",
    "adapters.store.forgetting._forget_person": "an id of a person, escaped",
    "adapters.teams.history.is_for": "a digest of ours",
    "core.answering.model_text.stands_in": "a word, escaped",
    "core.answering.model_exam.is_right": "an expression of the exam",
    "core.knowledge.names._candidates": "names of people, escaped",
    "core.incidents.runbook._is_titled": "the name of an alert, escaped",
    "core.incidents.thread_notes._is_named": "the name of a service or a change, escaped",
    "core.knowledge.retriever.is_product": "a word, escaped",
    "core.knowledge.retriever._occurs": "a keyword, escaped",
    "core.answering.fact_kinds.of": "called for constants of the module alone, which are tried below",
    "core.answering.lookup.pattern": "names of services, teams and alerts, escaped",
    "core.knowledge.terms.spelt": "a word, escaped",
    "core.rca.cluster.faults.is_refused": "the name and the address of a service, escaped",
    "core.rca.failures._any_of": "called for knowledge.toml alone, whose phrases are tried below",
    "core.rca.failures._effect": "called for knowledge.toml alone, whose effects are tried below",
    "core.rca.failures._faults": "called for knowledge.toml alone, whose faults are tried below",
    "core.rca.incident_signals._names": "names of services, escaped",
    "core.triage.candidates.matches": "a word, escaped",
    "core.model.silences.matches": "a matcher of Alertmanager, refused if it repeats a group",
    "core.incidents.thread_notes._place_of": "the name of a service, escaped",
    "handlers.feedback.post_digest._at": "the id of a channel, escaped",
}
"""The functions that build a pattern from what they are given, and what that is."""


# Every text takes a minute; a sixtieth of them, others for each pattern, shows much of what is slow.
@pytest.mark.parametrize("share", [60, pytest.param(1, marks=pytest.mark.external)], ids=["a sixtieth", "all"])
@pytest.mark.parametrize("package", PACKAGES)
def test_no_pattern_takes_more_than_linear_time(package: str, share: int) -> None:
    slow = [
        f"{pattern.place}.{use}: {text}"
        for number, pattern in enumerate(module_patterns(package))
        for use in sorted(pattern.uses)
        for text in adversarial_texts(pattern.compiled)[number % share :: share]
        if growth_of(reader(pattern.compiled, use), text) > MAX_RATIO
    ]
    assert slow == []


def test_no_pattern_is_hidden_in_a_function() -> None:
    assert set(patterns_in_functions()) == set(BUILT_FROM_DATA)


@pytest.mark.parametrize(
    ("pattern", "use"),
    [
        (r"\s+$", "search"),
        pytest.param(r"(?:a+)+b", "match", marks=pytest.mark.external),
        pytest.param(r"<!--.*?-->", "sub", marks=pytest.mark.external),
    ],
)
def test_a_slow_pattern_is_noticed(pattern: str, use: str) -> None:
    read = reader(re.compile(pattern, re.DOTALL), use)
    assert any(growth_of(read, text, hopeless=0.2) > MAX_RATIO for text in adversarial_texts(re.compile(pattern)))


def of_definitions() -> Iterator[tuple[str, str]]:
    for definition in shipped().values():
        yield definition.project.pattern, "match"
        if (server := definition.builds) is not None:
            yield server.skipped.pattern, "search"
            yield from ((rf"\A{address}", "search") for address in server.addresses)
            yield from ((re.sub(r"\$\{[\w:]+\}", "shop/till", page.path.pattern), "match") for page in server.pages)


def test_no_pattern_of_what_is_known_takes_more_than_linear_time() -> None:
    known = [(each.line, "match") for each in EFFECTS]
    known += [(saying.words, "search") for fault in FAULTS.values() for saying in fault.says]
    known += [(pattern, "search") for kind in KINDS for pattern in (kind.asks, kind.states)]
    known += [(re.compile(pattern), use) for pattern, use in of_definitions()]
    assert len(known) > len(FAULTS)
    slow = [
        f"{pattern.pattern}: {text}"
        for pattern, use in known
        for text in adversarial_texts(pattern)
        if growth_of(reader(pattern, use), text) > MAX_RATIO
    ]
    assert slow == []


def growths(read: Callable[[str], object], *texts: Text) -> list[Text]:
    """Return the texts whose time grows faster than they do."""
    return [text for text in texts if growth_of(read, text) > MAX_RATIO]


def test_a_greeting_with_many_dots_does_not_block_the_event_loop() -> None:
    texts = [("hi", mark, "x") for mark in (".", " ", "!", ", ", "\n")]
    assert growths(parse_command, *texts) == []


def test_a_command_with_many_spaces_does_not_block_the_event_loop() -> None:
    assert growths(parse_command, ("maintenance ", " ", "\0"), ("thanks", " ", "x"), ("root cause", " ", "x")) == []
    assert growths(read_maintenance, ("", " ", "\0"), ("payments 2h", "\n", "\0"), ("payments ", "1", "x")) == []
    assert growths(is_resolution, ("", "*", "x"), ("cause", "\n", "x")) == []


def test_one_long_word_in_a_pdf_does_not_stop_the_bot() -> None:
    assert (
        growths(lambda text: whole_words(text, ()), ("", "a", ""), ("", "a-", ""), ("", "a-\n", ""), ("a-", " ", ""))
        == []
    )


@pytest.mark.parametrize("read", [teams_text, lambda text: markdown_of(parsed(text))], ids=["teams", "page"])
def test_tags_that_never_end_do_not_stop_the_bot(read: Callable[[str], object]) -> None:
    pumps = (
        "<!--",
        "<a",
        "<a ",
        "<a b='",
        '<a b="',
        "<![",
        "<![CDATA[",
        "<!",
        "<?",
        "</",
        "<a/",
        "<div>",
        "<table><tr><td>",
    )
    assert growths(read, *(("<p>", pump, "") for pump in pumps), ("x", " ", "x"), ("x", "\t", "x")) == []


def test_character_data_that_never_ends_does_not_stop_the_ingestion_of_confluence() -> None:
    def read(text: str) -> str:
        return to_markdown(text, lambda space, title: "", lambda user: "")

    assert growths(read, ("", "<![CDATA[", ""), ("<ac:link>", "<![CDATA[ ", "")) == []
    assert read("<p>a</p><![CDATA[b < c") == "a\n\nb < c"


def test_markup_that_never_ends_does_not_stop_who_reads_a_document() -> None:
    texts = [
        ("", pump, end) for pump in ("[", "![", "[a](", "`", "```\n", "# ", "|", "- ", "<", ">") for end in ("", "\0")
    ]
    assert growths(blocks, *texts, ("# a", " ", "\0")) == []
    assert growths(cleaned, *texts, ("", " ", "\0")) == []


def test_log_lines_do_not_stop_who_reads_them() -> None:
    pumps = ("\n", " \n", "a", "_", "a.", "Error", "at a.b(c.java:1)\n", "a:\n", "-", '"', "1")
    texts = [(before, pump, end) for before in ("", "x\n") for pump in pumps for end in ("", "\0")]
    assert growths(message_of, *texts) == []
    assert growths(frames, *texts) == []
    assert growths(lambda text: records_of(ToolOutput("logs", {}, text), "shop", NOW), *texts) == []
    assert growths(lambda text: read([ToolOutput("kubectl_describe", {}, f"Name: x\n{text}")], NOW), *texts) == []


def test_secrets_are_found_in_linear_time() -> None:
    pumps = (".", ")", "password=", "a", "://", "token ", "-----BEGIN PRIVATE KEY-----")
    assert growths(SecretPatterns().find, *(("password: a1", pump, "x") for pump in pumps)) == []


def test_no_more_of_a_message_is_read_than_is_stated() -> None:
    long = "a" * (MAX_MESSAGE + 1)
    event = {"channel": "C1", "ts": "1.0", "user": "U1", "text": long}
    command = {"channel_id": "C1", "user_id": "U1", "trigger_id": "1", "text": long}
    activity = {
        "type": "message",
        "channelId": "msteams",
        "serviceUrl": "https://smba.example",
        "conversation": {"id": "a"},
        "text": long,
    }
    assert len(parse_slack(MessageEvent, event).text) == MAX_MESSAGE
    assert len(parse_slack(SlashCommand, command).text) == MAX_MESSAGE
    assert len(parse_activity(json.dumps(activity).encode()).readable_text) == MAX_MESSAGE
