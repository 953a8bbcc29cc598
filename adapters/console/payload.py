"""JSON encoding of the local page's messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from core.model.messages import (
    AnswerMessage,
    BadgeMessage,
    CorrectionRequest,
    DriftAlarm,
    FilingRequest,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Message,
    Notice,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
)


@dataclass(frozen=True, slots=True)
class PersonMessage:
    """A message that a person wrote on the page. Untrusted."""

    name: str
    text: str


Content = PersonMessage | Message

_KINDS: dict[str, type[Content]] = {
    "person": PersonMessage,
    "answer": AnswerMessage,
    "incident": IncidentMessage,
    "details": IncidentDetails,
    "correction request": CorrectionRequest,
    "handover request": HandoverRequest,
    "join request": JoinRequest,
    "filing request": FilingRequest,
    "proposal": ProposalMessage,
    "badge": BadgeMessage,
    "ping": OwnerPing,
    "owner question": OwnerQuestion,
    "drift": DriftAlarm,
    "notice": Notice,
}
_NAMES = {content: kind for kind, content in _KINDS.items()}


def encode(content: Content) -> tuple[str, dict[str, Any]]:
    """Return the kind of a message, and a JSON-compatible payload."""
    kind = _NAMES[type(content)]
    return kind, _adapter(kind).dump_python(content, mode="json")


def decode(kind: str, payload: Mapping[str, Any]) -> Content:
    """Return the content that `encode` was given."""
    return _adapter(kind).validate_python(payload)


@cache
def _adapter(kind: str) -> TypeAdapter[Any]:
    return TypeAdapter(_KINDS[kind])
