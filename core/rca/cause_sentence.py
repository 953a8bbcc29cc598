"""The likely cause in one sentence that a colleague would say: who changed what and when, and what followed.

Each part may be missing. Times are in UTC, as in the message around it; times and numbers are those of the evidence, and
nothing is said that it does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.knowledge.terms import terms
from core.model.incident import EvidenceKind, Incident
from core.ports import Change
from core.rca.signals import Signal

MAX_TITLE = 110  # characters of a change's title
MAX_DETAIL = 160  # characters of a sentence of its detail
MAX_SAID = 60  # characters of a log message
SOMEBODY = "Somebody"  # who made a change that names no author

DID = {
    "commit": "changed the code of",
    "config": "changed the configuration of",
    "deploy": "deployed",
    "flag": "switched a flag of",
    "infrastructure": "changed the infrastructure of",
    "migration": "migrated the database of",
    "rotation": "rotated a key of",
}
"""What somebody did to a service, by kind of change."""
LEVELS = {
    "CRITICAL": "critical error",
    "ERROR": "error",
    "FATAL": "fatal error",
    "PANIC": "panic",
    "SEVERE": "error",
    "WARN": "warning",
    "WARNING": "warning",
}
"""What a log message is called, by its level."""
SWITCHED = frozenset({"on", "off", "true", "false", "enabled", "disabled"})  # values of a switch

_SET_TO = re.compile(
    r"(?<![\w./-])(?P<name>[\w./-]{0,80}\w)[:=]?\s{1,4}(?P<before>[^\s,;()]{1,60})\s{0,4}(?:->|→)\s{0,4}"
    r"(?P<after>[^\s,;()]{1,60})"
)
_DIFF_LINE = re.compile(r"(?P<sign>[+-])\s*[\"']?(?P<name>[\w./-]{0,80}\w)[\"']?\s*[:=]\s*(?P<value>\S{1,40}?),?\s*")
_SENTENCE_END = re.compile(r"(?<=[.!?;])\s+")
_NUMBER = re.compile(r"(?P<value>-?\d+(?:\.\d+)?)\s*(?P<unit>[a-zA-Z%]*)")
_SINCE = re.compile(r" since \d\d:\d\d(?::\d\d)?$")
_SAID = re.compile(r"“(?P<said>[^“”]*)”")


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that a change gave another value. Untrusted."""

    name: str
    before: str
    after: str

    @property
    def moved(self) -> str:
        """“lowered”, “raised”, “switched” or “changed”."""
        if {self.before.casefold(), self.after.casefold()} <= SWITCHED:
            return "switched"
        before, after = _NUMBER.fullmatch(self.before), _NUMBER.fullmatch(self.after)
        if before is None or after is None or before["unit"] != after["unit"]:
            return "changed"
        return "lowered" if float(after["value"]) < float(before["value"]) else "raised"


def changed_sentence(
    change: Change,
    signals: Sequence[Signal],
    incident: Incident,
    first_sign: datetime,
    *,
    at: datetime | None = None,
    diff: str = "",
) -> str:
    """Return the sentence of a cause that is a change.

    `signals` are those that the change explains, the most telling first; `at` is when it came into force, if that is not
    when it was made. `diff` is a unified diff of it.
    """
    at = at or change.at
    when = clock_time(at, incident.started_at)
    author = " ".join(change.author.split()) or SOMEBODY
    setting = telling_setting(change, signals, diff)
    if setting is not None:
        of = f" of {change.service}" if change.service not in ("", incident.service) else ""
        done = f"{setting.moved} `{setting.name}`{of} from {setting.before} to {setting.after} at {when}"
        told = f"{author} {done} ({change.id})"
    else:
        did = DID.get(change.kind, f"made a change ({change.kind}) to")
        told = f"{author} {did} {change.service or incident.service} at {when} ({change.id}: {_what(change, signals)})"
    restated = f" from {setting.before} to {setting.after}" if setting is not None else "\n"
    followed = [signal for signal in signals if not _SINCE.sub("", signal.what).endswith(restated)]
    return f"{told}; {_followed(at, followed or signals, first_sign, incident.service)}."


def telling_setting(change: Change, signals: Iterable[Signal], diff: str = "") -> Setting | None:
    """Return the setting of a change that shares most words with the signs, the first one if none does.

    None where neither its words nor its diff name any.
    """
    found = [
        Setting(match["name"], match["before"], match["after"].rstrip("."))
        for match in _SET_TO.finditer(f"{change.title}; {change.detail}")
        if _is_setting(match)
    ]
    found += _set_in(diff)
    signs = frozenset(term for signal in signals for term in signal.terms)
    return max(found, key=lambda setting: len(signs.intersection(terms(setting.name))), default=None)


def _set_in(diff: str) -> Iterator[Setting]:
    """The settings that a unified diff gives another value: the same name in a line that goes and in one that comes."""
    gone: dict[str, str] = {}
    for line in diff.splitlines():
        if (match := _DIFF_LINE.fullmatch(line)) is None:
            continue
        name, value = match["name"], match["value"].strip("\"'")
        if match["sign"] == "-":
            gone[name] = value
        elif (before := gone.pop(name, value)) != value:
            yield Setting(name, before, value)


def in_words(signal: Signal, service: str) -> str:
    """Return what a sign says, in the past tense and without its time; a log message is cut to what it begins with.

    A metric names its service where that is not `service`.
    """
    what = _SINCE.sub("", signal.what).replace(" creeps up ", " began to creep up ")
    if signal.evidence.kind is EvidenceKind.METRIC and signal.subject and signal.service != service:
        return what.replace(signal.subject, f"{signal.subject} of {signal.service}", 1)
    if signal.evidence.kind is not EvidenceKind.LOG:
        return what
    said = _SAID.search(what)
    if said is None:
        return what
    quote, times = f"“{_cut(said['said'], MAX_SAID)}”", what[said.end() :].strip()
    kind, _, level = what[: said.start()].strip().rpartition(" ")
    if not level:
        return f"{quote} {times} in the log of {signal.service}"
    named = LEVELS.get(level, "message")
    if kind != "new":
        return f"{signal.service} logged the {named} {quote} {times}, more than usual"
    return f"{signal.service} logged a new {named}{'' if times == 'once' else f' {times}'}, {quote}"


def clock_time(at: datetime, day: datetime) -> str:
    """Return “09:19”, in UTC, with the date where it is another than that of `day`: “09:19 on 2 March”."""
    at, day = at.astimezone(UTC), day.astimezone(UTC)
    year = "" if at.year == day.year else f" {at.year}"
    return f"{at:%H:%M}" if at.date() == day.date() else f"{at:%H:%M} on {at.day} {at:%B}{year}"


def _is_setting(match: re.Match[str]) -> bool:
    """Whether a name of a setting stands there, and no word of a sentence."""
    name, before, after = match["name"], match["before"], match["after"].rstrip(".")
    has_shape = any(mark in name for mark in "._/-") or not (name.islower() or name.istitle())
    are_numbers = bool(_NUMBER.fullmatch(before) and _NUMBER.fullmatch(after))
    are_switched = has_shape and {before.casefold(), after.casefold()} <= SWITCHED
    return before != after and (are_numbers or are_switched or (has_shape and "." in name))


def _what(change: Change, signals: Sequence[Signal]) -> str:
    """The title of a change, or a sentence of its detail that shares more words with the signs."""
    title = " ".join(change.title.split()).removeprefix(f"{change.service}:").strip()
    detail = telling(change.detail, signals)
    signs = _words(signals)
    says_more = len(signs.intersection(terms(detail))) > len(signs.intersection(terms(title)))
    return _cut(detail if says_more else title, MAX_TITLE).rstrip(".")


def telling(detail: str, signals: Iterable[Signal]) -> str:
    """Return the sentence of a change's detail that shares most words with the signs, the first one if none does."""
    signs = _words(signals)
    sentences = _SENTENCE_END.split(" ".join(detail.split()))
    best = max(sentences, key=lambda sentence: len(signs.intersection(terms(sentence))))
    return best.rstrip(".;") if len(best) <= MAX_DETAIL else best[: MAX_DETAIL - 1] + "…"


def _words(signals: Iterable[Signal]) -> frozenset[str]:
    return frozenset(term for signal in signals for term in signal.terms)


def _followed(at: datetime, signals: Sequence[Signal], first_sign: datetime, service: str) -> str:
    signs = _telling(signals)
    if not signs:
        return f"{_later(first_sign - at)} the first sign showed"
    return f"{_later(signs[0].since - at)} {in_words(signs[0], service)}"


def _telling(signals: Sequence[Signal]) -> list[Signal]:
    """Those that complain; of metrics and logs the metrics first, since they say how much."""
    return sorted((signal for signal in signals if signal.trouble), key=_is_log)


def _is_log(signal: Signal) -> bool:
    return signal.evidence.kind is EvidenceKind.LOG


def _later(delay: timedelta) -> str:
    minutes = round(delay.total_seconds() / 60)
    if minutes < 1:
        return "at once"
    return f"{minutes} min later" if minutes < 120 else f"{minutes // 60} h later"


def _cut(text: str, limit: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else f"{text[: limit - 1].rstrip()}…"
