"""What Slack sends to its apps: events, commands, presses and forms, and how it signs them."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from tests.fakes.slack_api import BOT_USER, CHANNEL, PERSON, SIGNING_SECRET, TEAM


def signed(body: str, at: float, secret: str = SIGNING_SECRET) -> dict[str, str]:
    """The headers with which Slack would send this body at this time."""
    timestamp = str(int(at))
    digest = hmac.new(secret.encode(), f"v0:{timestamp}:{body}".encode(), hashlib.sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": f"v0={digest}"}


def event_callback(event: dict[str, Any], **envelope: Any) -> dict[str, Any]:
    """An event as Slack wraps it."""
    return {
        "token": "verification-token",
        "team_id": TEAM,
        "api_app_id": "A0PLUMB",
        "event": event,
        "type": "event_callback",
        "event_id": "Ev0001",
        "event_time": 1773480600,
        "authorizations": [{"enterprise_id": None, "team_id": TEAM, "user_id": BOT_USER, "is_bot": True}],
        "is_ext_shared_channel": False,
    } | envelope


def mention(text: str = f"<@{BOT_USER}> how do I roll back a canary?", **fields: Any) -> dict[str, Any]:
    """An `app_mention` event."""
    ts = fields.get("ts", "1773480600.000100")
    return {
        "type": "app_mention",
        "channel": CHANNEL,
        "user": PERSON,
        "text": text,
        "ts": ts,
        "event_ts": ts,
        "team": TEAM,
    } | fields


def message(text: str, **fields: Any) -> dict[str, Any]:
    """A `message` event in a channel."""
    return mention(text) | {"type": "message", "channel_type": "channel"} | fields


def slash_command(text: str, **fields: str) -> dict[str, str]:
    return {
        "token": "verification-token",
        "team_id": TEAM,
        "channel_id": CHANNEL,
        "channel_name": "ask-plumbline",
        "user_id": PERSON,
        "user_name": "ines",
        "command": "/plumbline",
        "text": text,
        "api_app_id": "A0PLUMB",
        "response_url": "https://hooks.slack.example/commands/1",
        "trigger_id": "13345224609.738474920.8088930838d88f008e0",
    } | fields


def button_press(button: Mapping[str, Any], posted: Mapping[str, Any], person: str = PERSON) -> dict[str, Any]:
    """A `block_actions` payload of somebody who presses a button of a posted message."""
    return {
        "type": "block_actions",
        "api_app_id": "A0PLUMB",
        "team": {"id": TEAM, "domain": "marigold"},
        "user": {"id": person, "username": "ines", "name": "ines", "team_id": TEAM},
        "channel": {"id": posted["channel"], "name": "ask-plumbline"},
        "container": {"type": "message", "message_ts": posted["ts"], "channel_id": posted["channel"]},
        "message": dict(posted),
        "trigger_id": "13345224609.738474920.8088930838d88f008e1",
        "response_url": "https://hooks.slack.example/actions/1",
        "actions": [dict(button) | {"block_id": "b1", "action_ts": "1773480700.123456"}],
    }


def form_submission(view: Mapping[str, Any], values: Mapping[str, Any], person: str = PERSON) -> dict[str, Any]:
    """A `view_submission` payload of somebody who fills in a form that was opened: text, or a picked value's id."""

    def filled(element: Mapping[str, Any], value: str | None) -> dict[str, Any]:
        if element["type"] == "static_select":
            picked = next((each for each in element["options"] if each["value"] == value), None)
            return {"type": "static_select", "selected_option": picked}
        return {"type": element["type"], "value": value}

    fields = [block for block in view["blocks"] if block["type"] == "input"]
    state = {
        block["block_id"]: {block["element"]["action_id"]: filled(block["element"], values.get(block["block_id"]))}
        for block in fields
    }
    return {
        "type": "view_submission",
        "api_app_id": "A0PLUMB",
        "team": {"id": TEAM, "domain": "marigold"},
        "user": {"id": person, "username": "ines", "name": "ines", "team_id": TEAM},
        "trigger_id": "13345224609.738474920.8088930838d88f008e2",
        "view": dict(view) | {"state": {"values": state}},
        "response_urls": [],
    }


def message_shortcut(message: Mapping[str, Any], person: str = PERSON, **fields: Any) -> dict[str, Any]:
    """A `message_action` payload of somebody who chose “Ask Plumbline about this” in a message's menu."""
    return {
        "type": "message_action",
        "callback_id": "ask_about_message",
        "team": {"id": TEAM, "domain": "marigold"},
        "user": {"id": person, "username": "ines", "name": "ines", "team_id": TEAM},
        "channel": {"id": message["channel"], "name": "ask-plumbline"},
        "message": dict(message),
        "message_ts": message["ts"],
        "trigger_id": "13345224609.738474920.8088930838d88f008e3",
        "response_url": "https://hooks.slack.example/actions/2",
    } | fields


def reaction(name: str, posted: Mapping[str, Any], person: str = PERSON, **fields: Any) -> dict[str, Any]:
    """A `reaction_added` event on a posted message."""
    return {
        "type": "reaction_added",
        "user": person,
        "reaction": name,
        "item": {"type": "message", "channel": posted["channel"], "ts": posted["ts"]},
        "item_user": posted.get("user", BOT_USER),
        "event_ts": "1773480800.000100",
    } | fields


def edit(before: Mapping[str, Any], text: str, at: str = "1773480650.000000", **fields: Any) -> dict[str, Any]:
    """A `message_changed` event: somebody edited a message."""
    kept = {name: before[name] for name in ("user", "ts", "thread_ts", "text") if name in before}
    edited = {"user": before.get("user"), "ts": at}
    return {
        "type": "message",
        "subtype": "message_changed",
        "hidden": True,
        "channel": before["channel"],
        "channel_type": before.get("channel_type", "channel"),
        "ts": at,
        "event_ts": at,
        "message": {"type": "message"} | kept | {"text": text, "edited": edited} | fields,
        "previous_message": {"type": "message"} | kept,
    }


def interaction(payload: Mapping[str, Any]) -> str:
    """The form in which Slack sends an interaction."""
    return urlencode({"payload": json.dumps(payload)})
