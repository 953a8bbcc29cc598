"""The ports and settings of the handlers, in one group for each subject. `bot/wiring` builds them once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import structlog

from core.answering.caveats import HelpDesk
from core.incidents.folding import JOINED
from core.incidents.readable import readable
from core.knowledge.redactor import Redact, without_redaction
from core.knowledge.retriever import Retriever
from core.model.alert import Adoption, AlertDelivery, Posted, Recognised
from core.model.badge import NO_HOLDING, NO_POLICY, Holding, Policy
from core.model.conversation import (
    PUBLIC,
    Audience,
    Channel,
    Place,
    Platform,
    channel_audience,
    channel_reader,
    common_audience,
    with_outsiders,
)
from core.model.errors import PlumblineError
from core.model.incident import FilingTarget, Incident
from core.model.silences import MESSAGES_PER_MINUTE, Maintenance
from core.model.team import CodeOwners, Team
from core.model_calls.metered_model import Limits, QuestionLimits
from core.ports import (
    AlertMonitor,
    AudienceAt,
    BuildReader,
    ChangeReader,
    ChannelReader,
    Clock,
    CodeReader,
    DependencyReader,
    Embedder,
    FileReader,
    LanguageModel,
    LearnedStore,
    LogReader,
    Messenger,
    MetricReader,
    OnCall,
    OpenToAll,
    PassageIndex,
    Publisher,
    Store,
    ThreadReader,
    Toolbox,
)
from core.triage.agents import TeamDocuments
from core.triage.owner_model import IncidentHistory, OwnerModel
from core.triage.paging import PageHistory, PageModel
from handlers.common.examine_model import ExaminedModel
from handlers.common.post_message import AnswersUnderWay, Poster, QueuedQuestions

KEPT = timedelta(minutes=1)  # how long an answer is cached: the age at which a channel still counts as public
SILENCE = timedelta(seconds=5)  # how long a channel counts as private after a failed look-up, before the next one
TIMEOUT = 1.5  # seconds; chats wait three for the acknowledgement of some events

log = structlog.get_logger()


def no_queue(_requester: str) -> int:
    """Return 0: there is no queue."""
    return 0


class OpenChannels:
    """Looks up in one chat whether the whole workspace may read a channel, and caches the answers."""

    def __init__(self, look_up: OpenToAll, clock: Clock) -> None:
        self._look_up = look_up
        self._clock = clock
        self._known: dict[Place, tuple[bool, datetime]] = {}

    async def is_open(self, place: Place) -> bool:
        """Return whether the whole workspace may read a channel; False if the chat does not tell. Does not raise."""
        is_open, until = self._known.get(place, (False, None))
        now = self._clock.now()
        if until is not None and now < until:
            return is_open
        kept = KEPT
        try:
            async with asyncio.timeout(TIMEOUT):
                is_open = await self._look_up(place)
        except (PlumblineError, TimeoutError) as error:
            is_open, kept = False, SILENCE
            log.warning("channel counts as private", place=place.channel, reason=str(error) or "The chat is too slow.")
        self._known[place] = is_open, now + kept
        return is_open


async def current_channels(
    readers: Iterable[str], channels: Sequence[Channel], openness: Mapping[Platform, OpenToAll]
) -> list[Channel]:
    """Return the channels as they are now, with one id each.

    Those with these reader names are looked up. A channel that is not looked up, or whose chat does not answer, is
    private. On a platform without a look-up, plumbline.yaml tells it.
    """
    looked_up = frozenset(readers)

    async def is_private(channel: Channel, place: Place) -> bool:
        if channel.private or place.platform not in openness:
            return channel.private
        return channel_reader(place) not in looked_up or not await openness[place.platform](place)

    ids = [(channel, place) for channel in channels for place in channel.places]
    private = await asyncio.gather(*(is_private(*each) for each in ids))
    return [
        Channel(channel.name, {place.platform: place.channel}, is_closed)
        for (channel, place), is_closed in zip(ids, private, strict=True)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chats:
    """The chats, each by its platform, and their channels as plumbline.yaml has them.

    `audiences` return the current audience of a place on their platform, `openness` whether the whole workspace may
    read it. Without one, the other tells it, or else plumbline.yaml. They do not raise. Whatever was stored is shown by
    `channels_of` and `channels_named`, never by `channels`, because a channel may have turned private. `public_url` is
    the address of the local page; empty if unknown.
    """

    channels: Sequence[Channel] = ()
    messengers: Mapping[Platform, Messenger] = field(default_factory=dict[Platform, Messenger])
    audiences: Mapping[Platform, AudienceAt] = field(default_factory=dict[Platform, AudienceAt])
    openness: Mapping[Platform, OpenToAll] = field(default_factory=dict[Platform, OpenToAll])
    threads: Mapping[Platform, ThreadReader] = field(default_factory=dict[Platform, ThreadReader])
    files: Mapping[Platform, FileReader] = field(default_factory=dict[Platform, FileReader])
    public_url: str = ""

    async def audience_at(self, place: Place) -> Audience:
        """Return the audience of a place: its members as the chat reports them, with guests and outsiders."""
        look_up = self.audiences.get(place.platform)
        return await look_up(place) if look_up is not None else channel_audience(place, self.channels)

    async def audience_of(self, incident: Incident) -> Audience:
        """Return the audience for which an incident is investigated: that of all its places together."""
        return common_audience(await asyncio.gather(*map(self.audience_at, incident.placement.places)))

    async def channels_named(self, readers: Iterable[str]) -> Sequence[Channel]:
        """Return the channels as they are now; those without these reader names count as private."""
        openness: dict[Platform, OpenToAll] = {**dict.fromkeys(self.audiences, self._is_open), **self.openness}
        return await current_channels(readers, self.channels, openness)

    async def channels_of(self, incidents: Iterable[Incident]) -> Sequence[Channel]:
        """Return the channels as they are now, to show these incidents; those of no incident count as private."""
        return await self.channels_named(name for incident in incidents for name in incident.reader_names)

    async def readable_at(self, place: Place, incident: Incident) -> Incident:
        """Return the part of an incident that everybody in a place may read. Asks the chat only if that matters."""
        closed = [replace(channel, private=True) for channel in self.channels]
        if readable(incident, with_outsiders(channel_audience(place, closed)), closed) == incident:
            return incident
        audience, channels = await asyncio.gather(self.audience_at(place), self.channels_of([incident]))
        return readable(incident, audience, channels)

    async def _is_open(self, place: Place) -> bool:
        return PUBLIC in (await self.audience_at(place)).disclosed_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """The teams, what they own, and who is on call.

    `origins` maps a service to the catalogue in which its owner was found.
    """

    teams: Sequence[Team] = ()
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    code: Sequence[CodeOwners] = ()
    schedules: Sequence[OnCall] = ()
    maintenance: Maintenance = field(default_factory=Maintenance)
    origins: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def services(self) -> frozenset[str]:
        """Return the names of all known services."""
        return frozenset(service for team in self.teams for service in team.services) | self.dependencies.keys()


@dataclass(frozen=True, slots=True)
class Readers:
    """Systems that may be read, and the service dependencies, which `graphs` extend.

    Only a language model queries `code`. By `owners` and `teams`, a change that names no service is assigned to a
    service of the team that owns its files.

    The `toolboxes` that read builds are asked for the failed build of an incident, and the others for everything that
    needs only a service name. A language model may use all of them.
    """

    logs: Sequence[LogReader] = ()
    metrics: Sequence[MetricReader] = ()
    changes: Sequence[ChangeReader] = ()
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    code: Sequence[CodeReader] = ()
    toolboxes: Sequence[Toolbox] = ()
    embedder: Embedder | None = None
    graphs: Sequence[DependencyReader] = ()
    owners: Sequence[CodeOwners] = ()
    teams: Sequence[Team] = ()
    monitors: Sequence[AlertMonitor] = ()

    @property
    def builds(self) -> list[BuildReader]:
        return [each for each in self.toolboxes if isinstance(each, BuildReader)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ownership:
    """The data that owners are proposed from.

    `current_teams` returns the teams with their documents as they are now; by default `Company.teams`. The agents of a
    language model read the team documents in `documents`.
    """

    owner_models: LearnedStore[OwnerModel] | None = None
    embedder: Embedder | None = None
    current_teams: Callable[[], Awaitable[Sequence[Team]]] | None = None
    documents: TeamDocuments = field(default_factory=TeamDocuments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The language model: by default, there is none.

    - `examined` writes answers, ranks causes and decides on owners once it has passed its exam.
    - `judge` estimates the confidence in a cause or an owner; without it, the evidence or the votes do.
    - `limits` bound what an incident may use of it, `question` what a question may.
    - `position` returns the place of a requester in its queue, from 1; 0 if it does not wait.
    """

    examined: ExaminedModel | None = None
    judge: LanguageModel | None = None
    limits: Limits = field(default_factory=Limits)
    question: QuestionLimits = field(default_factory=QuestionLimits)
    position: Callable[[str], int] = no_queue


@dataclass(frozen=True, slots=True, kw_only=True)
class PagingPorts:
    """The rules and models by which people are called.

    `pages` returns the ended incidents by which the model of `page_models` judges whether a new one needs a person;
    `holding` says when one that needs nobody may be held back. `messages_per_minute` limits the new messages about
    incidents in a channel. An alert that fires again is shown in its old thread, if that ended within `joins_within`.
    """

    policy: Policy = NO_POLICY
    holding: Holding = NO_HOLDING
    page_models: LearnedStore[PageModel] | None = None
    pages: Callable[[], PageHistory] = PageHistory
    messages_per_minute: int = MESSAGES_PER_MINUTE
    joins_within: timedelta = JOINED


@dataclass(frozen=True, slots=True, kw_only=True)
class FilingPorts:
    """The systems in which people may file. `publishers` are those of the `targets`, by name."""

    targets: Sequence[FilingTarget] = ()
    publishers: Mapping[str, Publisher] = field(default_factory=dict[str, Publisher])


async def _accept_nothing(_: AlertDelivery) -> Incident | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionPorts:
    """The adoption of alerts that other bots post: how they are recognised, and where, as plumbline.yaml says.

    `channels` read what was posted; `accept` stores a delivery, as that of a webhook.
    """

    recognise: Callable[[Posted], Recognised]
    configured: Mapping[Place, Adoption] = field(default_factory=dict[Place, Adoption])
    channels: Mapping[Platform, ChannelReader] = field(default_factory=dict[Platform, ChannelReader])
    accept: Callable[[AlertDelivery], Awaitable[Incident | None]] = _accept_nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgePorts:
    """The indexed documents. `publish` indexes the confirmed corrections, which are valid for `lifetime`."""

    retriever: Retriever
    index: PassageIndex
    publish: Callable[[], Awaitable[None]]
    lifetime: timedelta
    help_desk: HelpDesk


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The past incidents. `history_for` returns those of an audience, by the channels as they are now.

    `reader_names` returns the names by which they may be read; `learn` adds the closed ones.
    """

    history_for: Callable[[Audience, Sequence[Channel]], IncidentHistory]
    reader_names: Callable[[], frozenset[str]] = frozenset
    learn: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """All ports and settings of the handlers.

    `settings` are the names and values that the home page shows. `under_way` and `queued` are the questions that are
    being answered, or wait for it.
    """

    store: Store
    clock: Clock
    knowledge: KnowledgePorts
    past: Past
    adoption: AdoptionPorts
    redact: Redact = without_redaction
    chats: Chats = field(default_factory=Chats)
    company: Company = field(default_factory=Company)
    readers: Readers = field(default_factory=Readers)
    ownership: Ownership = field(default_factory=Ownership)
    models: Models = field(default_factory=Models)
    paging: PagingPorts = field(default_factory=PagingPorts)
    filing: FilingPorts = field(default_factory=FilingPorts)
    under_way: AnswersUnderWay = field(default_factory=AnswersUnderWay)
    queued: QueuedQuestions = field(default_factory=QueuedQuestions)
    settings: Sequence[tuple[str, str]] = ()

    @property
    def poster(self) -> Poster:
        return Poster(self.store, self.chats.messengers)

    async def history_for(self, audience: Audience) -> IncidentHistory:
        """Return the past incidents that an audience may read now."""
        channels = await self.chats.channels_named(self.past.reader_names())
        return await asyncio.to_thread(self.past.history_for, audience, channels)

    @property
    def without_model(self) -> Ports:
        """Return the same ports without a language model."""
        return replace(self, models=Models())
