"""Recognise an alert in a message that a bot posts, by its shape: there is no parser of any sender.

Its state is in its words, before its signs, before its colours: a sender may leave the colour red when all is well, and
list what works with green signs while something else does not. Its identity is what stays the same while the state
changes: the id in its link, or else its title without state and numbers, with the labels that name a place.
"""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qsl, urlsplit

from adapters.alerts import fields
from adapters.alerts.generic import MEANING_OF
from adapters.alerts.workload import NAMED, NODES
from core.model.alert import AlertEnd, AlertStatus, EndReason
from core.model.posted import Posted, PostedKind, Recognised
from core.model.text import name_key

FIRST = 4  # lines in which a title and a state are looked for
MAX_LINE = 400  # characters read of a line
MAX_TITLE = 200  # characters
SURE = 3  # pieces of evidence that make an alert

WORDS = dict(MEANING_OF) | dict.fromkeys(
    "alarm alarming ongoing activated started breached fires raised crit unhealthy offline unreachable".split(),
    "firing",
)
WORDS |= dict.fromkeys("ended restored inactive online good".split(), "resolved")
WEAK = frozenset("new create created open success test ping update changed removed error unknown active good".split())
"""Words that are a state in a field or in brackets, and too common for one in a sentence."""

ENDS = {"resolved": EndReason.CURED}
STATE_NAMES = frozenset(
    {"state", "status", "state change", "monitor condition", "alert state", "condition state", "alert status"}
)
SEVERITY_NAMES = (*fields.SEVERITY_LABELS, "urgency", "importance")
TITLE_NAMES = ("alertname", "alert_name", "alert_rule", "check", "rule")
OTHER_TITLES = (*TITLE_NAMES, "service", "policy", "monitor", "summary", "host")
SERVICE_NAMES = ("affected_service", "affected_resource", "impacted_entities", "application", "project")
PLACE_NAMES = (*NAMED, *NODES, *fields.PLACE_LABELS, "instance", "pod", "container", "entity", "check", "job")
PLACES = frozenset(PLACE_NAMES) - {"alertname", "team", "owner"}

SIGNS = {
    "firing": "🔴 🚨 🔥 ❌ ‼️ ❗ ⛔ 🟥 🟠 ⚠️ :red_circle: :rotating_light: :fire: :x: :bangbang: :no_entry: :warning: "
    ":exclamation: :large_orange_circle: :bomb: :boom:",
    "resolved": "✅ 🟢 💚 ✔️ 🟩 :white_check_mark: :large_green_circle: :heavy_check_mark: :green_heart: :tada:",
}
SIGN_OF = {sign: state for state, signs in SIGNS.items() for sign in signs.split()}
COLOURS = {"danger": "firing", "attention": "firing", "warning": "firing", "good": "resolved"}
WARM, GREEN = (55, 335), (80, 175)  # degrees of hue

GENERIC = frozenset(
    "a an the alert alerts alarm notification notifications notice monitoring monitor service host issue issues problem "
    "incident additional info information description details message event name new via api by for of on".split()
)
OTHER_WORDS = {
    PostedKind.BUILD: "build builds pipeline workflow job branch commit coverage tests gate lint compile ci pull merge merged pr",
    PostedKind.CHANGE: "deploy deploys deployed deploying deployment release released releases rollout rollback synced sync "
    "revision manifest manifests applied reconciliation apply upgraded migration",
    PostedKind.OTHER: "bug story task epic ticket digest report week weekly daily month monthly summary recap review standup "
    "yesterday morning heartbeat reminder poll newsletter meeting",
}
NO_ALERTS = frozenset({"watchdog", "deadmansswitch", "testalert"})  # fire although nothing is wrong
BUILD_NAMES = frozenset({"branch", "commit", "pipeline", "revision", "pull_request"})  # fields
TROUBLE = frozenset(
    "fail fails failed failing failure error errors critical down timeout refused unreachable late lost exceeded crash "
    "crashed degraded outage code exception missing investigating".split()
)
OBJECTS = frozenset(
    "alert alerts alerting alertid alarm alarms monitor monitors incident incidents issue issues problem problems trigger "
    "triggerid check checks rule rules dashboard host service chart".split()
)
OCCURRENCES = frozenset("incident incidents issue issues problem problems".split())
VIEWS = frozenset("view show list new detail details edit index home".split())
"""Nouns in the path of a link: of what has an identity, of what occurs once, and of pages."""

_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,60})[\])]")
_COUNT = re.compile(r"\b(firing|resolved)\s*:\s*(\d{1,6})", re.IGNORECASE)
_BEGINS = re.compile(
    r"^\W*(?P<word>[a-z]+)(?P<noun>\s+(?:problem|alert|alarm|incident|issue))?(?:\s++in\s++[\dhmsd ]++)?\s*+(?:$|[:\-–—|#])",
    re.IGNORECASE,
)
_PREDICATE = re.compile(
    r"\b(?:(?:has|have)\s+(?:been\s+)?|is\s+(?:now\s+)?|was\s+|are\s+|went\s+|as\s+|now\s+|state\W+)(?P<word>[a-z]+)\b"
    r"|\b(?:alert|alarm|issue|incident|problem|service|host)\s+(?P<after>[a-z]+)\b|(?<!\w)(?P<verb>acknowledged|resolved|recovered|reopened|triggered|fired)\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^\W*(?P<name>[A-Za-z][\w .()/-]{0,38}?)\s*(?P<sign>:|=|\s=)\s+(?P<value>\S.*)$")
_LABEL = re.compile(r"(?<![\w/])([A-Za-z][\w.-]{0,39}):([^\s,{}:/][^\s,{}]{0,99})")
_SIGN = re.compile(r":[a-z0-9_+-]{2,40}:|[\U0001F300-\U0001FAFF\u2600-\u27BF\u203C\u2049]\uFE0F?")
_NUMBERS = re.compile(
    r"(?<![\w.,:-])[#=<>~±]?\s?\d[\d.,:]*+\s?(?:%|[kmgt]?i?b|ms|[smhd]|min|minutes?|hours?|seconds?)?(?![\w-])",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"]+")
_ARROW = re.compile(r"\s(?:→|->|⇒|=>)\s")
_BRACES = re.compile(r"\{([^{}]*)\}")
_SPACED = re.compile(r"(?<!\w)(\w++): (\S++)")
_NO_WORD = re.compile(r"\W+")
_HEX = re.compile(r"[0-9a-f]{6}")
_PART = re.compile(r"[/:?&=#]")
_STEP = re.compile(r"[/:?]")
_GAP = re.compile(r"\s{2,}")
_WORD = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class _State:
    word: str  # as sent; empty if it was in a sign or a colour
    meaning: str
    count: int = 1  # alerts of which it tells
    by_words: bool = True
    line: str = ""  # that tells it


def recognise(posted: Posted) -> Recognised:
    """Return the meaning of a message. A reply needs no evidence: the first message of its thread names its alert."""
    labels, lines = _labels(posted)
    state = _state(labels, lines) or _shown(posted, lines)
    name = _title(posted, labels, lines, state)
    shape = fields.digest(posted.sender, *sorted(labels), *_WORD.findall(_bare(name).lower())[:3])
    kind = _kind(posted, labels, lines, state)
    members = _members(posted) if state is not None and state.count > 1 else {}
    own = {key: value for key, value in labels.items() if key not in members}
    base = _identity(posted, name, own if not members else {})
    stable = {key: value for key, value in own.items() if key in PLACES}
    keys = (base, *(_keyed(base, {**stable, label: value}) for label, values in members.items() for value in values))
    if not members and not _occurs_once(posted):
        keys = (_keyed(base, stable), base)
    unclear = "updated" if posted.place.thread or posted.revision else "firing"  # a note is no new alert
    meaning = state.meaning if state is not None and (state.by_words or not posted.place.thread) else unclear
    event = fields.AlertEvent(
        group=keys[0],
        title=name,
        status=_STATUSES.get(meaning) or AlertEnd(word=meaning),
        severity=_severities(labels, lines, state),
        labels=own,
        event_id=f"{posted.place.channel}:{posted.message_id}:{posted.revision}",
        service=_service(labels),
        description="\n".join(posted.lines),
        url=next((address for _, address in (*posted.links, *_addresses(posted.lines))), ""),
        runbook=next((address for text, address in posted.links if "runbook" in text.lower()), ""),
        as_of=posted.at,
        by="" if meaning == "acknowledged" else None,
    )
    delivery = event.delivery(f"chat:{posted.sender}", b"", posted.at, ends=ENDS, system=posted.sender_name)
    omitted = state.count - 1 if state is not None else 0
    return Recognised(kind, shape, name, replace(delivery, omitted=omitted), keys)


_STATUSES: dict[str, fields.State] = {
    "firing": AlertStatus.FIRING,
    "acknowledged": AlertStatus.FIRING,
    "updated": AlertStatus.UPDATED,
}


def _labels(posted: Posted) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a message as labels, and its lines that are none."""
    labels, lines = dict[str, str](), list[str]()
    for name, value in posted.fields:
        labels.setdefault(_key(name), value)
    for line in posted.lines:
        pairs = [(_PAIR.match(_SIGN.sub("", part).strip()), part) for part in _GAP.split(line[:MAX_LINE])]
        for pair, part in pairs:
            if pair is not None and not _begins(pair[0]):
                labels.setdefault(_key(pair["name"]), pair["value"].strip())
            else:
                lines.append(part)
    tagged = [value for name, value in labels.items() if "tag" in name or "label" in name]
    tagged += [part for line in lines[:FIRST] for part in _BRACES.findall(line)]
    for text in tagged:
        for name, value in (*_LABEL.findall(text), *_SPACED.findall(text)):
            labels.setdefault(_key(name), value)
    return labels, lines


def _key(name: str) -> str:
    return _NO_WORD.sub("_", name.strip().lower()).strip("_")


def _meaning(word: str, *, weak: bool = True) -> str | None:
    plain = name_key(word)
    meaning = WORDS.get(plain.replace(" ", "")) if weak or plain not in WEAK else None
    return str(meaning) if meaning is not None else None


def _begins(text: str) -> re.Match[str] | None:
    """Return the state with which a text begins."""
    match = _BEGINS.match(text)
    return match if match is not None and _meaning(match["word"], weak=False) else None


def _state(labels: Mapping[str, str], lines: Sequence[str]) -> _State | None:
    """Return the state that the words tell: in brackets, in a field, at the beginning, as a predicate."""
    for line in lines[:FIRST]:
        counts = {name.lower(): int(number) for name, number in _COUNT.findall(line)}
        if counts:
            word = "firing" if "firing" in counts else "resolved"
            return _State(word, word, counts[word], line=line)
        for inside in _BRACKETS.findall(line):
            word = _SIGN.sub("", inside).strip()
            if meaning := _meaning(word):
                return _State(word, meaning, line=line)
    stated = [value for name, value in labels.items() if name.replace("_", " ") in STATE_NAMES]
    for value in (*stated, *(line for line in lines if _ARROW.search(line))):
        word = _ARROW.split(value)[-1].strip(" .")
        if meaning := _meaning(word):
            return _State(word, meaning)
    for line in lines[:FIRST]:
        plain = _SIGN.sub("", line).strip()
        if begin := _begins(plain):
            return _State(begin["word"], str(_meaning(begin["word"])), line=line)
        for match in _PREDICATE.finditer(plain):
            word = match["word"] or match["after"] or match["verb"]
            if meaning := _meaning(word, weak=bool(match["after"])):
                return _State(word, meaning, line=line)
    return None


def _shown(posted: Posted, lines: Sequence[str]) -> _State | None:
    """Return the state that signs show, or else the colours."""
    signs = [SIGN_OF.get(sign) or SIGN_OF.get(f"{sign}\ufe0f") for line in lines[:1] for sign in _SIGN.findall(line)]
    shown = next(filter(None, (*signs, *map(_colour, posted.colours))), None)
    return _State("", shown, by_words=False) if shown else None


def _colour(colour: str) -> str | None:
    if _HEX.fullmatch(colour) is None:
        return COLOURS.get(colour)
    red, green, blue = (int(colour[start : start + 2], 16) / 255 for start in (0, 2, 4))
    hue, _, saturation = colorsys.rgb_to_hls(red, green, blue)
    degrees = hue * 360
    if saturation < 0.3:
        return None
    return (
        "firing"
        if degrees <= WARM[0] or degrees >= WARM[1]
        else "resolved"
        if GREEN[0] <= degrees <= GREEN[1]
        else None
    )


def _title(posted: Posted, labels: Mapping[str, str], lines: Sequence[str], state: _State | None) -> str:
    """Return the first words that name something: not only the sender, a state or a kind of message."""
    named = next((labels[name] for name in TITLE_NAMES if labels.get(name)), "")
    own = set(_WORD.findall(posted.sender_name.lower()))
    linked = [text for text, _ in posted.links[:1] if text in posted.lines]
    other = [labels[name] for name in OTHER_TITLES if labels.get(name)][:1]
    text = named or next(
        (
            line
            for line in (state.line if state else "", *lines[:1], *linked, *other, *lines[1:FIRST])
            if _says(line, own)
        ),
        "",
    )
    title = " ".join(_stateless(text or next(iter(posted.lines), "")).split())
    return (title.removeprefix(state.word).lstrip() if state and state.word else title)[:MAX_TITLE] or title


def _says(line: str, own: set[str]) -> bool:
    words = _WORD.findall(_SIGN.sub("", line).lower())
    return any(word not in GENERIC and word not in own and _meaning(word) is None for word in words)


def _stateless(text: str) -> str:
    """Return a title without the state at its beginning or in brackets, and without signs."""
    plain = _SIGN.sub(" ", text)
    plain = _BRACKETS.sub(
        lambda match: " " if _COUNT.search(match[1]) or _meaning(match[1].strip()) else match[0], plain
    ).strip()
    begin = _begins(plain)
    return (plain[begin.end() :] if begin and begin.end() < len(plain) else plain).strip(" :-–—|")


def _bare(title: str) -> str:
    """Return what stays of a title while the state changes: its subject before a predicate, without numbers."""
    match = next(
        (each for each in _PREDICATE.finditer(title) if _meaning(each["word"] or each["after"] or each["verb"])), None
    )
    subject = title[: match.start()] if match is not None and match.start() > 2 else title
    return " ".join(_NO_WORD.split(_NUMBERS.sub(" ", subject).casefold())).strip()


def _identity(posted: Posted, title: str, labels: Mapping[str, str]) -> str:
    linked = _id_in(posted.links[0][1]) if posted.links else ""
    return linked or _bare(title) or next(iter(labels.values()), "")


def _keyed(base: str, labels: Mapping[str, str]) -> str:
    return " ".join((base, *(f"{name}={value}" for name, value in sorted(labels.items()))))


def _occurs_once(posted: Posted) -> bool:
    return (
        bool(posted.links)
        and not OCCURRENCES.isdisjoint(_nouns(posted.links[0][1]))
        and bool(_id_in(posted.links[0][1]))
    )


def _nouns(address: str) -> list[str]:
    url = urlsplit(address)
    return _PART.split(f"{url.path}/{url.fragment}/{url.query}".lower())


def _id_in(address: str) -> str:
    """Return the part of an address that identifies what an alert is about; empty if it leads only to a list."""
    try:
        url = urlsplit(address)
        pairs = parse_qsl(url.query)
    except ValueError:
        return ""
    path = [part for part in _STEP.split(f"{url.path}/{url.fragment}") if part]
    nouns = [number for number, part in enumerate(path) if part.lower() in OBJECTS]
    parts = (
        [part for part in path[nouns[0] + 1 :] if part.lower() not in VIEWS | OBJECTS and "=" not in part]
        if nouns
        else []
    )
    parts += [
        f"{name}={value}" for name, value in pairs if name.lower() in OBJECTS or (nouns and parts and name == "group")
    ]
    return f"{url.hostname}/{'/'.join(parts)}" if parts else ""


def _addresses(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    return (("", address.rstrip(".,;)")) for line in lines for address in _ADDRESS.findall(line))


def _members(posted: Posted) -> dict[str, list[str]]:
    """Return the labels by which the alerts of a group differ, with their values."""
    values: dict[str, list[str]] = {}
    for line in posted.lines:
        if (pair := _PAIR.match(line)) and _key(pair["name"]) in PLACES:
            values.setdefault(_key(pair["name"]), []).append(pair["value"].strip())
    return {name: list(dict.fromkeys(each)) for name, each in values.items() if len(set(each)) > 1}


def _severities(labels: Mapping[str, str], lines: Sequence[str], state: _State | None) -> list[str]:
    named = [labels[name] for name in SEVERITY_NAMES if labels.get(name)]
    inside = [
        text for line in lines[:FIRST] for text in _BRACKETS.findall(line) if state is None or state.word not in text
    ]
    return [*named, *inside, state.word if state is not None else ""]


def _service(labels: Mapping[str, str]) -> str:
    named = next((labels[name] for name in SERVICE_NAMES if labels.get(name)), "")
    return "" if any(labels.get(name) for name in NAMED) else named.split(",")[0].strip()


def _kind(posted: Posted, labels: Mapping[str, str], lines: Sequence[str], state: _State | None) -> PostedKind:
    address = next((address for _, address in posted.links), "")
    text = " ".join(
        (*(lines[:2] or posted.lines[:1]), *(text for text, _ in posted.links[:1]), *(BUILD_NAMES & labels.keys()))
    )
    words = {*_WORD.findall(text.lower()), *_nouns(address)}
    if (
        not words.isdisjoint(NO_ALERTS)
        or fields.is_for_nobody(labels)
        or "none" in {part.lower() for line in lines[:1] for part in _BRACKETS.findall(line)}
    ):
        return PostedKind.OTHER
    other = next((kind for kind, others in OTHER_WORDS.items() if not words.isdisjoint(others.split())), None)
    evidence = _evidence(posted, labels, state)
    if other is not None and evidence <= SURE:
        is_clear = evidence < SURE or other is PostedKind.OTHER or not BUILD_NAMES.isdisjoint(labels)
        return other if is_clear else PostedKind.UNSURE
    if state is not None and evidence >= SURE:
        return PostedKind.ALERT
    is_firing = state is not None and state.meaning == "firing"
    return PostedKind.UNSURE if is_firing or not words.isdisjoint(TROUBLE) else PostedKind.OTHER


def _evidence(posted: Posted, labels: Mapping[str, str], state: _State | None) -> int:
    """Return the number of signs of an alert: a state in words counts twice."""
    if state is None:
        return 0
    address = next((address for _, address in posted.links), "")
    nouns = {*_nouns(address), *_NO_WORD.split(urlsplit(address).hostname or "")}
    sender = set(_WORD.findall(posted.sender_name.lower()))
    shown = {_colour(colour) for colour in posted.colours} | {
        SIGN_OF.get(sign) for line in posted.lines[:1] for sign in _SIGN.findall(line)
    }
    return sum(
        (
            2 * state.by_words,
            any(labels.get(name) for name in SEVERITY_NAMES),
            not nouns.isdisjoint(OBJECTS | {"alerting", "monitoring", "alertmanager"}),
            any(
                each.startswith(("alert", "monitor", "alarm")) or each.endswith(("alerts", "monitoring"))
                for each in sender
            ),
            len(PLACES & labels.keys()) > 1,
            state.by_words and state.meaning in shown,
        )
    )
