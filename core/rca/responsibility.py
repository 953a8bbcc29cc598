"""Who can put a fault right, by the words in which software complains of it (RCAgent, section 4.2.1)."""

from __future__ import annotations

import re

from core.rca.trajectory import Responsibility

_PLATFORM = (
    r"unschedulable|FailedScheduling|insufficient (?:cpu|memory|ephemeral|pods)|untolerated taint|node affinity|"
    r"NotReady|DiskPressure|MemoryPressure|PIDPressure|evict\w*|preempt\w*|no space left|disk (?:is )?full|"
    r"read-only file ?system|FailedMount|FailedAttachVolume|multi-attach|unbound immediate|persistentvolumeclaim|"
    r"quota|SERVFAIL|NXDOMAIN|network is unreachable|no route to host|cordoned"
)
_DEPENDENCY = (
    r"connection (?:refused|reset|timed out|closed|aborted)|ECONN\w+|no such host|name ?resolution|upstream|no healthy|bad gateway|HTTP[ /][\d. ]*50[234]|"
    r"(?:cannot|can't|could not|unable to|failed to) (?:connect|reach)|does not answer|no available connections?|"
    r"too many (?:connections|clients)|connection slots|broker|deadline exceeded|timed?[- ]?out"
)
_OWN_CODE = (
    r"OOMKilled|out of memory|OutOfMemory\w*|panic|segmentation fault|nil pointer|NullPointer\w*|[a-z](?:Error|Exception)\b|"
    r"syntax error|traceback|stack ?overflow|command not found|cannot be executed|exec format error|no such file|"
    r"configmap|secret|environment variable|(?:is|are) (?:not set|required)|unknown (?:flag|command|option)|"
    r"ImagePull\w*|manifest unknown|image|probe failed|selector|assert\w*|test(?:s)? failed|compil\w+|No module named|"
    r"migration|column|relation .* does not exist|CrashLoopBackOff|exited with code"
)
_USER = (
    r"bad request|HTTP[ /][\d. ]*4(?:00|13|22|29)|invalid (?:input|request|parameter|payload|email|card)|malformed request|"
    r"validation failed|request (?:entity )?too large|too many requests|rate limit(?:ed)? (?:for )?(?:user|client|customer)"
)

_BY_WORDS = tuple(
    (responsibility, re.compile(rf"(?<![A-Za-z])(?:{words})", re.IGNORECASE))
    for responsibility, words in (
        (Responsibility.PLATFORM, _PLATFORM),
        (Responsibility.USER, _USER),
        (Responsibility.DEPENDENCY, _DEPENDENCY),
        (Responsibility.OWN_CODE, _OWN_CODE),
    )
)


def responsibility_of(text: str) -> Responsibility | None:
    """By the first complaint in a text that tells; None where none does.

    The first one counts, since a text that is told of a cause begins with it; at the same place the order is that of
    what is hardest to mistake.
    """
    found = [
        (match.start(), place, who) for place, (who, words) in enumerate(_BY_WORDS) if (match := words.search(text))
    ]
    return min(found)[2] if found else None
