"""The requests that were refused: a line in the log, a count in the metrics, and a short list that `doctor` shows."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import suppress
from pathlib import Path

import structlog
from prometheus_client import Counter

from core.model.lenient_formats import load_json

FILE = "refusals.json"
MAX_KEPT = 50  # refusals
INTERVAL = 1.0  # seconds between two writings, whatever a stranger sends
REASONS = {
    400: "malformed",
    401: "wrong secret",
    403: "not from this machine",
    404: "unknown address",
    408: "too slow",
    413: "too large",
    429: "too many",
}

REFUSALS = Counter("plumbline_refusals_total", "Refused requests", ["sender", "reason"])

log = structlog.get_logger()


class Refusals:
    """Keeps the latest refusals in a file of the data folder; None keeps them in memory."""

    def __init__(self, folder: Path | None = None) -> None:
        self._file = folder / FILE if folder is not None else None
        self._kept = deque(read_refusals(folder) if folder is not None else (), MAX_KEPT)
        self._written = float("-inf")

    def add(self, at: str, sender: str, status: int, sentence: str) -> None:
        """Record a refusal. A sentence is ours, and holds at most a short quotation of what was sent."""
        reason = REASONS.get(status, "other")
        REFUSALS.labels(sender, reason).inc()
        log.warning("request refused", sender=sender, reason=reason, status=status, detail=sentence)
        self._kept.append({"at": at, "sender": sender, "reason": reason, "detail": sentence[:300]})
        if time.monotonic() - self._written >= INTERVAL:
            self.flush()

    def flush(self) -> None:
        """Write the file, for example before the process ends."""
        self._written = time.monotonic()
        if self._file is not None and self._kept:
            with suppress(OSError):  # a full disk must not turn a refusal into an error
                part = self._file.with_suffix(".part")
                part.write_text(json.dumps(list(self._kept)), "utf-8")
                part.replace(self._file)


def read_refusals(folder: Path) -> list[dict[str, str]]:
    """Return the latest refusals, oldest first."""
    try:
        return [dict(each) for each in load_json((folder / FILE).read_bytes())]
    except (OSError, ValueError, TypeError):
        return []
