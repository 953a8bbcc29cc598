"""Shared parts of the webhook formats: the format itself, limited texts, labels, severities, times and errors."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Annotated, Any, ClassVar, Generic, Literal, Protocol, TypeVar

import structlog
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, WithJsonSchema
from pydantic_core import ErrorDetails

from adapters.alerts.workload import NAMING, service_of, subject_of
from adapters.readers.values import moment
from adapters.section import Section
from core.model.alert import NAMELESS, Acknowledgement, Alert, AlertDelivery, AlertEnd, AlertStatus, EndReason, Severity
from core.model.errors import MalformedInput
from core.model.text import counted, json_text, load_json, name_key

SEVERITY_LABELS = ("severity", "priority", "level")
PLACE_LABELS = "cluster region zone environment env tenant team owner namespace exported_namespace alertname".split()
DECIDING = frozenset({*SEVERITY_LABELS, *PLACE_LABELS, *NAMING})  # labels that are kept first
SEVERITIES = {
    Severity.CRITICAL: "critical crit page pager error err high highest fatal emergency emerg panic alert disaster major "
    "blocker urgent immediate severe catastrophic showstopper p0 p1",
    Severity.WARNING: "warning warn medium average normal moderate minor ticket p2 p3",
    Severity.INFO: "info information informational low lowest trivial cosmetic planning notice debug p4 p5",
}
SEVERITY_OF = {word: severity for severity, words in SEVERITIES.items() for word in words.split()}
SCALES = frozenset({"p", "s", "sev", "severity", "prio", "priority"})  # before a number: `SEV-3`, `P4 - Low`
NEGATIONS = frozenset({"non", "not"})
NO_SEVERITY = "none"

RUNBOOK_NAMES = frozenset({"runbook", "runbookurl", "runbooklink", "runbookuri", "playbook", "playbookurl"})
"""Names of the field with the address of the runbook, in lower case and without separators."""

_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")
_RUNBOOK_IN_TEXT = re.compile(r"\b(?:run|play)[ -]?book\b[^\n]{0,40}?(https?://[^\s)>\]\"'|]+)", re.IGNORECASE)

MAX_REPAIRS = 8  # rounds of leaving out faulty parts of one request
MAX_UNREAD = 64  # parts of a request that were left out and are named
MAX_LABELS_LENGTH = 20_000  # characters of the names and values of an alert's labels
MAX_NAMED = 20  # labels that are named because they were not kept
MAX_NAME_LENGTH = 128  # characters of a label's name
MAX_VALUE_LENGTH = 512  # characters of a label's value
MAX_SUMMARY_LENGTH = 500  # characters
MAX_DESCRIPTION_LENGTH = 4_000  # characters
MAX_URL_LENGTH = 2_000  # characters
MAX_SEVERITY_LENGTH = 80  # characters of a severity
MAX_IDENTITY_LENGTH = 64  # characters of a fingerprint; a longer one is replaced with its digest
MAX_GROUP_LENGTH = 2_000  # bytes of a group's key; PostgreSQL indexes at most 2,704
SHOWN_GROUP_LENGTH = 400  # characters of a longer one that are kept before its digest
FIRST_REAL_YEAR = 1970
NO_TIME = datetime.min.replace(tzinfo=UTC)  # which Alertmanager sends for a missing time

P = TypeVar("P", bound=BaseModel)

log = structlog.get_logger()


Words = Annotated[
    str,
    BeforeValidator(lambda value: "" if value is None else value),
    WithJsonSchema({"type": ["string", "number", "null"]}, "validation"),
]
"""A text, a number, or null for none."""


class Payload(BaseModel):
    """A part of a webhook's body. Unknown fields are ignored, because senders add new ones at any time."""

    model_config = ConfigDict(frozen=True, coerce_numbers_to_str=True)


Ends = Mapping[str, EndReason]
"""The reasons of a sender's ends, by its word for each. An end with any other word has an unknown reason."""

State = Literal[AlertStatus.FIRING, AlertStatus.UPDATED] | AlertEnd
"""The state of an alert as a format reads it, which gives an end its word alone: its reason is that in the table of ends."""


class Meaning(Protocol):
    """The meaning of a request body. `system` is the name of its sender for people, `ends` the sender's ends."""

    def delivery(
        self, source: str, body: bytes, received_at: datetime, /, *, system: str, ends: Ends
    ) -> AlertDelivery: ...


class WebhookSection(Section):
    """A webhook. `secret_env` names the variable with its secret; the default secret is PLUMBLINE_WEBHOOK_SECRET."""

    secret_env: str = ""


S = TypeVar("S", bound=WebhookSection)
Parser = Callable[[bytes, datetime], AlertDelivery | None]
SignatureCheck = Callable[[Mapping[str, str], bytes, str], bool]


@dataclass(frozen=True, slots=True)
class ConfiguredFormat(Generic[S]):
    """A webhook format that exists if plumbline.yaml has its section, with which `parser` returns how it is read, or if
    there is a `default` for that section. `name` is that of its sender for people; empty if nobody knows.
    """

    source: str
    section: type[S]
    ends: Ends
    parser: Callable[[S], Parser]
    is_signed: SignatureCheck | None = None
    default: S | None = None
    name: str = ""


@dataclass(frozen=True, slots=True)
class Format(Generic[P]):
    """A webhook format. A value of this type in a module of this package is received at `/webhooks/SOURCE`.

    Errors call its sender `name` and end with the `remedy`. `ends` are all ways in which its alerts may end.
    `understand` returns the meaning of a body; None for one without an alert, such as a test notification. `is_signed`
    checks a signature of headers and body with a secret; None if the sender does not sign.
    """

    source: str
    name: str
    remedy: str
    body: type[P]
    ends: Ends
    understand: Callable[[P], Meaning | None]
    is_signed: SignatureCheck | None = None
    section: ClassVar = WebhookSection
    default: ClassVar = WebhookSection()

    def parser(self, _section: WebhookSection) -> Parser:
        return self.parse

    def parse(self, body: bytes, received_at: datetime) -> AlertDelivery | None:
        """Return the delivery in a request body; None for one without an alert. Raises MalformedInput."""
        unread: Sequence[str] = ()
        try:
            read = self.body.model_validate_json(json_text(body))
        except ValidationError as error:
            read, unread = self._salvaged(body)
            if read is None:
                first = error.errors(include_url=False, include_input=False, include_context=False)[0]
                where = ".".join(map(str, first["loc"]))[:200]
                problem = f"{f' at {where}' if where else ''}: {first['msg'][:200].rstrip('.')}"
                raise MalformedInput(f"The {self.name} webhook is not valid{problem}; {self.remedy}.") from None
        understood = self.understand(read)
        if understood is None:
            return None
        delivery = understood.delivery(self.source, body, received_at, system=self.name, ends=self.ends)
        return replace(delivery, unread=tuple(unread))

    def _salvaged(self, body: bytes) -> tuple[P | None, list[str]]:
        """Return a body without its faulty parts, and these, which are logged; None instead of a body if one is needed.

        An alert is worth more than a label of it that is null.
        """
        unread: list[str] = []
        with suppress(ValueError):
            value = load_json(body)
            for _ in range(MAX_REPAIRS):
                try:
                    read = self.body.model_validate(value)
                except ValidationError as error:
                    faults = error.errors(include_url=False, include_input=False)
                    reasons = {_faulty_part(value, each): _reason(each) for each in faults}
                    if () in reasons:
                        break
                    for path in sorted(reasons, reverse=True):
                        _leave_out(value, path)
                    unread += (
                        f"{'.'.join(map(str, path))[:MAX_NAME_LENGTH]} ({reasons[path]})" for path in sorted(reasons)
                    )
                else:
                    log.warning(
                        "part of a webhook was not read", sender=self.name, parts=unread[:MAX_UNREAD], count=len(unread)
                    )
                    return read, unread[:MAX_UNREAD]
        return None, []


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertEvent:
    """One event of one alert, as sent: lengths are unlimited, and times may be in the future.

    - `group`: identifies the incident; `instance` the alert in it, if a group has several.
    - `event_id`: the sender's id of the event; empty if it has none. With `is_unique`, no two events have equal bodies.
    - `severity`: the words for it as sent, most reliable first (see `severity`).
    - `service`: empty if the labels mean it (see `workload.service_of`), or are `services`.
    - `runbook`: its address; empty if a label or the description names it.
    - `note`: how it was cured, as `Alert.note`. Ignored for any other end.
    - `by`: the person who acknowledged; None if the event is not an acknowledgement. `paged`: the people who were called.
    """

    group: str
    title: str
    status: State
    severity: Sequence[str]
    labels: Mapping[str, str]
    instance: str = ""
    event_id: str = ""
    is_unique: bool = False
    service: str = ""
    services: Sequence[str] = ()
    description: str = ""
    url: str = ""
    runbook: str = ""
    note: str = ""
    began: datetime | None = None
    as_of: datetime | None = None
    by: str | None = None
    withdrawn: bool = False
    paged: str = ""

    def delivery(
        self, source: str, body: bytes, received_at: datetime, /, *, ends: Ends, system: str = ""
    ) -> AlertDelivery:
        given = {name: value for name, value in self.labels.items() if value}  # all decide, before some are cut
        (kept, others), as_of, group = labels(given), past(self.as_of, received_at), identity(self.group)
        now, title = as_of or received_at, text(self.title, MAX_SUMMARY_LENGTH)
        subject = "" if self.service or self.services else subject_of(given, title)
        end = end_of(self.status, system, ends) if isinstance(self.status, AlertEnd) else None
        alert = Alert(
            fingerprint=identity(self.instance) if self.instance else group,
            name=title or NAMELESS,
            status=AlertStatus.RESOLVED if isinstance(self.status, AlertEnd) else self.status,
            severity=severity(*self.severity),
            starts_at=past(self.began, received_at) or now,
            service=text(self.service or service_of(given, title, self.services), MAX_VALUE_LENGTH),
            summary=with_subject(title, subject),
            description=described(self.description, self.severity, others),
            labels=kept,
            ends_at=now if end is not None else None,
            url=web_address(self.url),
            runbook_url=web_address(self.runbook) or runbook(given, prose=self.description),
            note=self.note if end is not None and end.reason is EndReason.CURED else "",
            acknowledged=None
            if self.by is None
            else Acknowledgement(text(self.by, MAX_NAME_LENGTH), now, self.withdrawn, system),
            paged=text(self.paged, MAX_NAME_LENGTH),
            as_of=as_of,
            end=end,
        )
        key = identity(self.event_id) if self.event_id else digest(body)
        is_unique = self.is_unique or bool(self.event_id)
        return AlertDelivery(f"{source}:{key}", source, group, (alert,), received_at, one_event=is_unique)


def end_of(named: AlertEnd, system: str, ends: Ends) -> AlertEnd:
    """Return an end that a sender tells, with the reason that its word has in the table."""
    word, into = (text(" ".join(name.split()), MAX_NAME_LENGTH) for name in (named.word, named.into))
    return AlertEnd(ends.get(named.word, EndReason.UNKNOWN), word, system, into, web_address(named.url))


def _faulty_part(value: Any, fault: ErrorDetails) -> tuple[int | str, ...]:
    """Return the path of the part to leave out for a fault; empty if all of the value is faulty.

    If a field is missing, that is the item of the nearest list. A key that the value lacks is the name of a type.
    """
    path: list[int | str] = []
    for key in fault["loc"]:
        inside: Mapping[Any, Any] = (
            dict(enumerate(value)) if isinstance(value, list) else value if isinstance(value, dict) else {}
        )
        if key in inside:
            path.append(key)
            value = inside[key]
    if fault["type"] == "missing":
        while path and not isinstance(path[-1], int):
            path.pop()
    return tuple(path)


def _reason(fault: ErrorDetails) -> str:
    missing = f"{fault['loc'][-1]}: " if fault["type"] == "missing" else ""
    return f"{missing}{fault['msg']}"[:MAX_NAME_LENGTH]


def _leave_out(value: Any, path: tuple[int | str, ...]) -> None:
    *holders, key = path
    for each in holders:
        value = value[each]
    del value[key]


def with_subject(sentence: str, subject: str) -> str:
    """Return the sentence of an alert, with its subject if it does not name that."""
    named = f" ({text(subject, MAX_NAME_LENGTH)})" if sentence and subject.rpartition("/")[2] not in sentence else ""
    return text(sentence, MAX_SUMMARY_LENGTH - len(named)) + named


def text(value: str, limit: int) -> str:
    """Return the text within `limit`, and without NUL, which databases reject."""
    cleaned = value.replace("\x00", "")
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def labels(given: Mapping[str, str]) -> tuple[dict[str, str], str]:
    """Return the labels within MAX_LABELS_LENGTH, each truncated, and a sentence that counts and names the others.

    Those that decide about an alert are kept first. Labels without a value are dropped.
    """
    ranked = sorted(filter(itemgetter(1), given.items()), key=lambda pair: (pair[0] not in DECIDING, pair))
    pairs = [(text(name, MAX_NAME_LENGTH), text(value, MAX_VALUE_LENGTH)) for name, value in ranked]
    sizes = accumulate(len(name) + len(value) for name, value in pairs)
    kept = sum(size <= MAX_LABELS_LENGTH for size in sizes)
    cut = [name for name, _ in pairs[kept:]]
    others = ", ".join(cut[:MAX_NAMED])
    more = f" and {len(cut) - MAX_NAMED} more" if len(cut) > MAX_NAMED else ""
    sentence = f"{counted(len(cut), 'label')} not kept: {others}{more}." if cut else ""
    return dict(sorted(pairs[:kept])), sentence


def tags(words: Iterable[str]) -> dict[str, str]:
    """Return the labels in tags of the form NAME:VALUE."""
    return {name: value for name, _, value in (word.strip().partition(":") for word in words) if name}


def first(texts: Mapping[str, str], names: Sequence[str]) -> str:
    return next((texts[name] for name in names if texts.get(name)), "")


def severities(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words for the severity in the labels."""
    return tuple(labels.get(name, "") for name in SEVERITY_LABELS)


def severity(*words: str) -> Severity:
    """Return the severity of the first known text.

    WARNING if none is known, because an unknown word must not make an alert less severe; INFO if it is said to have none.
    """
    worst = next(filter(None, map(_severity_in, words)), None)
    return worst or (Severity.INFO if _says_none(words) else Severity.WARNING)


def is_for_nobody(labels: Mapping[str, str]) -> bool:
    """Return whether labels say that an alert has no severity, as a heartbeat (`Watchdog`) or an inhibitor does."""
    words = severities(labels)
    return _says_none(words) and not any(map(_severity_in, words))


def _says_none(words: Iterable[str]) -> bool:
    return any(name_key(word) == NO_SEVERITY for word in words)


def _severity_in(phrase: str) -> Severity | None:
    """Return the worst severity that a text names, as `SEV-3` or `2 - High`; None if it names none."""
    parts = _LETTERS_OR_DIGITS.findall(name_key(phrase[:MAX_SEVERITY_LENGTH]))
    if not NEGATIONS.isdisjoint(parts):
        return None
    ranks = (f"p{number}" for scale, number in pairwise(parts) if scale in SCALES)
    levels = [SEVERITY_OF[word] for word in (*parts, *ranks) if word in SEVERITY_OF]
    return min(levels, key=list(Severity).index, default=None)


def described(description: str, severities: Sequence[str], note: str = "") -> str:
    """Return a description that quotes a severity that is not understood, and ends with the note."""
    severity_text = next((each for each in severities if name_key(each) not in ("", NO_SEVERITY)), "")
    if severity_text and _severity_in(severity_text) is None:
        description = f"{description}\n\nSeverity as sent: {severity_text[:MAX_SEVERITY_LENGTH]}".lstrip()
    ending = f"\n\n{note}" if note else ""
    return (text(description, MAX_DESCRIPTION_LENGTH - len(ending)) + ending).lstrip()


def web_address(address: str) -> str:
    """Return the address if it is a plain web address; otherwise empty."""
    return address if address.startswith(("http://", "https://")) and len(address) <= MAX_URL_LENGTH else ""


def runbook(*named: Mapping[str, str], prose: str = "") -> str:
    """Return the address of the runbook from a field or from a text that mentions one; otherwise empty."""
    for texts in named:
        for name, value in texts.items():
            if "".join(filter(str.isalnum, name)).lower() in RUNBOOK_NAMES and (address := web_address(value.strip())):
                return address
    match = _RUNBOOK_IN_TEXT.search(prose[:MAX_DESCRIPTION_LENGTH])
    return web_address(match[1].rstrip(".,;:")) if match else ""


def past(at: datetime | None, received_at: datetime) -> datetime | None:
    """Return the time in UTC, at most `received_at`; None for Alertmanager's missing time."""
    if at is None or at.year < FIRST_REAL_YEAR:
        return None
    return received_at if at >= received_at else at.astimezone(UTC)


def sent_time(text: str) -> datetime | None:
    """Return the time of a text, which may be a number since 1970, as `moment`; None for anything else."""
    try:
        return moment(text)
    except ValueError:
        return None


def identity(name: str) -> str:
    """Return the name if it is short enough, otherwise its digest."""
    cleaned = name.replace("\x00", "")
    return cleaned if 0 < len(cleaned) <= MAX_IDENTITY_LENGTH else digest(name)


def group_key(key: str) -> str:
    """Return the key of a group of alerts; of a long one, the beginning and a digest."""
    cleaned = key.replace("\x00", "")
    return (
        cleaned
        if len(cleaned.encode(errors="replace")) <= MAX_GROUP_LENGTH
        else f"{cleaned[:SHOWN_GROUP_LENGTH]}… {digest(key)}"
    )


def digest(*parts: str | bytes) -> str:
    encoded = (part if isinstance(part, bytes) else part.encode(errors="replace") for part in parts)
    return hashlib.blake2b(b"\x00".join(encoded), digest_size=16).hexdigest()


def matches(given: str, body: bytes, secret: str) -> bool:
    """Return whether `given` is the hexadecimal HMAC-SHA256 of the body, in constant time."""
    expected = hmac.new(secret.encode(errors="surrogateescape"), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given.strip().encode(errors="surrogateescape"), expected.encode())
