"""The whole plumbline.yaml: loading, validation and the resulting workspace."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import structlog
import yaml
from pydantic import Field, ValidationError, create_model

from adapters.alerts.fields import WebhookSection
from adapters.chat import CHATS
from adapters.reranker import RerankerSection
from adapters.section import Later, Section
from adapters.signing_in.guard import SignInSection
from adapters.text_files import decoded
from bot.config.section import (
    FORMATS,
    AnyCatalogue,
    AnyPublisher,
    AnySchedules,
    AnySource,
    AnyTool,
    MaintenanceSection,
    RetentionSection,
    SchedulesSection,
    TeamSection,
    WebhookSections,
    maintenance_of,
    read_document,
)
from core.answering.caveats import HelpDesk
from core.incidents.folding import JOINED
from core.knowledge.retriever import Lexicon
from core.model.alert import Adoption, Choice
from core.model.badge import NO_POLICY, Holding, Policy
from core.model.conversation import Channel, Place, Platform
from core.model.document import LIFETIME, SOURCE
from core.model.errors import ConfigurationError
from core.model.silences import MESSAGES_PER_MINUTE, Maintenance
from core.model.team import CodeOwners, Route, Team
from core.model.text import refuse_deep_yaml, spellings
from core.model_calls.choice import Trust, Use
from core.model_calls.metered_model import Limits, QuestionLimits


class AdoptSection(Section):
    """The senders whose alerts are adopted in a channel, by the ids of their apps: `only` these, or all but `never` these."""

    only: tuple[str, ...] = ()
    never: tuple[str, ...] = ()


class ChannelSection(Section):
    """A channel, with its id on the local page and, by the names of the chats, on each of them.

    `adopt`: the alerts that other bots post there are answered in their threads.
    """

    name: str
    private: bool = False
    console: str | None = None
    adopt: bool | AdoptSection = False

    @property
    def adoption(self) -> Adoption:
        chosen = self.adopt if isinstance(self.adopt, AdoptSection) else AdoptSection()
        choices = (*((each, True) for each in chosen.only), *((each, False) for each in chosen.never))
        return Adoption(not chosen.only, tuple(Choice(each, each, is_alert) for each, is_alert in choices))

    def channel(self) -> Channel:
        return Channel(
            self.name,
            {
                chat: id_
                for chat in map(Platform, (*CHATS.all(), Platform.CONSOLE))
                if (id_ := getattr(self, chat, None))
            },
            self.private,
        )


def _with_chats() -> type[ChannelSection]:
    ids: Any = dict.fromkeys(CHATS.all(), (str | None, None))
    return create_model("ChannelSection", __base__=ChannelSection, __doc__=ChannelSection.__doc__, **ids)


AnyChannel = Annotated[ChannelSection, Later(_with_chats)]


class RouteSection(Section):
    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    also: tuple[str, ...] = ()
    match: dict[str, str | tuple[str, ...]] = Field(default_factory=dict[str, str | tuple[str, ...]])

    def route(self) -> Route:
        accepted = {name: (value,) if isinstance(value, str) else value for name, value in self.match.items()}
        return Route(self.channels, tuple((name, frozenset(values)) for name, values in accepted.items()), self.also)


class PrivacySection(Section):
    """Privacy. `names` are people unknown to any source, whose names are also removed from documents."""

    names: tuple[str, ...] = ()


class CuratedSection(Section):
    """Corrections expire `days` after their confirmation."""

    days: Annotated[int, Field(ge=1, le=3650)] = LIFETIME.days


Share = Annotated[float, Field(ge=0, le=1)]


class ConfidenceSection(Section):
    """The use of badges: below `ask_below`, an owner or a cause is phrased as a question; above `ping_owner_above`, the
    owner is pinged.

    Both are calibrated probabilities and unused by default. With `ping_two_when_unsure`, the two candidate teams are
    pinged if no owner can be named. `estimator` selects the measures of owners, and of causes that a language model
    ranked: the checks that were made anyway (`evidence`), or a slower two-step estimate by the model (`two-step`).
    `percentages` selects how labels become percentages: `curves`, or from 500 labels on the optimal `thresholds` of
    LM-PACE, which tell ten percentages.
    """

    ask_below: Share | None = None
    ping_owner_above: Share | None = None
    ping_two_when_unsure: bool = False
    estimator: Literal["evidence", "two-step"] = "evidence"
    percentages: Literal["curves", "thresholds"] = "curves"


class ModelsSection(Section):
    """The trust in the language model: `measured` (as far as its exam proves), `always` or `never`.

    `use` holds for all of `answers`, `causes` and `owners` that are not named. `investigation` is the most that it may use for
    the cause and the owner of one incident, `question` the most for one question. A server that tells no probabilities is
    asked for `draws` replies for each choice and each score; their shares are the odds. With `tool_calls`, an investigation uses
    the server's own calls of tools, if it has them. `reranker` is another server, which
    puts the passages for an answer in order.
    """

    use: Trust | None = None
    answers: Trust | None = None
    causes: Trust | None = None
    owners: Trust | None = None
    investigation: Limits = Limits()
    question: QuestionLimits = QuestionLimits()
    draws: Annotated[int, Field(ge=1, le=32)] = 1
    tool_calls: bool = False
    reranker: RerankerSection | None = None

    def trust(self) -> dict[Use, Trust]:
        return {use: trust for use in Use if (trust := getattr(self, use) or self.use) is not None}


class PagingSection(Section):
    """Holds back incidents that almost surely need nobody, only in these `channels`.

    Below the calibrated probability `hold_below` of needing a person, an incident is posted only if it is still open
    after `minutes`. A critical one never waits.
    """

    channels: Annotated[tuple[str, ...], Field(min_length=1)]
    hold_below: Annotated[float, Field(gt=0, le=0.2)] = 0.05
    minutes: Annotated[int, Field(ge=1, le=60)] = 10


class StormSection(Section):
    """The limit in a storm of alerts: new messages about incidents in a channel within a minute.

    One of them is the summary that lists the other incidents.
    """

    messages_per_minute: Annotated[int, Field(ge=2, le=1000)] = MESSAGES_PER_MINUTE


class RecurrenceSection(Section):
    """The hours after its end in which an alert that fires again is shown in its old thread; 0 for never."""

    thread_hours: Annotated[float, Field(ge=0, le=168)] = JOINED / timedelta(hours=1)


class AgentSection(Section):
    """An agent that may call Plumbline's MCP server. `token_env` names the variable with its token.

    It sees what everybody in the workspace may read, and what the channels in `channels` may read.
    """

    name: Annotated[str, Field(min_length=1, max_length=60)]
    token_env: Annotated[str, Field(min_length=1)]
    channels: tuple[str, ...] = ()


class _Shared(Section):
    """The keys of plumbline.yaml that the workspace has as they are, apart from paths."""

    name: str = "Plumbline"
    sources: tuple[AnySource, ...] = ()
    on_call: tuple[AnySchedules, ...] = ()
    catalogues: tuple[AnyCatalogue, ...] = ()
    tools: tuple[AnyTool, ...] = ()
    dependencies: dict[str, tuple[str, ...]] = Field(default_factory=dict[str, tuple[str, ...]])
    examples: tuple[str, ...] = ()
    retention: RetentionSection = RetentionSection()
    schedules: SchedulesSection = SchedulesSection()
    confidence: ConfidenceSection = ConfidenceSection()
    models: ModelsSection = ModelsSection()
    agents: tuple[AgentSection, ...] = ()
    filing: tuple[AnyPublisher, ...] = ()
    operators: str = ""  # the channel for alerts about Plumbline itself
    sign_in: SignInSection | None = None


class _File(_Shared):
    """The configuration of Plumbline: channels, sources, teams, routes and tools."""

    channels: tuple[AnyChannel, ...] = ()
    teams: tuple[TeamSection, ...] = ()
    routes: tuple[RouteSection, ...] = ()
    keywords: dict[str, tuple[Annotated[str, Field(min_length=1)], ...]] = Field(default_factory=dict)  # of families
    privacy: PrivacySection = PrivacySection()
    curated: CuratedSection = CuratedSection()
    webhooks: WebhookSections = Field(default_factory=dict[str, WebhookSection])
    paging: PagingSection | None = None
    storm: StormSection = StormSection()
    recurrence: RecurrenceSection = RecurrenceSection()
    maintenance: tuple[MaintenanceSection, ...] = ()


class Workspace(_Shared):
    """The content of plumbline.yaml, with absolute paths and team documents loaded."""

    channels: tuple[Channel, ...]
    adopting: dict[Place, Adoption] = Field(default_factory=dict[Place, Adoption])
    teams: tuple[Team, ...]
    team_documents: dict[str, Path]  # team id → file of its document
    routes: tuple[Route, ...]
    lexicon: Lexicon = Lexicon()
    private_names: tuple[str, ...] = ()
    curated_for: timedelta = LIFETIME
    webhooks: Mapping[str, WebhookSection] = {}
    policy: Policy = NO_POLICY
    holding: Holding = Holding()
    messages_per_minute: int = MESSAGES_PER_MINUTE
    joins_within: timedelta = JOINED
    maintenance: Maintenance = Maintenance()
    # service → the catalogue that names its owner, unless plumbline.yaml does
    origins: dict[str, str] = Field(default_factory=dict[str, str])
    code: tuple[CodeOwners, ...] = ()  # from the catalogues, with team ids as owners

    @property
    def spelling(self) -> dict[str, str]:
        """Return the names of the known services by their keys."""
        return spellings([*(service for team in self.teams for service in team.services), *self.dependencies])

    @property
    def help_desk(self) -> HelpDesk:
        """Return the help desk, which names only public channels."""
        return HelpDesk(
            {
                source.name: timedelta(days=source.fresh_for_days)
                for source in self.sources
                if source.fresh_for_days is not None
            },
            self.teams,
            frozenset(channel.name for channel in self.channels if not channel.private),
        )


Location = tuple[int | str, ...]  # keys and positions of a part of the file, outermost first

DEFAULT_CHANNEL = ChannelSection(name="general", console="general")


def load_workspace(path: Path | None) -> Workspace:
    """Load plumbline.yaml. Without a file, return an empty workspace with one channel on the local page.

    Paths in the file are relative to it. Raises ConfigurationError that names the line of the error.
    """
    file = _read(path) if path is not None else _File()
    folder = path.parent.resolve() if path is not None else Path.cwd()
    channels = file.channels or (DEFAULT_CHANNEL,)
    given: dict[str, Any] = {name: getattr(file, name) for name in _Shared.model_fields} | {
        "sources": tuple(section.beside(folder) for section in file.sources),
        "sign_in": file.sign_in and file.sign_in.beside(folder),
        "catalogues": tuple(section.beside(folder) for section in file.catalogues),
        "tools": tuple(section.beside(folder) for section in file.tools),
    }
    return Workspace(
        **given,
        channels=tuple(section.channel() for section in channels),
        adopting={place: each.adoption for each in channels if each.adopt for place in each.channel().places},
        teams=tuple(section.team(folder) for section in file.teams),
        team_documents={section.id: folder / section.document for section in file.teams if section.document},
        routes=tuple(section.route() for section in file.routes) or (Route((channels[0].name,)),),
        lexicon=Lexicon(file.keywords),
        private_names=file.privacy.names,
        curated_for=timedelta(days=file.curated.days),
        webhooks=file.webhooks,
        policy=Policy(
            file.confidence.ask_below, file.confidence.ping_owner_above, file.confidence.ping_two_when_unsure
        ),
        holding=Holding(file.paging.hold_below, timedelta(minutes=file.paging.minutes), frozenset(file.paging.channels))
        if file.paging is not None
        else Holding(),
        messages_per_minute=file.storm.messages_per_minute,
        joins_within=timedelta(hours=file.recurrence.thread_hours),
        maintenance=maintenance_of(file.maintenance),
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of plumbline.yaml, for editors."""
    return (
        {"$schema": "https://json-schema.org/draft/2020-12/schema"}
        | _File.model_json_schema()
        | {"title": "plumbline.yaml"}
    )


def _read(path: Path) -> _File:
    text = ""
    try:
        text = decoded(path.read_bytes(), "strict")
        refuse_deep_yaml(text)
        file = _File.model_validate(yaml.safe_load(text) or {})
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}. PLUMBLINE_CONFIG names this file."
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} is not valid YAML: {' '.join(str(error).split())}.") from None
    except ValidationError as error:
        problem = error.errors()[0]
        message = (
            next(
                (fault for name, fault in {**FORMATS.faults(), **CHATS.faults()}.items() if name in problem["loc"]),
                "unknown key",
            )
            if problem["type"] == "extra_forbidden"
            else problem["msg"]
        )
        raise _mistake(path, text, problem["loc"], message) from None
    for location, problem in _contradictions(file):
        raise _mistake(path, text, location, problem)
    return file


def _mistake(path: Path, text: str, location: Location, problem: str) -> ConfigurationError:
    where = ".".join(str(part) for part in location) or "the file"
    return ConfigurationError(
        f"{path}, line {_line(text, location)}: {where}: {problem.removeprefix('Value error, ').rstrip('.')}."
    )


def _line(text: str, location: Location) -> int:
    """Return the line of the innermost part of a location, skipping keys that pydantic adds."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 0
    for part in location:
        if isinstance(node, yaml.MappingNode):
            entries = {key.value: (key, value) for key, value in node.value}
            key, node = entries.get(part, (node, node))
            line = key.start_mark.line
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int):
            node = node.value[part]
            line = node.start_mark.line
    return line + 1


def _contradictions(file: _File) -> Iterator[tuple[Location, str]]:
    """Yield errors that pydantic cannot detect: duplicate names, unknown names, and incidents without a route."""
    channels = {channel.name for channel in file.channels or (DEFAULT_CHANNEL,)}
    names = {
        "channels": [channel.name for channel in file.channels],
        "sources": [source.name for source in file.sources],
        "teams": [team.id for team in file.teams],
        "agents": [agent.name for agent in file.agents],
        "filing": [target.name for target in file.filing],
    }
    yield from (
        ((section, index), f"{name} already exists")
        for section, given in names.items()
        for index, name in enumerate(given)
        if name in given[:index]
    )
    yield from (
        (("sources", index, "name"), f"{SOURCE} is the source of confirmed answers: use another name")
        for index, source in enumerate(file.sources)
        if source.name == SOURCE
    )
    repositories = {"", *(source.name for source in file.sources if source.has_files)}
    yield from (
        (("catalogues", index, "source"), f"there is no git_repository source {catalogue.source}")
        for index, catalogue in enumerate(file.catalogues)
        if catalogue.source not in repositories
    )
    yield from (
        (location, f"there is no channel {name}") for location, name in _named_channels(file) if name not in channels
    )
    yield from (
        (("webhooks", name), problem)
        for name in sorted(file.webhooks.keys() - FORMATS.all().keys())
        if (
            problem := FORMATS.faults().get(name)
            or (
                {"title", "preset"}.isdisjoint(file.webhooks[name].model_fields_set)
                and "no sender has this name: give it a `title` or a `preset`"
            )
        )
    )
    yield from (
        (("routes", len(file.routes) - 1), "the last route is for all other incidents, so it must have no `match`")
        for route in file.routes[-1:]
        if route.match
    )
    yield from (
        (("models", "question", "calls"), f"an answer takes {needed} calls with these `analyses` and `draws`")
        for needed in [file.models.question.calls_of_answer(file.models.draws)]
        if needed > file.models.question.calls
    )


def _named_channels(file: _File) -> Iterator[tuple[Location, str]]:
    """Yield each reference to a channel in the file, with the channel's name."""
    yield from ((("teams", index, "channel"), team.channel) for index, team in enumerate(file.teams) if team.channel)
    sections: dict[Location, Mapping[Any, Section]] = {
        ("routes",): dict(enumerate(file.routes)),
        ("agents",): dict(enumerate(file.agents)),
        ("filing",): dict(enumerate(file.filing)),
        ("sign_in", "groups"): file.sign_in.groups if file.sign_in is not None else {},
    }
    for location, given in sections.items():
        for each, section in given.items():
            for key in ("channels", "also", "private_to"):
                yield from (((*location, each, key), name) for name in getattr(section, key, ()))
    if file.paging is not None:
        yield from ((("paging", "channels"), name) for name in file.paging.channels)
    yield from (
        (("schedules", name, index, "channel"), post.channel)
        for name, posts in (("handovers", file.schedules.handovers), ("digests", file.schedules.digests))
        for index, post in enumerate(posts)
    )
    yield from ((("operators",), name) for name in [file.operators] if name)


log = structlog.get_logger()


async def current_teams(workspace: Workspace) -> tuple[Team, ...]:
    """Return the teams with their current documents.

    An unreadable document keeps the content from the start of the bot.
    """
    return await asyncio.to_thread(lambda: tuple(_current(team, workspace) for team in workspace.teams))


def _current(team: Team, workspace: Workspace) -> Team:
    file = workspace.team_documents.get(team.id)
    if file is None:
        return team
    try:
        return replace(team, document=read_document(team.id, file))
    except ConfigurationError as error:
        log.warning("team_document_not_read", team=team.id, error=str(error))
        return team
