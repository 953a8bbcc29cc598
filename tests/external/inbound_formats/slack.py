"""What could come in from Slack."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tests.external.inbound_formats.changes import FORM, Payload, as_form, changed, encoded, spoilt
from tests.fakes import slack_api, slack_payloads

_posted = {"channel": slack_api.CHANNEL, "ts": "1773480600.000200", "text": "x", "type": "message"}


def _button(action: str, value: str) -> Payload:
    return slack_payloads.button_press({"type": "button", "action_id": action, "value": value}, _posted)


SLACK_EVENTS = [
    slack_payloads.event_callback(slack_payloads.mention()),
    slack_payloads.event_callback(slack_payloads.message("what is open?", channel=slack_api.DIRECT, channel_type="im")),
    slack_payloads.event_callback(
        {
            "type": "message",
            "subtype": "message_deleted",
            "channel": slack_api.CHANNEL,
            "deleted_ts": "1773480600.000100",
            "ts": "1773480601.000100",
            "previous_message": slack_payloads.mention(),
        }
    ),
    slack_payloads.event_callback(
        {
            "type": "message",
            "subtype": "message_changed",
            "channel": slack_api.CHANNEL,
            "ts": "1773480601.000100",
            "message": slack_payloads.mention() | {"edited": {"user": slack_api.PERSON, "ts": "1773480601.000000"}},
            "previous_message": slack_payloads.mention(),
        }
    ),
    slack_payloads.event_callback(
        {
            "type": "reaction_added",
            "user": slack_api.PERSON,
            "reaction": "+1",
            "item": {"type": "message", "channel": slack_api.CHANNEL, "ts": "1773480600.000200"},
            "item_user": slack_api.BOT_USER,
            "event_ts": "1773480601.000100",
        }
    ),
    slack_payloads.event_callback(
        {"type": "app_home_opened", "user": slack_api.PERSON, "channel": "D1", "tab": "home"}
    ),
    {"type": "url_verification", "token": "x", "challenge": "y"},
]
SLACK_FORMS: list[Mapping[str, Any]] = [
    slack_payloads.slash_command("how do I roll back a canary?"),
    slack_payloads.slash_command("status"),
    {"payload": _button("plumbline:helpful", "answer-1")},
    {"payload": _button("plumbline:reassign", "incident-1")},
    {
        "payload": {
            "type": "view_submission",
            "user": {"id": slack_api.PERSON},
            "view": {"id": "V1", "state": {"values": {}}},
        }
    },
    {"payload": {"type": "message_action", "callback_id": "ask", "user": {"id": slack_api.PERSON}, "message": _posted}},
    {"payload": {"type": "shortcut", "callback_id": "ask", "user": {"id": slack_api.PERSON}}},
]


@st.composite
def slack_requests(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A body and the headers with which Slack would sign it."""
    if draw(st.booleans()):
        body, kind = draw(encoded(st.sampled_from(SLACK_EVENTS))), "application/json"
    else:
        body, kind = draw(spoilt(changed(st.sampled_from(SLACK_FORMS)).map(as_form))), FORM
    signed = slack_payloads.signed(body.decode("utf-8", "replace"), time.time())
    return body, {"Content-Type": kind} | signed
