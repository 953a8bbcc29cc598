"""How many messages a storm of alerts without anything in common is in a channel, and how soon a critical one is in sight.

    python -m tests.benchmarks storm-messages [--alerts N …] [--minutes M …] [--json FILE]

The handlers run against a chat, a clock and a store in memory, which finds incidents as an index does: a chat takes one post or edit of the list every 1.2 s, and an
investigation takes 3 s. The alerts share no service, node, label or dependency. One or two of them, somewhere in the first half, have a
cause of their own; the others have none. A critical one is in sight as soon as the channel shows its name with a link.
All are resolved half an hour after the last one, and the channel is watched for another half hour.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, dropwhile, islice, product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bot.evaluation.report import write_json
from core.model.alert import Alert, AlertDelivery, AlertStatus, Severity
from core.model.conversation import Place, Platform
from core.model.errors import ChatBusy
from core.model.incident import Incident, IncidentState, Stage
from core.model.messages import IncidentMessage, Notice
from core.ports import Task
from handlers.common.ports import Ports
from handlers.common.post_message import Poster
from handlers.incidents.hold_incident import present_storm, watch_storms
from handlers.incidents.open_incident import open_incident
from handlers.incidents.present_incident import present_incident
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.fakes.ports import some_ports
from tests.fakes.store import InMemoryStore
from tests.fakes.store.held_incidents import InMemoryHeldIncidents
from tests.fakes.store.incidents import InMemoryIncidents
from tests.fakes.store.tasks import InMemoryTasks
from tests.samples import explanation, hypothesis, owner

ALERTS = (50, 500, 5_000)
MINUTES = (1.0, 60.0)
CAUSES = (1, 2)
CRITICAL = 20  # critical alerts of a storm, at most one in five
CHAT = 1.2  # seconds between two posts or edits of one message
INVESTIGATION = 3.0  # seconds
MINUTE = 60.0  # seconds
WATCHED = 30 * MINUTE  # seconds after the last alert, and after the last resolution
HERE = Place(Platform.SLACK, "C0ALERTS")

Act = Callable[[], Awaitable[object]]


@dataclass(slots=True)
class StormIncidents(InMemoryIncidents):
    """Incidents that were opened in the order in which they are saved first, found as the database's indexes find them."""

    groups: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])
    open_ones: dict[str, None] = field(default_factory=dict[str, None])
    parts: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])

    async def latest_for(self, source: str, group_key: str) -> Incident | None:
        return self.by_id.get(self.groups.get((source, group_key), ""))

    async def open(self, limit: int, after: Incident | None = None) -> list[Incident]:
        ids = self.open_ones if after is None else dropwhile(lambda each: each != after.id, self.open_ones)
        return [self.by_id[each] for each in islice(ids, 0 if after is None else 1, limit + (after is not None))]

    async def latest_open(self, limit: int, source: str = "") -> list[Incident]:
        return [self.by_id[each] for each in islice(reversed(self.open_ones), limit)]

    async def near(self, incident: Incident, services: frozenset[str], since: datetime, limit: int) -> list[Incident]:
        return []  # none shares a service or an alert with another one

    async def merged_into(self, incident_id: str, limit: int) -> list[Incident]:
        return [self.by_id[each] for each in islice(self.parts.get(incident_id, ()), limit)]

    async def save(self, incident: Incident) -> None:
        before = self.by_id.get(incident.id)
        await super(StormIncidents, self).save(incident)
        self.groups[incident.source, incident.group_key] = incident.id
        if incident.state is IncidentState.OPEN:
            self.open_ones.setdefault(incident.id)
        else:
            self.open_ones.pop(incident.id, None)
        for relation, change in ((before and before.part_of, self._leave), (incident.part_of, self._join)):
            if relation is not None:
                change(relation.incident_id, incident.id)

    def _leave(self, whole: str, part: str) -> None:
        self.parts[whole].pop(part, None)

    def _join(self, whole: str, part: str) -> None:
        self.parts.setdefault(whole, {})[part] = None


@dataclass(slots=True)
class StormTasks(InMemoryTasks):
    new: list[Task] = field(default_factory=list[Task])

    async def add(self, task: Task) -> bool:
        is_new = await super(StormTasks, self).add(task)
        self.new += [task] if is_new else []
        return is_new


@dataclass(slots=True)
class StormStore(InMemoryStore):
    """Undoes nothing when a transaction raises: here, only one that has not written anything does."""

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[InMemoryStore]:
        async with self._writer:
            self.held_incidents.incidents = self.incidents
            yield self


@dataclass(slots=True)
class Channel:
    """A channel with a storm in it."""

    tasks: StormTasks = field(default_factory=StormTasks)
    store: StormStore = field(init=False)
    chat: RecordingMessenger = field(default_factory=RecordingMessenger)
    clock: FakeClock = field(default_factory=FakeClock)
    unseen: dict[str, float] = field(default_factory=dict[str, float])  # critical ones by title, since when
    delays: list[float] = field(default_factory=list[float])  # seconds
    _elapsed: float = 0.0
    _due: list[tuple[float, int, Act]] = field(default_factory=list[tuple[float, int, Act]])
    _numbers: count[int] = field(default_factory=count)
    _read: int = 0
    _shown: float = 0.0

    def __post_init__(self) -> None:
        self.store = StormStore(self.tasks, StormIncidents(), held_incidents=InMemoryHeldIncidents())

    @property
    def ports(self) -> Ports:
        poster = Poster(self.store, {Platform.SLACK: self.chat})
        return some_ports(store=self.store, poster=poster, clock=self.clock)

    def at(self, second: float, act: Act) -> None:
        heapq.heappush(self._due, (second, next(self._numbers), act))

    async def run(self) -> None:
        while self._due:
            second, _, act = heapq.heappop(self._due)
            self.clock.advance(second - self._elapsed)
            self._elapsed = second
            try:
                await act()
            except ChatBusy as busy:
                self.at(second + (busy.retry_after or CHAT), act)
            self._look()
            self._start_tasks()

    def _start_tasks(self) -> None:
        while self.tasks.new:
            task = self.tasks.new.pop(0)
            if task.workflow == "present_storm":
                self._shown = max(self._elapsed + 0.2, self._shown + CHAT)
                self.at(self._shown, lambda it=task: present_storm(it.subject, HERE, self.ports))
            elif task.workflow in ("present_incident", "present_held"):
                self.at(self._elapsed + 0.2, lambda it=task: present_incident(it.subject, self.ports))

    def _look(self) -> None:
        """Note which critical ones came into sight."""
        if not self.unseen or self._read == (changes := len(self.chat.posted) + len(self.chat.edited)):
            return
        self._read = changes
        for message in self.chat.standing.values():
            named: list[str] = []
            if isinstance(message, IncidentMessage):
                named = [message.incident.title]
            elif isinstance(message, Notice):
                named = [text for text, url in message.lines if url]
            for title in [each for each in self.unseen if any(each in line for line in named)]:
                self.delays.append(self._elapsed - self.unseen.pop(title))

    async def fires(self, number: int, severity: Severity, *, has_cause: bool) -> None:
        name = f"s{number:04}"
        fired = Alert(
            fingerprint=name,
            name=f"{name} is slow",
            status=AlertStatus.FIRING,
            severity=severity,
            starts_at=self.clock.now(),
            service=name,
            summary=f"{name} is slow",
            labels={"service": name},
            url=f"https://alerts.example/{name}",
        )
        delivery = AlertDelivery(name, "alertmanager", name, (fired,), self.clock.now())
        await open_incident(delivery, store=self.store, places_for=lambda _: (HERE,), new_id=lambda: name)
        if severity is Severity.CRITICAL:
            self.unseen[f"{name} is slow"] = self._elapsed
        self.at(self._elapsed + 0.05, lambda: present_incident(name, self.ports))
        self.at(self._elapsed + INVESTIGATION, lambda: self._investigated(name, has_cause=has_cause))

    async def _investigated(self, name: str, *, has_cause: bool) -> None:
        incident = self.store.incidents.by_id[name]
        explained = explanation(hypotheses=(replace(hypothesis(), service=name),) if has_cause else ())
        incident = replace(incident.with_findings(explanation=explained, owner=owner()), stage=Stage.DONE)
        await self.store.incidents.save(replace(incident, revision=incident.revision + 1))
        await present_incident(name, self.ports)

    async def ends(self, number: int) -> None:
        incident = self.store.incidents.by_id[f"s{number:04}"]
        over = replace(incident, state=IncidentState.RESOLVED, resolved_at=self.clock.now())
        await self.store.incidents.save(replace(over, revision=incident.revision + 1))
        await present_incident(incident.id, self.ports)

    async def watch(self) -> None:
        await watch_storms(self.ports)


async def measure(alerts: int, minutes: float, causes: int, seed: int) -> dict[str, Any]:
    chance, channel = random.Random(f"{alerts} {minutes} {causes} {seed}"), Channel()
    critical = set(chance.sample(range(alerts), min(CRITICAL, alerts // 5)))
    with_cause = set(chance.sample(range(alerts // 2), causes))
    for number in range(alerts):
        severity = Severity.CRITICAL if number in critical else chance.choice((Severity.WARNING, Severity.INFO))
        channel.at(
            number * minutes * MINUTE / alerts,
            lambda it=number, how=severity: channel.fires(it, how, has_cause=it in with_cause),
        )
        channel.at(minutes * MINUTE + WATCHED + number * MINUTE / alerts, lambda it=number: channel.ends(it))
    end = minutes * MINUTE + 2 * WATCHED + MINUTE
    for second in range(0, round(end), round(MINUTE)):
        channel.at(float(second), channel.watch)
    began = time.monotonic()
    await channel.run()
    lists = [each for each in channel.chat.standing.values() if isinstance(each, Notice)]
    return {
        "alerts": alerts,
        "minutes": minutes,
        "causes": causes,
        "messages": sum(place.thread is None for place, *_ in channel.chat.posted),
        "allowed": 1 + causes,
        "edits_a_minute": round(len(channel.chat.edited) / (end / MINUTE), 1),
        "slowest_critical_s": round(max(channel.delays, default=0.0), 1),
        "critical_never": len(channel.unseen),
        "lists": len(lists),
        "took_s": round(time.monotonic() - began, 1),
        "text": "\n\n".join(each.text for each in lists),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="storm-messages", description=__doc__)
    parser.add_argument("--alerts", type=int, nargs="*", default=list(ALERTS))
    parser.add_argument("--minutes", type=float, nargs="*", default=list(MINUTES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", dest="json_file", type=Path)
    given = parser.parse_args()
    table = Table(
        "alerts", "minutes", "causes", "messages", "allowed", "lists", "slowest critical, s", "never", "edits/min"
    )
    rows: list[dict[str, Any]] = []
    for alerts, minutes, causes in product(given.alerts, given.minutes, CAUSES):
        row = asyncio.run(measure(alerts, minutes, causes, given.seed))
        shown = ("alerts", "minutes", "causes", "messages", "allowed", "lists", "slowest_critical_s", "critical_never")
        table.add_row(*(str(row[name]) for name in (*shown, "edits_a_minute")))
        rows.append(row)
    Console().print(table)
    write_json({f"{row['alerts']}/{row['minutes']:g}/{row['causes']}": row for row in rows}, given.json_file)


if __name__ == "__main__":
    main()
