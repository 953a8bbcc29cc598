"""How software says that something is wrong: by the words that name a cause, by those that only complain."""

from __future__ import annotations

import re
from dataclasses import dataclass

from core.rca.tool_outputs.clue import Role

_CAUSES = (
    # memory, disk and other limits
    r"out of memory|oom[- _]?kill\w*|cannot allocate memory|java heap space|OutOfMemory\w*|MemoryError",
    r"no space left|disk (?:is )?full|disk quota|read-only file ?system|low on resource|ephemeral[- ]storage",
    r"too many (?:open files|connections|requests|clients|pods|redirects)|max(?:imum)? (?:size|connections|number|retries)",
    r"(?:limit|quota|capacity|threshold)s? (?:\w+ )?(?:exceeded|reached|hit)|exceed(?:s|ed|ing)|exhausted|throttl\w+",
    r"(?:queue|pool|buffer|backlog) (?:is |was |has )?(?:full|overflow\w*|reached)|rate.?limit\w*|ResourceExhausted",
    r"no available connections?|deadlock\w*|lock (?:wait )?time(?:d )?out|could not obtain lock|insufficient",
    r"(?:usage|used|utili[sz]ation|full|capacity)\b\D{0,20}(?:9[5-9]|100)(?:\.\d+)? ?%|(?:9[5-9]|100)(?:\.\d+)?% (?:full|used)",
    # names and the network
    r"no such host|(?:could not|cannot|can't|failed to|unable to) resolve|name or service not known|ENOTFOUND|EAI_AGAIN",
    r"name ?resolution|NXDOMAIN|SERVFAIL|unknown ?host\w*|getaddrinfo",
    r"connection (?:was |is |has been )?(?:refused|reset|closed|aborted|timed out|failed|lost|error)|ECONN\w+|broken pipe",
    r"no route to host|(?:network|host|server|service|database) (?:is )?unreachable|i/o timeout|failed to establish",
    r"(?:could not|cannot|can't|failed to|unable to) (?:connect|reach|open connection)|upstream connect error",
    r"timed?[- ]?outs?|deadline exceeded|ETIMEDOUT|TimeoutE\w+|took too long|no healthy upstream|bad gateway",
    # rights and certificates
    r"permission denied|access ?denied|forbidden|unauthori[sz]ed|not authori[sz]ed|EACCES|EPERM|operation not permitted",
    r"auth(?:entication|orization)? (?:error|fail\w*)|password authentication|(?:key|user) rejected",
    r"(?:invalid|expired|wrong|bad) (?:\w+ )?(?:credentials?|password|token|api.?key|signature|secret)",
    r"x509\b.*|certificate (?:has |is |was )?(?:expired|verify|signed by|not|unknown)\w*|(?:tls|ssl).{0,20}(?:handshake|error)",
    r"CERTIFICATE_VERIFY_FAILED|cannot (?:get|list|watch|create|update|delete|patch) resource",
    # what is missing or wrong
    r"no such \w+|not found|(?:does|do|did) ?n[o']t exist|missing|is undefined|(?:is|are|was) (?:not set|unset|empty|required)",
    r"not (?:defined|configured|provided|registered|available|installed|supported)|undefined \w+",
    r"(?:cannot|can't|could not|couldn't|unable to|failed to) (?:find|locate|load|read|open|parse|decode|start|create|pull|mount|attach|write|import|execute|exec|allocate|bind|listen|get|fetch|send|acquire|deserialize|unmarshal)",
    r"ENOENT|No module named|ModuleNotFoundError|ImportError|ClassNotFound\w+|NoClassDef\w+|NoSuch\w+|KeyError",
    r"unknown (?:flag|command|field|option|column|database|manifest|instruction)|unrecogni[sz]ed|manifest unknown",
    r"invalid|malformed|syntax ?error|unexpected (?:token|end|EOF|keyword|character)|parse error|exec format error",
    r"unsupported|incompatible|(?:version|type|schema|checksum|hash|size) ?mismatch|mismatched|illegal|corrupt\w*",
    r"duplicate (?:key|entry)|(?:constraint|foreign key)\w* .{0,30}(?:violat|fail)\w*|violates|conflicts? with",
    r"already (?:in use|exists|allocated|bound)|EADDRINUSE",
    r"already (?:exclusively )?attached|multi-attach|no matches for|not (?:allowed|set|satisfied|able to)|run out of|ran out of",
    r"(?:authentication|login|upgrade) (?:is )?required|login failed|account (?:is )?locked|denied the request|misbehaving",
    r"connection slots|failed to verify|rolled back|violations?(?: of)?|(?:will|about to) expire|circuit breaker (?:is )?open",
    r"partition(?:ed)? detected|split[- ]?brain|may not be available|(?:leader|broker|coordinator|node)[ _]not[ _]available",
    # crashes
    r"panic(?:ked)?:|panicked|segmentation fault|SIGSEGV|core dumped|nil pointer|NullPointer\w*|stack ?overflow|assert(?:ion)? fail\w*",
    r"(?<![\w.$])[\w.$]*[a-z](?:Error|Exception):(?= \S)",
    # scheduling and probes
    r"untolerated taint|didn't match|had no match|unbound immediate|volume node affinity|probe failed|probe errored",
)
_COMPLAINTS = (
    r"errors?|exceptions?|fatal|fail(?:ed|ure|ures|s|ing|over)?|critical|unable|could not|couldn't|cannot|can't|"
    r"crash(?:ed|es|ing)?|abort(?:ed|ing)?|reject(?:ed|s)?|denied|unavailable|lost|dropp(?:ed|ing)|stuck|hung|dead|"
    r"killed|unexpected(?:ly)?|terminated|panic(?:ked)?|severe|emergency|degraded|slow|high latency|stale|lag(?:ging)?|expired|"
    r"(?<![\w.$])[\w.$]*[a-z](?:Error|Exception)"
)
_GRIEVANCES = (
    r"declin(?:ed|ing)|incorrect\w*|wrong\w*|block(?:ed|ing)|refus(?:ed|es|ing)|ignor(?:ed|ing)|skipp(?:ed|ing)|disabled|"
    r"overload\w*|too (?:large|long|many|much|big|small|few|slow|high|low|old|short)|leak\w*|interrupt\w*|disconnect\w*|"
    r"cancell?ed|partitioned|split[- ]?brain|no quorum|alarms?|starv\w*|not respond\w*|no response|hung up|problems?|issues?|"
    r"incomplete|outdated|obsolete|suspended|unhandled|uncaught|unresolved|unreachable|unknown|unschedulable|inaccessible|"
    r"unsuccessful\w*|overflow\w*|stopped|stall\w*|frozen|freezing|loss|missed|pressure|contention|paused|gave up|halted|"
    r"spikes?|outages?|down|offline|backlog|behind|delayed|high (?:cpu|load|memory|usage)|not able|won't|bad \w+|"
    r"(?:does|did|do|was|is|are) not|(?:does|did|do|was|is|are)n't|warn(?:ing)?|warnings"
)
_EFFECTS = (
    r"back-?off|restart(?:ed|ing|s)?|retry(?:ing)?|retries|shutting down|shut down|giving up|reconnect\w*|"
    r"exit(?:ed|ing)? (?:with )?(?:code|status)|unhealthy|not ready|waiting (?:for|to)|will be (?:restarted|retried)"
)
_BEFORE = r"(?<![A-Za-z0-9./-])"  # a word inside of a name, such as `error-page`, says nothing
_AFTER = r"(?![A-Za-z0-9]|-\w|/\w|(?-i:_[a-z]))"  # but in constants, such as `PAYMENT_FAILED`


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"{_BEFORE}(?:{'|'.join(patterns)}){_AFTER}", re.IGNORECASE)


_CAUSE = _words(*_CAUSES)
_COMPLAINT = _words(_COMPLAINTS)
_GRIEVANCE = _words(_GRIEVANCES)
_EFFECT = _words(_EFFECTS)
_NOT_WELL = re.compile(
    r"\b(?:success\w*|ok|healthy|ready|valid|available)[\"']?\s*[=:]\s*[\"']?(?:false|no)\b", re.IGNORECASE
)
_NEGATED = re.compile(
    r"\b(?:no|without(?: any)?|zero|0) (?:\w+ )?(?:errors?|failures?|exceptions?|problems?|issues?|timeouts?)\b"
    r"|\b(?:\w+[_ ])?(?:errors?|failures?|failed|exceptions?|timeouts?|err|dropped|lost|missing)(?:_\w+)?[\"']?"
    r"\s*[=:]\s*[\"']?(?:0\b|none|null|nil|false|\[\]|\{\}|NO_ERROR)"
    r"|\b(?:no|not) (?:expired|lost|dropped|missing)\b|\b0 (?:failed|lost|dropped|missing)\b",
    re.IGNORECASE,
)
_REFUSED_REQUEST = re.compile(
    r"HTTP/[\d.]+\"? (?:5\d\d|40[0134]|429)\b|\bstatus(?:[_ ]?code)?[\"']?\s*[=:]\s*[\"']?5\d\d\b|\b(?:status|error|HTTP)(?:[_ ]?code)?[\"']?(?:\s*+[=:]\s*+|\s++)[\"']?4(?:0[0-9]|13|22|29)\b|\b5\d\d (?:Internal|Bad|Service|Gateway)",
    re.IGNORECASE,
)
_LONG = re.compile(
    r"\b(?:took|takes|waits?|waited|waiting|blocked|duration|latency|elapsed|after|lag)\b.{0,60}?"
    r"\b(?:\d{5,}(?:\.\d+)? ?(?:ms|milliseconds)|\d{2,}(?:\.\d+)? ?(?:s|secs?|seconds)|\d+ ?(?:min|minutes|hours?))\b",
    re.IGNORECASE,
)  # that something took ten seconds or more
SECONDS = re.compile(
    r"\b(?:took|takes|in|for|after|waits?|waited|waiting|blocked|time|duration|latency|elapsed|lag|delay\w*)\b.{0,60}?"
    r"(?:\b\d{4,}(?:\.\d+)? ?(?:ms|milliseconds)|\b[1-9]\d*(?:\.\d+)? ?(?:s|secs?|seconds))\b",
    re.IGNORECASE,
)  # that something took a second or more: trouble only to who finds it slow
_LEVEL = re.compile(
    r"\b(?:level|lvl|severity|log\.level)[\"']?\s*[=:]\s*[\"']?(?P<field>[a-z]+)"
    r"|(?:^|[\s\[(|<])(?P<word>FATAL|CRITICAL|CRIT|ALERT|EMERG|PANIC|SEVERE|ERROR|ERR|WARN|WARNING|NOTICE|INFO|DEBUG|TRACE)"
    r"(?=[\s\])|>:,]|$)"
    r"|^(?P<glog>[EWIF])\d{4} \d\d:\d\d",
    re.IGNORECASE,
)
_LEVEL_WITHIN = 120  # characters of a line, within which its level stands
_GLOG = {"E": "error", "W": "warn", "I": "info", "F": "fatal"}
_LOUD = frozenset({"fatal", "critical", "crit", "alert", "emerg", "panic", "severe", "error", "err"})
_WARNING = frozenset({"warn", "warning"})
_CALM = frozenset({"info", "notice", "debug", "trace", "information"})


@dataclass(frozen=True, slots=True)
class Trouble:
    """That a line complains: how strongly in [0, 1], from which character on, and whether it says why."""

    strength: float
    start: int
    role: Role


def trouble(line: str) -> Trouble | None:
    """What a line of text complains of, by its level and its words; None if it does not."""
    heard = _NEGATED.sub(lambda match: " " * len(match.group()), line)
    level = level_of(heard)
    if cause := _CAUSE.search(heard):
        complains = level in _LOUD or _COMPLAINT.search(heard) is not None
        strength = 0.82 if complains else 0.7
        return Trouble(_toned(strength, level), cause.start(), Role.CAUSE)
    if served := _REFUSED_REQUEST.search(heard):
        return Trouble(_toned(0.55, level), served.start(), Role.EFFECT)
    said = heard if level is None else _LEVEL.sub(" ", heard, count=1)
    if complaint := _COMPLAINT.search(said) or _NOT_WELL.search(said):
        effect = _EFFECT.search(said) is not None
        strength = 0.45 if effect else 0.65 if level in _LOUD else 0.5
        return Trouble(_toned(strength, level), complaint.start(), Role.EFFECT if effect else Role.CAUSE)
    if slow := _LONG.search(said):
        return Trouble(0.4, slow.start(), Role.CAUSE)
    if grievance := _GRIEVANCE.search(said):
        return Trouble(_toned(0.6 if level in _LOUD else 0.3, level), grievance.start(), Role.CAUSE)
    if effect := _EFFECT.search(said):
        return Trouble(_toned(0.35 if level in _LOUD else 0.25, level), effect.start(), Role.EFFECT)
    if slow := SECONDS.search(said):
        return Trouble(0.18, slow.start(), Role.CAUSE)
    if level in _LOUD:
        return Trouble(0.55, 0, Role.CAUSE)
    return Trouble(0.18, 0, Role.CAUSE) if level in _WARNING else None


def telling(text: str) -> int:
    """Where the last reason in a text begins, 0 without one: errors that wrap each other end with the innermost."""
    return max((found.start() for found in _CAUSE.finditer(text)), default=0)


def _toned(strength: float, level: str | None) -> float:
    """A level says how the program itself took it."""
    return strength * (0.85 if level in _WARNING else 0.4 if level in _CALM else 1.0)


def level_of(line: str) -> str | None:
    """The level of a log line in lower case, None if it has none."""
    found = _LEVEL.search(line[:_LEVEL_WITHIN])
    if found is None:
        return None
    return _GLOG[found["glog"].upper()] if found["glog"] else (found["field"] or found["word"]).lower()
