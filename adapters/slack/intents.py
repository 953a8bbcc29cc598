"""The intent of a message in its metadata, by which a post is found after a crash.

https://docs.slack.dev/messaging/message-metadata
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

EVENT_TYPE = "plumbline_post"


def metadata(intent: str) -> dict[str, Any]:
    return {"event_type": EVENT_TYPE, "event_payload": {"intent": intent}}


def intent_of(message: Mapping[str, Any]) -> str | None:
    kept = message.get("metadata") or {}
    return kept.get("event_payload", {}).get("intent") if kept.get("event_type") == EVENT_TYPE else None
