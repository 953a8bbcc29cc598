"""Faults in an invented company: what each one changes, breaks, logs and slows, and what would be the right answer.

Half of the classes are for developing (`DEVELOPED_ON`); the others are reported apart. In every class the wording varies:
a commit may describe what it does, or say next to nothing; it may share a name with the error, a number, or no word at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.evaluation.incident_world import FIELDS, LIBRARIES, NOUNS, Record, Service, SpanFault, World

VAGUE = (
    "Cleanup",
    "Address review comments",
    "Small improvements",
    "Follow-up",
    "Refactor internals",
    "Tidy up",
    "Sync with main",
    "Housekeeping before the release",
)


@dataclass(slots=True)
class Truth:
    """`culprits` are the ids that name the change; none where no change did it, then `category` says what did.

    `first_failing` is the service in which it first showed, `alerting` the one whose alert fired.
    """

    first_failing: str
    alerting: str
    culprits: list[str] = field(default_factory=list[str])
    category: str = "change"
    decoys: list[str] = field(default_factory=list[str])
    summary: str = ""
    subject: str = ""  # the outside host, record or node that is to blame


Fault = Callable[[World, float], Truth]


# What the classes are made of.


def _server(world: World, layers: Sequence[int] = (1, 2, 3)) -> Service:
    fitting = [each for each in world.servers() if each.layer in layers] or world.servers()
    return fitting[int(world.random.integers(len(fitting)))]


def _camel(text: str) -> str:
    return "".join(part.capitalize() for part in text.split("_"))


def _diff(path: str, minus: Sequence[str], plus: Sequence[str], context: str = "") -> str:
    lines = [f"--- a/{path}", f"+++ b/{path}", f"@@ -40,{len(minus) + 1} +40,{len(plus) + 1} @@ {context}".rstrip()]
    return "\n".join([*lines, *(f"-{line}" for line in minus), *(f"+{line}" for line in plus)])


def _trace_text(world: World, service: Service, head: str, path: str, symbol: str) -> str:
    """An error with the stack trace of its language; the innermost own frame is in `path`."""
    line = int(world.random.integers(20, 300))
    noun = world.pick(NOUNS)
    if service.language == "python":
        return (
            f"request failed: {head}\n  Traceback (most recent call last):\n"
            f'    File "/srv/app/web/handlers.py", line {line + 7}, in dispatch\n'
            f'    File "/srv/{path}", line {line}, in {symbol}\n  {head}'
        )
    if service.language == "java":
        package = path.partition("java/")[2].removesuffix(".java").replace("/", ".")
        return (
            f"request failed: {head}\n    at {package}.{symbol}({package.rpartition('.')[2]}.java:{line})\n"
            f"    at com.acme.web.Dispatcher.handle(Dispatcher.java:{line + 40})"
        )
    if service.language == "go":
        return (
            f"panic recovered: {head}\n  {noun}.{symbol}(0xc000)\n  \t/src/{path}:{line}\n"
            f"  http.handle(...)\n  \t/src/internal/http/serve.go:{line + 9}"
        )
    return f"request failed: {head}\n    at {symbol} (/srv/{path}:{line}:11)\n    at dispatch (/srv/src/http/server.ts:88:5)"


def _commit_noise(world: World, minute: float, service: Service) -> Record:
    """An innocent commit of a service, in words of its own subjects."""
    noun, other, column = world.pick(service.nouns), world.pick(service.nouns), world.pick(FIELDS)
    part = world.pick(("model", "view", "service", "repository", "mapper", "client"))
    path = world.path(service, noun, part)
    titles = (
        f"Add {column} to {noun} response",
        f"Show {other} in {noun} list",
        f"Rename {noun} helper",
        f"Log {noun} id on failure",
        f"Raise test coverage of {noun} {part}",
        f"Bump {world.pick(LIBRARIES)} to 2.{int(world.random.integers(30))}",
        f"Handle missing {column} in {noun}",
        f"Retry {noun} {part} once on timeout",
        f"Cache {noun} lookups for 60 s",
        f"Make timeout of {noun} client configurable",
        f"Translate {noun} labels",
        world.pick(VAGUE),
    )
    bodies = (
        ([f"    return {noun}"], [f"    return {noun}.with_{column}({column})"]),
        ([f"log.info('{noun}')"], [f"log.info('{noun} %s', {noun}.id)"]),
        ([], [f"def test_{noun}_{column}():", f"    assert {noun}_{part}({column}=1)"]),
        ([f"TIMEOUT_{noun.upper()} = 5"], [f"TIMEOUT_{noun.upper()} = settings.get('{noun}_timeout', 5)"]),
    )
    minus, plus = bodies[int(world.random.integers(len(bodies)))]
    return world.commit(minute, [service.name], world.pick(titles), [path], _diff(path, minus, plus, part))


def _setting_noise(world: World, minute: float, service: Service) -> Record:
    noun = world.pick(service.nouns)
    kind = world.pick(("flag", "config", "flag", "config", "infrastructure", "rotation"))
    text = {
        "flag": f"{noun}-{world.pick(('redesign', 'hints', 'export', 'beta', 'v2'))} on for {world.pick(('5', '20', '100'))} %",
        "config": world.pick(
            (
                f"{noun} cache TTL 300 -> 600",
                f"log level of {noun} to INFO",
                f"{service.name}: request timeout 5s -> 8s",
                f"more replicas for {service.name}: 4 -> 6",
            )
        ),
        "infrastructure": f"kernel patch on {service.host}",
        "rotation": f"new key for {noun} signing",
    }[kind]
    return world.setting(minute, kind, service.name, text)


def _ship(world: World, minute: float, service: Service, culprit: Record | None = None, beside: int = 0) -> list[str]:
    """Deploy a culprit among `beside` innocent commits; returns the ids that name the change."""
    before = [_commit_noise(world, minute - world.between(20, 300), service) for _ in range(beside)]
    commits = [*before, *([culprit] if culprit else [])]
    commits.sort(key=lambda each: each.minute)
    deploy = world.deploy(minute, service.name, commits)
    if culprit is None:
        return [deploy.id]
    # A deploy of several commits names the right one only as far as it brought it.
    return [culprit.id, deploy.id]


def _suffer(world: World, service: str, start: float, share: float, slower: float, said: str, depth: int = 0) -> None:
    """Callers feel it: some of their requests fail or take longer, and most of them complain of the callee."""
    if depth > 3:
        return
    for caller in world.callers(service):
        felt = share * world.between(0.3, 0.8)
        if felt < 0.03:
            continue
        later = start + world.between(0.1, 1.5)
        base = world.services[caller].base
        world.add(caller, "errors", world.step(later, base["errors"] * 25 * felt))
        if slower > 1:
            world.scale(caller, "latency", world.step(later, (slower - 1) * felt))
        if world.chance(0.85):
            text = world.pick(
                (
                    f"call to {service} failed: {said}",
                    f"upstream {service} returned 503",
                    f"{service} client: gave up after 3 attempts ({said})",
                    f"timeout of 2000ms exceeded calling {service}",
                )
            )
            world.log(caller, world.pick(("ERROR", "WARN", "ERROR")), text, later, 6 * felt + 0.3)
        _suffer(world, caller, later, felt, slower, f"{service} unavailable", depth + 1)


def _alert(world: World, service: str, otherwise: float = 0.3) -> str:
    """Where it is noticed: in the service itself, or in what calls it."""
    callers = world.callers(service)
    return world.pick(callers) if callers and (world.services[service].is_store or world.chance(otherwise)) else service


def _fails(world: World, service: Service, start: float, share: float, text: Callable[[], str] | str) -> None:
    """A share of requests fails with an error of its own: log, spans, metric, callers."""
    head = (text if isinstance(text, str) else text()).partition("\n")[0]
    world.log(service.name, world.pick(("ERROR", "ERROR", "ERROR", "FATAL")), text, start, 2 + 8 * share)
    world.add(service.name, "errors", world.step(start, service.base["errors"] * 40 * share))
    said = head if world.chance(0.6) else world.pick(("internal error", "500", "unhandled exception"))
    world.span_faults.append(SpanFault(service.name, start, share, said, world.between(0.5, 1.3)))
    _suffer(world, service.name, start, share, 1.0, "500 Internal Server Error")


def _slows(world: World, service: Service, start: float, slower: float, over: float = 2.0) -> None:
    world.scale(service.name, "latency", world.step(start, slower - 1, over))
    world.span_faults.append(SpanFault(service.name, start, 0.8, "", slower))
    _suffer(world, service.name, start, 0.5, slower, "deadline exceeded")


# Classes. `onset` is the minute at which the trouble begins (negative; the alert fires at 0).


def bad_code(world: World, onset: float) -> Truth:
    service = _server(world)
    noun, column = world.pick(service.nouns), world.pick(FIELDS)
    part = world.pick(("service", "mapper", "rules", "calculator"))
    path, symbol = world.path(service, noun, part), f"{world.pick(('apply', 'build', 'resolve', 'load'))}{_camel(noun)}"
    null = {
        "python": f"AttributeError: 'NoneType' object has no attribute '{column}'",
        "java": f'java.lang.NullPointerException: Cannot invoke "get{_camel(column)}()" because "{noun}" is null',
        "go": "runtime error: invalid memory address or nil pointer dereference",
        "node": f"TypeError: Cannot read properties of undefined (reading '{column}')",
    }[service.language]
    kinds: list[tuple[str, list[str], list[str], str]] = [
        (
            f"Use {column} of the new {noun} model",
            [f"    if {noun} is None: return default"],
            [f"    value = {noun}.{column}"],
            null,
        ),
        (
            f"Spread {noun} total over its lines",
            ["    per_line = total"],
            ["    per_line = total / len(lines)"],
            {
                "python": "ZeroDivisionError: division by zero",
                "java": "java.lang.ArithmeticException: / by zero",
                "go": "runtime error: integer divide by zero",
                "node": "RangeError: Invalid count value: NaN",
            }[service.language],
        ),
        (
            f"Validate {column} strictly",
            [f"    {column} = raw.get('{column}')"],
            [f"    {column} = parse_{column}(raw['{column}'])"],
            f"ValidationError: {column}: value is not of the expected form",
        ),
        (
            f"Stream {noun}s instead of loading them",
            [f"    rows = load_all('{noun}')"],
            ["    for row in cursor: yield row", "    cursor.close()"],
            f"IllegalStateError: {noun} stream already closed",
        ),
    ]
    slow: list[tuple[str, list[str], list[str]]] = [
        (
            f"Include {column} in {noun} list",
            [f"    return repo.{noun}s(ids)"],
            [f"    return [repo.{noun}(id).{column} for id in ids]"],
        ),
        (
            f"Guard {noun} state against races",
            [f"    self._{noun} = value"],
            ["    with self._lock:", f"        self._{noun} = recompute(value)"],
        ),
    ]
    lag = world.between(0.5, 4) if world.chance(0.7) else world.between(4, 25)
    if world.chance(0.75):
        title, minus, plus, error = kinds[int(world.random.integers(len(kinds)))]
        traced = world.chance(0.6)
        text = _trace_text(world, service, error, path, symbol) if traced else f"{service.operations[0]} 500: {error}"
        share = world.between(0.08, 0.7)
        _fails(world, service, onset, share, text)
    else:
        title, minus, plus = slow[int(world.random.integers(len(slow)))]
        _slows(world, service, onset, world.between(3, 12))
        if world.chance(0.5):
            world.add(service.name, "cpu", world.step(onset, 40, 2))
        if world.chance(0.5):
            world.log(
                service.name, "WARN", f"request took {int(world.between(2000, 9000))}ms, over budget", onset + 0.5, 2
            )
    title = title if world.chance(0.65) else world.pick(VAGUE)
    diff = _diff(path, minus, plus, symbol) if world.chance(0.85) else ""
    culprit = world.commit(onset - lag - world.between(10, 300), [service.name], title, [path], diff)
    ids = _ship(world, onset - lag, service, culprit, int(world.random.integers(0, 4)))
    return Truth(service.name, _alert(world, service.name), ids)


def shared_library(world: World, onset: float) -> Truth:
    library = world.pick(list(world.libraries))
    users = [world.services[name] for name in world.libraries[library]]
    chosen = users[: int(world.random.integers(1, 4))]
    variants = (
        (
            "Reuse connections between calls",
            "    pool.close()",
            "    pool.keep(idle=600)",
            "connection reset by peer while reading response headers",
        ),
        (
            "Encode decimals as strings",
            "    return float(value)",
            "    return str(value)",
            "cannot convert string to number in field amount",
        ),
        (
            "Lower default retry delay",
            "DELAY_MS = 500",
            "DELAY_MS = 5",
            "retry budget exhausted after 40 attempts",
        ),
        (
            "Verify audience of tokens",
            "    claims = decode(token)",
            "    claims = decode(token, audience=REQUIRED)",
            "token rejected: audience missing",
        ),
        ("Drop legacy header names", "    'X-Request-Id',", "    'traceparent',", "missing context: X-Request-Id"),
    )
    title, minus, plus, error = variants[int(world.random.integers(len(variants)))]
    path = f"libs/{library}/{world.pick(('client', 'codec', 'core', 'policy'))}.{'py' if world.chance(0.5) else 'go'}"
    full = f"{library}: {title.lower()}" if world.chance(0.6) else world.pick(VAGUE)
    culprit = world.commit(onset - world.between(60, 400), [], full, [path], _diff(path, [minus], [plus]))
    ids = [culprit.id]
    for number, service in enumerate(chosen):
        shipped = onset - world.between(0.5, 5) if number == 0 else onset + world.between(-3, 3)
        ids += _ship(world, shipped, service, culprit, int(world.random.integers(0, 3)))[1:]
        begins = max(onset, shipped + 0.5)
        text = (
            _trace_text(world, service, error, path, "call")
            if world.chance(0.4)
            else f"{service.operations[1]}: {error}"
        )
        _fails(world, service, begins, world.between(0.1, 0.6), text)
    return Truth(chosen[0].name, _alert(world, chosen[0].name, 0.2), ids)


def configuration(world: World, onset: float) -> Truth:
    service = _server(world)
    store = world.store_of(service.name) or "the database"
    noun = world.pick(service.nouns)
    lag = world.between(0.5, 6) if world.chance(0.75) else world.between(6, 30)
    high, low = int(world.random.integers(20, 60)), int(world.random.integers(2, 6))
    kind = int(world.random.integers(5))
    if kind == 0:
        title = world.pick(
            (f"Right-size connections of {service.name}", "Datasource settings", "Save database sessions")
        )
        minus, plus = f"maximumPoolSize: {high}", f"maximumPoolSize: {low}"
        text = world.pick(
            (
                "Connection is not available, request timed out after 30000ms",
                f"could not get a connection to {store} within 5s",
                f"QueuePool limit of size {low} overflow 0 reached",
            )
        )
        world.add(service.name, "pool", world.step(onset, -service.base["pool"] * 0.4))
        world.log(service.name, "ERROR", text, onset, 5)
        _slows(world, service, onset, world.between(5, 15))
    elif kind == 1:
        title = world.pick(("Shorter timeouts towards dependencies", f"Tighten {noun} client", "Fail fast"))
        minus, plus = f"{noun}_client_timeout_ms: 3000", f"{noun}_client_timeout_ms: {low * 10}"
        callee = world.pick(world.calls[service.name]) if world.calls.get(service.name) else store
        _fails(world, service, onset, world.between(0.2, 0.8), f"read of {callee} timed out after {low * 10}ms")
    elif kind == 2:
        title = world.pick((f"Memory request of {service.name}", "Cut cost of idle pods", "Resource tuning"))
        minus, plus = "limits: {memory: 2Gi}", f"limits: {{memory: {low * 100}Mi}}"
        world.log(service.name, "ERROR", "container killed: OOMKilled (exit code 137)", onset, 0.6)
        world.log(service.name, "INFO", "starting up, version unchanged", onset + 0.3, 0.6)
        world.scale(service.name, "memory", world.step(onset, -0.5))
        world.add(service.name, "errors", world.step(onset, service.base["errors"] * 15))
        _suffer(world, service.name, onset, 0.5, 1.0, "connection refused")
    elif kind == 3:
        title = world.pick((f"Move {noun} traffic to the new endpoint", "Update endpoints", f"{noun} URL cleanup"))
        minus, plus = f"{noun}.url: http://{noun}-old.internal", f"{noun}.url: http://{noun}s.internall"
        _fails(world, service, onset, world.between(0.3, 0.9), f"lookup {noun}s.internall: no such host")
    else:
        title = world.pick((f"Limit {noun} requests per client", "Protect against bursts", "New limits"))
        minus, plus = f"{noun}_rate_limit: 500", f"{noun}_rate_limit: {low}"
        _fails(world, service, onset, world.between(0.3, 0.8), f"429 for client: {noun} budget used up")
    detail = f"{minus.partition(':')[0]} lowered as agreed." if world.chance(0.3) else ""
    if world.chance(0.5):
        path = f"config/{service.name}/production.yaml"
        diff = _diff(path, [minus], [plus])
        culprit = world.commit(onset - lag, [service.name], title, [path], diff, detail, "config")
        return Truth(service.name, _alert(world, service.name), [culprit.id])
    shown = f"{minus} -> {plus.partition(': ')[2]}" if world.chance(0.75) else detail
    culprit = world.setting(onset - lag, "config", service.name, title, shown)
    return Truth(service.name, _alert(world, service.name), [culprit.id])


def flag(world: World, onset: float) -> Truth:
    service = _server(world)
    noun, feature = (
        world.pick(service.nouns),
        world.pick(("ranking", "matching", "layout", "scoring", "bulk", "engine")),
    )
    lag = world.between(0.3, 3)
    key = f"{noun}-{feature}-v2"
    share = world.pick(("10", "25", "50", "100"))
    title = world.pick((f"{key} on for {share} %", f"{key}: off -> on", f"Enable {key} in production"))
    path = world.path(service, noun, feature)
    if world.chance(0.6):
        error = world.pick(
            (
                f"{_camel(feature)}Error: no {noun} weights for segment default",
                f"KeyError: '{world.pick(FIELDS)}'",
                f"unsupported {noun} state PARTIAL",
            )
        )
        text = (
            _trace_text(world, service, error, path, f"{feature}{_camel(noun)}")
            if world.chance(0.5)
            else f"{service.operations[2]} failed: {error}"
        )
        _fails(world, service, onset, int(share) / 100 * world.between(0.5, 0.9), text)
    else:
        _slows(world, service, onset, 1 + int(share) / 100 * world.between(4, 10))
        if world.chance(0.6):
            world.log(service.name, "WARN", f"{feature} of {noun}s exceeded 1500ms", onset + 0.5, 2)
    # The code of it was deployed long before, and did no harm while the flag was off.
    older = world.commit(
        onset - world.between(900, 1300), [service.name], f"Add {feature} of {noun}s behind a flag", [path], ""
    )
    world.deploy(older.minute + 40, service.name, [older])
    culprit = world.setting(onset - lag, "flag", service.name, title)
    return Truth(service.name, _alert(world, service.name), [culprit.id])


def migration(world: World, onset: float) -> Truth:
    owners = [each for each in world.servers() if world.store_of(each.name)] or world.servers()
    service = owners[int(world.random.integers(len(owners)))]
    store = world.store_of(service.name)
    noun, column = world.pick(service.nouns), world.pick(FIELDS)
    number = int(world.random.integers(40, 400))
    path = f"{f'services/{service.name}/' if world.monorepo else ''}migrations/V{number}__{noun}.sql"
    kind = int(world.random.integers(3))
    if kind == 0:
        title = world.pick((f"Index for {noun} search", f"V{number}", f"Speed up {noun} report"))
        plus = f"CREATE INDEX idx_{noun}_{column} ON {noun}s ({column});"
        text = f"canceling statement due to lock timeout: UPDATE {noun}s"
        world.log(service.name, "ERROR", text, onset, 4)
        _slows(world, service, onset, world.between(4, 14))
    elif kind == 1:
        title = world.pick((f"Remove unused column of {noun}", f"V{number}: cleanup", "Drop what nobody reads"))
        plus = f"ALTER TABLE {noun}s DROP COLUMN {column};"
        _fails(world, service, onset, world.between(0.2, 0.8), f'ERROR: column "{column}" does not exist')
    else:
        title = world.pick((f"{noun}: drop old index", f"V{number}", "Free disk space"))
        plus = f"DROP INDEX idx_{noun}s_{column};"
        world.log(
            service.name, "WARN", f"query on {noun}s took {int(world.between(4000, 20000))}ms (seq scan)", onset, 3
        )
        _slows(world, service, onset, world.between(4, 14))
    if store and kind != 1:
        world.add(store, "cpu", world.step(onset, 45, 3))
        world.scale(store, "latency", world.step(onset, world.between(3, 10), 2))
    lag = world.between(0.2, 5)
    diff = _diff(path, [], [plus]) if world.chance(0.8) else ""
    culprit = world.commit(onset - lag, [service.name], title, [path], diff, kind="migration")
    return Truth(store if store and kind != 1 else service.name, _alert(world, service.name, 0.2), [culprit.id])


def slow_leak(world: World, onset: float) -> Truth:
    service = _server(world)
    noun = world.pick(service.nouns)
    part = world.pick(("cache", "listener", "session", "buffer"))
    path = world.path(service, noun, part)
    shipped = onset - world.between(70, 190)
    kind = int(world.random.integers(3))
    if kind == 0:
        title = world.pick((f"Keep {noun}s in memory between requests", f"Remember {noun}s", world.pick(VAGUE)))
        minus, plus = [f"    return load({noun}_id)"], [f"    {noun.upper()}_SEEN[{noun}_id] = load({noun}_id)"]
        rise = service.base["memory"] * world.between(1.2, 3)
        world.metrics.setdefault((service.name, "memory"), world.minutes * 0 + service.base["memory"])
        world.add(service.name, "memory", world.step(shipped, rise, -shipped), 0.03)
        text = world.pick(
            (
                "java.lang.OutOfMemoryError: heap",
                "GC overhead: 92 % of time spent collecting",
                "process killed by kernel: out of memory",
            )
        )
    elif kind == 1:
        title = world.pick((f"Read {noun} files lazily", f"Open {noun} attachments on demand", world.pick(VAGUE)))
        minus, plus = ["    with open(path) as f: return f.read()"], ["    f = open(path)", "    return f.read()"]
        world.metrics.setdefault((service.name, "queue"), world.minutes * 0 + service.base["queue"])
        text = "OSError: [Errno 24] too many open files"
        world.add(service.name, "queue", world.step(shipped, service.base["queue"] * 8, -shipped), 0.1)
    else:
        title = world.pick((f"Save {noun} in its own transaction", f"{noun} writes, part 2", world.pick(VAGUE)))
        minus, plus = ["    finally: connection.release()"], ["    connection.commit()"]
        world.metrics.setdefault((service.name, "pool"), world.minutes * 0 + service.base["pool"])
        world.add(service.name, "pool", world.step(shipped, service.base["pool"] * 5, -shipped), 0.05)
        text = "no free connection after waiting 10s"
    world.log(service.name, "WARN", text, onset, 1, growing=True)
    world.log(service.name, "ERROR", text, onset + 2, 2, growing=True)
    world.add(service.name, "errors", world.step(onset, service.base["errors"] * 20, 5))
    _slows(world, service, onset, world.between(3, 8), 6)
    diff = _diff(path, minus, plus) if world.chance(0.85) else ""
    culprit = world.commit(shipped - world.between(20, 200), [service.name], title, [path], diff)
    ids = _ship(world, shipped, service, culprit, int(world.random.integers(0, 3)))
    return Truth(service.name, _alert(world, service.name, 0.2), ids)


def _call(world: World) -> tuple[Service, Service]:
    """Draw a service that calls another one, and the other one, which is no store."""
    pairs = [
        (world.services[caller], world.services[callee])
        for caller, callees in world.calls.items()
        for callee in callees
        if not world.services[callee].is_store
    ]
    return pairs[int(world.random.integers(len(pairs)))]


def overloading_caller(world: World, onset: float) -> Truth:
    caller, callee = _call(world)
    noun = world.pick(caller.nouns)
    path = world.path(caller, noun, "client")
    variants = (
        (f"Fetch {noun}s one by one", ["    batch(ids)"], ["    for id in ids: fetch(id)"]),
        ("Retry harder", ["RETRIES = 2"], ["RETRIES = 25"]),
        (f"Always show fresh {noun}s", ["    @cached(ttl=300)"], ["    # no cache"]),
        (f"Poll {noun} state", ["POLL_SECONDS = 60"], ["POLL_SECONDS = 1"]),
    )
    title, minus, plus = variants[int(world.random.integers(len(variants)))]
    more = world.between(2, 6)
    world.scale(callee.name, "rate", world.step(onset, more, 2))
    if world.chance(0.8):  # elsewhere the traces are sampled by root, and show no more calls
        world.repeats[caller.name, callee.name] = (onset, 1 + int(more))
    world.add(callee.name, "cpu", world.step(onset, 45, 2))
    world.add(callee.name, "queue", world.step(onset, callee.base["queue"] * 10, 3))
    text = world.pick(
        (
            "worker queue is full, request rejected",
            "too many requests in flight, shedding load",
            "thread pool exhausted",
            "request waited 4200ms for a worker",
        )
    )
    world.log(callee.name, world.pick(("ERROR", "WARN")), text, onset, 5)
    if world.chance(0.5):
        world.log(caller.name, "INFO", f"GET {callee.name}/{noun}s/{{id}} attempt 3", onset, 3)
    world.add(callee.name, "errors", world.step(onset, callee.base["errors"] * 20))
    world.span_faults.append(SpanFault(callee.name, onset, 0.3, "overloaded", 4))
    _slows(world, callee, onset, world.between(3, 10))
    lag = world.between(0.5, 4)
    title = title if world.chance(0.7) else world.pick(VAGUE)
    diff = _diff(path, minus, plus) if world.chance(0.85) else ""
    culprit = world.commit(onset - lag - world.between(10, 200), [caller.name], title, [path], diff)
    ids = _ship(world, onset - lag, caller, culprit, int(world.random.integers(0, 3)))
    return Truth(callee.name, _alert(world, callee.name, 0.3), ids)


def contract_change(world: World, onset: float) -> Truth:
    caller, callee = _call(world)
    noun, column = world.pick(callee.nouns), world.pick(FIELDS)
    new = f"{column}_{world.pick(('code', 'value', 'iso'))}"
    path = world.path(callee, noun, "schema")
    kind = int(world.random.integers(3))
    if kind == 0:
        title = world.pick(
            (f"Name {column} consistently", f"{noun} payload cleanup", "Align names with the style guide")
        )
        minus, plus = [f'    "{column}": {noun}.{column},'], [f'    "{new}": {noun}.{column},']
        error = world.pick((f"missing field {column} in response of {callee.name}", f"KeyError: '{column}'"))
    elif kind == 1:
        title = world.pick((f"Require {column}", f"Stricter {noun} input", "Reject what we cannot bill"))
        minus, plus = [f"    {column}: str | None"], [f"    {column}: str"]
        error = f"{callee.name} answered 422: {column} is required"
    else:
        title = world.pick((f"Retire /v1/{noun}s", "Remove what is deprecated", "API cleanup"))
        minus, plus = [f"route('/v1/{noun}s', list_{noun}s)"], []
        error = f"404 from {callee.name}: GET /v1/{noun}s"
    text = (
        _trace_text(world, caller, error, world.path(caller, noun, "client"), "parse")
        if kind == 0 and world.chance(0.4)
        else error
    )
    _fails(world, caller, onset, world.between(0.2, 0.8), text)
    if kind:
        world.log(callee.name, "WARN", f"{'422' if kind == 1 else '404'} for {caller.name}: {noun}", onset, 2)
    lag = world.between(0.3, 3)
    title = title if world.chance(0.75) else world.pick(VAGUE)
    diff = _diff(path, minus, plus) if world.chance(0.85) else ""
    culprit = world.commit(onset - lag - world.between(10, 200), [callee.name], title, [path], diff)
    ids = _ship(world, onset - lag, callee, culprit, int(world.random.integers(0, 3)))
    return Truth(caller.name, _alert(world, caller.name, 0.1), ids)


def provider_outage(world: World, onset: float) -> Truth:
    name, host = list(world.vendors.items())[int(world.random.integers(len(world.vendors)))]
    service = world.services[name]
    text = world.pick(
        (
            f"POST https://{host}/v2/{world.pick(service.nouns)}s -> 503 Service Unavailable",
            f"HTTPSConnectionPool(host='{host}', port=443): Read timed out. (read timeout=10)",
            f"dial tcp: connection refused ({host}:443)",
            f"{host} responded 502 Bad Gateway after 9871ms",
            f"circuit breaker for {host.split('.')[1]} is open",
        )
    )
    share = world.between(0.3, 0.9)
    world.log(name, world.pick(("ERROR", "ERROR", "WARN")), text, onset, 6)
    world.add(name, "errors", world.step(onset, service.base["errors"] * 40 * share))
    world.scale(name, "latency", world.step(onset, world.between(0.5, 8), 2))
    world.span_faults.append(SpanFault(name, onset, share, world.pick(("503", "timeout", text[:60])), 4, peer=host))
    _suffer(world, name, onset, share, 3, "502 Bad Gateway")
    return Truth(name, _alert(world, name), category="external", subject=host)


def expiry_or_quota(world: World, onset: float) -> Truth:
    name, host = list(world.vendors.items())[int(world.random.integers(len(world.vendors)))]
    service = world.services[name]
    inner = world.pick(world.calls[name]) if world.calls.get(name) else host
    text, subject = [
        (f"x509: certificate has expired or is not yet valid: {inner}", inner),
        (f"TLS handshake with {host} failed: certificate expired", host),
        (f"{host}: 429 monthly quota of 500000 calls exceeded", host),
        (f"{host} says: daily request limit reached, upgrade your plan", host),
        (f"401 from {host}: API key expired", host),
        ("licence of the rendering engine ended", "licence"),
    ][int(world.random.integers(6))]
    share = world.between(0.4, 1.0)
    world.log(name, "ERROR", text, onset, 6)
    world.add(name, "errors", world.step(onset, service.base["errors"] * 40 * share, 0.5))
    world.span_faults.append(
        SpanFault(
            name,
            onset,
            share,
            text if world.chance(0.5) else "upstream refused",
            0.7,
            peer=host if subject == host else "",
        )
    )
    _suffer(world, name, onset, share, 1.0, "500 Internal Server Error")
    return Truth(name, _alert(world, name), category="external", subject=subject)


def traffic_surge(world: World, onset: float) -> Truth:
    entry = next(iter(world.services.values()))
    factor = world.between(1.5, 5)
    weakest = _server(world)
    for each in world.servers():
        world.scale(each.name, "rate", world.step(onset - world.between(1, 4), factor * world.between(0.8, 1.2), 6))
        world.scale(each.name, "cpu", world.step(onset - 1, factor * 0.3, 6))
    world.scale(weakest.name, "latency", world.step(onset, world.between(3, 10), 4))
    world.add(weakest.name, "queue", world.step(onset, weakest.base["queue"] * 12, 4))
    world.add(weakest.name, "errors", world.step(onset, weakest.base["errors"] * 20, 3))
    text = world.pick(
        (
            "connection pool timeout: 50 of 50 in use",
            "request queue length 1000 exceeds limit",
            "load shedding active",
            "worker busy, rejecting request",
        )
    )
    world.log(weakest.name, world.pick(("ERROR", "WARN")), text, onset, 5)
    world.log(entry.name, "INFO", f"{world.pick(entry.operations)} 200 from campaign={world.pick(NOUNS)}", onset - 3, 6)
    world.span_faults.append(SpanFault(weakest.name, onset, 0.4, "overloaded", 5))
    _suffer(world, weakest.name, onset, 0.4, 4, "503 Service Unavailable")
    return Truth(weakest.name, _alert(world, weakest.name), category="traffic", subject=entry.name)


def poisonous_record(world: World, onset: float) -> Truth:
    service = _server(world)
    noun = world.pick(service.nouns)
    number = int(world.random.integers(10_000, 99_999))
    key = world.pick((f"{noun} {number}", f"{noun}_id={number}", f"tenant t-{number}", f"message {noun}-{number}"))
    text = world.pick(
        (
            f"failed to process {key}: invalid UTF-8 in line 3",
            f"giving up on {key} after 10 deliveries, back to queue",
            f"cannot import {key}: amount is not a number",
            f"processing {key} took 60000ms, aborted",
        )
    )
    world.log(service.name, "ERROR", text, onset, 5)
    world.metrics.setdefault((service.name, "queue"), world.minutes * 0 + service.base["queue"])
    world.add(service.name, "queue", world.step(onset, service.base["queue"] * 20, 10))
    world.add(service.name, "errors", world.step(onset, service.base["errors"] * 10))
    if world.chance(0.4):
        world.scale(service.name, "latency", world.step(onset, 2, 4))
    world.span_faults.append(SpanFault(service.name, onset, 0.15, f"failed to process {noun}", 2))
    if world.chance(0.5):
        _suffer(world, service.name, onset, 0.2, 1.0, "500")
    return Truth(service.name, _alert(world, service.name, 0.1), category="data", subject=key)


def noisy_neighbour(world: World, onset: float) -> Truth:
    host = world.pick([each.host for each in world.servers()])
    on_it = [each for each in world.servers() if each.host == host]
    others = [each for each in world.servers() if each.host != host]
    struck = on_it if len(on_it) > 1 else [*on_it, *others[:2]]
    for each in struck:
        begins = onset + world.between(0, 2)
        world.scale(each.name, "latency", world.step(begins, world.between(2, 7), 2))
        world.scale(each.name, "cpu", world.step(begins, world.between(0.2, 1.0), 2))
        text = world.pick(
            (
                f"event loop blocked for {int(world.between(900, 4000))}ms",
                f"heartbeat late by {int(world.between(3, 20))}s on {host}",
                "cpu throttled: 78 % of periods",
                f"write to local disk took {int(world.between(2000, 9000))}ms",
            )
        )
        world.log(each.name, "WARN", text, begins, 2)
        world.span_faults.append(SpanFault(each.name, begins, 0.7, "", world.between(2, 5)))
    first = struck[0]
    world.log(
        first.name,
        "WARN",
        world.pick((f"steal time on {host} is 41 %", f"batch job nightly-export runs on {host}")),
        onset,
        0.4,
    )
    _suffer(world, first.name, onset, 0.3, 3, "deadline exceeded")
    return Truth(first.name, _alert(world, first.name, 0.2), category="operational", subject=host)


def storage_failure(world: World, onset: float) -> Truth:
    owners = [each for each in world.servers() if world.store_of(each.name)] or world.servers()
    service = owners[int(world.random.integers(len(owners)))]
    store = world.store_of(service.name) or service.name
    text = world.pick(
        (
            f"{store}: No space left on device",
            f"{store} is in read-only mode",
            f"FATAL: the database system {store} is in recovery mode",
            f"{store}: primary lost, election in progress",
            f"replication to {store}-replica stopped: disk I/O error",
        )
    )
    if store != service.name:
        world.scale(store, "latency", world.step(onset - 0.5, world.between(3, 12), 2))
        if world.chance(0.5):
            world.log(store, "ERROR", text, onset - 0.5, 3)
    users = world.callers(store) or [service.name]
    for user in users:
        world.log(user, "ERROR", text if world.chance(0.7) else f"write to {store} failed", onset, 4)
        world.add(user, "errors", world.step(onset, world.services[user].base["errors"] * 25))
        world.span_faults.append(SpanFault(user, onset, 0.5, f"{store}: write failed", 2))
        _suffer(world, user, onset, 0.4, 1.5, "500 Internal Server Error")
    return Truth(store, _alert(world, users[0], 0.2), category="operational", subject=store)


FAULTS: dict[str, Fault] = {
    function.__name__: function
    for function in (
        bad_code,
        shared_library,
        configuration,
        flag,
        migration,
        slow_leak,
        overloading_caller,
        contract_change,
        provider_outage,
        expiry_or_quota,
        traffic_surge,
        poisonous_record,
        noisy_neighbour,
        storage_failure,
    )
}

DEVELOPED_ON = frozenset(
    {
        "bad_code",
        "configuration",
        "migration",
        "overloading_caller",
        "provider_outage",
        "traffic_surge",
        "noisy_neighbour",
    }
)
"""The classes by which the engine was built and its badge fitted; the others are reported apart."""


def distract(world: World, truth: Truth, onset: float) -> None:
    """Innocent changes: near the onset in the services that suffer, after it, and elsewhere all day."""
    suffering = world.services[
        truth.first_failing if not world.services[truth.first_failing].is_store else truth.alerting
    ]
    alerting = world.services[truth.alerting]
    near = suffering if world.chance(0.5) or alerting.is_store else alerting
    for _ in range(int(world.random.integers(1, 4))):  # decoys: later than the culprit, and before the trouble
        minute = onset - world.between(0.2, 15)
        decoy = near if world.chance(0.7) else _server(world)
        if world.chance(0.65):
            for record in [
                _commit_noise(world, minute - world.between(5, 60), decoy)
                for _ in range(int(world.random.integers(1, 3)))
            ]:
                if world.chance(0.25):  # it speaks of what is about to break, and has nothing to do with it
                    record.fields["title"] = world.pick(
                        (
                            f"Better error message when {world.pick(decoy.nouns)} fails",
                            f"Metrics for {decoy.operations[0]} latency",
                            "Tests for timeout handling",
                            f"Alert on errors of {decoy.name}",
                        )
                    )
                truth.decoys.append(record.id)
            truth.decoys += _ship(world, minute, decoy)
            world.changes[-1].fields |= _named(world, truth.decoys[-2:-1])
        else:
            truth.decoys.append(_setting_noise(world, minute, decoy).id)
    if world.chance(0.5):  # a fix, or what people do when it burns
        minute = onset + world.between(1.5, 4) if onset < -5 else world.between(0.5, 8)
        late = _commit_noise(world, minute - 0.5, suffering)
        late.fields["title"] = world.pick(
            (f'Revert "{late.fields["title"]}"', "Hotfix", f"Scale {suffering.name} up", "Raise timeouts")
        )
        truth.decoys += [late.id, *_ship(world, minute, suffering, late)[1:]]
    for _ in range(int(world.random.integers(4, 16))):  # everybody else's day
        minute = world.between(max(-1300, 2.5 * world.first), -1)
        other = _server(world)
        if world.chance(0.5):
            _ship(world, minute, other, None, int(world.random.integers(1, 4)))
        elif world.chance(0.5):
            _commit_noise(world, minute, other)  # not shipped
        else:
            _setting_noise(world, minute, other)


def _named(world: World, commits: Sequence[str]) -> dict[str, object]:
    """How a deploy names a commit, in the manner of the company."""
    if not commits:
        return {}
    if world.joins == "commits":
        return {"commits": list(commits)}
    return {"detail": f"Ships {commits[-1][:8]}."} if world.joins == "text" else {"revision": commits[-1]}
