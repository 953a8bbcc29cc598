"""Alerts that other bots post, over messages of senders that the recogniser was not written with.

`posted_alerts.jsonl` was written before the recogniser, from the senders' code and documentation. The first figures, before
anything was corrected by them: kind 27 of 32, state 20 of 23, same alert 8 of 8, other alert 4 of 4, chatter opened 0.

`posted_alerts_later.jsonl` has 27 other senders, recalled from their apps, and was written when the recogniser existed,
before it was looked at again. Its first figures: kind 24 of 47, state 31 of 33, title 26 of 33, same alert 9 of 14, other
alert 5 of 5, chatter opened 0.

`posted_alerts_third.jsonl` has 31 other senders, from their code where it is public. Its first figures: kind 38 of 50, state
33 of 37, title 30 of 37, severity 7 of 9, same alert 13 of 14, other alert 2 of 3, chatter opened 2 of 13. The recogniser has
been developed on all three since.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

from adapters.microsoft import GraphMessage
from adapters.posted import slack, teams
from adapters.posted.recognise import recognise
from core.model.alert import PostedKind, Recognised

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("posted_alerts.jsonl", "posted_alerts_later.jsonl", "posted_alerts_third.jsonl")
    for line in Path(__file__).with_name(name).read_text().splitlines()
]
ASKED = {"polly", "linear-issue", "heytaco", "trello-card", "confluence-page", "drone-failure", "dependencytrack-vuln"}
"""Chatter whose words or signs are those of trouble: a question, no incident."""
MISSED = {
    *("rollbar-new", "rollbar-other", "site24x7-trouble", "falco-rule", "elastalert-match", "honeybadger-error"),
    *("librenms-alert", "librenms-other", "opensearch-alert", "redash-teams", "coroot-teams"),
    *("highlight-errors", "highlight-logs", "wazuh-bruteforce"),
}
"""Alerts without a word for a state, or with nothing but that: a question, no incident."""
UNLIKE = {
    *(
        ("librenms-alert", "title"),
        ("librenms-recovered", "title"),
        ("librenms-other", "title"),
    ),  # the rule; its device is a label
    *(("highlight-errors", "title"), ("wazuh-bruteforce", "title"), ("oncall-triggered", "severity")),
}
"""Parts that are read otherwise than they are meant."""


def read(row: dict[str, Any]) -> Recognised:
    message = row["message"]
    posted = (
        slack.posted_of(message, "C0ALERTS")
        if row["platform"] == "slack"
        else teams.posted_of(GraphMessage.model_validate(message), "19:alerts@thread.tacv2")
    )
    assert posted is not None, row["name"]
    return recognise(posted)


def test_no_chatter_is_taken_for_an_alert_and_almost_every_alert_is_one() -> None:
    kinds = {row["name"]: read(row).kind for row in ROWS}
    opened = [row["name"] for row in ROWS if row["kind"] == "not" and kinds[row["name"]] is PostedKind.ALERT]
    missed = [row["name"] for row in ROWS if row["kind"] == "alert" and kinds[row["name"]] is not PostedKind.ALERT]
    asked = [row["name"] for row in ROWS if row["kind"] == "not" and kinds[row["name"]] is PostedKind.UNSURE]
    assert opened == []
    assert set(asked) <= ASKED
    assert set(missed) <= MISSED


def test_deployments_and_builds_are_told_apart() -> None:
    rows = [row for row in ROWS if row.get("reason") in ("build", "change")]
    wrong = {row["name"] for row in rows if read(row).kind.value not in row.get("kinds", [row["reason"]])}
    assert wrong <= {
        "terraform-applied",
        "pulumi-update",
        "drone-failure",
    }  # their words are also those of other things


def test_the_state_the_title_and_the_severity_are_those_of_the_message() -> None:
    wrong = []
    for row in (each for each in ROWS if each["kind"] == "alert"):
        (alert,) = read(row).delivery.alerts
        state = "acknowledged" if alert.acknowledged else alert.status.value
        told = {"state": state, "title": row.get("title", "").lower() in alert.name.lower()}
        if "severity" in row:
            told["severity"] = alert.severity.value in row["severity"]
        wanted = {"state": row["state"], "title": True, "severity": True}
        wrong += [(row["name"], name, value) for name, value in told.items() if value != wanted[name]]
    assert {(name, part) for name, part, _ in wrong} <= UNLIKE


def test_one_alert_keeps_its_key_over_its_states_and_two_alerts_differ() -> None:
    keys = defaultdict[tuple[str, str], set[str]](set)
    for row in (each for each in ROWS if each["kind"] == "alert"):
        recognised = read(row)
        keys[recognised.delivery.source, row["alert"]].add(recognised.keys[0])
    assert {alert: found for alert, found in keys.items() if len(found) != 1} == {}
    same = [(one, other) for one, other in combinations(keys, 2) if one[0] == other[0] and keys[one] == keys[other]]
    assert same == []
