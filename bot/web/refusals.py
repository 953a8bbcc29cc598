"""The requests that were refused or read in part: logged, counted in the metrics, and listed for `doctor`."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import structlog
from prometheus_client import Counter
from pydantic import TypeAdapter, ValidationError

from core.knowledge.redactor import Redact, redacted, without_redaction

FILE = "refusals.json"
MAX_KEPT = 50  # different refusals
MAX_DETAIL = 300  # characters
INTERVAL = 1.0  # seconds between two writings, whatever a stranger sends
ACCEPTED = 202
REASONS = {
    ACCEPTED: "read in part",
    400: "malformed",
    401: "wrong secret",
    403: "not from this machine",
    404: "unknown address",
    408: "too slow",
    413: "too large",
    429: "too many",
}

REFUSALS = Counter("plumbline_refusals_total", "Requests that were refused, or read in part", ["sender", "reason"])

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Refusal:
    """Equal refusals of a sender, of which the latest was at the ISO time `at`. `detail` is redacted."""

    at: str
    sender: str
    reason: str
    detail: str
    times: int = 1


_FILE = TypeAdapter(list[Refusal])


class Refusals:
    """Keeps the latest refusals in a file of the data folder, redacted; None keeps them in memory."""

    def __init__(self, folder: Path | None = None, redact: Redact = without_redaction) -> None:
        self._file = folder / FILE if folder is not None else None
        earlier = read_refusals(folder) if folder is not None else []
        self._kept = {(each.sender, each.detail): each for each in earlier}
        self._written = float("-inf")
        # Strangers get sentences of ours, which are always the same: they are redacted once.
        self._redacted = lru_cache(MAX_KEPT)(partial(redacted, redact=redact))

    def add(self, at: str, sender: str, status: int, sentence: str) -> None:
        """Record a refusal, or with ACCEPTED that of a part of a request, which its reader has logged.

        A sentence is ours, and holds at most a short quotation of what was sent. Equal ones are kept once, so that a
        stranger cannot displace the others.
        """
        reason, sentence = REASONS.get(status, "other"), self._redacted(sentence)
        REFUSALS.labels(sender, reason).inc()
        if status != ACCEPTED:
            log.warning("request refused", sender=sender, reason=reason, status=status, detail=sentence)
        detail = sentence[:MAX_DETAIL]
        earlier = self._kept.pop((sender, detail), None)
        self._kept[sender, detail] = Refusal(
            at, sender, reason, detail, earlier.times + 1 if earlier is not None else 1
        )
        if len(self._kept) > MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        if time.monotonic() - self._written >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write the file, for example before the process ends."""
        self._written = time.monotonic()
        if self._file is not None and self._kept:
            with suppress(OSError):  # a full disk must not turn a refusal into an error
                part = self._file.with_suffix(".part")
                part.write_bytes(_FILE.dump_json(list(self._kept.values())))
                part.replace(self._file)


def read_refusals(folder: Path) -> list[Refusal]:
    """Return the latest refusals, oldest first."""
    try:
        return _FILE.validate_json((folder / FILE).read_bytes())
    except (OSError, ValidationError):
        return []
