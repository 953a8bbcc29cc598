"""The `teams` section of plumbline.yaml."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Annotated, Self
from zoneinfo import ZoneInfo

from pydantic import AwareDatetime, Discriminator, Field, Tag, model_validator

from adapters.section import Section
from adapters.text_files import decoded
from bot.config.section import TimeZoneName
from core.model.conversation import Platform
from core.model.errors import ConfigurationError
from core.model.team import TAG, Rota, Team

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
