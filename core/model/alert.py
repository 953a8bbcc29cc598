"""Alerts, their deliveries, and the messages in which other bots post them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from core.model.conversation import PersonName, Place
from core.model.running import current_correlation

MAX_KEPT_ALERTS = 50  # alerts kept in full per incident; further ones are counted
NAMELESS = "alert without a name"


class AlertStatus(StrEnum):
    """The state of an alert.

    `RESOLVED` says only that it is over for its sender; `Alert.end` says why. `UPDATED` occurs only in deliveries: other
    fields changed, and the state did not.
    """

    FIRING = "firing"
    RESOLVED = "resolved"
    UPDATED = "updated"


class Severity(StrEnum):
    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"


class EndReason(StrEnum):
    """The reason why an alert ended. Only after `CURED`, what it told of is over."""

    CURED = "cured"
    MERGED = "merged"
    DUPLICATE = "duplicate"
    ARCHIVED = "archived"
    IGNORED = "ignored"
    CANCELED = "canceled"
    DELETED = "deleted"
    PAUSED = "rule paused"
    RULE_CHANGED = "rule changed"
    NO_DATA = "no data"
    EXPIRED = "expired"
    UNKNOWN = "unknown"


END_TEXTS = {
    EndReason.CURED: "Resolved",
    EndReason.MERGED: "Merged{system} into {into}",
    EndReason.DUPLICATE: "Ended{system}: duplicate of {into}",
    EndReason.NO_DATA: "Ended without data{system}",
    EndReason.UNKNOWN: "Ended: {word}{system}",
}


@dataclass(frozen=True, slots=True)
class AlertEnd:
    """The end of an alert.

    - `word`: the sender's word for the reason. `system`: the sender's name for people. Either may be empty.
    - `into`, `url`: the name and the web address of the alert in which it goes on; empty if unknown.

    Word and name are untrusted.
    """

    reason: EndReason = EndReason.UNKNOWN
    word: str = ""
    system: str = ""
    into: str = ""
    url: str = ""

    @property
    def text(self) -> str:
        """Return the end in a few words: “Resolved”, “Ended: archived in Sentry”. Untrusted."""
        return END_TEXTS.get(self.reason, "Ended: {reason}{system}").format(
            reason=self.reason,
            word=self.word or "without a reason",
            system=f" in {self.system}" if self.system else "",
            into=self.into or "another one",
        )


CURE = AlertEnd(EndReason.CURED)


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """An acknowledgement of an alert in the monitoring system, or (`withdrawn`) its withdrawal.

    `by` is untrusted, and empty if the monitoring system does not name the person. `system` is the name of that system for
    people; empty if it has none.
    """

    by: PersonName
    at: datetime
    withdrawn: bool = False
    system: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert from a monitoring system. All texts are untrusted.

    - `end`: how it ended; None while it fires.
    - `note`: how the alert was cured (see `Resolution`); empty unless it was.
    - `acknowledged`: None if unknown. `paged`: the people whom the sender called; empty if it does not tell.
    - `as_of`: the sender's time of this state, None if unknown. States older than the known one are ignored.
    - `url`: the address of the alert; `runbook_url`: the page that it names for its handling. Both are web addresses or
      empty.
    """

    fingerprint: str
    name: str
    status: AlertStatus
    severity: Severity
    starts_at: datetime
    service: str = ""
    summary: str = ""
    description: str = ""
    labels: dict[str, str] = field(default_factory=dict[str, str])
    ends_at: datetime | None = None
    url: str = ""
    runbook_url: str = ""
    note: str = ""
    acknowledged: Acknowledgement | None = None
    as_of: datetime | None = None
    end: AlertEnd | None = None
    paged: PersonName = ""

    @property
    def is_cured(self) -> bool:
        return self.status is AlertStatus.RESOLVED and (self.end or CURE).reason is EndReason.CURED


@dataclass(frozen=True, slots=True)
class AlertDelivery:
    """A webhook request: at least one alert, all of the group `group_key`.

    - `key`: the idempotency key, equal for requests with equal content. It applies until the incident is resolved,
      because an alert that fires again may be sent with equal content; with `one_event`, it names one event of the
      sender and applies for good.
    - `omitted`: the number of alerts that the request counts but does not contain.
    - `replicated`: the sender may run in replicas, of which one may report late what another has already resolved.
    - `unread`: the parts of the request that were left out because they are not as they should be, each with the reason.
      Untrusted.
    - `at`: the place in which its incident is shown; None where the routes say. It is that of the message that a bot posted.
    - `correlation`: that of the request.
    """

    key: str
    source: str
    group_key: str
    alerts: tuple[Alert, ...]
    received_at: datetime
    omitted: int = 0
    replicated: bool = False
    one_event: bool = False
    unread: tuple[str, ...] = ()
    at: Place | None = None
    correlation: str = field(default_factory=current_correlation, compare=False)

    @property
    def fires(self) -> bool:
        """Return whether at least one of its alerts is firing."""
        return any(alert.status is AlertStatus.FIRING for alert in self.alerts)

    @property
    def first_firing(self) -> Alert:
        """Return the earliest firing alert (there must be one), which names the incident that it opens."""
        firing = (alert for alert in self.alerts if alert.status is AlertStatus.FIRING)
        return min(firing, key=lambda alert: (alert.starts_at, alert.fingerprint))


MAX_CHOICES = 100  # of one channel, the latest


@dataclass(frozen=True, slots=True)
class Posted:
    """A message of another bot, as its chat shows it. All texts are untrusted.

    - `place`: its channel; the thread is the id of the message that it replies to, None for none.
    - `sender`: the id of its app. `sender_name`: the displayed name.
    - `lines`: its texts in the order in which they are seen, without markup; signs are emoji or `:name:`.
    - `fields`: names and values that the chat shows as such. `links`: texts and addresses, that of the title first.
    - `colours`: of its bars, as six hexadecimal digits or one of the chat's names.
    - `revision`: identifies the latest edit; empty if it was not edited. `at` is the time of the edit, or of the message.
    """

    place: Place
    message_id: str
    sender: str
    sender_name: str
    at: datetime
    lines: tuple[str, ...]
    fields: tuple[tuple[str, str], ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    colours: tuple[str, ...] = ()
    revision: str = ""

    @property
    def root(self) -> str:
        """Return the id of the first message of its thread, which may be itself."""
        return self.place.thread or self.message_id


class PostedKind(StrEnum):
    ALERT = "alert"
    UNSURE = "unsure"
    CHANGE = "change"
    BUILD = "build"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Choice:
    """A choice of a sender, or of a shape of its messages: these are alerts, or they are none. `name` is for people."""

    key: str
    name: str
    is_alert: bool


@dataclass(frozen=True, slots=True)
class Adoption:
    """The choices of which alerts of other bots are adopted in a channel. `is_on` is None where nobody chose."""

    is_on: bool | None = None
    choices: tuple[Choice, ...] = ()

    def over(self, other: Adoption) -> Adoption:
        """Return these choices, and the others where nobody made one."""
        own = {choice.key for choice in self.choices}
        others = tuple(choice for choice in other.choices if choice.key not in own)
        return Adoption(other.is_on if self.is_on is None else self.is_on, (*self.choices, *others))

    def choosing(self, choice: Choice) -> Adoption:
        return replace(self, choices=(choice, *(each for each in self.choices if each.key != choice.key))[:MAX_CHOICES])

    @property
    def reads(self) -> bool:
        """Return whether any message is adopted."""
        return bool(self.is_on) or any(choice.is_alert for choice in self.choices)

    def kind_of(self, sender: str, recognised: Recognised) -> PostedKind:
        """Return the kind that a message is treated as: what was chosen of its shape, else OTHER if its sender is left alone."""
        chosen = {choice.key: choice.is_alert for choice in self.choices}
        is_alert = chosen.get(recognised.shape)
        if is_alert is not None:
            return PostedKind.ALERT if is_alert else PostedKind.OTHER
        return recognised.kind if chosen.get(sender, self.is_on) else PostedKind.OTHER


@dataclass(frozen=True, slots=True)
class Recognised:
    """The meaning of a posted message.

    - `shape`: equal for messages of one sender that differ only in what they tell.
    - `delivery`: of the alert that it is, or would be if it were one.
    - `keys`: the group keys by which its incident may be known, most specific first; the first is that of `delivery`.
    - `title`: the words that name it.
    """

    kind: PostedKind
    shape: str
    title: str
    delivery: AlertDelivery
    keys: tuple[str, ...]


NO_ADOPTION = Adoption()
