"""Every chat says who acknowledged an incident in the monitoring system, and that it fires again."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from core.model.alert import Acknowledgement
from core.model.incident import Incident
from tests.samples import alert, incident
from tests.scenario.incident_in_chats import CHATS, NOON, in_teams, on_slack, on_the_page

HOSTILE = "<script>alert(1)</script> <!channel>"


def acknowledged(by: str) -> Incident:
    return incident(
        source="pagerduty", alerts=(replace(alert(), acknowledged=Acknowledgement(by, NOON, system="PagerDuty")),)
    )


@pytest.mark.parametrize("chat", CHATS)
def test_who_acknowledged_where_is_said(chat: Callable[[Incident], str]) -> None:
    shown = chat(acknowledged("Ada Quist"))
    assert "acknowledged" in shown.lower()
    assert "Ada Quist" in shown
    assert "in PagerDuty" in shown
    assert "acknowledged" not in chat(incident()).lower()


@pytest.mark.parametrize("chat", CHATS)
def test_an_acknowledgement_by_nobody_in_particular_is_said_too(chat: Callable[[Incident], str]) -> None:
    assert "acknowledged" in chat(acknowledged("")).lower()


@pytest.mark.parametrize("chat", [on_slack, on_the_page])
def test_the_name_of_who_acknowledged_is_no_markup(chat: Callable[[Incident], str]) -> None:
    shown = chat(acknowledged(HOSTILE))
    assert "<script>" not in shown
    assert "<!channel>" not in shown


@pytest.mark.parametrize("chat", [on_slack, in_teams, on_the_page])
def test_an_incident_that_was_resolved_and_fires_says_so(chat: Callable[[Incident], str]) -> None:
    assert re.search("again, first .*09:30.* · payment-gateway", chat(incident(reopened_count=1)))
    assert "again" not in chat(incident())
