"""Find what is wrong with the objects of a cluster, and why.

An event about an object that is well now is past. A complaint is a cause only where no state explains it better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from statistics import median

from core.model.explanation import EvidenceKind
from core.rca.cluster.faults import Fault, ObjectFault
from core.rca.cluster.state import (
    Cluster,
    Complaint,
    Container,
    Event,
    Probe,
    ShownPart,
    Thing,
    app_of,
    is_of_node,
    is_short,
    quantity,
)  # fmt: skip
from core.rca.failures import cause_offset
from core.rca.tool_outputs.clues import cut

PROVEN, LIKELY, POSSIBLE = (
    0.97,
    0.85,
    0.6,
)  # strength: an object shows fault and harm, one of them is inferred, both are
LESS = 0.02  # strength that a state without an event lacks, and one that only may do harm
HASTY = 5.0  # seconds from the start of a container to its first kill, which few programs are quick enough for
SEVERAL = 3  # services that suffer together
LONG = 1.0  # seconds that packets sent again hardly cost an answer

_SAID = """
create  ACCOUNT        serviceaccount "(?P<x>[^"]{1,253})" not found                 no pod can be created: there is no service account {x}
create  LIMIT_RANGE    (?P<x>(?:maximum|minimum) [\\w./-]{1,80} usage per \\w{1,40})      no pod can be created: the limit range sets a {x}
create  REFUSED        (?P<x>admission webhook "[^"]{1,253}"|violates PodSecurity)   no pod can be created: {x}
pod     CONFIGURATION  (?P<x>(?:secret|configmap) "?[\\w./-]{1,253}"?) not found      its pod cannot start: {x} does not exist
pod     CONFIGURATION  couldn't find (?P<x>key [\\w./-]{1,253} in \\w{1,20} [\\w./-]{1,253})      its pod cannot start: there is no {x}
pod     MEMORY         oom[- ]?kill                                           its container cannot start: its limit of memory is too low
pod     MOUNT          permission denied|read-only file system                its volume cannot be written: permission denied
pull    IMAGE_HOST     no such host|server misbehaving|name resolution        its image cannot be pulled: the host of the registry is not found
pull    IMAGE_LOGIN    image pull secrets|unauthori[sz]ed|authentication required|denied|forbidden|no basic auth  its image cannot be pulled: the registry refuses it, since credentials are missing or wrong
pull    IMAGE          not found|manifest unknown|invalid reference|InvalidImageName|couldn't parse|does not exist  its image cannot be pulled: it does not exist in the registry
log     CREDENTIALS    access denied for user|password authentication failed|no pg_hba\\.conf entry|WRONGPASS|NOAUTH|invalid username[-/]password|login failed for user|ORA-01017|Mongo.{0,60}authentication failed|ACCESS_REFUSED  the database or the queue refuses its user or password
log     CONNECTIONS    too many connections|too many clients|remaining connection slots|max number of clients|max_user_connections|ORA-12516|ORA-00020  the database has no connection left
log     CONNECTIONS    connection is not available, request timed out|QueuePool limit|pool (?:is )?exhausted|exhausted pool|timeout exceeded when trying to connect  its pool has no connection to the database left
log     READ_ONLY      --read-only option|read-only transaction|super-read-only|READONLY You can't write|NotWritablePrimary|database is read-only|readonly database  the database is read-only
log     PORT_TAKEN     address already in use|EADDRINUSE|port \\d{1,5} (?:was|is) already in use|only one usage of each socket address  its port is in use already
log     DNS            (?:UnknownHostException:?|could not (?:resolve|translate) host(?: ?name)?:?|ENOTFOUND|EAI_AGAIN) "?(?P<x>[\\w.-]{1,253})  it cannot resolve the name {x}
log     DNS            lookup (?P<x>[\\w.-]{1,253})(?: on [\\w.:-]{1,80})?: (?:no such host|server misbehaving|temporary failure)  it cannot resolve the name {x}
log     DNS            no such host|name resolution|name or service not known  it cannot resolve the name of a host that it calls
log     ROUTE          (?:unable to find instance for|no (?:instances?|servers?) available for(?: service:?)?|does not contain an instance for the service|host not found in upstream) "?(?P<x>[\\w.-]{1,253})  a route of it leads to {x}, of which there is no instance
log     CONFIGURATION  (?:environment variable|env var|env variable)s?:? ["'`]?(?P<x>[A-Za-z]\\w{1,100})["'`]? (?:is |was )?(?:not (?:set|found|defined)|missing|required|must be (?:set|defined))  it cannot start: it lacks the variable {x}
log     CONFIGURATION  (?:(?:missing|required|undefined) (?:required )?(?:environment|env) var(?:iable)?s?|could not resolve placeholder|KeyError):? ["'`]?(?P<x>[A-Za-z][\\w.-]{1,100})  it cannot start: it lacks the setting {x}
log     MOUNT          permission denied|read-only file ?system|EACCES        it may not write to its volume
place   CPU_CAPACITY   (?<!\\d)(?P<x>\\d{1,6}) Insufficient cpu                            no node has as much CPU left as it requests
place   MEMORY_CAPACITY  (?<!\\d)(?P<x>\\d{1,6}) Insufficient memory                       no node has as much memory left as it requests
place   AFFINITY       (?<!\\d)(?P<x>\\d{1,6}) node\\(s\\) didn't (?:match|satisfy) (?:Pod's )?node (?:affinity|selector)  no node has the labels that its node affinity requires
place   ANTI_AFFINITY  (?<!\\d)(?P<x>\\d{1,6}) node\\(s\\) didn't (?:match|satisfy) (?:existing )?pods? anti-affinity  its anti-affinity forbids every node that has room
place   TAINT          (?<!\\d)(?P<x>\\d{1,6}) node\\(s\\) had (?:untolerated )?taints? \\{(?!node(?:-role)?\\.kubernetes\\.io)  it does not tolerate the taint of the nodes
place   VOLUME         (?P<x>persistentvolumeclaim "[^"]{1,253}") not found    {x} does not exist
place   CORDON         (?<!\\d)(?P<x>\\d{1,6}) node\\(s\\) were unschedulable               the nodes on which it could run are cordoned
"""
"""Where something is said, the fault, its words, and the cause; fields are two spaces apart."""
_FIELDS = re.compile(r" {2,}")
_WORDS = tuple(
    (where, Fault[fault], re.compile(pattern, re.IGNORECASE), cause)
    for line in _SAID.strip().splitlines()
    for where, fault, pattern, cause in [_FIELDS.split(line.strip())]
)
_REASONS: Mapping[str, tuple[str, ...]] = {
    "create": ("FailedCreate",),
    "pod": ("FailedMount", "FailedAttachVolume", "Failed", "FailedCreate", "FailedCreatePodSandBox"),
    "pull": ("Failed", "FailedToRetrieveImagePullSecret", "InspectFailed"),
}
_QUOTA = re.compile(r"exceeded quota: ([\w.-]+), requested: (\S+), used: (\S+), limited: (\S+)")
_AMOUNT = re.compile(r"(?<![\w./-])([\w./-]{1,60})=(\w[\w.]*)")
_QUOTAS = {
    "storage": Fault.QUOTA_STORAGE, "persistentvolumeclaims": Fault.QUOTA_STORAGE, "cpu": Fault.QUOTA_CPU,
    "memory": Fault.QUOTA_MEMORY, "pods": Fault.QUOTA_PODS, "services": Fault.QUOTA_SERVICES,
}  # fmt: skip
_FAILED_PROBE = re.compile(r"(?P<probe>Liveness|Readiness|Startup) probe (?:failed|errored)")
_OTHER_PROTOCOL = re.compile(
    r"malformed HTTP|HTTP/1\.x transport|server gave HTTP response|first record does not look like|unexpected EOF|"
    r"server preface|tls: |unimplemented|protocol|connection reset|\bEOF\b|parse error",
    re.IGNORECASE,
)
_ADDRESS = re.compile(
    r"(?:(?:jdbc:)?[\w+]{1,20}://)?(?:[^@/\s]{1,100}@)?(?P<host>[a-z][a-z0-9-]{0,62})(?:\.(?P<zone>[a-z0-9.-]{1,200}))?(?::(?P<port>\d{2,5}))?(?:[/,;?]|$)"
)
_ADDRESSES = re.compile(r"(?:ADDR|ADDRESS|HOST|HOSTNAME|URL|URI|ENDPOINT|SERVER|SERVICE)S?$", re.IGNORECASE)
_HOST = re.compile(r"_(?:HOST|HOSTNAME|ADDR|ADDRESS|SERVER)$", re.IGNORECASE)
_DATABASES = frozenset({"3306", "5432", "1433", "1521"})  # ports of MySQL, PostgreSQL, SQL Server and Oracle
_STORES = _DATABASES | {"27017", "6379"}  # and of MongoDB and Redis
_HOSTS = re.compile(r"[a-z][a-z0-9-]*")
_THROTTLED = re.compile(r"throttl|saturation.{0,10}cpu|cpu.{0,20}(?:saturat|limit|100 ?%)", re.IGNORECASE)
_LOST = re.compile(r"retrans|packet[ _-]?loss|packets? (?:lost|dropped)|loses packets", re.IGNORECASE)
_SLOW = re.compile(r"latency|slow response|response[ _]time", re.IGNORECASE)
_RISEN = re.compile(r"-> ?(?:\w{1,20}=)?(\d{1,12}(?:\.\d{1,6})?)")
_TIME = re.compile(r"(?<![\w.])(\d{1,12}(?:\.\d{1,6})?) ?(ms|s)\b")
_FEWER = re.compile(r"(?:traffic|throughput|requests?|rps|pps)\b.{0,80}(?:drop|fell|\(-)", re.IGNORECASE)
_FACTOR = re.compile(r"\(\+?(\d{1,12}(?:\.\d{1,3})?)%\)")
_CONTROL = ("kube-scheduler", "kube-proxy", "kube-controller-manager", "kube-apiserver", "etcd", "coredns", "kube-dns")
_DAEMONS = ("kubelet", "containerd", "docker", "crio", *_CONTROL)


def findings(cluster: Cluster) -> list[ObjectFault]:
    """Return what is wrong, the most certain first; one finding of each fault of an object."""
    rules = (_quotas, _words, _daemons, _placements, _claims, _memory, _probes, _ports, _routes, _addresses, _replicas)
    strongest: dict[tuple[str, str, Fault], ObjectFault] = {}
    for each in chain.from_iterable(rule(cluster) for rule in (*rules, _measures)):
        key = (each.kind, each.name, each.fault)
        if key not in strongest or strongest[key].strength < each.strength:
            strongest[key] = each
    return sorted(strongest.values(), key=lambda each: -each.strength)


def _finding(
    shown: ShownPart, fault: Fault, name: str, cause: str, strength: float = PROVEN, kind: str = "app", detail: str = ""
) -> ObjectFault:
    subject = name if kind == "app" else f"{kind} {name}"
    return ObjectFault(
        kind,
        name,
        fault,
        f"{subject}: {cause}",
        strength,
        cut(shown.text, cause_offset(shown.text)),
        shown.source,
        detail,
    )


def _current(cluster: Cluster, *reasons: str) -> Iterator[tuple[Event, str]]:
    """Yield the events with these reasons whose objects are not well, each with the workload of its object."""
    for each in cluster.events:
        if each.reason in reasons and not cluster.is_over(each):
            yield each, (cluster.find(each.kind, each.name) or Thing(each.kind, each.name)).app


def _line(thing: Thing, *words: str) -> ShownPart:
    """Return the first line that shows a property of a thing, with its source."""
    for word in words:
        for shown in thing.shown:
            for line in shown.text.splitlines():
                if word in line:
                    return ShownPart(shown.source, cut(line.strip(), line.strip().find(word)))
    return ShownPart(thing.shown[0].source, cut(thing.shown[0].text)) if thing.shown else ShownPart("", thing.name)


def _pairs(labels: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in labels.items())


def _quotas(cluster: Cluster) -> Iterator[ObjectFault]:
    namespaces = (each.namespace for each in cluster.of("Pod", "Workload", "Service", "Quota") if each.namespace)
    here = next(namespaces, "default")
    for event, app in _current(cluster, "FailedCreate", "ProvisioningFailed"):
        if match := _QUOTA.search(event.message):
            demand, used, hard = (dict(_AMOUNT.findall(match[place])) for place in (2, 3, 4))
            over = (key for key in hard if is_short(used.get(key, "0"), demand.get(key, "0"), hard[key]))
            key = next(over, next(iter(hard), ""))
            cause = f"its quota {match[1]} allows {hard.get(key)} of {key}, of which {used.get(key)} are used, and {app} asks for {demand.get(key)}"
            yield _finding(event.shown, _quota_of(key), here, cause, kind="namespace")
    for quota in cluster.of("Quota"):
        for key, hard in quota.hard.items():
            used = quota.used.get(key, "0")
            claims = (each.capacity for each in cluster.absent.values() if each.kind == "Claim" and "storage" in key)
            if is_short(used, "1m", hard) or any(is_short(used, demand, hard) for demand in claims):
                harm = _missing(cluster, _quota_of(key))
                cause = (
                    f"its quota {quota.name} of {key} leaves no more ({used} of {hard} are used){harm and ': '}{harm}"
                )
                strength = PROVEN - LESS if harm else POSSIBLE
                yield _finding(_line(quota, key), _quota_of(key), quota.namespace or here, cause, strength, "namespace")


def _quota_of(key: str) -> Fault:
    return next((fault for word, fault in _QUOTAS.items() if word in key), Fault.QUOTA_OTHER)


def _missing(cluster: Cluster, fault: Fault) -> str:
    """Return what a used-up quota may have kept from being created; empty if nothing is missing."""
    kind = {Fault.QUOTA_SERVICES: "Service", Fault.QUOTA_STORAGE: "Claim"}.get(fault, "Pod")
    if absent := next((each.name for each in cluster.absent.values() if each.kind == kind), ""):
        return f"{absent} was not created"
    names = {each.name for each in cluster.of(kind)}
    if kind == "Service":
        wanted = {address["host"] for *_, address in _called(cluster)} & {each.name for each in cluster.of("Workload")}
    elif kind == "Claim":
        wanted = {name for pod in cluster.of("Pod", "Workload") for name in pod.claims}
    else:
        wanted = {each.app for each in cluster.of("Workload", "ReplicaSet") if (each.wanted or 0) > (each.ready or 0)}
        names = {each.app for each in cluster.of(kind)}
    lacking = sorted(wanted - names) if names else []
    return f"{lacking[0]} lacks its {kind.lower()}" if lacking else ""


def _words(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield what events and logs say in words; of a pull that failed, the first fault that its words tell."""
    for where, reasons in _REASONS.items():
        for event, app in _current(cluster, *reasons):
            if where != "pull" or "pull" in event.message.lower() or "image" in event.message.lower():
                yield from _first(where, event.shown, event.message, app, PROVEN)
    for each in cluster.said:
        hurt = not cluster.unwell or each.name in cluster.unwell
        for finding in _first("log", each.shown, each.text, each.name, LIKELY if hurt else POSSIBLE):
            yield _of_database(replace(finding, evidence=EvidenceKind.LOG), cluster)


def _of_database(finding: ObjectFault, cluster: Cluster) -> ObjectFault:
    """Return what a client says of its database as a finding of that, if the client's environment names only one."""
    if finding.fault not in (Fault.CONNECTIONS, Fault.READ_ONLY):
        return finding
    databases = {each.name for each in cluster.of("Service") if _STORES & {port.number for port in each.ports}}
    named = databases & {address["host"] for pod, _, _, address in _called(cluster) if pod.app == finding.name}
    if len(named) != 1:
        return finding
    [database] = named
    return replace(finding, name=database, cause=f"{database}: {finding.cause.partition(': ')[2]}")


def _first(where: str, shown: ShownPart, text: str, app: str, strength: float) -> Iterator[ObjectFault]:
    for place, fault, pattern, cause in _WORDS:
        if place == where and (match := pattern.search(text)):
            quote = ShownPart(shown.source, cut(shown.text, match.start()))
            yield _finding(quote, fault, app, cause.format(x=match.groupdict().get("x")), strength)
            return


def _daemons(cluster: Cluster) -> Iterator[ObjectFault]:
    down = set[str]()
    for each in cluster.daemons:
        if each.state in ("inactive", "failed", "deactivating", "activating") and each.name in _DAEMONS:
            down.add(each.node)
            cause = f"{each.name} does not run"
            yield _finding(
                ShownPart(each.source, each.line), Fault.DAEMON, each.node, cause, PROVEN + LESS / 2, "node", each.name
            )
    for pod in cluster.of("Pod"):
        name = next((each for each in _CONTROL if pod.name.startswith(f"{each}-")), "")
        if name and pod.status and not pod.is_well and pod.ready != pod.wanted:
            node = pod.node or pod.name.removeprefix(f"{name}-")
            fault = Fault.DNS if "dns" in name else Fault.DAEMON
            yield _finding(_line(pod, pod.name), fault, node, f"{pod.name} is not ready", PROVEN, "node", name)
    for node in cluster.of("Node"):
        if node.status in ("NotReady", "Unknown") and node.name not in down:
            cause = f"the node is not ready{node.why and ': '}{node.why}"
            daemon = "containerd" if "runtime" in node.why else "kubelet"
            yield _finding(
                _line(node, "NotReady", "Ready  "), Fault.DAEMON, node.name, cause, PROVEN - LESS, "node", daemon
            )


def _placements(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield why pods are not placed: for the reason that most nodes give, or that a node gives which the pod selects."""
    nodes = list(cluster.of("Node"))
    control = sum(each.is_control and each.cordoned for each in nodes)
    workers_cordoned = any(each.cordoned and not each.is_control for each in nodes)
    for event, app in _current(cluster, "FailedScheduling"):
        pod = cluster.find(event.kind, event.name)
        selected = pod.node_selector if pod else dict[str, str]()
        exists = bool(selected) and any(selected.items() <= each.labels.items() for each in nodes)
        weighed: list[tuple[int, Fault, str]] = []
        for place, fault, pattern, cause in _WORDS:
            if place == "place" and (match := pattern.search(event.message.partition(" preemption:")[0])):
                count = int(match["x"]) if match["x"].isdecimal() else 1
                count += 0 if fault is not Fault.CORDON else len(nodes) if workers_cordoned else -control
                weighed.append((0 if fault is Fault.AFFINITY and exists else count, fault, cause.format(x=match["x"])))
        count, fault, cause = max(weighed, key=lambda each: each[0], default=(0, Fault.VOLUME, ""))
        if fault is Fault.AFFINITY and selected:
            fault, cause = Fault.NODE_SELECTOR, f"no node has the labels that it selects ({_pairs(selected)})"
        if count > 0:
            strength = PROVEN - 2 * LESS if fault is Fault.VOLUME else PROVEN  # a quota may have refused the claim
            yield _finding(event.shown, fault, app, f"its pod cannot be placed: {cause}", strength)


def _claims(cluster: Cluster) -> Iterator[ObjectFault]:
    for claim in cluster.of("Claim"):
        users = [each.app for each in cluster.of("Pod", "Workload") if claim.name in each.claims]
        users += [app_of(claim.owner)] if claim.owner else []
        if claim.status in ("Pending", "Lost") and users:
            events = [
                event
                for event, _ in _current(cluster, "FailedBinding", "ProvisioningFailed")
                if event.name == claim.name
            ]
            shown = events[0].shown if events else _line(claim, "Pending", "Lost")
            fault, why = _unbound(cluster, claim)
            yield _finding(
                shown,
                fault,
                users[0],
                f"its claim {claim.name} is not bound: {why}",
                PROVEN if events else PROVEN - LESS,
            )


def _unbound(cluster: Cluster, claim: Thing) -> tuple[Fault, str]:
    """Return why no volume fits a claim: what keeps the volume that fits best from being bound."""
    volumes = list(cluster.of("Volume"))
    classes = {each.name for each in cluster.of("StorageClass")} | {each.storage_class for each in volumes}
    if claim.storage_class and claim.storage_class not in classes:
        return Fault.VOLUME_CLASS, f"there is no storage class {claim.storage_class}"
    tried: list[Sequence[tuple[Fault, str]]] = []
    for volume in volumes:
        has, wants = volume.storage_class or "none", claim.storage_class or "none"
        size, demand = quantity(volume.capacity), quantity(claim.capacity)
        unmet = (
            (has != wants, Fault.VOLUME_CLASS, f"has the storage class {has}, and it asks for {wants}"),
            (
                bool(volume.modes) and not set(claim.modes) <= set(volume.modes),
                Fault.VOLUME_MODE,
                f"offers {', '.join(volume.modes)}, and it asks for {', '.join(claim.modes)}",
            ),
            (
                bool(claim.selector.items() - volume.labels.items()),
                Fault.VOLUME_LABELS,
                f"lacks the labels that it selects ({_pairs(claim.selector)})",
            ),
            (
                bool(size and demand and size < demand),
                Fault.VOLUME_SIZE,
                f"has {volume.capacity}, and it asks for {claim.capacity}",
            ),
            (volume.target not in ("", claim.name), Fault.VOLUME_TAKEN, f"is bound to the claim {volume.target}"),
        )
        tried.append([(fault, f"the volume {volume.name} {why}") for is_unmet, fault, why in unmet if is_unmet])
    best = min(filter(None, tried), key=len, default=[(Fault.VOLUME, "no volume fits, and none is provisioned")])
    return best[0]


def _memory(cluster: Cluster) -> Iterator[ObjectFault]:
    for pod in cluster.of("Pod"):
        killed = next((each for each in pod.containers if "OOMKilled" in (each.state, each.last)), None)
        if (killed and not pod.is_well) or pod.status == "OOMKilled":
            limit = f" at its limit of {killed.limits['memory']}" if killed and "memory" in killed.limits else ""
            container = f"the container {killed.name}" if killed else "a container"
            yield _finding(
                _line(pod, "OOMKilled"),
                Fault.MEMORY,
                pod.app,
                f"{container} was OOMKilled: it ran out of memory{limit}",
            )


def _probes(cluster: Cluster) -> Iterator[ObjectFault]:
    for event, app in _current(cluster, "Unhealthy"):
        match, pod = _FAILED_PROBE.search(event.message), cluster.find(event.kind, event.name)
        name = match["probe"].lower() if match else ""
        for container in pod.containers if pod else ():
            if probe := container.probes.get(name):
                fault, cause = _probe_fault(container, name, probe, event.message)
                strength = {Fault.PROBE: POSSIBLE, Fault.PROBE_TIMING: LIKELY}.get(fault, PROVEN - LESS)
                strength += LESS / 2 if name == "liveness" else 0.0  # it restarts, from which other failures follow
                yield _finding(event.shown, fault, app, f"its {name} probe fails: {cause}", strength, detail=name)


def _probe_fault(container: Container, name: str, probe: Probe, message: str) -> tuple[Fault, str]:
    offered = [each.number for each in container.ports] + [each.name for each in container.ports if each.name]
    others = [each.handler for key, each in container.probes.items() if key != name and each.port == probe.port]
    instead = next((each for each in others if each != probe.handler and "exec" not in (each, probe.handler)), "")
    if offered and probe.port and probe.port not in offered:
        return (
            Fault.PROBE_PORT,
            f"it asks port {probe.port}, and the container {container.name} listens on {', '.join(offered)}",
        )
    if instead or _OTHER_PROTOCOL.search(message):
        return (
            Fault.PROBE_PROTOCOL,
            f"it speaks {probe.handler} to port {probe.port}, which serves {instead or 'another protocol'}",
        )
    if name == "liveness" and probe.delay + probe.period * (probe.failures - 1) < HASTY:
        after = probe.delay + probe.period * probe.failures
        return (
            Fault.PROBE_TIMING,
            f"it kills the container {after:.0f} s after its start (delay={probe.delay:.0f}s period={probe.period:.0f}s #failure={probe.failures})",
        )
    return Fault.PROBE, message.partition(": ")[2] or message


def _ports(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield the pods of which two containers listen on one port."""
    for pod in cluster.of("Pod", "Workload"):
        listening = dict[tuple[str, str], str]()
        for container in pod.containers:
            for port in container.ports:
                other = listening.setdefault((port.number, port.protocol), container.name)
                if other != container.name:
                    cause = f"its containers {other} and {container.name} listen on one port, {port.number}"
                    strength = LIKELY if pod.app in cluster.unwell else POSSIBLE
                    yield _finding(_line(pod, port.number), Fault.PORT_TAKEN, pod.app, cause, strength)


def _routes(cluster: Cluster) -> Iterator[ObjectFault]:
    for service in cluster.of("Service"):
        labelled = [each for each in cluster.of("Pod", "Workload") if each.labels]
        pods = [each for each in labelled if service.selector.items() <= each.labels.items()]
        if not service.selector or not labelled:
            continue
        if not pods and any(each.kind == "Pod" for each in labelled):
            strength = PROVEN - LESS if any(each.app == service.name for each in labelled) else POSSIBLE
            cause = f"its service selects labels that no pod has ({_pairs(service.selector)})"
            yield _finding(_line(service, "Selector:", "selector"), Fault.SELECTOR, service.name, cause, strength)
        listening = [port for pod in pods for container in pod.containers for port in container.ports]
        offered = {
            port.number: [each.protocol for each in listening if each.number == port.number] for port in listening
        }
        named = {port.name for port in listening if port.name}
        for port in service.ports if offered else ():
            if port.target not in offered and port.target not in named:
                cause = f"its service {service.name} leads to port {port.target}, and the container listens on {', '.join(offered)}"
                shown = _line(service, "TargetPort", "targetPort")
                yield _finding(shown, Fault.TARGET_PORT, pods[0].app, cause, PROVEN - LESS)
            elif port.protocol not in (protocols := offered.get(port.target, [port.protocol])):
                cause = f"its service {service.name} passes {port.protocol} on, and the container listens for {protocols[0]}"
                yield _finding(_line(service, port.protocol), Fault.PROTOCOL, pods[0].app, cause, PROVEN - LESS)


def _called(cluster: Cluster) -> Iterator[tuple[Thing, str, str, re.Match[str]]]:
    """Yield the addresses within the namespace in environments: who has one, its variable, its value, its parts.

    A host and a port that two variables give (`DB_HOST`, `DB_PORT`) are one address.
    """
    for pod in cluster.of("Pod", "Workload"):
        for environment in (each.environment for each in pod.containers):
            for key, value in environment.items():
                port = environment.get(f"{_HOST.sub('', key)}_PORT", "") if _HOST.search(key) else ""
                given = f"{value.strip()}:{port}" if port and ":" not in value else value.strip()
                if (address := _ADDRESS.match(given)) and address["host"] != "localhost":
                    is_near = (address["zone"] or "").partition(".")[0] in ("", "svc", pod.namespace)
                    if is_near and (_ADDRESSES.search(key) or address["port"]):
                        yield pod, key, value if port == "" else port, address


def _addresses(cluster: Cluster) -> Iterator[ObjectFault]:
    services = {each.name: each for each in cluster.of("Service")}
    lamented = {host for each in cluster.said for host in _HOSTS.findall(each.text)}
    for pod, key, value, address in _called(cluster) if services else ():
        host, service = address["host"], services.get(address["host"])
        if service is None:
            alike = any(host.startswith(name) or name.startswith(host) for name in services)
            if host in lamented or alike:  # else it is optional, as far as anybody can tell
                cause, strength = f"{key} is {value}, and there is no service {host}", PROVEN - LESS
                yield _finding(
                    _line(pod, value), Fault.ENVIRONMENT, pod.app, cause, strength if host in lamented else LIKELY
                )
        elif (
            address["port"]
            and service.ports
            and address["port"] not in (offered := [each.number for each in service.ports])
        ):
            fault = Fault.DATABASE_PORT if _DATABASES.intersection(offered) else Fault.ENVIRONMENT
            cause = f"{key} leads to {host}:{address['port']}, and the service {host} offers port {', '.join(offered)}"
            yield _finding(_line(pod, value), fault, pod.app, cause, PROVEN - LESS)


def _replicas(cluster: Cluster) -> Iterator[ObjectFault]:
    for each in cluster.of("Workload"):
        if each.wanted == 0:
            shown = _line(each, "0/0", "0 desired", "replicas")
            yield _finding(shown, Fault.NO_REPLICAS, each.app, "it is scaled to 0 replicas", PROVEN - LESS)


def _measures(cluster: Cluster) -> Iterator[ObjectFault]:
    """Yield what monitoring says of CPU and network, which no object shows.

    A lost packet is sent again after 200 ms (the minimum of TCP's timer), so that retransmissions with longer answers
    follow from a delay. Where several services suffer, it is the network of the node that sends most packets again; else
    that of the service which calls no other that suffers.
    """
    of_apps = [each for each in cluster.measured if not is_of_node(each.kind)]
    lost = [each for each in cluster.measured if _LOST.search(each.text)]
    slow = [each for each in of_apps if _SLOW.search(each.text)]
    if busy := [each for each in of_apps if _THROTTLED.search(each.text)]:
        most = max(busy, key=_growth)
        yield _finding(most.shown, Fault.BUSY, most.name, "its CPU is saturated", LIKELY)
    if not lost and not slow:
        return
    fault = Fault.LOSS if lost and median([*map(_waiting, slow)] or [0.0]) < LONG else Fault.DELAY
    cause = "its network is slow" if fault is Fault.DELAY else "its network loses packets"
    suffering = {each.name for each in slow} | {each.name for each in of_apps if _FEWER.search(each.text)}
    if (of_node := [each for each in lost if is_of_node(each.kind)]) and len(suffering) >= SEVERAL:
        worst, strength = max(of_node, key=_now), LIKELY - 5 * LESS
    else:
        callers = {pod.app for pod, *_, address in _called(cluster) if address["host"] in suffering - {pod.app}}
        last = [each for each in chain(lost, slow) if each.name not in callers] or [*slow, *lost]
        worst, strength = max(last, key=_growth), POSSIBLE + 5 * LESS
    kind = "node" if is_of_node(worst.kind) else "app"
    yield _finding(worst.shown, fault, worst.name, cause, strength, kind)


def _growth(complaint: Complaint) -> float:
    return max((float(each) for each in _FACTOR.findall(complaint.text)), default=0.0)


def _now(complaint: Complaint) -> float:
    """Return the last value that a complaint says something has risen to."""
    return max((float(each) for each in _RISEN.findall(complaint.text)[-1:]), default=0.0)


def _waiting(complaint: Complaint) -> float:
    """Return the longest time in a complaint, in seconds."""
    times = (float(count) * (1e-3 if unit == "ms" else 1.0) for count, unit in _TIME.findall(complaint.text))
    return max(times, default=0.0)
