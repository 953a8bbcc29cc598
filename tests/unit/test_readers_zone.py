"""Times are in the zone of each reader where the chat can do that, and in UTC elsewhere."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from adapters.slack import blocks
from adapters.slack.render import render as in_slack
from adapters.slack.render import render_view
from adapters.teams.render import render as in_teams
from core.incidents.incident_view import incident_times, incident_view
from core.model.alert import Acknowledgement
from core.model.incident import Silenced
from core.model.message_view import Line, MessageView, NamedTime, with_times
from core.model.messages import IncidentMessage, Notice
from tests.cases import every_case
from tests.samples import explained_incident

AT = datetime(2026, 3, 14, 9, 26, tzinfo=UTC)
MARK = "<!date^1773480360^{time}|09:26 UTC>"


def described(time: NamedTime) -> str:
    return f"[{time.at:%d %H:%M}{' with its date' if time.has_date else ''}]"


@every_case(
    ("text", "shown"),
    [
        ("since 09:26 UTC", "since [14 09:26]"),
        ("09:26 UTC, 09:26 UTC", "[14 09:26], [14 09:26]"),
        ("until 2026-03-14 09:26 UTC.", "until [14 09:26 with its date]."),
        ("14 Mar 09:26 UTC", "[14 09:26 with its date]"),
        ("14 Mar 2026 09:26 UTC", "[14 09:26 with its date]"),
        ("at 09:27 UTC", "at 09:27 UTC"),
        ("at 09:26", "at 09:26"),
    ],
)
def test_each_known_time_that_a_text_names_is_written_as_the_chat_does(text: str, shown: str) -> None:
    for at in (AT, AT.astimezone(timezone(timedelta(hours=5)))):
        assert with_times(text, [at, AT + timedelta(hours=3)], described) == shown


def test_a_message_of_an_incident_names_no_time_in_utc_alone_in_either_chat() -> None:
    incident = explained_incident()
    started = incident.started_at
    acknowledged = Acknowledgement("Ada", started + timedelta(minutes=7), system="pagerduty")
    alerts = tuple(replace(each, acknowledged=acknowledged) for each in incident.alerts)
    silenced = Silenced("a maintenance window", "", started + timedelta(days=1))
    for changed in (incident, replace(incident, alerts=alerts), replace(incident, silenced=silenced)):
        message = IncidentMessage(changed)
        named = [each for each in texts(incident_view(message)) if " UTC" in each]
        assert named
        slack = json.dumps(in_slack(message).blocks, ensure_ascii=False)
        assert slack.count(" UTC") == slack.count("<!date^")
        assert "{time}|" in slack
        teams = json.dumps(in_teams(message).content["body"])
        assert " UTC" not in teams
        assert f"{{{{TIME({started:%Y-%m-%dT%H:%M}" in teams
        assert incident_times(changed)[0] == started


def texts(view: MessageView) -> list[str]:
    return [view.state, *(line.text for line in view.lines)]


def test_code_and_links_keep_their_text() -> None:
    line = Line("At 09:26 UTC: `date -d '09:26 UTC'`", code="at 09:26 UTC")
    rendered = render_view(MessageView("notice", "x", (line,), times=(AT,)))
    (block,) = rendered.blocks
    assert block["text"]["text"] == f"At {MARK}: `date -d '09:26 UTC'` · `at 09:26 UTC`"


def test_a_text_that_would_become_too_long_for_slack_keeps_its_times_in_utc() -> None:
    for length, is_shown in ((10, True), (blocks.MAX_TEXT - 20, False)):
        block: dict[str, Any] = blocks.section(f"{'x' * length} 09:26 UTC")
        shown = blocks.in_readers_zone(block, [AT])["text"]["text"]
        assert (MARK in shown) is is_shown
        assert len(shown) <= blocks.MAX_TEXT


def test_a_notice_shows_the_times_that_it_names() -> None:
    notice = Notice("Muted until 2026-03-14 09:26 UTC.", times=(AT,))
    assert "<!date^1773480360^{date_short} {time}|" in json.dumps(in_slack(notice).blocks)
    assert "{{DATE(2026-03-14T09:26:00Z, SHORT)}} {{TIME(2026-03-14T09:26:00Z)}}" in json.dumps(
        in_teams(notice).content
    )
