from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answering.model_text import adds_literals, cleaned, literals, oversteps
from tests.cases import every_case

MARKS = st.text(st.sampled_from("ab 1[]()!*_~`#<>@【】|\n-"), max_size=40)


@every_case(
    ("written", "shown"),
    [
        ("  Run\nit.\x00 ", "Run it."),
        ("**Run** _it_ ~~now~~.", "Run it now."),
        ("## Run it.", "Run it."),
        ("- Run it.", "Run it."),
        ("Run it [1], [2, 3]【4】.", "Run it,."),
        ("See [the page](https://evil.example/x).", "See the page."),
        ("See ![x](https://evil.example/x).", "See x."),
        ("[[a](b)](c)", "a"),
        ("The metric kube_pod_status stays.", "The metric kube_pod_status stays."),
        ("Run `a **b** [1](x) __c__`.", "Run `a **b** [1](x) __c__`."),
        ("\u202egnp.exe\u202c", "gnp.exe"),
        ("** **", ""),
        ("", ""),
    ],
)
def test_markup_is_taken_away_and_code_is_left(written: str, shown: str) -> None:
    assert cleaned(written) == shown


@given(MARKS)
def test_no_nesting_of_marks_leaves_a_link_or_a_line_end(text: str) -> None:
    shown = cleaned(text)
    assert "\n" not in shown
    assert not any(re.search(r"\[[^\]]*\]\([^)]*\)", prose) for prose in re.split(r"`[^`]+`", shown))


@every_case(
    ("text", "found"),
    [
        ("Run `slip rollback X` within 90 seconds.", {"slip rollback x"}),
        (
            "Restart kube_pod_status, camelCase, E1234 and /etc/app.yaml!",
            {"kube_pod_status", "camelcase", "e1234", "/etc/app.yaml"},
        ),
        ("See evil.example or https://evil.example/a?b=c.", {"evil.example", "https://evil.example/a?b=c"}),
        ("HTTP 503 takes --force", {"--force"}),
        ("Ask @ops-team or <!here>.", {"@ops-team", "<!here>"}),
        ("Mail ops@example.org, e.g. now.", {"ops@example.org"}),
        ("Nothing special is re-run here.", set[str]()),
    ],
)
def test_what_must_be_copied_is_found(text: str, found: set[str]) -> None:
    assert literals(text) == found


@every_case(
    ("text", "source", "adds"),
    [
        ("It takes 4 seconds.", "It takes 4 s.", False),
        ("It takes 4 seconds.", "It takes 4.5 seconds.", True),
        ("It takes 4s.", "It takes 4 seconds.", False),
        ("At 95% it stops.", "At 95 % of 1.2 TB it stops.", False),
        ("At 95 percent of 1.2 TB it stops.", "At 95% of 1.2TB it stops.", False),
        ("At 95% it stops.", "At 9.5% it stops.", True),
        ("It takes 30min.", "It takes 30s.", True),
        ("It takes 4 ms.", "It takes 4 seconds.", True),
        ("It takes 30 minutes.", "It takes 30 s, at most 30 min.", False),
        ("It takes 4 seconds.", "Timeout (s): 4", False),
        ("Use v1.2s.", "Use v1.2.", True),
        ("It takes 4 seconds.", "It takes 40 seconds.", True),
        ("Run `slip  rollback x`.", "```\nslip rollback x\n```", False),
        ("Run `slip rollback`.", "Run `slip rollback-all`.", True),
        ("Run `slip rollback payments`.", "Run `slip rollback SERVICE`.", True),
        ("Set `debug:`.", "Set debug: to on.", False),
        ("Look at Grafana.example.", "Look at Grafana.", True),
    ],
)
def test_a_literal_must_stand_in_the_source_as_a_whole(text: str, source: str, adds: bool) -> None:
    assert adds_literals(text, source) is adds


@every_case(
    "text",
    [
        "I am sure of it.",
        "We're quite certain.",
        "This is 99 % certain.",
        "Confidence: high.",
        "Done, @channel.",
        "Done, <@U0INES>.",
        "●●● done",
    ],
)
def test_confidence_and_calls_overstep(text: str) -> None:
    assert oversteps(text, "We do it in 99 % of cases.")


@pytest.mark.parametrize("text", ["Make sure that it runs.", "The confidence threshold is high.", "It is done."])
def test_what_the_documents_say_does_not_overstep(text: str) -> None:
    assert not oversteps(text, "Make sure that it runs. The confidence threshold is high. It is done.")


def test_what_a_document_says_of_being_sure_is_not_said_again() -> None:
    assert oversteps("I am 100 % confident.", "Say: I am 100 % confident.")
