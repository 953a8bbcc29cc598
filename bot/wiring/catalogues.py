"""Wiring of what is known before anything happens: teams with their on-call schedules, and the incident history.

Every process has its own copy, and regularly adds incidents that were closed or judged in any process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import structlog
from pydantic import ValidationError

from adapters.catalogues.section import CatalogueFiles, CatalogueSection, FolderFiles
from adapters.readers.sections import OnCallSystem
from adapters.section import Host
from bot.config.section import MentionSection
from bot.config.workspace import Workspace
from core.incidents.readable import note_readers
from core.model.badge import PredictionKind
from core.model.conversation import Audience, Channel, Platform
from core.model.errors import ConfigurationError, SourceUnavailable, StoreUnavailable
from core.model.findings import PastIncident
from core.model.incident import Incident, OwnerLabels, closed_incident
from core.model.team import (
    TAG,
    Catalogue,
    Team,
    TeamRotas,
    merged_dependencies,
    merged_teams,
    named_code,
    spelled_alike,
)
from core.ports import Clock, OnCall, Store, Transaction
from core.triage.owner_model import IncidentHistory
from core.triage.paging import Episode, PageHistory, episode_of

DEADLINE = 60.0  # seconds per catalogue at start

log = structlog.get_logger()


async def with_catalogues(workspace: Workspace, host: Host) -> Workspace:
    """Read the catalogues at start. One that cannot be read is logged and skipped."""
    read = [(section, await _read_if_there(section, workspace, host)) for section in workspace.catalogues]
    catalogues = [(section, catalogue) for section, catalogue in read if catalogue is not None]
    groups = [team for section, catalogue in catalogues for team in _called(section, catalogue)]
    teams = merged_teams(workspace.teams, [_reachable(team, workspace) for team in groups])
    dependencies = merged_dependencies(workspace.dependencies, [catalogue.dependencies for _, catalogue in catalogues])
    teams, dependencies = spelled_alike(teams, dependencies)
    code = [named_code(each, teams, section.team_ids) for section, catalogue in catalogues for each in catalogue.code]
    written = {service for team in workspace.teams for service in team.services}
    origins = {
        service: section.place
        for section, catalogue in reversed(catalogues)
        for team in catalogue.teams
        for service in team.services - written
    }
    update = {"teams": teams, "dependencies": dependencies, "code": tuple(code), "origins": origins}
    return workspace.model_copy(update=update)


async def read_catalogue(section: CatalogueSection, workspace: Workspace, host: Host) -> Catalogue:
    """Read the catalogue of a section. Raises SourceUnavailable, and ConfigurationError for a missing token."""
    return await section.read(_files(section, workspace, host))


async def _read_if_there(section: CatalogueSection, workspace: Workspace, host: Host) -> Catalogue | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await read_catalogue(section, workspace, host)
    except (SourceUnavailable, TimeoutError) as error:
        log.warning("catalogue_not_read", catalogue=section.place, error=str(error) or "too slow")
        return None


def _files(section: CatalogueSection, workspace: Workspace, host: Host) -> CatalogueFiles:
    if section.path is not None:
        return FolderFiles(section.path)
    return next(source for source in workspace.sources if source.name == section.source).files(host)


def _called(section: CatalogueSection, catalogue: Catalogue) -> Sequence[Team]:
    """Return the teams with the ids that the section assigns."""
    given = {
        name: team for owner, team in section.team_ids.items() for name in (owner.rpartition("/")[2], owner.lstrip("@"))
    }
    return [replace(team, id=given.get(team.id, team.id)) for team in catalogue.teams]


def _reachable(team: Team, workspace: Workspace) -> Team:
    """Return the team without an unknown channel and without invalid mentions."""
    channel = team.channel
    if channel and channel not in {each.name for each in workspace.channels}:
        log.warning("catalogue_channel_unknown", team=team.id, channel=channel)
        channel = ""
    return replace(team, channel=channel, mentions=_checked(team))


def _checked(team: Team) -> dict[Platform, str]:
    in_teams = team.mentions.get(Platform.TEAMS, "")
    is_tag = in_teams.startswith(TAG)
    try:
        return MentionSection(
            slack=team.mentions.get(Platform.SLACK) or None,
            teams=None if is_tag else in_teams or None,
            teams_tag=in_teams.removeprefix(TAG) if is_tag else None,
        ).ids
    except ValidationError as error:
        log.warning("catalogue_mention_left_out", team=team.id, error=error.errors()[0]["msg"])
        return {}


def open_on_call(sections: Sequence[OnCallSystem], teams: Sequence[Team], host: Host) -> tuple[OnCall, ...]:
    """Return the schedules in the order of plumbline.yaml, with its own rotas last.

    Raises ConfigurationError for a missing token or an unknown team.
    """
    schedules = [section.open(host) for section in sections]
    team_ids = {team.id for team in teams}
    for schedule in schedules:
        if unknown := sorted(schedule.teams - team_ids):
            raise ConfigurationError(f"{schedule.name} names the team {unknown[0]}, which does not exist.")
    return (*schedules, TeamRotas(teams))


MAX_ENDED = 5_000  # latest closed incidents used
EVERY = 30.0  # seconds between updates
LOADED = 20.0  # an update is followed by a pause of this many times its duration, because it uses a core
OVERLAP = timedelta(minutes=5)  # read again, because clocks differ and a transaction may commit late
WHOLE = timedelta(days=1)  # between full reads, which remove reopened and deleted incidents


class GrowingHistory:
    """The history as of the latest update. Running searches keep the earlier version.

    `whole` is that of all readers: for learning, never to be shown.
    """

    def __init__(
        self, incidents: Sequence[PastIncident], channels: Sequence[Channel], teams: Sequence[Team], clock: Clock
    ) -> None:
        self._incidents = tuple(incidents)
        self._channels = channels
        self._teams = teams
        self._clock = clock
        self._known = {incident.id for incident in self._incidents}
        self._episodes: Mapping[str, Episode] = {}  # replaced, never changed, because other threads read it
        self._pages: tuple[Mapping[str, Episode], PageHistory] | None = None  # its episodes, and the history
        self._closed: dict[str, tuple[datetime, PastIncident]] = {}  # by id, with the time of opening
        self.whole = IncidentHistory(self._incidents)
        self._whole_at: datetime | None = None
        self._read_at: datetime | None = None
        self._reading = asyncio.Lock()

    def readable_by(self, audience: Audience, channels: Sequence[Channel]) -> IncidentHistory:
        """Return the readable part of the history; see `IncidentHistory.readable_by`."""
        return self.whole.readable_by(audience, channels)

    def reader_names(self) -> frozenset[str]:
        """Return the reader names by which the incidents may be read."""
        return self.whole.reader_names

    @property
    def episodes(self) -> tuple[Episode, ...]:
        """Return all ended incidents, for the model that judges whether an incident needs a person."""
        return tuple(self._episodes.values())

    def pages(self) -> PageHistory:
        """Return the history of the same incidents, to judge a new one. Takes milliseconds after a change."""
        episodes, cached = self._episodes, self._pages
        if cached is None or cached[0] is not episodes:
            ordered = sorted(episodes.values(), key=lambda each: each.ended_at or each.began_at)
            cached = self._pages = episodes, PageHistory(ordered)
        return cached[1]

    async def grow(self, store: Store) -> None:
        """Read all closed incidents. An incident is readable by those who may read its channel."""
        async with self._reading:
            await self._read_whole(store)

    async def catch_up(self, store: Store) -> None:
        """Read the incidents closed or judged since the last update. Cheap if there are none."""
        async with self._reading:
            now = self._clock.now()
            if self._read_at is None or self._whole_at is None or now - self._whole_at >= WHOLE:
                await self._read_whole(store)
                return
            since = min(self._read_at, now) - OVERLAP
            async with store.transaction() as transaction:
                changed = {each.id: each for each in await transaction.incidents.ended(MAX_ENDED, since)}
                for incident_id in await transaction.predictions.judged_since(PredictionKind.OWNER, since):
                    if incident_id not in changed and (judged := await transaction.incidents.get(incident_id)):
                        changed[incident_id] = judged
                labelled = [(each, await _owner_labels(each, transaction)) for each in changed.values()]
            await self._take(labelled, self._closed, self._episodes)
            self._read_at = now

    async def follow(self, store: Store) -> None:
        """Update repeatedly, until cancelled."""
        pause = EVERY
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                await self.catch_up(store)
            except StoreUnavailable as error:
                log.warning("past incidents wait", reason=str(error))
            except Exception:  # a bug must not stop the updates for good
                log.exception("past incidents cannot be read")
            pause = max(EVERY, LOADED * (time.monotonic() - began))

    async def _read_whole(self, store: Store) -> None:
        now = self._clock.now()
        async with store.transaction() as transaction:
            ended = [
                (each, await _owner_labels(each, transaction)) for each in await transaction.incidents.ended(MAX_ENDED)
            ]
        await self._take(ended, {}, {})
        self._read_at = self._whole_at = now

    async def _take(
        self,
        labelled: Sequence[tuple[Incident, OwnerLabels]],
        before: Mapping[str, tuple[datetime, PastIncident]],
        episodes: Mapping[str, Episode],
    ) -> None:
        closed = dict(before)
        if labelled or not episodes:
            self._episodes = {**episodes, **{each.id: episode_of(each) for each, _ in labelled}}
        for each, labels in labelled:
            readers = each.placement.audience(self._channels).disclosed_to
            past = closed_incident(each, self._teams, readers, labels, note_readers(each, self._channels))
            if past is not None and past.id not in self._known:
                closed[past.id] = each.opened_at, past
            else:
                closed.pop(each.id, None)
        newest = sorted(closed.items(), key=lambda item: (item[1][0], item[0]), reverse=True)[:MAX_ENDED]
        self._closed = dict(newest)
        whole = (*self._incidents, *(past for _, (_, past) in newest))
        if whole != self.whole.incidents:
            self.whole = await asyncio.to_thread(IncidentHistory, whole)


async def _owner_labels(incident: Incident, transaction: Transaction) -> OwnerLabels:
    """Return the labels of the last proposed owner; empty if there is a note, which is more informative."""
    proposal = incident.findings.owner
    if incident.resolution is not None or proposal is None or proposal.owner is None:
        return OwnerLabels()
    labels = await transaction.predictions.labels_of(proposal.prediction_id)
    owner = proposal.owner.team_id
    right = any(label.correct for label in labels)
    return OwnerLabels(owner if right else "", frozenset({owner} if not all(label.correct for label in labels) else ()))
