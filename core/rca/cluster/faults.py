"""The types of fault that the state of a cluster shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.model.explanation import EvidenceKind
from core.model.trajectory import Responsibility


class Fault(StrEnum):
    """A type of fault; its value is the name that people may read."""

    QUOTA_CPU = "quota of CPU is used up"
    QUOTA_MEMORY = "quota of memory is used up"
    QUOTA_PODS = "quota of pods is used up"
    QUOTA_SERVICES = "quota of services is used up"
    QUOTA_STORAGE = "quota of storage is used up"
    QUOTA_OTHER = "quota is used up"
    LIMIT_RANGE = "outside of the limit range"
    ACCOUNT = "service account is missing"
    REFUSED = "refused by admission"
    DAEMON = "service of a node is down"
    DELAY = "network is slow"
    LOSS = "network loses packets"
    BUSY = "CPU is saturated"
    MEMORY = "out of memory"
    PROBE_PORT = "probe asks another port"
    PROBE_PROTOCOL = "probe speaks another protocol"
    PROBE_TIMING = "probe is too impatient"
    PROBE = "probe fails"
    CPU_CAPACITY = "no node has enough CPU"
    MEMORY_CAPACITY = "no node has enough memory"
    AFFINITY = "no node has the affinity"
    NODE_SELECTOR = "no node has the labels"
    ANTI_AFFINITY = "pods must not share nodes"
    CORDON = "nodes are cordoned"
    TAINT = "taints are not tolerated"
    VOLUME_TAKEN = "volume belongs to another claim"
    VOLUME_MODE = "no volume has the access mode"
    VOLUME_SIZE = "no volume is large enough"
    VOLUME_LABELS = "no volume has the labels"
    VOLUME_CLASS = "no volume has the storage class"
    VOLUME = "claim is not bound"
    ENVIRONMENT = "address in the environment leads nowhere"
    TARGET_PORT = "target port leads nowhere"
    PROTOCOL = "service has another protocol"
    SELECTOR = "selector matches no pod"
    NO_REPLICAS = "no replica is wanted"
    IMAGE_HOST = "registry is not found"
    IMAGE = "image is not found"
    IMAGE_LOGIN = "registry refuses the credentials"
    MOUNT = "volume cannot be written"
    CONFIGURATION = "secret or configuration is missing"
    DNS = "names are not resolved"
    ROUTE = "route leads nowhere"
    PORT_TAKEN = "port is in use"
    CREDENTIALS = "database refuses the credentials"
    CONNECTIONS = "database has no connections left"
    READ_ONLY = "database is read-only"
    DATABASE_PORT = "database is asked on another port"


@dataclass(frozen=True, slots=True)
class ObjectFault:
    """A fault of an object (`app`, `node` or `namespace`), and its cause in a sentence.

    `quote` are verbatim lines of `source`. `detail` is the daemon of a node. `strength` in [0, 1] says how certain it is
    that the object has this fault and that the fault does harm.
    """

    kind: str
    name: str
    fault: Fault
    cause: str
    strength: float
    quote: str
    source: str
    detail: str = ""
    evidence: EvidenceKind = EvidenceKind.TOPOLOGY


_CODE, _PLATFORM = Responsibility.OWN_CODE, Responsibility.PLATFORM
_QUOTA = (
    _PLATFORM,
    "Raise the quota of {name}, or free some of it: `kubectl describe quota -n {name}` shows what uses it.",
)
_PROBE = (
    _CODE,
    "Compare the probe of {name} with what its container listens to, and with the last manifest that worked.",
)
_ROOM = (_PLATFORM, "Lower the request of {name}, or add a node: `kubectl describe nodes` shows what is left.")
_PLACED = (_CODE, "Compare what the pod of {name} asks of a node with `kubectl get nodes --show-labels`.")
_NODES = (
    _PLATFORM,
    "Find out why the nodes refuse the pod of {name}: `kubectl describe nodes` shows taints and cordons.",
)
_VOLUME = (_PLATFORM, "Compare the claim of {name} with the volumes: `kubectl get pvc,pv` and `kubectl describe pvc`.")
_SERVICE = (
    _CODE,
    "Compare the service {name} with its pods: `kubectl get endpoints {name}`, and `kubectl describe service {name}`.",
)
_IMAGE = (_CODE, "Check the image that {name} names, and pull it by hand; if it was changed, go back to the last one.")
_NETWORK = (_PLATFORM, "Measure the network of {name} from another node, for example with `ping` or `mtr`.")
_DATABASE = (_CODE, "Compare the address, the port and the credentials that {name} uses with those of the database.")

REPAIR: Mapping[Fault, tuple[Responsibility, str]] = {
    Fault.QUOTA_CPU: _QUOTA,
    Fault.QUOTA_MEMORY: _QUOTA,
    Fault.QUOTA_PODS: _QUOTA,
    Fault.QUOTA_SERVICES: _QUOTA,
    Fault.QUOTA_STORAGE: _QUOTA,
    Fault.QUOTA_OTHER: _QUOTA,
    Fault.LIMIT_RANGE: (_CODE, "Compare the requests and limits of {name} with `kubectl describe limitrange`."),
    Fault.ACCOUNT: (_CODE, "Create the service account that {name} names, or name one that exists."),
    Fault.REFUSED: (_PLATFORM, "Read why admission refuses the pod of {name}, and change its manifest or the policy."),
    Fault.DAEMON: (_PLATFORM, "Start {detail} on {name}, and read why it stopped: `systemctl status {detail}`."),
    Fault.DELAY: _NETWORK,
    Fault.LOSS: _NETWORK,
    Fault.BUSY: (_CODE, "Find out what {name} computes: `kubectl top pods`, and its requests since then."),
    Fault.MEMORY: (
        _CODE,
        "Compare the memory that {name} uses with its limit; raise the limit if the use is as usual.",
    ),
    Fault.PROBE_PORT: _PROBE,
    Fault.PROBE_PROTOCOL: _PROBE,
    Fault.PROBE_TIMING: (_CODE, "Give the probe of {name} more time, and compare it with how long a start takes."),
    Fault.PROBE: _PROBE,
    Fault.CPU_CAPACITY: _ROOM,
    Fault.MEMORY_CAPACITY: _ROOM,
    Fault.AFFINITY: _PLACED,
    Fault.NODE_SELECTOR: _PLACED,
    Fault.ANTI_AFFINITY: _PLACED,
    Fault.CORDON: _NODES,
    Fault.TAINT: _NODES,
    Fault.VOLUME_TAKEN: _VOLUME,
    Fault.VOLUME_MODE: _VOLUME,
    Fault.VOLUME_SIZE: _VOLUME,
    Fault.VOLUME_LABELS: _VOLUME,
    Fault.VOLUME_CLASS: _VOLUME,
    Fault.VOLUME: _VOLUME,
    Fault.ENVIRONMENT: (_CODE, "Compare the addresses in the environment of {name} with `kubectl get services`."),
    Fault.TARGET_PORT: _SERVICE,
    Fault.PROTOCOL: _SERVICE,
    Fault.SELECTOR: _SERVICE,
    Fault.NO_REPLICAS: (
        _CODE,
        "Find out who scaled {name} to 0, and scale it up: `kubectl rollout history deployment {name}`.",
    ),
    Fault.IMAGE_HOST: _IMAGE,
    Fault.IMAGE: _IMAGE,
    Fault.IMAGE_LOGIN: (_CODE, "Check the image pull secret of {name}, and that it may read the registry."),
    Fault.MOUNT: (_CODE, "Check which user the container of {name} runs as, and who may write to its volume."),
    Fault.CONFIGURATION: (_CODE, "Create the secret or configuration that {name} names, or name one that exists."),
    Fault.DNS: (_PLATFORM, "Resolve the name from a pod of {name}, and look at the cluster's DNS."),
    Fault.ROUTE: (
        _CODE,
        "Compare the routes of {name} with `kubectl get services`, and with the last ones that worked.",
    ),
    Fault.PORT_TAKEN: (_CODE, "Give the containers of {name} different ports."),
    Fault.CREDENTIALS: _DATABASE,
    Fault.CONNECTIONS: (_CODE, "Find out who holds the connections of {name}, and whether they are given back."),
    Fault.READ_ONLY: (_PLATFORM, "Find out why {name} is read-only: a failover, a full disk, or its configuration."),
    Fault.DATABASE_PORT: _DATABASE,
}
"""Who repairs a fault, and the next check; `{name}` is its object and `{detail}` the daemon of a node."""
