"""The sections of plumbline.yaml that belong to no adapter, and the kinds of things that it may name.

Each kind is declared by a module, or by a definition of a reader, and none is listed here.

The section `webhooks` has the settings of each format that a module of `adapters.alerts` or a plugin declares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import time, timedelta
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import AfterValidator, AwareDatetime, Discriminator, Field, Tag, model_validator
from typing_extensions import TypedDict

from adapters import alerts, catalogues, publishers, readers, sources, tools
from adapters.alerts.fields import ConfiguredFormat, Format, WebhookSection
from adapters.alerts.generic import GenericSection, formats
from adapters.catalogues.section import CatalogueSection
from adapters.chat import CHATS
from adapters.clock import Cron
from adapters.publishers.section import PublisherSection, target_sections
from adapters.readers.sections import OnCallSystem, defined_sections, section_of
from adapters.section import Declarations, Kinds, Later, Registry, Section, declared, modules
from adapters.sources.section import SourceSection
from adapters.text_files import decoded
from adapters.tools.section import ToolSection
from core.model.conversation import Platform
from core.model.errors import ConfigurationError
from core.model.silences import Maintenance, Matcher, Silence, WeeklyWindow
from core.model.team import TAG, Rota, Team


def _time_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"{name} is not a time zone, such as Europe/Berlin") from error
    return name


TimeZoneName = Annotated[str, AfterValidator(_time_zone)]
"""An IANA time zone name."""


def _matching(expression: str) -> str:
    Cron(expression)
    return expression


CronExpression = Annotated[str, AfterValidator(_matching)]
"""Minute, hour, day of the month, month and weekday, all of which must match."""


class PostSection(Section):
    """A recurring post in a channel. `cron` is in the zone of the schedules, unless it has its own."""

    channel: Annotated[str, Field(min_length=1)]
    cron: CronExpression
    timezone: TimeZoneName | None = None


class HandoverSection(PostSection):
    cron: CronExpression = "0 9 * * *"


class DigestSection(PostSection):
    cron: CronExpression = "0 9 * * mon"


class SchedulesSection(Section):
    """The times of recurring work, as cron expressions in `timezone`.

    Handovers and digests are posted in the channels that are named. Among replicas it is done once. What was missed is
    made up for once, and an hour that the clocks repeat counts once.
    """

    timezone: TimeZoneName = "UTC"
    ingestion: CronExpression = "0 2 * * *"
    recalibration: CronExpression = "0 3 * * *"
    retention: CronExpression = "0 4 * * *"
    handovers: tuple[HandoverSection, ...] = ()
    digests: tuple[DigestSection, ...] = ()


Days = Annotated[int, Field(ge=1, le=36_500)]


class RetentionSection(Section):
    """Days for which data is kept, counted from its end; `None` keeps it forever. Active data is never deleted.

    - `events`: tasks, deliveries and finished workflows. An event that is sent again later counts as new.
    - `conversations`: messages to and from the bot, including the local page.
    - `incidents`: resolved incidents, with the record of all posts.
    - `predictions`: the claims that badges are calibrated with. Deleting them deletes calibration data.
    """

    events: Days = 30
    conversations: Days | None = 90
    incidents: Days | None = 730
    dead_letters: Days | None = 90
    build_failures: Days | None = 365
    predictions: Days | None = None
    audit: Days | None = 365


DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
Day = Literal["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]


class MaintenanceSection(Section):
    """A maintenance window: once, from `starts` to `ends`; or weekly on `days`, from `begins` to `until` in `timezone`.

    `match` selects alerts as in a route: by labels, `source`, `service`, `severity` or `team`.
    """

    match: Annotated[dict[str, str | tuple[str, ...]], Field(min_length=1)]
    starts: AwareDatetime | None = None
    ends: AwareDatetime | None = None
    days: tuple[Day, ...] = ()
    begins: time | None = None
    until: time | None = None
    timezone: TimeZoneName = "UTC"
    reason: str = ""

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        once = self.starts is not None and self.ends is not None and self.starts < self.ends
        weekly = bool(self.days) and self.begins is not None and self.until is not None
        if once == weekly:
            raise ValueError("give `starts` and a later `ends` with their offsets, or `days`, `begins` and `until`")
        return self

    @property
    def matchers(self) -> tuple[Matcher, ...]:
        values = {name: (value,) if isinstance(value, str) else value for name, value in self.match.items()}
        return tuple(Matcher(name, frozenset(accepted)) for name, accepted in values.items())


def maintenance_of(sections: Sequence[MaintenanceSection]) -> Maintenance:
    """Return the maintenance windows of the sections."""
    return Maintenance(
        once=tuple(
            Silence(f"plumbline.yaml:{number}", each.matchers, each.starts, each.ends, reason=each.reason)
            for number, each in enumerate(sections, 1)
            if each.starts is not None and each.ends is not None
        ),
        weekly=tuple(
            WeeklyWindow(
                each.matchers,
                frozenset(DAYS.index(day) for day in each.days),
                each.begins,
                each.until,
                ZoneInfo(each.timezone),
                each.reason,
            )
            for each in sections
            if each.begins is not None and each.until is not None
        ),
    )


AnyFormat = Format[Any] | ConfiguredFormat[Any]


def _sources(value: Any) -> Iterable[str]:
    return [value.source] if isinstance(value, Format | ConfiguredFormat) else []


def _formats(_name: str) -> Declarations[AnyFormat]:
    yield from declared(modules(alerts), _sources)
    yield from ((each.source, each, alerts.__name__) for each in formats())


FORMATS = Registry[AnyFormat](_formats, _sources, {"plumbline.webhooks": EntryPoint.load})
CATALOGUES = Kinds(catalogues, CatalogueSection, {"plumbline.catalogues": EntryPoint.load})
PUBLISHERS = Kinds(
    publishers, PublisherSection, {"plumbline.publishers": EntryPoint.load}, lambda: target_sections().values()
)
ON_CALL = Kinds(readers, OnCallSystem, {"plumbline.on_call": section_of}, defined_sections)
SOURCES = Kinds(sources, SourceSection, {"plumbline.sources": EntryPoint.load})
TOOLS = Kinds(
    tools, ToolSection, {"plumbline.tools": EntryPoint.load, "plumbline.readers": section_of}, defined_sections
)
REGISTRIES = (FORMATS, CATALOGUES, PUBLISHERS, ON_CALL, SOURCES, TOOLS, CHATS)

AnyCatalogue = Annotated[CatalogueSection, CATALOGUES]
AnyPublisher = Annotated[PublisherSection, PUBLISHERS]
AnySource = Annotated[SourceSection, SOURCES]
AnyTool = Annotated[ToolSection, TOOLS]
AnySchedules = Annotated[OnCallSystem, ON_CALL]


def _sections() -> Any:
    """Return the type of the whole section. What has a name of its own is generic."""
    make: Any = TypedDict
    sections = {source: NotRequired[each.section] for source, each in FORMATS.all().items()}
    return make("WebhooksSection", sections, extra_items=GenericSection)


WebhookSections = Annotated[Mapping[str, WebhookSection], Later(_sections)]
"""The sections by source, of those that have one."""


Id = Annotated[str, Field(min_length=1)]  # an empty id in a query could match every schedule
Ids = Annotated[tuple[Id, ...], Field(min_length=1)]


class MentionSection(Section):
    """The mention of a team.

    In Slack, the id of a user group; in Teams, a person's directory id or address, or a tag's id.
    """

    slack: Annotated[str, Field(pattern=r"^S[A-Z0-9]{2,20}$")] | None = None
    teams: Annotated[str, Field(pattern=r"^[A-Za-z0-9@._:-]{3,200}$")] | None = None
    teams_tag: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/=_-]{3,400}$")] | None = None

    @model_validator(mode="after")
    def _one_of_teams(self) -> Self:
        if self.teams and self.teams_tag:
            raise ValueError("name either a person (`teams`) or a tag (`teams_tag`)")
        return self

    @property
    def ids(self) -> dict[Platform, str]:
        in_teams = f"{TAG}{self.teams_tag}" if self.teams_tag else self.teams
        ids = {Platform.SLACK: self.slack, Platform.TEAMS: in_teams}
        return {platform: id_ for platform, id_ in ids.items() if id_}


class RotaSection(Section):
    """A rota: `people` take turns of the given days and hours, beginning at `start`.

    With a `timezone`, turns end at the same local time all year; without one, daylight-saving time moves them by an
    hour.
    """

    people: Annotated[tuple[str, ...], Field(min_length=1)]
    start: AwareDatetime
    days: Annotated[int, Field(ge=0, le=366)] = 7
    hours: Annotated[int, Field(ge=0, le=23)] = 0
    timezone: TimeZoneName | None = None

    @model_validator(mode="after")
    def _turns_have_a_length(self) -> Self:
        if not (self.days or self.hours):
            raise ValueError("a turn has at least one hour")
        return self

    @property
    def rota(self) -> Rota:
        start = self.start.astimezone(ZoneInfo(self.timezone)) if self.timezone else self.start
        return Rota(self.people, start, timedelta(days=self.days, hours=self.hours))


def _kind(given: object) -> str:
    """Return which form was meant, so that an error message refers to that form."""
    return "rota" if isinstance(given, dict | RotaSection) else "name" if isinstance(given, str) else "names"


OnCallNames = Annotated[
    Annotated[str, Tag("name")] | Annotated[tuple[str, ...], Tag("names")] | Annotated[RotaSection, Tag("rota")],
    Discriminator(_kind),
]


class TeamSection(Section, populate_by_name=True):
    """A team. `on_call` is a name, a list of names in calling order, or a rota.

    `formerly` contains former ids of the team, and ids of teams merged into it.
    """

    id: str
    name: str
    document: Path | None = None
    services: tuple[str, ...] = ()
    channel: str = ""
    on_call: OnCallNames = ()
    formerly: tuple[str, ...] = ()
    mention: MentionSection = MentionSection()

    def team(self, folder: Path) -> Team:
        """Return the team with its document, whose path is relative to `folder`.

        Raises ConfigurationError if it is unreadable.
        """
        return Team(
            self.id,
            self.name,
            read_document(self.id, folder / self.document) if self.document is not None else "",
            frozenset(self.services),
            self.channel,
            self._people,
            self.formerly,
            self.mention.ids,
            self.on_call.rota if isinstance(self.on_call, RotaSection) else None,
        )

    @property
    def _people(self) -> tuple[str, ...]:
        match self.on_call:
            case RotaSection(people=people):
                return people
            case str(person):
                return (person,)
            case people:
                return people


def read_document(team_id: str, file: Path) -> str:
    """Return a team's function document. Raises ConfigurationError if it cannot be read."""
    try:
        return decoded(file.read_bytes(), "strict")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise ConfigurationError(f"Team {team_id}: {file} cannot be read: {reason}.") from None
