"""A monitoring system that sends webhooks: it tells the story of one incident in its own format, and signs it.

With a class of it in `systems.SYSTEMS`, the tests of formats, severities, damaged payloads and scenarios run a format.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from datetime import UTC, datetime, timedelta
from typing import Any

Payload = dict[str, Any]
PERSON = "Ada Quist"
TITLE = "Charges wait for a connection"
RUNBOOK = "https://handbook.example/runbooks/till"


def hmac_hex(body: bytes, secret: str) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


class MonitoringSystem:
    """One incident called `id`. Every request is made a second later than the one before it.

    What the tests expect of a story: its alert begins at `began`, its title begins with TITLE, its service is `till`, and it
    names RUNBOOK. `fire` is no critical alert, `update` is one, and PERSON acknowledges. All requests of one `id` are of one
    incident: to `fire` after `resolve` opens it again. The name of the class says which tests are of it.
    """

    source = ""
    acknowledges = True  # whether it knows acknowledgements at all
    rates = True  # whether its alerts have a severity
    tests = True  # whether it has test notifications
    names_runbook = True  # whether its alerts can name one

    def __init__(self, id_: str = "1", began: datetime | None = None) -> None:
        self.id = id_
        self.began = began or datetime.now(UTC) - timedelta(minutes=4)
        self._seconds = itertools.count(1)

    @property
    def later(self) -> datetime:
        return self.began + timedelta(seconds=next(self._seconds))

    def fire(self) -> Payload:
        raise NotImplementedError

    def update(self) -> Payload:
        """It is worse than it was."""
        raise NotImplementedError

    def rated(self, severity: str) -> Payload:
        """It fires with this severity, in the words of whoever configured it."""
        raise NotImplementedError

    def acknowledge(self) -> Payload:
        raise NotImplementedError

    def resolve(self) -> Payload:
        raise NotImplementedError

    def ended(self, word: str) -> Payload | None:
        """It ended, in this word of the table of ends that its format declares; None if this kind of alert never does."""
        raise NotImplementedError

    def test(self) -> Payload:
        raise NotImplementedError

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        """What shows who sends it: a token, unless it signs."""
        return {"Authorization": f"Bearer {secret}"}


def encoded(payload: Payload) -> bytes:
    return json.dumps(payload).encode()
