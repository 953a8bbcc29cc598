"""Requests to a language model, and its replies. Everything in a reply is untrusted text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any


class Role(StrEnum):
    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a prompt."""

    role: Role
    text: str


class Urgency(IntEnum):
    """The urgency of a request; the lower number goes first."""

    PERSON = 0  # somebody looks at the chat and waits
    INCIDENT = 1  # an incident is being worked on
    BACKGROUND = 2  # nightly work


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A prompt and how it is to be continued.

    `messages`: the long part that several requests of one job share comes first and is byte-identical in each of them,
    so that the server computes it once. `schema` is a JSON schema that the reply must be valid under. `requester` is
    the channel or job that is served, for fairness among them. `deadline` in seconds covers waiting and generating.
    """

    messages: tuple[ChatMessage, ...]
    max_tokens: int = 512
    temperature: float = 0.0  # 0: always the most probable token
    seed: int = 0
    schema: Mapping[str, Any] | None = None
    urgency: Urgency = Urgency.PERSON
    requester: str = ""
    deadline: float = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The reply of the model. `complete` is False if it was cut at `max_tokens`.

    `cached_tokens` of the `prompt_tokens` were not computed again; 0 where the server does not tell.
    """

    text: str
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int
    complete: bool = True
