"""The recogniser of alerts, on messages that no sender has: each rule of its shape, and texts that mean no good."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.microsoft import GraphMessage
from adapters.posted import slack, teams
from adapters.posted.recognise import recognise
from core.model.alert import AlertStatus, Posted, PostedKind, Severity
from core.model.conversation import Place, Platform
from tests.cases import every_case

POSTED = Posted(
    Place(Platform.SLACK, "C1"),
    "1773480600.1",
    "A0BELL",
    "Bell",
    datetime(2026, 3, 14, tzinfo=UTC),
    ("Firing: Lamp 3 is out",),
    (("Severity", "critical"), ("Host", "tower-3")),
    colours=("a30200",),
)
NAMES = st.sampled_from(
    "type text title value fields elements blocks body items facts color url ts name title_link".split()
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | st.sampled_from(["section", "button", "mrkdwn"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
FIRING, RESOLVED = AlertStatus.FIRING, AlertStatus.RESOLVED


def test_a_state_in_words_counts_more_than_a_sign_and_a_sign_more_than_a_colour() -> None:
    for lines, colours, state in (
        (("Resolved: Lamp 3", "🔴"), ("ff0000",), RESOLVED),
        (("✅ Lamp 3",), ("ff0000",), RESOLVED),
        (("🔴 Lamp 3",), ("00cc00",), FIRING),
        (("Lamp 3",), ("00cc00",), RESOLVED),
        (("Lamp 3",), ("attention",), FIRING),
        (("[FIRING:2, RESOLVED:1] Lamp 3",), ("00cc00",), FIRING),
        (("Lamp 3", "OK → ALARM"), (), FIRING),
        (("Lamp 3 went DOWN",), (), FIRING),
        (("Lamp 3 has recovered",), ("ff0000",), RESOLVED),
        (("Lamp 3", "✅ `power` works"), ("ff0000",), FIRING),
    ):
        recognised = recognise(replace(POSTED, lines=lines, colours=colours))
        assert recognised.delivery.alerts[0].status is state, lines


def test_the_subject_is_in_a_field_where_the_title_names_nothing_but_a_state_and_the_sender() -> None:
    for titles, subject, fields in (
        (("[BELL ALERT]",), "Monitor Name : tower-3", ("Alert Level : Critical",)),
        (("New ‘Alert’ from Bell", "New ‘Recovery’ from Bell"), "Address: https://tower.example/up", ("Message: 503",)),
        (("Status changed to: DOWN. Of: tower:3", "Status is still: UP. Of: tower:3"), "Nodes: tower:3", ("At: 9:26",)),
    ):
        read = [
            recognise(replace(POSTED, lines=(title, subject, *fields), fields=(), links=(("Look at Bell", ""),)))
            for title in titles
        ]
        assert {each.title for each in read} == {subject.partition(": ")[2]}, titles
        assert len({each.keys for each in read}) == 1, titles
    (alert,) = recognise(
        replace(POSTED, lines=("[Bell Alert]", "Monitor Name: tower-3", "Alert Level: critical"), fields=())
    ).delivery.alerts
    assert alert.severity is Severity.CRITICAL


def test_a_sender_that_is_down_is_the_subject_itself() -> None:
    assert recognise(replace(POSTED, lines=("Bell is down",))).title == "Bell is down"


def test_what_a_person_ended_is_no_alert_although_it_is_green() -> None:
    posted = replace(POSTED, lines=("Candidate resolved the exercise",), fields=(), colours=("24a47f",))
    assert recognise(posted).kind is not PostedKind.ALERT


def test_a_note_in_a_thread_changes_no_state() -> None:
    place = replace(POSTED.place, thread="1773480500.1")
    note = recognise(replace(POSTED, place=place, lines=("Ines added a note",), fields=()))
    assert note.delivery.alerts[0].status is AlertStatus.UPDATED


def test_the_key_is_the_same_in_every_state_and_another_for_another_place() -> None:
    def key(title: str, host: str = "tower-3", **more: object) -> str:
        return recognise(replace(POSTED, lines=(title,), fields=(("Host", host),), **more)).keys[0]

    told = [
        "Firing: Lamp is out",
        "[RESOLVED] Lamp is out",
        "🔴 Lamp is out",
        "Resolved in 4m 2s: Lamp is out",
        "Lamp is out (97%)",
    ]
    assert len({key(title) for title in told}) == 1
    assert key(told[0]) != key(told[0], "tower-4")
    for name, one, other in (
        ("Task", "load_orders", "export_orders"),
        ("Nodes", "relay:1", "web:1"),
        ("On", "db-2", "db-3"),
    ):
        firing, over, beside = (
            recognise(replace(POSTED, lines=(f"{state} in the channel of bells",), fields=((name, value), *more))).keys[
                0
            ]
            for state, value, more in (
                ("Firing", one, (("State", "is-down"), ("By", "Ines"), ("Seen", "5-6 times"))),
                ("Firing", one, (("By", "ada@bell.example"),)),
                ("Firing", other, ()),
            )
        )
        assert firing == over != beside, "a thing is named as machines do, whatever its field"
    linked = [(("", f"https://bell.example/incidents/{number}?ts={ts}"),) for number, ts in ((7, 1), (7, 2), (8, 1))]
    first, again, other = (key("Triggered #7 Lamp", links=each) for each in linked)
    assert first == again != other


def test_a_group_of_five_and_then_of_two_may_be_one_incident() -> None:
    members = ("Labels:", "instance = a", "instance = b")
    group = recognise(replace(POSTED, lines=("[FIRING:5] Lamp", *members), fields=()))
    single = recognise(replace(POSTED, lines=("[FIRING:1] Lamp", "instance = a"), fields=()))
    assert group.delivery.omitted == 4
    assert single.keys[0] in group.keys
    assert group.keys[0] in single.keys


def test_builds_changes_tickets_digests_heartbeats_and_tests_are_no_alerts() -> None:
    for line, kind in (
        ("Pipeline #4 failed", PostedKind.BUILD),
        ("Deployment of till 2.1 finished", PostedKind.CHANGE),
        ("Pull request closed: deploy faster", PostedKind.BUILD),
        ("Ines created a bug: alerts are lost", PostedKind.OTHER),
        ("Weekly report: 4 alerts fired", PostedKind.OTHER),
        ("[FIRING:1] Watchdog (none)", PostedKind.OTHER),
        ("Good morning", PostedKind.OTHER),
    ):
        assert recognise(replace(POSTED, lines=(line,), fields=(), colours=())).kind is kind, line


def test_words_of_other_things_in_an_alert_with_much_evidence_lose_no_alert() -> None:
    for line in ("Image pull fails", "Job of the weekly report", "Heartbeat is missing", "Release queue is stuck"):
        posted = replace(POSTED, lines=(f"[FIRING:1] {line}",), links=(("", "https://bell.example/alerts/7"),))
        assert recognise(posted).kind is PostedKind.ALERT, line


def test_trouble_without_a_state_is_unclear() -> None:
    assert (
        recognise(replace(POSTED, lines=("rsync ended with code 23",), fields=(), colours=())).kind is PostedKind.UNSURE
    )


def test_what_is_ours_or_of_a_person_is_read_by_neither_chat() -> None:
    message = {"type": "message", "ts": "1.1", "bot_id": "B1", "app_id": "A1", "text": "x"}
    assert slack.posted_of(message, "C1") is not None
    assert slack.posted_of({**message, "user": "U1"}, "C1", "U1") is None
    assert slack.posted_of({**message, "metadata": {"event_type": "plumbline_post"}}, "C1") is None
    button = {"type": "actions", "elements": [{"type": "button", "action_id": "feedback:take-it", "value": "i1"}]}
    assert slack.posted_of({**message, "blocks": [button]}, "C1") is None
    assert slack.posted_of({"type": "message", "ts": "1.1", "user": "U1", "text": "[FIRING:1] x"}, "C1") is None
    said = {"id": "1", "createdDateTime": "2026-03-14T00:00:00Z", "from": {"user": {"id": "u"}}}
    assert teams.posted_of(GraphMessage.model_validate(said), "19:a") is None


@settings(max_examples=50)
@given(st.dictionaries(st.sampled_from(["text", "blocks", "attachments", "edited", "bot_profile"]), ANYTHING))
def test_any_message_is_read_without_an_error(parts: dict[str, object]) -> None:
    posted = slack.posted_of({"type": "message", "ts": "1773480600.1", "bot_id": "B1", **parts}, "C1")
    if posted is not None:
        recognised = recognise(posted)
        assert recognised.keys
        assert len(recognised.delivery.alerts[0].name) <= 500


@given(ANYTHING)
def test_any_card_is_read_without_an_error(card: object) -> None:
    given_card = {"contentType": "application/vnd.microsoft.card.adaptive", "content": json.dumps(card)}
    message = {"id": "1", "createdDateTime": "2026-03-14T00:00:00Z", "from": {"application": {"id": "a"}}}
    posted = teams.posted_of(GraphMessage.model_validate({**message, "attachments": [given_card]}), "19:a")
    assert posted is not None
    recognise(posted)


@every_case("line", ["x" * 100_000, "[" * 50_000, "a: " * 30_000, "<https://x|" * 5_000, "1 " * 40_000])
def test_long_lines_take_no_time(line: str) -> None:
    recognise(replace(POSTED, lines=(line,) * 3))


def test_a_tag_without_a_value_takes_none_from_the_next_field() -> None:
    (alert,) = recognise(replace(POSTED, fields=(("Tags", "env:"), ("Labels", "lamps")))).delivery.alerts
    assert "env" not in alert.labels
