"""An invented company in ordinary operation: services and their calls, and what they log, measure, trace and ship.

Everything follows from one random generator, so that a seed gives the same company again. Nothing here knows of faults;
`incident_faults` adds one on top.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
Random = np.random.Generator

AFTER = 10  # minutes after the alert that are recorded
SPANS_A_MINUTE = 2  # traces that are kept

SERVICE_NAMES = (
    "cart orders checkout catalog pricing billing ledger payouts invoices accounts profiles sessions identity search "
    "recommendations reviews inventory shipments warehouse couriers tracking notifications mailer webhooks reports "
    "exports media thumbnails uploads chat presence bookings quotes policies claims fares seats loyalty coupons tax"
).split()
SUFFIXES = ("", "", "-api", "-service", "-svc", "-worker")
NOUNS = (
    "voucher basket parcel tariff customer address discount refund subscription delivery receipt session preference "
    "wishlist itinerary allotment statement settlement document attachment segment bundle variant supplier contract "
    "reservation passenger device quote coverage beneficiary milestone schedule rota badge locale currency"
).split()
FIELDS = (
    "region tier middle_name valid_until note_lang gross_amount unit_price external_ref channel cost_center iban "
    "postal_code legacy_id category weight_grams line_total discount_code parent_id etag issued_at country_code "
    "time_zone display_name tax_rate opt_in source_system rank batch_no rounding"
).split()
PEOPLE = (
    "Mara Lindqvist,Ade Okonkwo,Jun Tanaka,Priya Raman,Tomas Novak,Lena Fuchs,Hugo Martel,Nadia Haddad,Owen Pryce,"
    "Ines Duarte,Kofi Mensah,Sofia Ricci,Pavel Dvorak,Yara Saleh,Emil Berg"
).split(",")
VENDORS = (
    "api.paygrid.example auth.loginhub.example sms.courierly.example maps.geotile.example tax.ratecloud.example "
    "api.parcelnet.example mail.postwing.example fraud.riskeye.example storage.blobhaus.example"
).split()
LANGUAGES = ("python", "java", "go", "node")
LIBRARIES = ("httpkit", "retrylib", "jsonx", "authcore", "dbkit", "metrics-common", "eventbus-client", "money")
ROLES = ("rate", "latency", "errors", "cpu", "memory", "pool", "queue")
NAMING = (
    {
        "rate": "http_requests_per_second",
        "latency": "http_request_duration_p95_ms",
        "errors": "http_error_ratio",
        "cpu": "cpu_percent",
        "memory": "memory_rss_mb",
        "pool": "db_pool_in_use",
        "queue": "queue_depth",
    },
    {
        "rate": "rps",
        "latency": "latency_p99_ms",
        "errors": "errors_per_minute",
        "cpu": "container_cpu_usage_cores",
        "memory": "container_memory_working_set_mb",
        "pool": "db_connections_active",
        "queue": "consumer_lag",
    },
    {
        "rate": "requests_per_minute",
        "latency": "response_time_p95_ms",
        "errors": "http_5xx_rate",
        "cpu": "process_cpu_percent",
        "memory": "heap_used_mb",
        "pool": "pool_busy",
        "queue": "pending_jobs",
    },
)


@dataclass(slots=True)
class Service:
    name: str
    layer: int
    language: str
    nouns: tuple[str, ...]
    operations: tuple[str, ...]
    host: str
    is_store: bool = False
    base: dict[str, float] = field(default_factory=dict[str, float])


@dataclass(slots=True)
class Record:
    """One entry of changes.jsonl, with `minute` in place of its time."""

    minute: float
    fields: dict[str, object]

    @property
    def id(self) -> str:
        return str(self.fields["id"])


@dataclass(slots=True)
class LogEntry:
    minute: float
    level: str
    text: str


@dataclass(slots=True)
class SpanFault:
    """From `start` on, a `share` of the spans of an operation fails with `message` or takes `slower` times as long."""

    service: str
    start: float
    share: float
    message: str = ""
    slower: float = 1.0
    operation: str = ""
    peer: str = ""


@dataclass(slots=True)
class World:
    """Minute 0 is the alert; recording begins at `first` (negative)."""

    random: Random
    first: int
    services: dict[str, Service]
    calls: dict[str, tuple[str, ...]]
    vendors: dict[str, str]  # service → the outside host that it calls
    libraries: dict[str, tuple[str, ...]]  # library → the services that use it
    monorepo: bool
    naming: dict[str, str]
    joins: str  # how a deploy names its commits: "commits", "revision" or "text"
    metrics: dict[tuple[str, str], Values] = field(default_factory=dict[tuple[str, str], Values])
    logs: dict[str, list[LogEntry]] = field(default_factory=dict[str, list[LogEntry]])
    changes: list[Record] = field(default_factory=list[Record])
    span_faults: list[SpanFault] = field(default_factory=list[SpanFault])
    repeats: dict[tuple[str, str], tuple[float, int]] = field(default_factory=dict[tuple[str, str], tuple[float, int]])
    every: int = 1  # minutes between the values of a metric
    traces: int = 0  # that are kept; 0: SPANS_A_MINUTE
    number: int = 0

    @property
    def minutes(self) -> Values:
        return np.arange(self.first, AFTER, dtype=np.float64)

    def pick(self, choices: Sequence[str]) -> str:
        return choices[int(self.random.integers(len(choices)))]

    def chance(self, share: float) -> bool:
        return bool(self.random.random() < share)

    def between(self, low: float, high: float) -> float:
        return float(self.random.uniform(low, high))

    def sha(self) -> str:
        return f"{int(self.random.integers(16**10)):010x}"

    def callers(self, service: str) -> list[str]:
        return [name for name, callees in self.calls.items() if service in callees]

    def servers(self) -> list[Service]:
        return [each for each in self.services.values() if not each.is_store]

    def store_of(self, service: str) -> str:
        return next((each for each in self.calls.get(service, ()) if self.services[each].is_store), "")

    # Faults and noise use these.

    def log(
        self,
        service: str,
        level: str,
        text: Callable[[], str] | str,
        start: float,
        per_minute: float,
        end: float = AFTER,
        growing: bool = False,
    ) -> None:
        span = max(0.0, end - start)
        count = int(self.random.poisson(per_minute * span))
        places = self.random.random(count)
        for place in np.sqrt(places) if growing else places:
            self.logs.setdefault(service, []).append(
                LogEntry(start + float(place) * span, level, text if isinstance(text, str) else text())
            )

    def step(self, start: float, size: float, over: float = 1.0, end: float = AFTER) -> Values:
        """Rises from 0 to `size` within `over` minutes from `start`, and is over at `end`."""
        minutes = self.minutes
        return size * np.clip((minutes - start) / max(over, 0.1), 0, 1) * (minutes < end)

    def add(self, service: str, role: str, extra: Values, noise: float = 0.1) -> None:
        """Add to a metric, if the service has it."""
        known = self.metrics.get((service, role))
        if known is not None:
            self.metrics[service, role] = known + extra * self.random.normal(1, noise, len(extra))

    def scale(self, service: str, role: str, factor: Values) -> None:
        known = self.metrics.get((service, role))
        if known is not None:
            self.metrics[service, role] = known * np.maximum(0.0, 1 + factor)

    # Changes.

    def path(self, service: Service, noun: str, part: str) -> str:
        root = f"services/{service.name}/" if self.monorepo else ""
        capital = noun.capitalize() + part.capitalize()
        return {
            "python": f"{root}{'app' if self.monorepo else service.name.replace('-', '_')}/{noun}/{part}.py",
            "java": f"{root}src/main/java/com/acme/{service.name.replace('-', '')}/{noun}/{capital}.java",
            "go": f"{root}internal/{noun}/{part}.go",
            "node": f"{root}src/{noun}/{part}.ts",
        }[service.language]

    def commit(
        self,
        minute: float,
        services: Sequence[str],
        title: str,
        files: Sequence[str],
        diff: str,
        detail: str = "",
        kind: str = "commit",
    ) -> Record:
        sha = self.sha()
        fields: dict[str, object] = {
            "id": sha,
            "kind": kind,
            "revision": sha,
            "author": self.pick(PEOPLE),
            "title": title,
            "files": list(files),
            "diff": diff,
        }
        if detail:
            fields["detail"] = detail
        if len(services) == 1:
            fields["service"] = services[0]
        elif services:
            fields["services"] = list(services)
        return self._kept(Record(minute, fields))

    def deploy(self, minute: float, service: str, commits: Sequence[Record]) -> Record:
        self.number += int(self.random.integers(1, 9))
        version = f"{int(self.random.integers(1, 5))}.{int(self.random.integers(40))}.{int(self.random.integers(9))}"
        shas = [commit.id for commit in commits]
        fields: dict[str, object] = {
            "id": f"{'DEP' if self.monorepo else 'rel'}-{4000 + self.number}",
            "kind": "deploy",
            "service": service,
            "author": self.pick(("ci-bot", "deployer", *PEOPLE[:4])),
            "title": self.pick(
                (f"{service} {version}", f"Release {service} {version}", f"Roll out {service} {version}")
            ),
        }
        if shas and self.joins == "commits":
            fields["commits"] = shas
        elif shas and self.joins == "text":
            fields["detail"] = f"Ships {', '.join(sha[:8] for sha in shas)}."
        elif shas:
            fields["revision"] = shas[-1]
        return self._kept(Record(minute, fields))

    def setting(self, minute: float, kind: str, service: str, title: str, detail: str = "", diff: str = "") -> Record:
        """A flag, a configuration or another change that no commit stands for."""
        self.number += int(self.random.integers(1, 9))
        prefix = {"flag": "FLG", "config": "CFG"}.get(kind, "CHG")
        fields: dict[str, object] = {
            "id": f"{prefix}-{4000 + self.number}",
            "kind": kind,
            "service": service,
            "author": self.pick(PEOPLE),
            "title": title,
        }
        fields |= {name: text for name, text in (("detail", detail), ("diff", diff)) if text}
        return self._kept(Record(minute, fields))

    def _kept(self, record: Record) -> Record:
        self.changes.append(record)
        return record


def invented(random: Random, first: int) -> World:
    """A company in ordinary operation, from minute `first` on."""
    count = int(random.integers(6, 12))
    names = random.choice(SERVICE_NAMES, count, replace=False)
    layers = np.sort(random.integers(1, 4, count))
    layers[0], layers[1] = 0, 1
    hosts = [f"node-{chr(97 + number)}" for number in range(max(3, count // 3))]
    services: dict[str, Service] = {}
    for name, layer in zip(names, layers, strict=True):
        title = (
            "gateway" if layer == 0 and random.random() < 0.5 else f"{name}{SUFFIXES[random.integers(len(SUFFIXES))]}"
        )
        nouns = tuple(str(each) for each in random.choice(NOUNS, 4, replace=False))
        operations = (f"GET /{nouns[0]}s/{{id}}", f"POST /{nouns[1]}s", f"GET /{nouns[2]}s")
        services[title] = Service(
            title, int(layer), LANGUAGES[random.integers(4)], nouns, operations, hosts[random.integers(len(hosts))]
        )
    ordered = list(services.values())
    calls: dict[str, tuple[str, ...]] = {}
    for each in ordered:
        below = [other.name for other in ordered if other.layer > each.layer]
        wanted = min(len(below), int(random.integers(1, 4)) + (each.layer == 0))
        calls[each.name] = tuple(str(one) for one in random.choice(below, wanted, replace=False)) if below else ()
    for each in ordered[1:]:
        if not any(each.name in callees for callees in calls.values()):
            above = [other.name for other in ordered if other.layer < each.layer]
            calls[above[int(random.integers(len(above)))]] += (each.name,)
    for number, each in enumerate(ordered):
        if each.layer >= 1 and random.random() < 0.55:
            store = f"{('pg', 'mysql', 'redis')[random.integers(3)]}-{names[number]}"
            services[store] = Service(store, 9, "go", each.nouns, ("query",), hosts[random.integers(len(hosts))], True)
            calls[each.name] += (store,)
    servers = [each.name for each in ordered]
    vendors = {
        str(name): str(host)
        for name, host in zip(
            random.choice(servers, 2, replace=False), random.choice(VENDORS, 2, replace=False), strict=True
        )
    }
    libraries = {
        str(library): tuple(str(name) for name in random.choice(servers, min(len(servers), 4), replace=False))
        for library in random.choice(LIBRARIES, 2, replace=False)
    }
    world = World(
        random=random,
        first=first,
        services=services,
        calls=calls,
        vendors=vendors,
        libraries=libraries,
        monorepo=bool(random.random() < 0.5),
        naming=dict(NAMING[random.integers(len(NAMING))]),
        joins=("commits", "revision", "text")[random.integers(3)],
    )
    for each in services.values():
        _measure(world, each)
        _chatter(world, each)
    return world


def _measure(world: World, service: Service) -> None:
    """Metrics of a calm day: a slow drift of traffic that all services share, and noise of their own."""
    random, minutes = world.random, world.minutes
    drift = 1 + 0.12 * np.sin((minutes - world.first) / 400 + service.layer * 0.1)
    base = {
        "rate": world.between(20, 300),
        "latency": world.between(30, 400),
        "errors": world.between(0.2, 2.0),
        "cpu": world.between(15, 50),
        "memory": world.between(300, 1500),
        "pool": world.between(3, 15),
        "queue": world.between(2, 30),
    }
    service.base = base
    kept = [role for role in ROLES if role in ("rate", "latency", "errors") or random.random() < 0.55]
    if service.is_store:
        kept = [role for role in kept if role not in ("errors", "queue")] if random.random() < 0.8 else []
    for role in kept:
        noise = 0.25 if role in ("errors", "queue") else 0.06
        level = base[role] * (drift if role in ("rate", "cpu") else 1.0)
        world.metrics[service.name, role] = np.maximum(0.0, level * random.normal(1, noise, len(minutes)))
    if kept and random.random() < 0.25:  # a blip that means nothing
        start = world.between(world.first + 10, -5)
        world.add(service.name, world.pick(kept), world.step(start, base["latency"] * 0.2, end=start + 3))


def _chatter(world: World, service: Service) -> None:
    """What a service logs on a calm day, some of it warnings and errors."""
    if service.is_store:
        return
    random, nouns = world.random, service.nouns

    def number(high: int) -> int:
        return int(random.integers(high))

    calm: list[tuple[str, Callable[[], str], float]] = [
        ("INFO", lambda: f"{service.operations[number(3)]} 200 {number(300)}ms", 1.2),
        ("INFO", lambda: f"{nouns[0]} {number(99999)} stored", 0.4),
        ("INFO", lambda: f"{nouns[1]} {number(99999)} updated by user {number(9999)}", 0.3),
        ("DEBUG", lambda: f"cache hit for {nouns[2]}:{number(9999)}", 0.2),
    ]
    grumbles: list[tuple[str, Callable[[], str], float]] = [
        ("WARN", lambda: f"slow {nouns[3]} lookup took {900 + number(900)}ms", 0.05),
        ("WARN", lambda: f"retrying {nouns[1]} write, attempt 2", 0.04),
        ("ERROR", lambda: f"could not parse {nouns[2]} from client: unexpected end of input", 0.03),
        ("WARN", lambda: f"token of user {number(9999)} expired, sign-in needed", 0.05),
        ("ERROR", lambda: f"client closed connection while sending {nouns[0]} {number(9999)}", 0.04),
        ("WARN", lambda: f"deprecated endpoint /v1/{nouns[3]}s used by partner {number(30)}", 0.04),
    ]
    for level, text, rate in calm:
        world.log(service.name, level, text, world.first, rate * world.between(0.5, 1.5))
    for place in random.choice(len(grumbles), 3, replace=False):
        level, text, rate = grumbles[place]
        world.log(service.name, level, text, world.first, rate * world.between(0.5, 2.0))


def thinned(world: World) -> None:
    """Leave what somebody might have copied by hand: some dozens of records, a value each five minutes, a few traces."""
    for service, entries in world.logs.items():
        early = [each for each in entries if each.minute < -10]
        late = [each for each in entries if each.minute >= -10]
        kept: list[LogEntry] = []
        for group, most in ((early, 12), (late, 14)):
            places = world.random.choice(len(group), min(most, len(group)), replace=False) if group else ()
            kept += [group[int(place)] for place in places]
        world.logs[service] = kept
    world.every, world.traces = 5, 24


# Writing.


def written(world: World, folder: Path, start: datetime, alert: dict[str, str], truth: dict[str, object]) -> None:
    """Write a case in the formats that the file tools read, beside the alert and the truth about it."""
    for name in ("logs", "metrics", "traces"):
        (folder / name).mkdir(parents=True, exist_ok=True)

    def at(minute: float) -> datetime:
        return start + timedelta(seconds=round(minute * 60))

    for service, entries in world.logs.items():
        entries.sort(key=lambda entry: entry.minute)
        lines = [f"{_millis(start, each.minute)} {each.level} {service} {each.text}" for each in entries]
        (folder / "logs" / f"{service}.log").write_text("\n".join(lines) + "\n", "utf-8")
    stamps = [f"{at(minute):%Y-%m-%dT%H:%M:%SZ}" for minute in world.minutes]
    for service in world.services:
        columns = {role: world.metrics[service, role] for role in ROLES if (service, role) in world.metrics}
        if columns:
            header = ",".join(["timestamp", *(world.naming[role] for role in columns)])
            rows = np.char.mod("%.5g", np.stack(list(columns.values()), axis=1))
            lines = [
                ",".join((stamp, *row)) for stamp, row in [*zip(stamps, rows.tolist(), strict=True)][:: world.every]
            ]
            (folder / "metrics" / f"{service}.csv").write_text("\n".join([header, *lines]) + "\n", "utf-8")
    world.changes.sort(key=lambda record: record.minute)
    changes = [
        json.dumps({"id": each.id, "at": f"{at(each.minute):%Y-%m-%dT%H:%M:%SZ}", **each.fields})
        for each in world.changes
    ]
    (folder / "changes.jsonl").write_text("\n".join(changes) + "\n", "utf-8")
    (folder / "traces" / "spans.jsonl").write_text("\n".join(_spans(world, start)) + "\n", "utf-8")
    labels = {"alertname": alert["name"], "service": alert["service"], "severity": "critical"}
    body = {
        "version": "4",
        "status": "firing",
        "receiver": "plumbline",
        "groupKey": f"{{}}:{{alertname={json.dumps(alert['name'])}}}",
        "groupLabels": {"alertname": alert["name"]},
        "commonLabels": labels,
        "commonAnnotations": {"summary": alert["summary"]},
        "externalURL": "",
        "alerts": [
            {
                "status": "firing",
                "labels": labels,
                "annotations": {"summary": alert["summary"]},
                "startsAt": f"{start:%Y-%m-%dT%H:%M:%SZ}",
                "endsAt": "0001-01-01T00:00:00Z",
                "generatorURL": "",
                "fingerprint": folder.name,
            }
        ],
    }
    (folder / "alert.json").write_text(json.dumps(body, indent=1), "utf-8")
    if world.chance(0.6):  # elsewhere only the traces tell who calls whom
        (folder / "dependencies.json").write_text(json.dumps(world.calls), "utf-8")
    (folder / "truth.json").write_text(json.dumps(truth, indent=1), "utf-8")


def _millis(start: datetime, minute: float) -> str:
    return (start + timedelta(minutes=minute)).astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _spans(world: World, start: datetime) -> list[str]:
    """A request per service: spans of one trace, callees below callers, with the faults in force at its time."""
    random = world.random
    roots = [each for each in world.servers() if each.layer <= 1]
    count = int(min(200, -world.first)) + AFTER
    begins = np.sort(random.uniform(AFTER - count, AFTER, count * SPANS_A_MINUTE))
    if world.traces:
        begins = np.sort(np.r_[random.uniform(-60, -12, world.traces // 3), random.uniform(-12, AFTER, world.traces)])
    lines: list[str] = []
    for number, minute in enumerate(begins):
        root = roots[int(random.integers(len(roots)))]
        by_service: dict[str, list[dict[str, object]]] = {}
        _trace(world, root, start, float(minute), f"{number:032x}", "", by_service, 0)
        resources = [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": name}}]},
                "scopeSpans": [{"spans": spans}],
            }
            for name, spans in by_service.items()
        ]
        lines.append(json.dumps({"resourceSpans": resources}))
    return lines


def _trace(
    world: World,
    service: Service,
    start: datetime,
    minute: float,
    trace: str,
    parent: str,
    spans: dict[str, list[dict[str, object]]],
    depth: int,
) -> tuple[float, bool]:
    """The duration in milliseconds of a call, and whether it failed."""
    random = world.random
    span = f"{int(random.integers(1, 2**62)):016x}"
    operation = service.operations[int(random.integers(len(service.operations)))]
    took, failed, message, peer = service.base["latency"] * 0.3 * float(random.lognormal(0, 0.25)), False, "", ""
    faults = (each for each in world.span_faults if each.service == service.name and minute >= each.start)
    for fault in faults:
        if fault.operation in ("", operation) and random.random() < fault.share:
            took *= fault.slower
            if fault.message:
                failed, message, peer = True, fault.message, fault.peer
    for callee in world.calls.get(service.name, ()) if depth < 4 else ():
        start_of, times = world.repeats.get((service.name, callee), (float(AFTER), 1))
        for _ in range(times if minute >= start_of else int(random.random() < 0.7)):
            below, broken = _trace(world, world.services[callee], start, minute, trace, span, spans, depth + 1)
            took += below
            if broken and random.random() < 0.85 and not failed:
                failed, message = True, f"{callee} answered with an error"
    if random.random() < 0.004:
        failed, message = True, "request cancelled"
    begun = start + timedelta(minutes=minute)
    nanos = int(begun.timestamp() * 1e9)
    attributes = [{"key": "server.address", "value": {"stringValue": peer}}] if peer else []
    spans.setdefault(service.name, []).append(
        {
            "traceId": trace,
            "spanId": span,
            "parentSpanId": parent,
            "name": operation,
            "startTimeUnixNano": str(nanos),
            "endTimeUnixNano": str(nanos + int(took * 1e6)),
            "status": {"code": 2, "message": message} if failed else {},
            "attributes": attributes,
        }
    )
    return took, failed
