"""The phrases with which software reports trouble: one table with their kind, responsibility and strength.

Logs, tool outputs and build logs are all read with this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from core.model.log_levels import DEBUG, INFO, WARN, level_in, level_named
from core.model.trajectory import Responsibility

CAUSE, COMPLAINT, GRIEVANCE, TOPIC = 0.7, 0.5, 0.3, 0.0
STRENGTHS: Mapping[str, float] = {"cause": CAUSE, "complaint": COMPLAINT, "grievance": GRIEVANCE, "topic": TOPIC}
"""Strengths of phrases: one names a cause, one reports trouble, one may report trouble, one only gives its kind."""


class Kind(StrEnum):
    """The kind of thing that failed."""

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
    """A phrase. `pattern` matches it at the start of a word, ignoring case. `who` is None if unknown."""

    kind: Kind
    who: Responsibility | None
    strength: float
    pattern: str


def _row(line: str) -> Failure:
    kind, who, strength, pattern = line.split(maxsplit=3)
    return Failure(Kind[kind], None if who == "-" else Responsibility[who.upper()], STRENGTHS[strength], pattern)


_TABLE = r"""
MEMORY own_code cause          out of memory|oom[- _]?kill\w*|cannot allocate memory|java heap space|OutOfMemory\w*
MEMORY own_code cause          MemoryError|GC overhead\w*
MEMORY platform cause          low on resource
DISK platform cause            no space left|disk (?:is )?full|disk quota|read-only file ?system|ephemeral[- ]storage
DISK platform cause            (?:disk )?I/O error|read-only mode
LIMIT own_code cause           too many (?:open files|pods|redirects)|max(?:imum)? (?:size|connections|number|retries)
LIMIT own_code cause           exceed(?:s|ed|ing)|exhausted
LIMIT own_code cause           (?:limit|quota|capacity|threshold)s? (?:\w+ )?(?:exceeded|reached|hit)
LIMIT own_code cause           (?:usage|used|utili[sz]ation|full|capacity)\b\D{0,20}(?:9[5-9]|100)(?:\.\d+)? ?%
LIMIT own_code cause           (?:9[5-9]|100)(?:\.\d+)?% (?:full|used)
POOL dependency cause          too many (?:connections|clients)|no (?:available|free) connections?|connection slots
POOL dependency cause          connection is not available|connection pool\b.{0,20}(?:limit|timeout|exhausted)
POOL dependency cause          (?:could not|cannot|unable to) (?:get|obtain|acquire|check ?out) (?:a |an )?(?:\w+ )?connection
POOL own_code cause            (?:queue|pool|buffer|backlog)(?: limit)? (?:\w+ ){0,5}(?:is |was |has )?(?:full|overflow\w*|reached|exhausted)
QUOTA user cause               too many requests|rate.?limit\w*|(?:HTTP[ /:]*)?429\b
QUOTA platform cause           quota|ResourceExhausted|insufficient (?:cpu|memory|pods)
QUOTA platform cause           (?:request|usage|daily|monthly) limit
LOAD own_code cause            load shedding|shedding load|overloaded|queue length
LOAD own_code cause            (?:worker|executor|thread)s? (?:\w+ )?(?:busy|saturated|exhausted)
LIMIT platform cause           throttl\w+|insufficient
LOCK own_code cause            deadlock\w*|lock (?:wait )?time(?:d )?out|could not obtain lock
LOCK own_code cause            statement time(?:d )?out
NAME platform cause            no such host|(?:could not|cannot|can't|failed to|unable to) resolve
NAME platform cause            name or service not known|ENOTFOUND|EAI_AGAIN|name ?resolution|NXDOMAIN|SERVFAIL
NAME platform cause            unknown ?host\w*|getaddrinfo
NETWORK dependency cause       connection (?:was |is |has been )?(?:refused|reset|closed|aborted|timed out|failed|lost|error)
NETWORK dependency cause       ECONN\w+|broken pipe|failed to establish|upstream connect error|no healthy upstream
NETWORK dependency cause       bad gateway|(?:network|host|server|service|database) (?:is )?unreachable
NETWORK dependency cause       (?:cannot|can't|could not|unable to|failed to) (?:connect|reach|open connection)
NETWORK platform cause         no route to host|network is unreachable
TIMEOUT dependency cause       i/o timeout|timed?[- ]?outs?|deadline exceeded|ETIMEDOUT|TimeoutE\w+|took too long
ACCESS own_code cause          permission denied|access ?denied|forbidden|unauthori[sz]ed|not authori[sz]ed|EACCES
ACCESS own_code cause          EPERM|operation not permitted|auth(?:entication|orization)? (?:error|fail\w*)
ACCESS own_code cause          password authentication|(?:key|user|token) rejected|login failed|account (?:is )?locked
ACCESS own_code cause          denied the request
ACCESS own_code cause          (?:invalid|expired|wrong|bad) (?:\w+ )?(?:credentials?|password|token|api.?key|signature|secret)
ACCESS own_code cause          (?:api.?key|token|credentials?|licen[cs]e|subscription) (?:of [\w ]{1,40} )?(?:has |is |was )?(?:expired|ended|revoked)
ACCESS own_code cause          (?:authentication|login|upgrade) (?:is )?required
ACCESS own_code cause          cannot (?:get|list|watch|create|update|delete|patch) resource
CERTIFICATE platform cause     x509\b.*|certificate (?:has |is |was )?(?:expired|verify|signed by|not|unknown)\w*
CERTIFICATE platform cause     (?:tls|ssl).{0,20}(?:handshake|error)|CERTIFICATE_VERIFY_FAILED|failed to verify
CERTIFICATE platform cause     (?:will|about to) expire
MISSING own_code cause         no such (?:file|\w+)|not found|(?:does|do|did) ?n[o']t exist|missing|is undefined
MISSING own_code cause         (?:is|are|was) (?:not set|unset|empty|required)|undefined \w+
MISSING own_code cause         not (?:defined|configured|provided|registered|available|installed|supported)|ENOENT
MISSING own_code cause         No module named|ModuleNotFoundError|ImportError|ClassNotFound\w+|NoClassDef\w+
MISSING own_code cause         endpoints:?\s+<none>
MISSING own_code cause         NoSuch\w+|KeyError
OTHER - cause                  (?:cannot|can't|could not|couldn't|unable to|failed to) (?:find|locate|load|read|open|parse|decode|start|create|pull|mount|attach|write|import|execute|exec|allocate|bind|listen|get|fetch|send|acquire|deserialize|unmarshal)
FORM own_code cause            unknown (?:flag|command|field|option|column|database|manifest|instruction)
FORM own_code cause            unrecogni[sz]ed|invalid|malformed|syntax ?error
FORM own_code cause            unexpected (?:token|end|EOF|keyword|character)|parse error|exec format error
FORM own_code cause            unsupported|incompatible|(?:version|type|schema|checksum|hash|size) ?mismatch
FORM own_code cause            mismatched|illegal|corrupt\w*
SCHEMA own_code cause          (?:constraint|foreign key)\w{0,20} .{0,30}(?:violat|fail)\w*|violates
SCHEMA own_code topic          migration|column|relation .{0,80} does not exist|seq(?:uential)? scan|full table scan
CONFLICT own_code cause        duplicate (?:key|entry)|conflicts? with|already (?:in use|exists|allocated|bound)
CONFLICT own_code cause        EADDRINUSE
CONFLICT platform cause        already (?:exclusively )?attached|multi-attach
PLACEMENT platform cause       untolerated taint|didn't match|had no match|unbound immediate|volume node affinity
PLACEMENT platform topic       unschedulable|FailedScheduling|node affinity|evict\w*|preempt\w*|cordoned|FailedMount
PLACEMENT platform topic       FailedAttachVolume|persistentvolumeclaim
HOST platform topic            NotReady|DiskPressure|MemoryPressure|PIDPressure|steal time|noisy neighbou?r
HOST platform topic            heartbeat (?:late|missed)|event loop blocked|cpu (?:is )?throttl\w*
HOST platform topic            (?:local )?disk (?:took|latency|wait)
OTHER own_code cause           no matches for|not (?:allowed|set|satisfied|able to)|run out of|ran out of|rolled back
OTHER own_code cause           violations?(?: of)?
OTHER dependency cause         misbehaving|circuit breaker (?:\S+ ){0,3}(?:is )?open
STORE platform cause           partition(?:ed)? detected|split[- ]?brain|may not be available
STORE platform cause           (?:leader|broker|coordinator|node)[ _]not[ _]available
STORE platform topic           in recovery mode|election in progress|fail(?:ing )?over|primary (?:is )?lost
STORE platform topic           replication \w{1,30}(?: \w{1,30})? ?stopped
CRASH own_code cause           panic(?:ked)?:|panicked|segmentation fault|SIGSEGV|core dumped|nil pointer
CRASH own_code cause           NullPointer\w*|stack ?overflow|assert(?:ion)? fail\w*
CODE own_code cause            (?<![\w.$])[\w.$]*[a-z](?:Error|Exception):(?= \S)
CODE own_code topic            traceback|command not found|cannot be executed|assert\w*|test(?:s)? failed|compil\w+
CODE own_code topic            exited with code|CrashLoopBackOff
MISSING own_code topic         configmap|secret|environment variable|(?:is|are) (?:not set|required)|selector
IMAGE own_code cause           manifest unknown
IMAGE own_code topic           ImagePull\w*|image
PROBE own_code cause           probe failed|probe errored
NETWORK dependency topic       upstream|HTTP[ /][\d. ]*50[234]|does not answer|broker
REQUEST user topic             bad request|HTTP[ /][\d. ]*4(?:00|13|22|29)
REQUEST user topic             invalid (?:input|request|parameter|payload|email|card)|malformed request
REQUEST user topic             validation failed|request (?:entity )?too large
OTHER - complaint              errors?|exceptions?|fatal|fail(?:ed|ure|ures|s|ing|over)?|critical|unable|could not
OTHER - complaint              couldn't|cannot|can't|crash(?:ed|es|ing)?|abort(?:ed|ing)?|reject(?:ed|s)?|denied
OTHER - complaint              unavailable|lost|dropp(?:ed|ing)|stuck|hung|dead|killed|unexpected(?:ly)?|terminated
OTHER - complaint              panic(?:ked)?|severe|emergency|degraded|slow|high latency|stale|lag(?:ging)?|expired
OTHER - complaint              (?<![\w.$])[\w.$]*[a-z](?:Error|Exception)
OTHER - grievance              declin(?:ed|ing)|incorrect\w*|wrong\w*|block(?:ed|ing)|refus(?:ed|es|ing)
OTHER - grievance              ignor(?:ed|ing)|skipp(?:ed|ing)|disabled|overload\w*
OTHER - grievance              too (?:large|long|many|much|big|small|few|slow|high|low|old|short)|leak\w*|interrupt\w*
OTHER - grievance              disconnect\w*|cancell?ed|partitioned|split[- ]?brain|no quorum|alarms?|starv\w*
OTHER - grievance              not respond\w*|no response|hung up|problems?|issues?|incomplete|outdated|obsolete
OTHER - grievance              suspended|unhandled|uncaught|unresolved|unreachable|unknown|unschedulable|inaccessible
OTHER - grievance              unsuccessful\w*|overflow\w*|stopped|stall\w*|frozen|freezing|loss|missed|pressure
OTHER - grievance              contention|paused|gave up|halted|spikes?|outages?|down|offline|backlog|behind|delayed
OTHER - grievance              high (?:cpu|load|memory|usage)|not able|won't|bad \w+|(?:does|did|do|was|is|are) not
OTHER - grievance              (?:does|did|do|was|is|are)n't|warn(?:ing)?|warnings
"""
FAILURES = tuple(_row(line) for line in _TABLE.strip().splitlines())
"""All phrases, except those for the effects of a failure, such as a restart, which are in `EFFECTS`."""

EFFECTS = (
    r"back-?off|restart(?:ed|ing|s)?|retry(?:ing)?|retries|shutting down|shut down|giving up|reconnect\w*|"
    r"exit(?:ed|ing)? (?:with )?(?:code|status)|unhealthy|not ready|waiting (?:for|to)|will be (?:restarted|retried)|"
    r"HTTP/[\d.]+\"? (?:5\d\d|40[0134]|429)"
)

_BEFORE = r"(?<![A-Za-z0-9./-])"  # a word inside a name, such as `error-page`, does not count
_AFTER = r"(?![A-Za-z0-9]|-\w|/\w|(?-i:_[a-z]))"  # but one in a constant, such as `PAYMENT_FAILED`, does


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
    for who in (Responsibility.PLATFORM, Responsibility.USER, Responsibility.DEPENDENCY, Responsibility.OWN_CODE)
)


_CAUSE, _COMPLAINT, _GRIEVANCE = phrases(CAUSE), phrases(COMPLAINT), phrases(GRIEVANCE)
_EFFECT = re.compile(rf"{_BEFORE}(?:{EFFECTS}){_AFTER}", re.IGNORECASE)
_NEGATED = re.compile(
    r"\b(?:no|without(?: any)?|zero|0) (?:\w+ )?(?:errors?|failures?|exceptions?|problems?|issues?|timeouts?)\b"
    r"|\b(?:\w+[_ ])?(?:errors?|failures?|failed|exceptions?|timeouts?|err|dropped|lost|missing)(?:_\w+)?[\"']?"
    r"\s*[=:]\s*[\"']?(?:0\b|none|null|nil|false|\[\]|\{\}|NO_ERROR)"
    r"|\b(?:no|not) (?:expired|lost|dropped|missing)\b|\b0 (?:failed|lost|dropped|missing)\b",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(?:took|takes|waits?|waited|waiting|blocked|duration|latency|elapsed|after|lag)\b.{0,60}?"
    r"\b(?:\d{5,}(?:\.\d+)? ?(?:ms|milliseconds)|\d{2,}(?:\.\d+)? ?(?:s|secs?|seconds)|\d+ ?(?:min|minutes|hours?))\b",
    re.IGNORECASE,
)
"""Matches a duration of ten seconds or more."""
_LEVEL = re.compile(
    r"\b(?:level|lvl|severity|log\.level)[\"']?\s*[=:]\s*[\"']?[a-z]+"
    r"|(?:^|[\s\[(|<])(?P<word>FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC|SEVERE|ERROR|ERR|WARN|WARNING|NOTICE|INFO|DEBUG|TRACE)"
    r"(?=[\s\])|>:,]|$)",
    re.IGNORECASE,
)
"""Matches a level in a field, or its name as a word of its own in a tool's output."""
_LEVEL_WITHIN = 120  # characters at the start of a line that contain its level
_TONES = {WARN: 0.85, INFO: 0.4, DEBUG: 0.4}
"""The weight of a message by its level, which is the program's own judgement."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The trouble that a line reports: its strength in [0, 1], its offset in the line, and whether it gives a cause."""

    strength: float
    start: int
    is_cause: bool = True


def trouble(line: str) -> Trouble | None:
    """Return the trouble that a line reports, by its level and its words; None if it reports none."""
    statement = _NEGATED.sub(lambda match: " " * len(match.group()), line)
    level_match = _LEVEL.search(statement[:_LEVEL_WITHIN])
    level = level_in(statement) or level_named((level_match and level_match["word"]) or "")
    weight, loud = _TONES.get(level, 1.0), level != "" and level not in _TONES
    message = _LEVEL.sub(lambda match: " " * len(match.group()), statement, count=1)
    effect = _EFFECT.search(message)
    if cause := _CAUSE.search(statement):
        return Trouble((0.82 if loud or _COMPLAINT.search(statement) else 0.7) * weight, cause.start())
    if complaint := _COMPLAINT.search(message):
        strength = 0.45 if effect else 0.65 if loud else 0.5
        return Trouble(strength * weight, complaint.start(), is_cause=effect is None)
    if slow := _LONG.search(message):
        return Trouble(0.4, slow.start())
    if grievance := _GRIEVANCE.search(message):
        return Trouble((0.6 if loud else 0.3) * weight, grievance.start())
    if effect:
        return Trouble((0.35 if loud else 0.25) * weight, effect.start(), is_cause=False)
    return Trouble(0.55, 0) if loud else Trouble(0.18, 0) if weight == _TONES[WARN] else None


def cause_offset(text: str) -> int:
    """Return the offset of the last cause in a text, or 0; errors that wrap each other end with the innermost."""
    return max((match.start() for match in _CAUSE.finditer(text)), default=0)


_OUTCOME = (
    r"^(?:make(?:\[\d{1,4}\])?: \*\*\* |npm (?:ERR!|error) (?:code|errno|Lifecycle script|Exit status)|FAILED? \(|ELIFECYCLE"
    r"|error Command failed|FAILURE: Build failed|Execution failed for task|BUILD FAIL|error: could not compile|--- FAIL"
    r"|error: aborting due to)"
    r"|exit(?:ed)?(?: with)?(?: code| status)?:? '?[1-9]|\b[1-9]\d{0,5} (?:failed|failures?|errors?|problems?)\b|Failures: [1-9]"
)
OUTCOME = re.compile(rf"{_OUTCOME}|^not ok \d")
"""Matches a line in which a tool says that it is over and failed."""
_WRAPPER = re.compile(
    rf"{_OUTCOME}|^(?:npm (?:ERR!|error) (?:path|A complete log)|\[ERROR\] (?:To see|Re-run|For more|After correcting|-> \[Help)"
    r"|\[INFO\]|ERROR: Job failed|>)"
    r"|\b0 (?:failed|failures?|errors?|problems?)\b|Failures: 0|^\W{0,200}FAILURES\W{0,200}$|:\d{1,6}: \w{1,80}(?:Error|Exception)$"
    r"|^name: \w{1,80}$|^\d{1,6}\) \w{1,80}:$|^[^A-Za-z]*$"
)
"""Lines of build tools that only repeat the failure of another tool."""
_WARNS = re.compile(r"(?:npm )?\W{0,3}warn(?:ing)?\b|.{0,200}: warning\b", re.IGNORECASE)
_QUIET = re.compile(
    r"^\W{0,5}(?:npm )?(?:info|note|notice|debug|trace|verbose)\b|^.{0,200}: note: |[:=] ?0\.?$|^\W{0,5}0 \w",
    re.IGNORECASE,
)
"""Lines below the level of a warning, and counters of nothing."""
_STATES = re.compile(
    r"^E {2,}\S|(?:^|[\s\]:(])(?:(?:fatal )?error(?:\[?[A-Z]+\d+\]?| TS\d+)?:|panic:|panicked at|[\w.]{0,80}(?:Error|Exception): )"
    r"|\bwant(?:ed)? \S|^Expected: |\bexpected\b.{1,80}\b(?:but|got|to|actual|received)\b"
)
"""Lines in which a tool states its error."""


_HEADING = re.compile(r"^\W{0,5}[A-Z][\w ']{0,60}:$")
"""Matches a line that only announces the following ones, as “* What went wrong:”."""
_EXIT_OF_ANOTHER = re.compile(r"\bnon-?zero exit (?:value|code|status):? \d", re.IGNORECASE)
"""Matches what a tool says of a process that did not tell more."""


def decisiveness(line: str) -> float:
    """Return how well a line of a build log tells why it failed, in [-0.5, 1.25]; a tool's error statement is best."""
    if _QUIET.search(line) or _HEADING.search(line):
        return -0.5
    if _EXIT_OF_ANOTHER.search(line):
        return 0.1
    report = trouble(line)
    strength = report.strength if report else 0.0
    if _WRAPPER.search(line):
        return strength - 0.5
    return strength - 0.25 if _WARNS.match(line) else strength + (0.25 if _STATES.search(line) else 0.0)


def kinds_of(text: str) -> frozenset[Kind]:
    """Return the kinds of failure that a text reports."""
    return frozenset(kind for kind, pattern in _BY_KIND.items() if pattern.search(text))


def responsibility_of(text: str) -> Responsibility | None:
    """Return who is responsible for the first failure that a text reports; None if it does not tell.

    The first one counts, because a description of a cause begins with it. At the same offset, the side counts that is
    least likely to be mistaken.
    """
    matches = [
        (match.start(), place, who)
        for place, (who, words) in enumerate(_BY_RESPONSIBLE)
        if (match := words.search(text))
    ]
    return min(matches)[2] if matches else None
