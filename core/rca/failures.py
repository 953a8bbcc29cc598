"""How software says that something is wrong: one table of phrases, of what kind, who can mend it, and how sure it is.

Everything that reads text for trouble reads it by this table: logs, the output of tools, build logs, and the texts of
changes, which are compared with the kinds of failure that followed them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.rca.trajectory import Responsibility

PLATFORM, OWN_CODE = Responsibility.PLATFORM, Responsibility.OWN_CODE
DEPENDENCY, USER = Responsibility.DEPENDENCY, Responsibility.USER

CAUSE, COMPLAINT, GRIEVANCE, TOPIC = 0.7, 0.5, 0.3, 0.0
"""Strengths: a phrase that names a cause, one that complains, one that may, and one that only says of what kind it is."""


class Kind(StrEnum):
    """What failed."""

    MEMORY = "memory"
    DISK = "disk"
    POOL = "connections"
    LIMIT = "limit"
    QUOTA = "quota"
    LOAD = "load"
    LOCK = "lock"
    NAME = "name resolution"
    NETWORK = "network"
    TIMEOUT = "timeout"
    ACCESS = "access"
    CERTIFICATE = "certificate"
    MISSING = "missing"
    FORM = "form"
    SCHEMA = "schema"
    CONFLICT = "conflict"
    CRASH = "crash"
    CODE = "code"
    PLACEMENT = "placement"
    IMAGE = "image"
    HOST = "host"
    STORE = "store"
    REQUEST = "request"
    PROBE = "probe"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Failure:
    """`pattern` matches the phrase at the beginning of a word, whatever its case. `who` is None where nothing tells."""

    kind: Kind
    who: Responsibility | None
    strength: float
    pattern: str


K = Kind
FAILURES = (
    Failure(K.MEMORY, OWN_CODE, CAUSE, r"out of memory|oom[- _]?kill\w*|cannot allocate memory|java heap space"),
    Failure(K.MEMORY, OWN_CODE, CAUSE, r"OutOfMemory\w*|MemoryError|GC overhead\w*"),
    Failure(K.MEMORY, PLATFORM, CAUSE, r"low on resource"),
    Failure(K.DISK, PLATFORM, CAUSE, r"no space left|disk (?:is )?full|disk quota|read-only file ?system"),
    Failure(K.DISK, PLATFORM, CAUSE, r"ephemeral[- ]storage|(?:disk )?I/O error|read-only mode"),
    Failure(K.LIMIT, OWN_CODE, CAUSE, r"too many (?:open files|pods|redirects)"),
    Failure(K.POOL, DEPENDENCY, CAUSE, r"too many (?:connections|clients)|no (?:available|free) connections?"),
    Failure(
        K.POOL,
        DEPENDENCY,
        CAUSE,
        r"connection slots|connection is not available|connection pool\b.{0,20}(?:limit|timeout|exhausted)",
    ),
    Failure(
        K.POOL,
        DEPENDENCY,
        CAUSE,
        r"(?:could not|cannot|unable to) (?:get|obtain|acquire|check ?out) (?:a |an )?(?:\w+ )?connection",
    ),
    Failure(
        K.POOL,
        OWN_CODE,
        CAUSE,
        r"(?:queue|pool|buffer|backlog)(?: limit)? (?:\w+ ){0,5}(?:is |was |has )?(?:full|overflow\w*|reached|exhausted)",
    ),
    Failure(K.QUOTA, USER, CAUSE, r"too many requests|rate.?limit\w*|(?:HTTP[ /:]*)?429\b"),
    Failure(
        K.QUOTA,
        PLATFORM,
        CAUSE,
        r"quota|ResourceExhausted|insufficient (?:cpu|memory|pods)|(?:request|usage|daily|monthly) limit",
    ),
    Failure(
        K.LOAD,
        OWN_CODE,
        CAUSE,
        r"load shedding|shedding load|overloaded|queue length|(?:worker|executor|thread)s? (?:\w+ )?(?:busy|saturated|exhausted)",
    ),
    Failure(K.LIMIT, PLATFORM, CAUSE, r"throttl\w+|insufficient"),
    Failure(K.LIMIT, OWN_CODE, CAUSE, r"max(?:imum)? (?:size|connections|number|retries)|exceed(?:s|ed|ing)|exhausted"),
    Failure(K.LIMIT, OWN_CODE, CAUSE, r"(?:limit|quota|capacity|threshold)s? (?:\w+ )?(?:exceeded|reached|hit)"),
    Failure(
        K.LIMIT,
        OWN_CODE,
        CAUSE,
        r"(?:usage|used|utili[sz]ation|full|capacity)\b\D{0,20}(?:9[5-9]|100)(?:\.\d+)? ?%|(?:9[5-9]|100)(?:\.\d+)?% (?:full|used)",
    ),
    Failure(
        K.LOCK,
        OWN_CODE,
        CAUSE,
        r"deadlock\w*|lock (?:wait )?time(?:d )?out|could not obtain lock|statement time(?:d )?out",
    ),
    Failure(
        K.NAME,
        PLATFORM,
        CAUSE,
        r"no such host|(?:could not|cannot|can't|failed to|unable to) resolve|name or service not known",
    ),
    Failure(
        K.NAME, PLATFORM, CAUSE, r"ENOTFOUND|EAI_AGAIN|name ?resolution|NXDOMAIN|SERVFAIL|unknown ?host\w*|getaddrinfo"
    ),
    Failure(
        K.NETWORK,
        DEPENDENCY,
        CAUSE,
        r"connection (?:was |is |has been )?(?:refused|reset|closed|aborted|timed out|failed|lost|error)",
    ),
    Failure(
        K.NETWORK,
        DEPENDENCY,
        CAUSE,
        r"ECONN\w+|broken pipe|failed to establish|upstream connect error|no healthy upstream|bad gateway",
    ),
    Failure(
        K.NETWORK,
        DEPENDENCY,
        CAUSE,
        r"(?:network|host|server|service|database) (?:is )?unreachable|(?:cannot|can't|could not|unable to|failed to) (?:connect|reach|open connection)",
    ),
    Failure(K.NETWORK, PLATFORM, CAUSE, r"no route to host|network is unreachable"),
    Failure(
        K.TIMEOUT,
        DEPENDENCY,
        CAUSE,
        r"i/o timeout|timed?[- ]?outs?|deadline exceeded|ETIMEDOUT|TimeoutE\w+|took too long",
    ),
    Failure(
        K.ACCESS,
        OWN_CODE,
        CAUSE,
        r"permission denied|access ?denied|forbidden|unauthori[sz]ed|not authori[sz]ed|EACCES|EPERM",
    ),
    Failure(
        K.ACCESS,
        OWN_CODE,
        CAUSE,
        r"operation not permitted|auth(?:entication|orization)? (?:error|fail\w*)|password authentication",
    ),
    Failure(
        K.ACCESS, OWN_CODE, CAUSE, r"(?:key|user|token) rejected|login failed|account (?:is )?locked|denied the request"
    ),
    Failure(
        K.ACCESS,
        OWN_CODE,
        CAUSE,
        r"(?:invalid|expired|wrong|bad) (?:\w+ )?(?:credentials?|password|token|api.?key|signature|secret)",
    ),
    Failure(
        K.ACCESS,
        OWN_CODE,
        CAUSE,
        r"(?:api.?key|token|credentials?|licen[cs]e|subscription) (?:of [\w ]{1,40} )?(?:has |is |was )?(?:expired|ended|revoked)",
    ),
    Failure(
        K.ACCESS,
        OWN_CODE,
        CAUSE,
        r"(?:authentication|login|upgrade) (?:is )?required|cannot (?:get|list|watch|create|update|delete|patch) resource",
    ),
    Failure(
        K.CERTIFICATE,
        PLATFORM,
        CAUSE,
        r"x509\b.*|certificate (?:has |is |was )?(?:expired|verify|signed by|not|unknown)\w*",
    ),
    Failure(
        K.CERTIFICATE,
        PLATFORM,
        CAUSE,
        r"(?:tls|ssl).{0,20}(?:handshake|error)|CERTIFICATE_VERIFY_FAILED|failed to verify|(?:will|about to) expire",
    ),
    Failure(
        K.MISSING, OWN_CODE, CAUSE, r"no such (?:file|\w+)|not found|(?:does|do|did) ?n[o']t exist|missing|is undefined"
    ),
    Failure(K.MISSING, OWN_CODE, CAUSE, r"(?:is|are|was) (?:not set|unset|empty|required)|undefined \w+"),
    Failure(
        K.MISSING, OWN_CODE, CAUSE, r"not (?:defined|configured|provided|registered|available|installed|supported)"
    ),
    Failure(
        K.MISSING,
        OWN_CODE,
        CAUSE,
        r"ENOENT|No module named|ModuleNotFoundError|ImportError|ClassNotFound\w+|NoClassDef\w+|NoSuch\w+|KeyError",
    ),
    Failure(
        K.OTHER,
        None,
        CAUSE,
        r"(?:cannot|can't|could not|couldn't|unable to|failed to) (?:find|locate|load|read|open|parse|decode|start|create|pull|mount|attach|write|import|execute|exec|allocate|bind|listen|get|fetch|send|acquire|deserialize|unmarshal)",
    ),
    Failure(
        K.FORM,
        OWN_CODE,
        CAUSE,
        r"unknown (?:flag|command|field|option|column|database|manifest|instruction)|unrecogni[sz]ed",
    ),
    Failure(
        K.FORM,
        OWN_CODE,
        CAUSE,
        r"invalid|malformed|syntax ?error|unexpected (?:token|end|EOF|keyword|character)|parse error|exec format error",
    ),
    Failure(
        K.FORM,
        OWN_CODE,
        CAUSE,
        r"unsupported|incompatible|(?:version|type|schema|checksum|hash|size) ?mismatch|mismatched|illegal|corrupt\w*",
    ),
    Failure(K.SCHEMA, OWN_CODE, CAUSE, r"(?:constraint|foreign key)\w* .{0,30}(?:violat|fail)\w*|violates"),
    Failure(
        K.SCHEMA,
        OWN_CODE,
        TOPIC,
        r"migration|column|relation .{0,80} does not exist|seq(?:uential)? scan|full table scan",
    ),
    Failure(
        K.CONFLICT,
        OWN_CODE,
        CAUSE,
        r"duplicate (?:key|entry)|conflicts? with|already (?:in use|exists|allocated|bound)|EADDRINUSE",
    ),
    Failure(K.CONFLICT, PLATFORM, CAUSE, r"already (?:exclusively )?attached|multi-attach"),
    Failure(
        K.PLACEMENT,
        PLATFORM,
        CAUSE,
        r"untolerated taint|didn't match|had no match|unbound immediate|volume node affinity",
    ),
    Failure(
        K.PLACEMENT,
        PLATFORM,
        TOPIC,
        r"unschedulable|FailedScheduling|node affinity|evict\w*|preempt\w*|cordoned|FailedMount|FailedAttachVolume|persistentvolumeclaim",
    ),
    Failure(
        K.HOST,
        PLATFORM,
        TOPIC,
        r"NotReady|DiskPressure|MemoryPressure|PIDPressure|steal time|noisy neighbou?r|heartbeat (?:late|missed)|event loop blocked|cpu (?:is )?throttl\w*|(?:local )?disk (?:took|latency|wait)",
    ),
    Failure(K.OTHER, OWN_CODE, CAUSE, r"no matches for|not (?:allowed|set|satisfied|able to)|run out of|ran out of"),
    Failure(K.OTHER, DEPENDENCY, CAUSE, r"misbehaving|circuit breaker (?:\S+ ){0,3}(?:is )?open"),
    Failure(K.OTHER, OWN_CODE, CAUSE, r"rolled back|violations?(?: of)?"),
    Failure(
        K.STORE,
        PLATFORM,
        CAUSE,
        r"partition(?:ed)? detected|split[- ]?brain|may not be available|(?:leader|broker|coordinator|node)[ _]not[ _]available",
    ),
    Failure(
        K.STORE,
        PLATFORM,
        TOPIC,
        r"in recovery mode|election in progress|fail(?:ing )?over|primary (?:is )?lost|replication \w+ ?\w* ?stopped",
    ),
    Failure(
        K.CRASH,
        OWN_CODE,
        CAUSE,
        r"panic(?:ked)?:|panicked|segmentation fault|SIGSEGV|core dumped|nil pointer|NullPointer\w*|stack ?overflow|assert(?:ion)? fail\w*",
    ),
    Failure(K.CODE, OWN_CODE, CAUSE, r"[\w.$]*[a-z](?:Error|Exception):(?= \S)"),
    Failure(
        K.CODE,
        OWN_CODE,
        TOPIC,
        r"traceback|command not found|cannot be executed|assert\w*|test(?:s)? failed|compil\w+|exited with code|CrashLoopBackOff",
    ),
    Failure(
        K.MISSING, OWN_CODE, TOPIC, r"configmap|secret|environment variable|(?:is|are) (?:not set|required)|selector"
    ),
    Failure(K.IMAGE, OWN_CODE, CAUSE, r"manifest unknown"),
    Failure(K.IMAGE, OWN_CODE, TOPIC, r"ImagePull\w*|image"),
    Failure(K.PROBE, OWN_CODE, CAUSE, r"probe failed|probe errored"),
    Failure(K.NETWORK, DEPENDENCY, TOPIC, r"upstream|HTTP[ /][\d. ]*50[234]|does not answer|broker"),
    Failure(
        K.REQUEST,
        USER,
        TOPIC,
        r"bad request|HTTP[ /][\d. ]*4(?:00|13|22|29)|invalid (?:input|request|parameter|payload|email|card)|malformed request",
    ),
    Failure(K.REQUEST, USER, TOPIC, r"validation failed|request (?:entity )?too large"),
    Failure(
        K.OTHER,
        None,
        COMPLAINT,
        r"errors?|exceptions?|fatal|fail(?:ed|ure|ures|s|ing|over)?|critical|unable|could not|couldn't|cannot|can't|"
        r"crash(?:ed|es|ing)?|abort(?:ed|ing)?|reject(?:ed|s)?|denied|unavailable|lost|dropp(?:ed|ing)|stuck|hung|dead|"
        r"killed|unexpected(?:ly)?|terminated|panic(?:ked)?|severe|emergency|degraded|slow|high latency|stale|lag(?:ging)?|"
        r"expired|[\w.$]*[a-z](?:Error|Exception)",
    ),
    Failure(
        K.OTHER,
        None,
        GRIEVANCE,
        r"declin(?:ed|ing)|incorrect\w*|wrong\w*|block(?:ed|ing)|refus(?:ed|es|ing)|ignor(?:ed|ing)|skipp(?:ed|ing)|disabled|"
        r"overload\w*|too (?:large|long|many|much|big|small|few|slow|high|low|old|short)|leak\w*|interrupt\w*|disconnect\w*|"
        r"cancell?ed|partitioned|split[- ]?brain|no quorum|alarms?|starv\w*|not respond\w*|no response|hung up|problems?|"
        r"issues?|incomplete|outdated|obsolete|suspended|unhandled|uncaught|unresolved|unreachable|unknown|unschedulable|"
        r"inaccessible|unsuccessful\w*|overflow\w*|stopped|stall\w*|frozen|freezing|loss|missed|pressure|contention|paused|"
        r"gave up|halted|spikes?|outages?|down|offline|backlog|behind|delayed|high (?:cpu|load|memory|usage)|not able|won't|"
        r"bad \w+|(?:does|did|do|was|is|are) not|(?:does|did|do|was|is|are)n't|warn(?:ing)?|warnings",
    ),
)
"""Every phrase. Those that follow from a failure, such as a restart, are in `EFFECTS`."""

EFFECTS = (
    r"back-?off|restart(?:ed|ing|s)?|retry(?:ing)?|retries|shutting down|shut down|giving up|reconnect\w*|"
    r"exit(?:ed|ing)? (?:with )?(?:code|status)|unhealthy|not ready|waiting (?:for|to)|will be (?:restarted|retried)"
)

TOUCHES: Mapping[Kind, str] = {
    K.MEMORY: r"memory|heap|xmx|cache\w*|buffer\w*|in[- ]memory|gc|\d+ ?[MG]i?B?\b",
    K.DISK: r"disk|volume|storage|retention|log ?rotat\w+|tmp",
    K.POOL: r"pool\w*|connections?|hikari\w*|datasource|max_?conn\w*|release|acquire|session|transaction",
    K.LIMIT: r"limits?|max\w*|concurrency|workers?|threads?|open\w*|files?|throttl\w*",
    K.QUOTA: r"rate.?limit\w*|limits?|throttl\w*|quota|burst|poll\w*|retr(?:y|ies)|budget",
    K.LOAD: r"workers?|replicas?|concurrency|threads?|queue|batch\w*|poll\w*|retr(?:y|ies)|cache\w*|ttl|one by one|loop|for \w+ in",
    K.LOCK: r"lock\w*|transaction|index|alter|migration|mutex|synchroni[sz]ed|for update",
    K.NAME: r"host\w*|url|endpoint|dns|domain|address|https?:",
    K.NETWORK: r"host\w*|url|endpoint|port|proxy|network\w*|firewall|tls|keep-?alive|https?:",
    K.TIMEOUT: r"time-?out\w*|deadline|ttl|retr(?:y|ies)|sync\w*|await|index|query|batch\w*|loop|for \w+ in|lock\w*",
    K.ACCESS: r"auth\w*|tokens?|role|permission|scope|key|secret|credential\w*|password|audience|jwt|claims?|rotat\w+",
    K.CERTIFICATE: r"cert\w*|tls|ssl|ca[-_ ]bundle|trust\w*|rotat\w+",
    K.MISSING: r"remov\w*|renam\w*|drop\w*|delet\w*|retir\w*|env\w*|config\w*|key|field|null|none|optional|default",
    K.FORM: r"pars\w*|valid\w*|format|schema|field|json|encod\w*|decod\w*|serial\w*|type|strict\w*|version|upgrade|bump",
    K.SCHEMA: r"migration|column|table|index|alter|drop|sql|schema|constraint",
    K.CONFLICT: r"unique|id|port|insert|upsert|constraint|idempoten\w*",
    K.CRASH: r"null|none|nil|pointer|optional|unwrap|recurs\w*|native",
    K.CODE: r"null|none|nil|optional|default|guard|check|cast|convert|divi\w*|lines?|valid\w*",
    K.IMAGE: r"image|tag|registry|docker\w*",
    K.REQUEST: r"valid\w*|limit|size|require\w*|schema",
    K.PROBE: r"probe|health\w*|port|start\w*",
    K.HOST: r"node|kernel|host|cpu|affinity|toleration",
    K.PLACEMENT: r"node|affinity|toleration|resources?|requests|replicas?",
}
"""By kind of failure, what the text or diff of a change speaks of that can bring it about."""

_BEFORE = r"(?<![A-Za-z0-9./-])"  # a word inside of a name, such as `error-page`, says nothing
_AFTER = r"(?![A-Za-z0-9]|-\w|/\w|(?-i:_[a-z]))"  # but in constants, such as `PAYMENT_FAILED`


def phrases(strength: float) -> re.Pattern[str]:
    """Return one pattern for all phrases of a strength, as whole words."""
    wanted = "|".join(failure.pattern for failure in FAILURES if failure.strength == strength)
    return re.compile(rf"{_BEFORE}(?:{wanted}){_AFTER}", re.IGNORECASE)


_BY_KIND = {
    kind: re.compile(
        rf"(?<![A-Za-z])(?:{'|'.join(each.pattern for each in FAILURES if each.kind is kind)})", re.IGNORECASE
    )
    for kind in Kind
    if kind is not Kind.OTHER
}
_BY_RESPONSIBLE = tuple(
    (
        who,
        re.compile(
            rf"(?<![A-Za-z])(?:{'|'.join(each.pattern for each in FAILURES if each.who is who)})", re.IGNORECASE
        ),
    )
    for who in (PLATFORM, USER, DEPENDENCY, OWN_CODE)
)
_TOUCHES = {kind: re.compile(rf"(?<![A-Za-z])(?:{words})(?![a-z])", re.IGNORECASE) for kind, words in TOUCHES.items()}


def kinds_of(text: str) -> frozenset[Kind]:
    """Return the kinds of failure that a text complains of."""
    return frozenset(kind for kind, pattern in _BY_KIND.items() if pattern.search(text))


def brought_about_by(text: str) -> frozenset[Kind]:
    """Return the kinds of failure that a change with this text can bring about."""
    return frozenset(kind for kind, pattern in _TOUCHES.items() if pattern.search(text))


def responsibility_of(text: str) -> Responsibility | None:
    """Return who can mend what a text complains of first; None where nothing in it tells.

    The first complaint counts, since a text that is told of a cause begins with it; at the same place, the one that is
    hardest to mistake.
    """
    found = [
        (match.start(), place, who)
        for place, (who, words) in enumerate(_BY_RESPONSIBLE)
        if (match := words.search(text))
    ]
    return min(found)[2] if found else None
