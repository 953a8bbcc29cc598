"""The ports and settings of the handlers, bundled by feature. `bot/wiring` builds each bundle once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from core.answering.help_desk import HelpDesk
from core.knowledge.redactor import Redact, without_redaction
from core.knowledge.retriever import Retriever
from core.model.badge import NO_HOLDING, NO_POLICY, Holding, Policy
from core.model.catalogue import CodeOwners
from core.model.channel_settings import MESSAGES_PER_MINUTE
from core.model.conversation import Audience, Channel, Place, Platform
from core.model.filing import FilingTarget
from core.model.silences import Maintenance
from core.model.team import Team
from core.ports import (
    AlertMonitor,
    BuildReader,
    ChangeReader,
    Clock,
    CodeReader,
    DependencyReader,
    Embedder,
    FileReader,
    LanguageModel,
    LearnedStore,
    LogReader,
    MetricReader,
    OnCall,
    PassageIndex,
    Publisher,
    Store,
    ThreadReader,
    Toolbox,
)
from core.rca.agent.budget import Limits
from core.triage.agents.decider import TeamDocuments
from core.triage.history import IncidentHistory
from core.triage.owner_model import OwnerModel
from core.triage.paging import PageHistory, PageModel
from handlers.common.examine_model import ExaminedModel
from handlers.common.post_message import Poster
from handlers.common.show_waiting import AnswersUnderWay, QueuedQuestions

AudienceAt = Callable[[Place], Awaitable[Audience]]


async def nothing_to_do() -> None:
    """Do nothing."""


def no_queue(_requester: str) -> int:
    """Return 0: there is no queue."""
    return 0


def no_history(_audience: Audience) -> IncidentHistory:
    """Return an empty history."""
    return IncidentHistory(())


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

    @property
    def builds(self) -> list[BuildReader]:
        return [each for each in self.toolboxes if isinstance(each, BuildReader)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports and settings that all features share.

    `history_for` returns the past incidents of an audience. `publishers` are those of the `targets`, by name. `audiences`
    return the current audience of a place on their platform; without one, plumbline.yaml tells it. They do not raise.
    """

    store: Store
    poster: Poster
    clock: Clock
    redact: Redact = without_redaction
    channels: Sequence[Channel] = ()
    teams: Sequence[Team] = ()
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    maintenance: Maintenance = field(default_factory=Maintenance)
    schedules: Sequence[OnCall] = ()
    history_for: Callable[[Audience], IncidentHistory] = no_history
    audiences: Mapping[Platform, AudienceAt] = field(default_factory=dict[Platform, AudienceAt])
    public_url: str = ""  # of the local page; empty if unknown
    messages_per_minute: int = MESSAGES_PER_MINUTE  # new ones about incidents in a channel
    targets: Sequence[FilingTarget] = ()
    publishers: Mapping[str, Publisher] = field(default_factory=dict[str, Publisher])

    @property
    def services(self) -> frozenset[str]:
        """Return the names of all known services."""
        return frozenset(service for team in self.teams for service in team.services) | self.dependencies.keys()


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentPorts(Ports):
    """The ports and settings of incidents and their investigation.

    - `current_teams` returns the teams with their documents as they are now; by default `teams`.
    - `examined` is a language model that ranks causes and decides on owners once it has passed its exam. None: evidence
      alone. Its agents read the team documents in `documents`.
    - `pages` returns the ended incidents by which the model of `page_models` judges whether a new one needs a person;
      `holding` says when one that needs nobody may be held back.
    - `limits` bound an investigation by it.
    - `judge` estimates the confidence in a cause or an owner; without it, the evidence or the votes do.
    """

    policy: Policy = NO_POLICY
    monitors: Sequence[AlertMonitor] = ()
    readers: Readers = field(default_factory=Readers)
    code: Sequence[CodeOwners] = ()
    owner_models: LearnedStore[OwnerModel] | None = None
    embedder: Embedder | None = None
    current_teams: Callable[[], Awaitable[Sequence[Team]]] | None = None
    retriever: Retriever | None = None  # None: no runbooks are looked up
    examined: ExaminedModel | None = None
    documents: TeamDocuments = field(default_factory=TeamDocuments)
    limits: Limits = field(default_factory=Limits)
    judge: LanguageModel | None = None
    holding: Holding = NO_HOLDING
    page_models: LearnedStore[PageModel] | None = None
    pages: Callable[[], PageHistory] = PageHistory

    @property
    def without_model(self) -> IncidentPorts:
        """Return the same ports without a language model."""
        return replace(self, examined=None, judge=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPorts(Ports):
    """The ports and settings of questions, commands and feedback.

    - `origins` maps a service to the catalogue in which its owner was found; `changes` are read for questions about them.
    - `position` returns the place of a requester in the model queue, from 1; 0 if it does not wait.
    - `publish` indexes the confirmed corrections, which are valid for `lifetime`.
    - `learn` adds closed incidents to the history.
    - `settings` are the names and values that the home page shows.
    """

    incidents: IncidentPorts
    retriever: Retriever
    index: PassageIndex
    examined: ExaminedModel | None = None
    help_desk: HelpDesk = field(default_factory=HelpDesk)
    changes: Sequence[ChangeReader] = ()
    origins: Mapping[str, str] = field(default_factory=dict[str, str])
    position: Callable[[str], int] = no_queue
    threads: Mapping[Platform, ThreadReader] = field(default_factory=dict[Platform, ThreadReader])
    files: Mapping[Platform, FileReader] = field(default_factory=dict[Platform, FileReader])
    under_way: AnswersUnderWay = field(default_factory=AnswersUnderWay)
    queued: QueuedQuestions = field(default_factory=QueuedQuestions)
    settings: Sequence[tuple[str, str]] = ()
    lifetime: timedelta = timedelta(days=180)
    publish: Callable[[], Awaitable[None]] = nothing_to_do
    learn: Callable[[], Awaitable[None]] = nothing_to_do
