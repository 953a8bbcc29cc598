"""Verification and parsing of requests from Slack.

https://docs.slack.dev/authentication/verifying-requests-from-slack
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs

from aiohttp import web
from slack_sdk.signature import Clock as SlackClock
from slack_sdk.signature import SignatureVerifier

from adapters.http import read_body
from core.model.errors import InputTooLarge, MalformedInput, Unauthorized
from core.ports import Clock

MAX_BODY = 1024 * 1024  # bytes; Slack's own payloads stay far below
MAX_TIMESTAMP_DIGITS = 12
MAX_FIELDS = 100  # per form


class SignedRequests:
    """Reads the bodies of requests signed by Slack."""

    def __init__(self, signing_secret: str, clock: Clock) -> None:
        self._verifier = SignatureVerifier(signing_secret, _SlackClock(clock))

    async def body(self, request: web.Request) -> str:
        """Return the body as text.

        Raises InputTooLarge, MalformedInput if it is not UTF-8, and Unauthorized if the signature is missing, wrong or
        more than five minutes old.
        """
        too_large = InputTooLarge(f"The body is larger than {MAX_BODY // 1024 // 1024} MiB.")
        raw = await read_body(request.content, MAX_BODY, too_large)
        timestamp = request.headers.get("X-Slack-Request-Timestamp", "")
        signature = request.headers.get("X-Slack-Signature", "")
        # The SDK's verifier raises other errors for these.
        readable = timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= MAX_TIMESTAMP_DIGITS
        if not readable or not signature.isascii():
            raise Unauthorized(
                "The Slack signature is missing or unreadable: send X-Slack-Signature and its timestamp."
            )
        try:
            body = raw.decode()
        except UnicodeDecodeError:
            raise MalformedInput("The body is not UTF-8.") from None
        if not self._verifier.is_valid(body, timestamp, signature):
            raise Unauthorized("The Slack signature is wrong or too old: check SLACK_SIGNING_SECRET and the clock.")
        return body


def parse_body(body: str, content_type: str) -> dict[str, Any]:
    """Return the payload: a JSON object, a form's fields, or the JSON object in a form's `payload`. Raises
    MalformedInput.

    Bolt's own parser loses every slash command whose text contains the word "payload".
    """
    if content_type != "application/x-www-form-urlencoded":
        return _object(body)
    try:
        form = parse_qs(body, keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise MalformedInput(f"The form has more than {MAX_FIELDS} fields.") from None
    if "payload" in form:
        return _object(form["payload"][-1])
    return {name: values[-1] for name, values in form.items()}


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise MalformedInput("The body is not JSON.") from None
    if not isinstance(value, dict):
        raise MalformedInput("The body is not a JSON object.")
    return value


class _SlackClock(SlackClock):
    """Adapts our clock to the SDK."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def now(self) -> float:
        return self._clock.now().timestamp()
