"""The types of fault that the state of a cluster shows."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from core.model.incident import EvidenceKind


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
    PORT_TAKEN = "port is in use"
    CREDENTIALS = "database refuses the credentials"
    CONNECTIONS = "database has no connections left"
    READ_ONLY = "database is read-only"
    DATABASE_PORT = "database is asked on another port"


@dataclass(frozen=True, slots=True)
class Finding:
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
