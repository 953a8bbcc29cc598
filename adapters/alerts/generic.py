"""Arbitrary JSON, read with paths (JSONPath, RFC 9535): those of plumbline.yaml, or of a definition of its sender.

A definition is a file in `definitions`: how the webhooks of a system are read that everybody sends in the same way.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import structlog
import yaml
from pydantic import BeforeValidator, Field

from adapters.alerts import fields
from adapters.section import Section
from core.model.alert import AlertDelivery, AlertEnd, AlertStatus, EndReason, Severity
from core.model.errors import ConfigurationError, MalformedInput
from core.model.text import load_json, name_key

if TYPE_CHECKING:
    import jsonpath

    Path = jsonpath.JSONPath | jsonpath.CompoundJSONPath


MAX_LEVELS = 12  # in which JSON as a text is looked for
NAMES = ("name", "key", "tag")  # of the field with the name of a label, beside its `value`


@dataclass(frozen=True, slots=True)
class TemplatePart:
    """A text, and the path of the value after it; None after the last text.

    A path may have a condition (`has_filter`), and may lead to a part of a text (`ends_in_index`).
    """

    text: str
    path: Path | None
    has_filter: bool
    ends_in_index: bool


Place = tuple[TemplatePart, ...]


@dataclass(frozen=True, slots=True)
class LabelPlaces:
    """The places of labels: the items of a list, and in an item its `name` and its `value`, the first that is not empty."""

    each: Place
    name: Place
    value: tuple[Place, ...]


@cache
def place(text: str) -> Place:
    """Return the place that a path, or a text with paths in braces, names. Raises ConfigurationError for an invalid one."""
    import jsonpath  # slow to load

    parts = list[TemplatePart]()
    rest = f"{{{text}}}" if text.startswith("$") else text
    try:
        while rest:
            before, _, rest = rest.partition("{")
            path, _, rest = rest.partition("}")
            compiled = jsonpath.compile(path) if path else None
            parts.append(TemplatePart(before, compiled, "?" in path, path[-2:-1].isdigit()))
    except jsonpath.JSONPathError as error:
        problem = str(error).partition("\n")[0]
    else:
        if any(part.path is not None for part in parts):
            return tuple(parts)
        problem = "it has no path"
    raise ConfigurationError(
        f"{text!r} in plumbline.yaml, or in a definition, is not a JSONPath: {problem}; write $.name.name."
    )


class SentBody:
    """A webhook's body, or an item in it, in which places are looked up.

    A path is tried in the body as it was sent, then in it with each text that is JSON opened. One with a condition is tried
    in a list of that alone as well, so that `$[?…]` is a condition for the body; one that ends in an index, also in the
    body with each text that has slashes as the list of its parts.
    """

    def __init__(self, sender: str, value: Any) -> None:
        self._sender = sender
        self._value = value
        self._opened = _opened(value)
        self._plain = [value] if self._opened == value else [value, self._opened]

    def text(self, places: Iterable[Place]) -> str:
        """Return the first text that is not empty; empty if there is none."""
        return next(filter(None, map(self._filled, places)), "")

    def items(self, places: LabelPlaces) -> Iterator[tuple[str, str]]:
        """Yield the labels in a list, with their names in the form of labels: `affected_service`."""
        for item in self._at(places.each[0]):
            inner = SentBody(self._sender, item)
            yield "_".join(inner.text([places.name]).lower().split()), inner.text(places.value)

    def labels(self, at: Place) -> Iterator[tuple[str, str]]:
        """Yield the names and texts in an object, in a list of objects with a name and a value, or of texts NAME:VALUE."""
        held = _opened(next(iter(self._at(at[0])), ""))
        if isinstance(held, dict):
            yield from ((name, scalar(value)) for name, value in held.items())
            return
        for item in held if isinstance(held, list) else scalar(held).split(","):
            if isinstance(item, dict):
                yield next(filter(None, (scalar(item.get(name)) for name in NAMES)), ""), scalar(item.get("value"))
            else:
                yield from fields.tags([scalar(item)]).items()

    def _filled(self, at: Place) -> str:
        """Return a text with the values at its paths; empty if one of them is."""
        filled = ""
        for part in at:
            value = ", ".join(filter(None, map(scalar, self._at(part))))
            if part.path is not None and not value:
                return ""
            filled += part.text + value
        return filled.strip()

    def _at(self, part: TemplatePart) -> list[Any]:
        """Return the values to which a path leads in the first view where it leads to any but null and empty texts."""
        import jsonpath

        if part.path is None:
            return []
        try:
            for view in self._views(part):
                if values := [match.obj for match in part.path.finditer(view) if match.obj not in (None, "")]:
                    return values
        except jsonpath.JSONPathError as error:
            problem = str(error).partition("\n")[0][:200]
            raise MalformedInput(
                f"The {self._sender} webhook cannot be searched for {part.path}: {problem}; nest it less deeply."
            ) from None
        return []

    def _views(self, part: TemplatePart) -> Iterator[Any]:
        yield from self._plain
        if part.has_filter:
            yield [self._opened]
        if part.ends_in_index:
            yield _opened(self._value, is_split=True)


def _opened(value: Any, levels: int = MAX_LEVELS, *, is_split: bool = False) -> Any:
    """Return a value in which each text that is JSON, as in the envelope of another system, is what it holds.

    If `is_split`, each other text with slashes is the list of its parts.
    """
    if isinstance(value, dict) and levels:
        return {name: _opened(field, levels - 1, is_split=is_split) for name, field in value.items()}
    if isinstance(value, list) and levels:
        return [_opened(item, levels - 1, is_split=is_split) for item in value]
    if isinstance(value, str) and levels and value.lstrip().startswith(("{", "[")):
        with suppress(ValueError):
            return _opened(load_json(value), levels - 1, is_split=is_split)
    return value.split("/") if is_split and isinstance(value, str) and "/" in value else value


def scalar(value: Any) -> str:
    """Return a text, a number or a boolean as text; empty for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, str | int | float) else ""


SOURCE = "generic"
MAX_FIELDS = 1_000  # values at the top of a body, all of which each path with a wildcard visits

MEANINGS = {
    "firing": "firing fired triggered retriggered open opened reopened new created create alert alerting active critical "
    "problem error failed failing failure down warning warn nodata insufficientdata renotify escalated unknown",
    "updated": "updated update changed pending suppressed muted silenced snoozed paused assigned",
    "acknowledged": "acknowledged acknowledge ack acked",
    "resolved": "resolved resolve closed close ok up recovered recovery normal healthy success fixed cleared",
    EndReason.MERGED: "merged merge",
    EndReason.DUPLICATE: "duplicate",
    EndReason.ARCHIVED: "archived",
    EndReason.IGNORED: "ignored dismissed",
    EndReason.CANCELED: "canceled cancelled declined rejected",
    EndReason.DELETED: "deleted removed",
    EndReason.EXPIRED: "expired timedout",
    "test": "test ping",
}
"""The meanings of a status, and the words for each, in lower case and without separators."""

MEANING_OF: Mapping[str, str] = {word: meaning for meaning, words in MEANINGS.items() for word in words.split()}
STATUSES: dict[str, fields.State] = {
    "firing": AlertStatus.FIRING,
    "acknowledged": AlertStatus.FIRING,
    "unacknowledged": AlertStatus.FIRING,
    "updated": AlertStatus.UPDATED,
}
REASONS: dict[str, EndReason] = {"resolved": EndReason.CURED, **{str(reason): reason for reason in EndReason}}

MAX_SHOWN = 60  # characters of an unknown status in an error

CONFIRMATION = re.compile(r"https://sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?/\S{1,2000}")

log = structlog.get_logger()

Text = Annotated[str, Field(max_length=500)]
Texts = Annotated[
    tuple[Text, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given, str | list[str])
]


class LabelList(Section):
    """Labels that a list has: `each` is the path of its items, and `name` and `value` are places in one of them."""

    each: Text
    name: Text
    value: Texts

    @property
    def places(self) -> LabelPlaces:
        return LabelPlaces(place(self.each), place(self.name), tuple(map(place, self.value)))


Meaning = Literal["firing", "updated", "acknowledged", "unacknowledged", "resolved", "test"] | EndReason
Statuses = dict[str, Meaning]


class GenericSection(fields.WebhookSection):
    """The places of the parts of an alert in a body.

    Each is a path, `$.check.name`, or a text with paths in braces, `{$.host} is {$.state}`. Of several, the first that is
    not empty counts. A path that leads to several values gives all of them, `$.people[*].name`. A text with slashes is
    also the list of its parts, `$.resource[2]`.

    - `preset`: the sender whose definition says what is not given here.
    - `title`: needed. `group`: identifies the incident of a request; without it, the title does.
    - `status`: the state; without it, every request fires. `statuses` adds words to the usual ones, with their meaning:
      a state, or the reason of an end that is no cure. `severities` are the meanings of words for the severity.
    - `by`: the person who acknowledged; `taken_by`: the person who has it, whatever event tells. `paged`: the people who
      were called. `event_id`: the sender's id of the event. `ended`: the word for an end, before `status`; `goes_on_in`
      and `goes_on_at` are the name and the address of what a merged alert is a part of; `note` says how it was cured.
    - `all_labels`: objects, lists of names with values, and texts NAME:VALUE, which become labels. `label_lists`: lists
      of something else. `services` are labels that name the service.
    - `ignored`: a body that has one of these, and no title, is no alert.
    """

    preset: str = ""
    title: Texts = ()
    group: Texts = ()
    status: Texts = ()
    by: Texts = ()
    taken_by: Texts = ()
    paged: Texts = ()
    service: Texts = ()
    severity: Texts = ()
    description: Texts = ()
    url: Texts = ()
    runbook: Texts = ()
    starts_at: Texts = ()
    updated_at: Texts = ()
    event_id: Texts = ()
    ended: Texts = ()
    goes_on_in: Texts = ()
    goes_on_at: Texts = ()
    note: Texts = ()
    ignored: Texts = ()
    labels: dict[str, Texts] = Field(default_factory=dict[str, tuple[str, ...]])
    all_labels: Texts = ()
    label_lists: tuple[LabelList, ...] = ()
    services: tuple[str, ...] = ()
    statuses: Statuses = Field(default_factory=Statuses)
    severities: dict[str, Severity] = Field(default_factory=dict[str, Severity])


class SenderDefinition(GenericSection):
    """The webhooks of a system. `senders` are the sources that send it, and their names for people.

    No other `statuses` exist; one that is not among them means `otherwise`, and is refused without that. With `is_unique`,
    no two events have equal bodies. `reference` has the pages of the vendor, `remedy` is the end of an error. `signature`
    is the header with the HMAC-SHA256 of a body, or with several after `v1=`; that of Standard Webhooks is checked as
    that says. Empty if the sender does not sign.
    """

    senders: dict[str, str]
    reference: Annotated[tuple[str, ...], Field(min_length=1)]
    remedy: str
    otherwise: Meaning | None = None
    is_unique: bool = False
    signature: str = ""

    def is_signed(self, headers: Mapping[str, str], body: bytes, secret: str) -> bool:
        """Return whether one of the signatures is valid; there are several during a rotation of the secret."""
        if self.signature == STANDARD:
            return is_signed_by_standard(headers, body, secret)
        given = headers.get(self.signature, "").split(",")
        return any(fields.matches(each.strip().removeprefix("v1="), body, secret) for each in given)


STANDARD = "webhook-signature"  # the header of Standard Webhooks
TOLERANCE = 300.0  # seconds between the time that is signed and now, as in the signers' own libraries
SIGNER_PREFIX = "whsec_"  # of a signing secret, which is Base64


def is_signed_by_standard(headers: Mapping[str, str], body: bytes, secret: str) -> bool:
    """Return whether one of the signatures of Standard Webhooks (https://www.standardwebhooks.com) is valid and new.

    A secret that is not Base64 is the key itself.
    """
    id_, at, given = (headers.get(f"webhook-{name}", "") for name in ("id", "timestamp", "signature"))
    if not at.isascii() or not at.isdecimal() or abs(time.time() - float(at)) > TOLERANCE:
        return False
    try:
        key = base64.b64decode(secret.removeprefix(SIGNER_PREFIX), validate=True)
    except ValueError:
        key = secret.encode(errors="surrogateescape")
    signed = f"{id_}.{at}.".encode(errors="surrogateescape") + body
    expected = b"v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
    return any(hmac.compare_digest(each.encode(errors="surrogateescape"), expected) for each in given.split())


PARTS = (
    "title group status by taken_by paged service severity description url runbook starts_at updated_at event_id ended "
    "goes_on_in goes_on_at note ignored all_labels"
).split()
HOME_MADE = SenderDefinition(
    senders={SOURCE: "generic"},
    reference=("docs/webhooks.md",),
    remedy="send one, or correct the path",
    statuses=cast("Statuses", MEANING_OF),
)


@cache
def definitions() -> Mapping[str, SenderDefinition]:
    """Return the definition of each source that has one."""
    folder = resources.files("adapters.alerts") / "definitions"
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    files = (yaml.load(each.read_text("utf-8"), Loader=loader) for each in folder.iterdir())  # noqa: S506  # a SafeLoader
    return {source: each for each in map(SenderDefinition.model_validate, files) for source in each.senders}


@cache
def formats() -> Sequence[fields.ConfiguredFormat[GenericSection]]:
    """Return the format of each definition, which needs no section."""
    return tuple(
        fields.ConfiguredFormat(
            source,
            GenericSection,
            _ends(each.statuses),
            partial(generic_parser, source),
            each.is_signed if each.signature else None,
            GenericSection(),
            each.senders[source],
        )
        for source, each in definitions().items()
    )


def generic_parser(source: str, section: GenericSection) -> fields.Parser:
    """Return how a source is read. Raises ConfigurationError for an invalid JSONPath, and without a title."""
    return GenericFormat(source, section).parse


class GenericFormat:
    """A format described by a section, and by the definition of its sender if there is one."""

    def __init__(self, source: str, section: GenericSection) -> None:
        base = definitions().get(section.preset or source)
        if section.preset and base is None:
            presets = ", ".join(sorted(definitions()))
            raise ConfigurationError(f"webhooks.{source}: there is no preset {section.preset}: use one of {presets}.")
        of_sender = base or HOME_MADE
        given = {name: getattr(section, name) for name in section.model_fields_set}
        given["statuses"] = {**of_sender.statuses, **section.statuses}
        self._read = of_sender.model_copy(update=given)
        if not self._read.title:
            raise ConfigurationError(f"webhooks.{source} in plumbline.yaml needs a `title` or a `preset`.")
        self._source, self._system = source, "" if base is None else base.senders[section.preset or source]
        self._name = self._system or source
        self._places = {name: [place(text) for text in getattr(self._read, name)] for name in PARTS}
        self._labels = {name: [place(text) for text in texts] for name, texts in self._read.labels.items()}
        self._lists = [each.places for each in self._read.label_lists]
        self._meanings = {_plain(word): meaning for word, meaning in self._read.statuses.items()}
        self._severities = {_plain(word): str(severity) for word, severity in self._read.severities.items()}

    def parse(self, body: bytes, received_at: datetime) -> AlertDelivery | None:
        """Return the delivery in a body; None for one without an alert. Raises MalformedInput if something is missing."""
        try:
            value = load_json(body)
        except ValueError as error:
            raise MalformedInput(f"The {self._name} webhook is not valid: {str(error)[:200]}; send JSON.") from None
        if not isinstance(value, dict | list):
            raise MalformedInput(f"The {self._name} webhook holds a single value: send a JSON object.")
        if len(value) > MAX_FIELDS:
            raise MalformedInput(
                f"The {self._name} webhook holds more than {MAX_FIELDS:,} values: send one alert at once."
            )
        sent = SentBody(self._name, value)
        texts = {name: sent.text(places) for name, places in self._places.items()}
        if texts["ignored"] and not texts["title"]:
            address = scalar(value.get("SubscribeURL")) if isinstance(value, dict) else ""
            if CONFIRMATION.fullmatch(address):
                log.warning("open this address once to confirm the subscription of Amazon SNS", address=address)
            return None
        word = self._needed("status", texts) if self._read.status else ""
        meaning = self._meanings.get(_plain(word), self._read.otherwise) if word else "firing"
        if meaning is None:
            raise MalformedInput(
                f"The status {word[:MAX_SHOWN]!r} of the {self._name} webhook is unknown: add its meaning "
                f"under `webhooks: {self._source}: statuses:` in plumbline.yaml."
            )
        if meaning == "test":
            return None
        word = (texts["ended"] or word).lower()
        status = STATUSES.get(meaning) or AlertEnd(word=word, into=texts["goes_on_in"], url=texts["goes_on_at"])
        reason = REASONS.get(self._meanings.get(_plain(word), ""), EndReason.UNKNOWN)
        # What only changes an alert may leave out its title.
        opens = status is AlertStatus.FIRING or not self._read.group
        title = self._needed("title", texts) if opens else texts["title"]
        by = texts["by"] if meaning in ("acknowledged", "unacknowledged") else texts["taken_by"] or None
        labels = self._labels_in(sent)
        severities = [sent.text([each]) for each in self._places["severity"]]
        event = fields.AlertEvent(
            group=self._needed("group", texts) if self._read.group else title,
            title=title,
            status=status,
            event_id=texts["event_id"],
            severity=[*(self._severities.get(_plain(each), each) for each in severities), *fields.severities(labels)],
            labels=labels,
            is_unique=self._read.is_unique,
            service=texts["service"],
            services=self._read.services,
            description=texts["description"],
            url=texts["url"],
            runbook=texts["runbook"],
            note=" ".join(fields.text(texts["note"], fields.MAX_SUMMARY_LENGTH).split()),
            began=fields.sent_time(texts["starts_at"]),
            as_of=fields.sent_time(texts["updated_at"]),
            by=None if isinstance(status, AlertEnd) else by,
            withdrawn=meaning == "unacknowledged",
            paged=texts["paged"],
        )
        return event.delivery(self._source, body, received_at, system=self._system, ends={word: reason})

    def _needed(self, name: str, texts: Mapping[str, str]) -> str:
        if not texts[name].strip():
            places = " or ".join(getattr(self._read, name))
            raise MalformedInput(f"The {self._name} webhook has no {name} at {places}: {self._read.remedy}.")
        return texts[name]

    def _labels_in(self, sent: SentBody) -> dict[str, str]:
        labels = dict[str, str]()
        for each in self._places["all_labels"]:
            labels.update(sent.labels(each))
        for each in self._lists:
            labels.update(sent.items(each))
        own = {name: sent.text(places) for name, places in self._labels.items()}
        return labels | {name: text for name, text in own.items() if text}


def _ends(meanings: Mapping[str, str]) -> fields.Ends:
    return {word: REASONS[meaning] for word, meaning in meanings.items() if meaning in REASONS}


def _plain(status: str) -> str:
    key = "".join(name_key(status).replace("_", " ").split())
    return key[:1] + key[1:].replace("-", "")  # -1 is not 1


FORMAT = fields.ConfiguredFormat(SOURCE, GenericSection, _ends(MEANING_OF), partial(generic_parser, SOURCE))
