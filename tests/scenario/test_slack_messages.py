"""What people see in Slack: short, scannable, within Slack's limits, and never more than we meant to say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.slack.blocks import code, escape, link, prose
from adapters.slack.render import render
from core.answering.answer_view import DONT_KNOW, NEAREST
from core.model.alert import Severity
from core.model.answer import Sentence
from core.model.messages import AnswerMessage, IncidentDetails, IncidentMessage, Message, Notice
from tests import samples as messages
from tests.cases import every_case
from tests.fakes import block_kit
from tests.fakes.text_everywhere import everywhere
from tests.samples.engine import investigated

ATTACKS = [
    "<!channel>",
    "<!here|here>",
    "<!subteam^S0OPS|@ops>",
    "<@U0INES>",
    "<#C0INC>",
    "<https://evil.example|sign in again>",
    "<mailto:evil@evil.example|ops>",
    "&lt;!channel&gt;",
    "https://evil.example",
    "@channel",
    "`code` ``` *bold* _italic_ ~gone~",
    "\n> quoted\n• listed",
    "\u202egnp.exe\u202c",
]


def shown(message: Message) -> str:
    return "\n".join(block_kit.texts(render(message).blocks))


def interpreted(message: Message) -> Iterator[str]:
    """The texts in which Slack looks for markup."""

    def walk(value: object) -> Iterator[str]:
        if isinstance(value, dict):
            if value.get("type") == "mrkdwn":
                assert value["verbatim"] is True
                yield value["text"]
            for each in value.values():
                yield from walk(each)
        elif isinstance(value, list):
            for each in value:
                yield from walk(each)

    rendered = render(message)
    yield from walk(rendered.blocks)
    yield rendered.text


# --- nothing that we did not mean to say -----------------------------------------------------------------------------


OWN_TIME = re.compile(r"<!date\^\d+\^(?:\{date_short\} )?\{time\}\|[\w -]{0,12}\d\d:\d\d UTC>")


@every_case("attack", ATTACKS)
def test_no_text_can_mention_anybody_or_make_a_link(attack: str) -> None:
    for text in (each for message in everywhere(attack, count=2).values() for each in interpreted(message)):
        for entity in re.findall(r"<([^>]*)>", OWN_TIME.sub("", text)):
            # The one other thing in angle brackets is a link to what was given as a citation's address.
            assert attack == "https://evil.example"
            assert entity.startswith(("https://evil.example|", "https://evil.example#"))
        assert "\u202e" not in text


@given(st.text(max_size=200))
def test_escaped_text_holds_nothing_that_slack_interprets(text: str) -> None:
    for escaped in (escape(text, 3_000), code(text, 3_000), prose(text, 3_000)):
        assert "<" not in escaped
        assert ">" not in escaped
        assert re.sub(r"&(amp|lt|gt);", "", escaped).count("&") == 0
        assert "\n" not in escaped
        assert escaped.count("`") % 2 == 0
    assert re.search(r"(^|[^A-Za-z0-9])[*_~]|[*_~]([^A-Za-z0-9]|$)", _ascii(escape(text, 3_000))) is None
    assert code(text, 3_000).strip("`").count("`") == 0


@given(st.text(max_size=50), st.integers(20, 60))
def test_an_escape_is_never_cut_in_two(text: str, limit: int) -> None:
    for escaped in (escape("&<>" * 30 + text, limit), code("&<>" * 30 + text, limit), prose("&<>" * 30 + text, limit)):
        assert len(escaped) <= limit
        assert re.sub(r"&(amp|lt|gt);", "", escaped).count("&") == 0


@every_case(
    "address",
    ["javascript:alert(1)", "file:///etc/passwd", "slack://open", "//evil.example", "http://[", "https:///x", ""],
)
def test_only_a_web_address_becomes_a_link(address: str) -> None:
    assert link(address, "Rolling back", 300) == "Rolling back"


def test_an_address_cannot_end_its_link_early() -> None:
    made = link("https://docs.example/a b|c>d<!channel>?x=1&y=2", "Rolling back", 300)
    assert made == "<https://docs.example/a%20b%7Cc%3Ed%3C!channel%3E?x=1&amp;y=2|Rolling back>"


def test_an_address_that_is_too_long_leaves_its_label() -> None:
    assert link("https://docs.example/" + "a" * 3_000, "Rolling back", 300) == "Rolling back"


def test_an_identifier_keeps_its_underscores_and_a_command_stays_code() -> None:
    assert escape("kube_pod_status 2*3 _emphasis_", 100) == "kube_pod_status 2*3 ˍemphasisˍ"
    assert prose("Run `slipway rollback *_x` & see", 100) == "Run `slipway rollback *_x` &amp; see"
    assert prose("one ` alone", 100) == "one ˋ alone"
    assert (
        prose("Open **Delivery / Canary** or [the guide](https://evil.example)", 100)
        == "Open Delivery / Canary or the guide"
    )


def test_a_command_of_several_lines_can_be_copied_and_run() -> None:
    """On one line, the second command would be an argument of the first."""
    lines = "jq -r '.keys[].kid' keys.json\nidentityctl keys list"
    told = investigated()
    assert told.findings.runbook is not None
    for command, shown_as in ((lines, f"```{lines}```"), ("identityctl keys list", "`identityctl keys list`")):
        message = IncidentMessage(investigated(runbook=replace(told.findings.runbook, command=command)))
        assert shown_as in shown(message)


def _ascii(text: str) -> str:
    """Letters of other scripts are letters too."""
    return "".join("a" if c.isalnum() else c for c in text)


# --- within the limits -----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(
    text=st.one_of(
        st.text(max_size=300),
        st.builds(lambda part, times: part * times, st.text(min_size=1, max_size=20), st.integers(1, 500)),
    ),
    count=st.integers(0, 40),
    name=st.sampled_from(list(everywhere("text"))),
)
def test_any_message_is_within_slack_s_limits(text: str, count: int, name: str) -> None:
    rendered = render(everywhere(text, count)[name])
    assert block_kit.problems(rendered.text, rendered.blocks) == []


def test_references_of_a_badge_keep_to_the_limit_with_their_title() -> None:
    rendered = render(everywhere("0" * 132, 22)["badge explanation"])
    assert block_kit.problems(rendered.text, rendered.blocks) == []


def test_an_answer_is_shown_as_far_as_slack_accepts_it_and_the_rest_is_counted() -> None:
    for count, is_whole in ((10, True), (40, False)):
        sentences = tuple(Sentence(f"Sentence {number} {'x' * 500}.", (1,)) for number in range(count))
        text = shown(AnswerMessage(messages.answer(sentences=sentences)))
        left_out = count - text.count("Sentence ")
        assert (left_out == 0) is is_whole, count
        assert is_whole or f"and {left_out} more sentences" in text


def test_hypotheses_and_their_evidence_that_do_not_fit_are_counted() -> None:
    hypothesis = replace(messages.hypothesis(), evidence=messages.hypothesis().evidence * 20)
    explanation = messages.explanation(hypotheses=(hypothesis,) * 9)
    text = shown(IncidentDetails(messages.explained_incident(explanation=explanation)))
    assert "and 6 more hypotheses" in text
    assert re.search(r"and \d+ more lines of evidence", text)


# --- what it looks like ----------------------------------------------------------------------------------------------


def test_an_answer_links_every_marker_to_its_source() -> None:
    text = shown(AnswerMessage(messages.answer()))
    address = f"{messages.HANDBOOK}/change-freeze#exceptions"
    assert (
        f"release captain must agree first. <{messages.HANDBOOK}/rolling-back#during-a-canary|[1]> <{address}|[2]>"
        in text
    )
    assert f"[2] <{address}|Change freeze › Exceptions> · updated 2026-02-11" in text
    assert "●●● 86 %" in text


def test_an_answer_without_addresses_still_shows_its_markers() -> None:
    citations = tuple(replace(messages.citation(number), url="") for number in (1, 2))
    text = shown(AnswerMessage(messages.answer(citations=citations)))
    assert "release captain must agree first. [1] [2]" in text
    assert "<" not in text


def test_an_abstention_names_what_is_near_and_can_only_be_handed_to_a_person() -> None:
    rendered = render(AnswerMessage(messages.abstention()))
    assert shown(AnswerMessage(messages.abstention())).startswith(f"*{NEAREST}*")
    assert list(block_kit.buttons(rendered.blocks)) == ["Ask a person"]


def test_an_abstention_with_nothing_near_says_so() -> None:
    assert shown(AnswerMessage(messages.abstention(citations=()))).startswith(f"*{DONT_KNOW}*")


def test_the_mood_of_an_incident_is_shown_by_a_colour_beside_its_words() -> None:
    heads = {severity: shown(IncidentMessage(messages.incident(severity=severity)))[0] for severity in Severity}
    assert heads == {Severity.CRITICAL: "🔴", Severity.WARNING: "🟡", Severity.INFO: "🔵"}
    assert shown(IncidentMessage(messages.resolved_incident())).startswith("✅ ")


def test_an_option_whose_value_is_too_long_for_slack_is_left_out() -> None:
    incident = messages.explained_incident(owner=messages.owner(prediction_id="p" * 200))
    rendered = render(IncidentMessage(incident))
    assert block_kit.problems(rendered.text, rendered.blocks) == []
    assert "Right cause" in block_kit.buttons(rendered.blocks)


def test_details_quote_the_evidence_and_say_what_would_disprove_the_cause() -> None:
    text = shown(IncidentDetails(messages.explained_incident()))
    assert "`hikari.maximumPoolSize: 40 -&gt; 4`" in text
    assert "Would disprove it: Latency stays high" in text
    assert "*Ruled out*\n• Deployment of web-store 11.2" in text
    assert "INC-0042 payment-gateway runs out of connections" in text
    assert "03-14 09:19:00 · config-4711 applied to payment-gateway" in text


def test_a_notification_shows_a_line_of_text() -> None:
    assert render(IncidentMessage(messages.explained_incident())).text.startswith(
        "payment-gateway p99 latency above 2 s · Critical since 09:30 UTC · payment-gateway · Owner: Payments"
    )
    assert render(Notice("help\nme")).text == "help me"


def test_a_citation_leads_to_its_heading() -> None:
    cited = replace(messages.citation(), url="https://handbook.example/page", anchor="the-command")
    answer = messages.answer(citations=(cited,), sentences=(Sentence("Roll back.", (1,)),))
    assert "https://handbook.example/page#the-command" in shown(AnswerMessage(answer))
