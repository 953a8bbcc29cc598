"""Adds this package to Plumbline's contract suites, as a plugin of pytest; see docs/plugins.md."""

from __future__ import annotations

import csv
import hashlib
import hmac
from pathlib import Path
from typing import Any

from plumbline_example.faq import FaqSource

from tests.contract.source_worlds import kinds
from tests.fakes.monitoring_systems import systems
from tests.fakes.monitoring_systems.system import RUNBOOK, TITLE, MonitoringSystem


class Nightly(MonitoringSystem):
    """The story of one job that fails, gets worse and succeeds."""

    source = "nightly"
    acknowledges = False

    def run(self, state: str, level: str = "info") -> dict[str, Any]:
        times = {"since": self.began.isoformat(), "at": self.later.isoformat()}
        named = {"job": self.id, "title": TITLE, "service": "till", "runbook": RUNBOOK}
        return {"state": state, "level": level, **named, **times}

    def fire(self) -> dict[str, Any]:
        return self.run("failed")

    def rated(self, severity: str) -> dict[str, Any]:
        return self.run("failed", severity)

    def update(self) -> dict[str, Any]:
        return self.run("late", "critical")

    def resolve(self) -> dict[str, Any]:
        return self.run("succeeded")

    def ended(self, word: str) -> dict[str, Any]:
        return self.run(word)

    def test(self) -> dict[str, Any]:
        return self.run("test")

    def headers(self, body: bytes, secret: str) -> dict[str, str]:
        return {"X-Nightly-Signature": hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


class FaqWorld:
    """A file of questions and answers, and the hands that change it. A question is known by a `key` of one digit."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "faq.csv"
        self.rows: dict[str, dict[str, str]] = {}
        self.source = FaqSource("docs", self.path, ("public",))
        self._save()

    def write(self, key: str, text: str) -> None:
        self.rows[key] = {"question": f"Question {key}?", "answer": text, "readers": ""}
        self._save()

    def remove(self, key: str) -> None:
        del self.rows[key]
        self._save()

    def hide(self, key: str) -> None:
        self.rows[key]["readers"] = "channel:vault"
        self._save()

    def _save(self) -> None:
        with self.path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, ["question", "answer", "readers"])
            writer.writeheader()
            writer.writerows(self.rows.values())


systems.SYSTEMS += (Nightly,)
kinds.LOCAL["faq"] = FaqWorld
kinds.STRUCK["faq"] = kinds.MARKDOWN
