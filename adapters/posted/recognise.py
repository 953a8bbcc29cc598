"""Recognise an alert in a message that a bot posts, by its shape: there is no parser of any sender.

Its state is in its words, before its signs, before its colours: a sender may leave the colour red when all is well, and
list what works with green signs while something else does not. Its identity is what stays the same while the state
changes: the id in its link, or else its title without state and numbers, with the labels that name a place, or a thing as
machines do.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from adapters.alerts import fields
from adapters.alerts.generic import MEANING_OF, STATUSES
from adapters.alerts.workload import NAMED, NODES
from core.model.alert import AlertEnd, EndReason, Posted, PostedKind, Recognised
from core.model.text import name_key

FIRST = 4  # lines in which a title and a state are looked for
MAX_LINE = 400  # characters read of a line
MAX_TITLE = 200  # characters
SURE = 3  # pieces of evidence that make an alert

WORDS = {
    **{str(word): str(meaning) for word, meaning in MEANING_OF.items()},
    **dict.fromkeys(
        "alarm alarming ongoing activated started breached fires raised crit unhealthy offline unreachable degraded".split(),
        "firing",
    ),
    **dict.fromkeys("ended restored inactive online good".split(), "resolved"),
}
# Words that are a state in a field or in brackets, and too common for one in a sentence.
WEAK = frozenset("new create created open success test ping update changed removed error unknown good".split())
# Words that are the state of something that is watched, and of nothing else.
HEALTH = frozenset("up down online offline healthy unhealthy degraded unreachable ok critical".split())

STATE_NAMES = frozenset({"state", "status", "condition", "change", "type"})  # the last word of a field's name
SEVERITY_NAMES = (*fields.SEVERITY_LABELS, "urgency", "importance")
TITLE_NAMES = ("alertname", "alert_name", "alert_rule", "check", "rule")
OTHER_TITLES = (*TITLE_NAMES, "service", "policy", "monitor", "summary", "host")
SERVICE_NAMES = ("affected_service", "affected_resource", "impacted_entities", "application", "project")
PLACES = frozenset(
    {*NAMED, *NODES, *fields.PLACE_LABELS, *"instance pod container device entity check job".split()}
) - {"alertname", "team", "owner"}

SIGNS = {
    "firing": "🔴 🚨 🔥 ❌ ‼️ ❗ ⛔ 🟥 🟠 ⚠️ :red_circle: :rotating_light: :fire: :x: :bangbang: :no_entry: :warning: "
    ":exclamation: :large_orange_circle: :bomb: :boom:",
    "resolved": "✅ 🟢 💚 ✔️ 🟩 :white_check_mark: :large_green_circle: :heavy_check_mark: :green_heart: :tada:",
}
SIGN_OF = {sign.rstrip("\ufe0f"): state for state, signs in SIGNS.items() for sign in signs.split()}
COLOURS = {"danger": "firing", "attention": "firing", "warning": "firing", "good": "resolved"}

GENERIC = frozenset(
    "a an the alert alerts alarm notification notifications notice monitoring monitor service host issue issues problem "
    "incident additional info information description details message event name new via api by from for of on in after "
    "automatically".split()
)
OTHER_WORDS = {
    PostedKind.BUILD: "build builds pipeline pipelines workflow job branch commit coverage tests gate lint compile ci pull "
    "merge merged pr",
    PostedKind.CHANGE: "deploy deploys deployed deploying deployment deployments release releases released rollout rollback "
    "synced sync revision manifest manifests applied reconciliation apply upgraded migration",
    PostedKind.OTHER: "bug story task epic ticket tickets digest report week weekly daily month monthly summary recap review "
    "standup yesterday morning heartbeat reminder poll newsletter meeting",
}
NO_ALERTS = frozenset({"watchdog", "deadmansswitch", "testalert"})  # fire although nothing is wrong
BUILD_NAMES = frozenset({"branch", "commit", "pipeline", "revision", "pull_request"})  # fields
TROUBLE = frozenset(
    "fail fails failed failing failure error errors critical down timeout refused unreachable late lost exceeded crash "
    "crashed degraded outage code exception missing investigating".split()
)
# Nouns in a link: of what is watched, of what occurs once, and of pages.
WATCHED = frozenset(
    "alert alerts alerting alertmanager alertid alarm alarms monitor monitors monitoring trigger triggerid check checks rule "
    "rules dashboard host site service chart".split()
)
OCCURRENCES = frozenset("incident incidents issue issues problem problems".split())
OBJECTS = WATCHED | OCCURRENCES
VIEWS = frozenset("view show list new detail details edit index home".split())

_BRACKETS = re.compile(r"[\[(]([^\[\]()]{1,60})[\])]")
_COUNT = re.compile(r"\b(firing|resolved)\s*:\s*(\d{1,6})", re.IGNORECASE)
_SEGMENT = re.compile(r"(?<!\s)\s*+[:|](?=\s|$)\s*|(?<!\s)\s++(?:[-–—]\s++|(?=#))")
_PREDICATE = re.compile(
    r"\b(?:(?:has|have|been|is|was|are|went|came|as|now)\s++|state\W++)(?:(?:been|now|back|again|to)\s++)*(?P<word>[a-z]+)\b"
    r"|\b(?:alert|alarm|issue|incident|problem|service|host)\s++(?P<after>[a-z]+)\b"
    r"|(?<!\w)(?P<verb>acknowledged|resolved|recovered|reopened|triggered|fired)\b"
    r"|(?<!\w)(?P<capital>(?-i:[A-Z]{2,}))\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"^\W*(?P<name>[A-Za-z][\w .()/-]{0,38}?)\s*(?P<sign>:|=|\s=)\s+(?P<value>\S.*)$")
_LABEL = re.compile(r"(?<![\w/])([A-Za-z][\w.-]{0,39}): ?([^\s,{}:/][^\s,{}]{0,99})")
_NAMED_PLACE = re.compile(rf"\b({'|'.join(map(re.escape, sorted(PLACES)))})\s++([\w.]*[-\d][\w.-]*)", re.IGNORECASE)
_SIGN = re.compile(r"(?<!\w):[a-z0-9_+-]{1,40}:|[\U0001F300-\U0001FAFF\u2600-\u27BF\u203C\u2049]\uFE0F?")
_NUMBERS = re.compile(
    r"(?<![\w.,:-])[#=<>~±]?\s?\d[\d.,:]*+\s?(?:%|[kmgt]?i?b|ms|[smhd]|min|minutes?|hours?|seconds?)?(?![\w-])",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"https?://[^\s<>\"]+")
_ARROW = re.compile(r"\s(?:→|->|⇒|=>)\s")
_NO_WORD = re.compile(r"\W+")
_HEX = re.compile(r"[0-9a-f]{6}")
_STEP = re.compile(r"[/:?&#;]")
_WORD = re.compile(r"[a-z]+")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")  # between the words of `ResolvedCritical`


@dataclass(frozen=True, slots=True)
class _State:
    word: str  # as sent; empty if it was in a sign or a colour
    meaning: str
    count: int = 1  # alerts of which it tells
    line: str = ""  # that tells it


def recognise(posted: Posted) -> Recognised:
    """Return the meaning of a message. A reply needs no evidence: the first message of its thread names its alert."""
    labels, lines = _labels(posted)
    link = posted.links[0][1] if posted.links else ""
    identity = _id_in(link)
    others = [line.lower().replace(posted.sender_name.lower(), "") for line in lines]  # its sender's name is no state
    worded, shown = _state(labels, lines) or _state(labels, others), _shown(posted, lines)
    state = worded or _State("", shown[0]) if worded or shown else None
    roles = {_role(label): value for label, value in reversed(labels.items())} | labels
    name = _title(posted, roles, lines, state)
    shape = fields.digest(posted.sender, *sorted(labels), *_WORD.findall(_bare(name).lower())[:3])
    kind = _kind(posted, labels, roles, lines, worded, shown)
    members = _members(posted) if state is not None and state.count > 1 else {}
    own = {key: value for key, value in labels.items() if key not in members}
    stable = {
        key: value
        for key, value in own.items()
        if (_role(key) in PLACES or (not identity and _is_name(key, value))) and key not in _steps(link.lower())
    }
    base = identity or _bare(name) or next(iter(labels.values()), "")
    each = [{**stable, label: value} for label, values in members.items() for value in values]
    keyed = [
        " ".join((base, *(f"{key}={value}" for key, value in sorted(place.items())))) for place in each or [stable]
    ]
    is_occurrence = identity and not OCCURRENCES.isdisjoint(_steps(link.lower()))
    keys = (base, *keyed[: len(each)]) if members or is_occurrence else (*keyed, base)
    unclear = "updated" if posted.place.thread or posted.revision else "firing"  # a note is no new alert
    meaning = unclear if state is None or (worded is None and posted.place.thread) else state.meaning
    addresses = (address.rstrip(".,;)") for line in posted.lines for address in _ADDRESS.findall(line))
    event = fields.AlertEvent(
        group=keys[0],
        title=name,
        status=STATUSES.get(meaning) or AlertEnd(word=meaning),
        severity=_severities(roles, lines, state),
        labels=own,
        event_id=f"{posted.place.channel}:{posted.message_id}:{posted.revision}",
        service="" if fields.first(labels, NAMED) else fields.first(labels, SERVICE_NAMES).split(",")[0].strip(),
        description="\n".join(posted.lines),
        url=next((address for _, address in posted.links), "") or next(addresses, ""),
        runbook=next((address for text, address in posted.links if "runbook" in text.lower()), ""),
        as_of=posted.at,
        by="" if meaning == "acknowledged" else None,
    )
    delivery = event.delivery(
        f"chat:{posted.sender}", b"", posted.at, ends={"resolved": EndReason.CURED}, system=posted.sender_name
    )
    return Recognised(kind, shape, name, replace(delivery, omitted=state.count - 1 if state else 0), keys)


def _labels(posted: Posted) -> tuple[dict[str, str], list[str]]:
    """Return the fields of a message as labels, and its lines that are none. The text of its link is none."""
    labels, lines = dict[str, str](), list[str]()
    for name, value in posted.fields:
        labels.setdefault(_key(name), value)
    for line in posted.lines:
        for part in filter(None, map(str.strip, line[:MAX_LINE].split("  "))):
            plain = _SIGN.sub("", part).strip()
            pair = _PAIR.match(plain) if line not in {text for text, _ in posted.links[:1]} else None
            if pair is not None and not (_meaning(pair["name"]) or _predicate(pair["name"])[1]):
                labels.setdefault(_key(pair["name"]), pair["value"].strip())
            else:
                lines.append(part)
    tagged = ", ".join(value for name, value in labels.items() if "tag" in name or "label" in name)
    for name, value in (*_LABEL.findall(tagged), *_NAMED_PLACE.findall("\n".join(lines[:2]))):
        labels.setdefault(_key(name), value)
    return labels, lines


def _key(name: str) -> str:
    return _NO_WORD.sub("_", name.strip().lower()).strip("_")


def _role(label: str) -> str:
    """Return the noun of a field's name: `level` of `alert_level`, `monitor` of `monitor_name`, `node` of `nodes`."""
    *before, noun = label.removesuffix("_name").split("_")
    return (noun if GENERIC.issuperset(before) else label.removesuffix("_name")).removesuffix("s")


def _meaning(text: str, *, weak: bool = False) -> _State | None:
    """Return the state that a text consists of, beside numbers, ids and words that say nothing. `weak` words count, or not."""
    tokens = [token for token in _NO_WORD.split(_SIGN.sub("", text)) if token and not any(map(str.isdigit, token))]
    joined = name_key("".join(tokens)).replace(" ", "")
    words = [joined] if joined in WORDS else [part.lower() for token in tokens for part in _HUMP.split(token)]
    states = [word for word in words if word in WORDS and (weak or word not in WEAK)]
    if not states or any(word not in GENERIC and word not in states for word in words):
        return None
    word = next((word for word in states if word not in GENERIC), states[0])
    return _State(word, WORDS[word])


def _state(labels: dict[str, str], lines: Sequence[str]) -> _State | None:
    """Return the state that the words tell: in brackets, in a field, in a part of a line, as a predicate."""
    for line in lines[:FIRST]:
        counts = {name.lower(): int(number) for name, number in _COUNT.findall(line)}
        if counts:
            word = min(counts)  # firing before resolved
            return _State(word, word, counts[word], line)
    values = [
        labels[name] for name in reversed(labels) if name.rpartition("_")[2] in STATE_NAMES
    ]  # “old state” is first
    arrows = [_ARROW.split(line)[-1] for line in lines if _ARROW.search(line)]
    marked = [(inside, line) for line in lines[:FIRST] for inside in _BRACKETS.findall(line)]
    for text, line in (*marked, *((_ARROW.split(value)[-1], "") for value in (*values, *arrows))):
        if state := _meaning(text, weak=True):
            return replace(state, line=line)
    states = [
        replace(state, line=line)
        for line in lines[:FIRST]
        for state in (*map(_meaning, _SEGMENT.split(line)), _predicate(line)[1])
        if state is not None
    ]
    return min(states, key=lambda each: each.word in GENERIC, default=None)


def _predicate(line: str) -> tuple[int, _State | None]:
    """Return where a sentence begins to tell a state, and the state. A word in capitals counts if there is no other."""
    for match in sorted(_PREDICATE.finditer(line), key=lambda each: each["capital"] is not None):
        word = match["word"] or match["after"] or match["verb"] or match["capital"]
        if state := _meaning(word, weak=bool(match["after"]) or not match.start()):
            return match.start(), state
    return len(line), None


def _shown(posted: Posted, lines: Sequence[str]) -> list[str]:
    """Return the states that signs show, then those of the colours."""
    signs = [SIGN_OF.get(sign.rstrip("\ufe0f")) for line in lines[:1] for sign in _SIGN.findall(line)]
    return [state for state in (*signs, *map(_colour, posted.colours)) if state]


def _colour(colour: str) -> str | None:
    """Return the state that a colour means: red to yellow, or green."""
    if _HEX.fullmatch(colour) is None:
        return COLOURS.get(colour)
    red, green, blue = bytes.fromhex(colour)
    return None if blue >= max(red, green) else "firing" if red >= green else "resolved"


def _title(posted: Posted, roles: Mapping[str, str], lines: Sequence[str], state: _State | None) -> str:
    """Return the first words that name something: not only a state, a kind of message or its sender."""
    texts = [text for text, _ in posted.links]
    linked = [text for text in texts[:1] if text in posted.lines[:2]]
    named = (
        *(*linked, state.line if state else "", *lines[:1]),
        fields.first(roles, OTHER_TITLES),
        *(line for line in lines[1:FIRST] if line not in texts[:1] or line in linked),
        *(line for line in posted.lines[:1] if STATE_NAMES.isdisjoint(_key(line).split("_"))),
        *(value for role, value in roles.items() if role in PLACES),
        *(value for role, value in roles.items() if _is_name(role, value)),
    )
    is_subject = state is not None and state.line.startswith(posted.sender_name)
    nothing = GENERIC.union(WORDS, () if is_subject else _WORD.findall(posted.sender_name.lower()))
    naming = (each for each in named if not nothing.issuperset(_WORD.findall(_SIGN.sub("", each).lower())))
    text = fields.first(roles, TITLE_NAMES) or next(naming, "") or next(iter((*posted.lines, *roles.values())), "")
    return " ".join(_stateless(text).split())[:MAX_TITLE]


def _stateless(text: str) -> str:
    """Return a title without signs, and without the brackets and parts that are a state."""
    plain = _BRACKETS.sub(
        lambda inside: " " if _COUNT.search(inside[1]) or _meaning(inside[1], weak=True) else inside[0],
        _SIGN.sub(" ", text),
    ).strip()
    separator = _SEGMENT.search(plain)
    if separator is not None and _meaning(plain[: separator.start()]):
        plain = plain[separator.end() :] or plain
    return plain.strip(" :-–—|")


def _bare(title: str) -> str:
    """Return what stays of a title while the state changes: its subject before a predicate, without numbers."""
    start, _ = _predicate(title)
    subject = title[:start] if start > 2 else title
    words = [word for word in _NO_WORD.split(_NUMBERS.sub(" ", subject).casefold()) if word]
    return " ".join(words[:-1] if words[1:] and words[-1] in HEALTH else words)


def _is_name(label: str, value: str) -> bool:
    """Return whether a field names a thing as machines do (`load_orders`, `db-2:core`), and no state or severity."""
    return (
        value[:1].isalpha()
        and not value.isalpha()
        and set(" @?").isdisjoint(value)
        and label.rpartition("_")[2] not in {*STATE_NAMES, *SEVERITY_NAMES}
    )


def _steps(address: str) -> list[str]:
    """Return the host of an address, and the parts of its path, its query and its fragment."""
    return [step for step in _STEP.split(address.partition("://")[2]) if step]


def _id_in(address: str) -> str:
    """Return the part of an address that identifies what an alert is about; empty if it leads only to a list.

    It follows the noun of what is watched, or ends the path.
    """
    steps = _steps(address)
    path = [step for step in steps if "=" not in step]
    nouns = [number for number, step in enumerate(path, 1) if step.lower() in OBJECTS]
    start = nouns[0] if nouns else 1
    is_named = bool(nouns) or any(map(str.isdigit, "".join(path[1:][-1:])))
    ids = [step for step in path[start:] if is_named and step.lower() not in VIEWS | OBJECTS]
    for name, _, value in (step.partition("=") for step in steps):
        if value and (name.lower() in OBJECTS or (nouns and ids and name == "group")):
            ids.append(f"{name}={value}")
    return "/".join((steps[0], *ids)) if ids else ""


def _members(posted: Posted) -> dict[str, list[str]]:
    """Return the labels by which the alerts of a group differ, with their values."""
    values: dict[str, list[str]] = {}
    for line in posted.lines:
        if (pair := _PAIR.match(line)) and _key(pair["name"]) in PLACES:
            values.setdefault(_key(pair["name"]), []).append(pair["value"].strip())
    return {name: list(dict.fromkeys(each)) for name, each in values.items() if len(set(each)) > 1}


def _severities(roles: Mapping[str, str], lines: Sequence[str], state: _State | None) -> list[str]:
    return [
        *(roles.get(name, "") for name in SEVERITY_NAMES),
        *(text for line in lines[:FIRST] for text in _BRACKETS.findall(line) if not _COUNT.search(text)),
        state.word if state is not None else "",
    ]


def _kind(
    posted: Posted,
    labels: Mapping[str, str],
    roles: Mapping[str, str],
    lines: Sequence[str],
    worded: _State | None,
    shown: Sequence[str],
) -> PostedKind:
    """Return the kind of a message by the words of its first lines, and by the nouns before the id in its link."""
    text, address = posted.links[0] if posted.links else ("", "")
    steps = _steps(address.lower())
    about = set(steps[1 : max((number for number, step in enumerate(steps) if any(map(str.isdigit, step))), default=0)])
    words = {*_WORD.findall(" ".join((*(lines[:2] or posted.lines[:1]), text)).lower()), *about}
    is_test = any("none" in _NO_WORD.split(part.lower()) for line in lines[:1] for part in _BRACKETS.findall(line))
    if not words.isdisjoint(NO_ALERTS) or fields.is_for_nobody(labels) or is_test:
        return PostedKind.OTHER
    words -= {role for role, value in roles.items() if " " not in value}  # the kind of a thing
    words |= BUILD_NAMES & labels.keys()
    evidence = _evidence(posted, roles, lines, worded, shown)
    for kind, others in OTHER_WORDS.items():
        if not words.isdisjoint(others.split()) and evidence <= SURE:
            return kind
    if evidence >= SURE - (worded is not None and worded.meaning == "resolved"):  # an end needs less: it begins nothing
        return PostedKind.ALERT
    is_firing = worded.meaning == "firing" if worded is not None else "firing" in shown[:1]
    return PostedKind.UNSURE if is_firing or not words.isdisjoint(TROUBLE) else PostedKind.OTHER


def _evidence(
    posted: Posted, roles: Mapping[str, str], lines: Sequence[str], worded: _State | None, shown: Sequence[str]
) -> int:
    """Return the number of signs of an alert. A state in words counts twice; one that nothing watches is not enough."""
    nouns = [part for _, address in posted.links for part in _NO_WORD.split(address.lower())]
    watched = (
        any(roles.get(name) for name in SEVERITY_NAMES),
        not OBJECTS.isdisjoint(nouns),
        any(map(_COUNT.search, lines[:FIRST])),  # only alerts are counted by their state
    )
    agreeing = (
        worded.meaning in shown if worded is not None else bool(shown),
        worded is not None and worded.word in HEALTH and any(map(str.isdigit, "".join(nouns))),
    )
    named = OBJECTS.intersection(_WORD.findall(" ".join(lines[:2]).lower())) or PLACES & roles.keys()
    evidence = sum((*watched, *agreeing)) + 2 * (worded is not None)
    identified = (
        any(map(str.isdigit, "".join(nouns)))
        or any(_is_name(*role) for role in roles.items())
        or (worded is not None and _BRACKETS.search(worded.line))  # a program writes “[RESOLVED]”
    )
    return evidence if named or any(watched) else min(evidence, SURE - 1 if identified else SURE - 2)
