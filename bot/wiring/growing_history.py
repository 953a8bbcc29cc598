"""The incident history: past incidents from sources, and closed incidents with a note or a known owner.

Every process has its own copy, and regularly adds incidents that were closed or judged in any process.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import structlog

from core.incidents.readable import note_readers
from core.model.closed_incident import OwnerLabels, closed_incident
from core.model.conversation import Audience, Channel
from core.model.errors import StoreUnavailable
from core.model.incident import Incident, incident_audience
from core.model.past_incident import PastIncident
from core.model.prediction import PredictionKind
from core.model.team import Team
from core.ports import Clock, Store, Transaction
from core.triage.episodes import Episode, episode_of
from core.triage.history import IncidentHistory
from core.triage.paging import PageHistory

MAX_ENDED = 5_000  # latest closed incidents used
EVERY = 30.0  # seconds between updates
LOADED = 20.0  # an update is followed by a pause of this many times its duration, because it uses a core
OVERLAP = timedelta(minutes=5)  # read again, because clocks differ and a transaction may commit late
WHOLE = timedelta(days=1)  # between full reads, which remove reopened and deleted incidents

log = structlog.get_logger()


class GrowingHistory:
    """The history as of the latest update. Running searches keep the earlier version."""

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
        self._whole = IncidentHistory(self._incidents)
        self._whole_at: datetime | None = None
        self._read_at: datetime | None = None
        self._reading = asyncio.Lock()

    @property
    def whole(self) -> IncidentHistory:
        """Return the whole history, regardless of readers: for learning, never to be shown."""
        return self._whole

    @property
    def incidents(self) -> tuple[PastIncident, ...]:
        """Return all incidents, regardless of readers: for learning, never to be shown."""
        return self._whole.incidents

    def readable_by(self, audience: Audience, channels: Sequence[Channel]) -> IncidentHistory:
        """Return the readable part of the history; see `IncidentHistory.readable_by`."""
        return self._whole.readable_by(audience, channels)

    def reader_names(self) -> frozenset[str]:
        """Return the reader names by which the incidents may be read."""
        return self._whole.reader_names

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
            readers = incident_audience(each, self._channels).disclosed_to
            past = closed_incident(each, self._teams, readers, labels, note_readers(each, self._channels))
            if past is not None and past.id not in self._known:
                closed[past.id] = each.opened_at, past
            else:
                closed.pop(each.id, None)
        newest = sorted(closed.items(), key=lambda item: (item[1][0], item[0]), reverse=True)[:MAX_ENDED]
        self._closed = dict(newest)
        whole = (*self._incidents, *(past for _, (_, past) in newest))
        if whole != self._whole.incidents:
            self._whole = await asyncio.to_thread(IncidentHistory, whole)


async def _owner_labels(incident: Incident, transaction: Transaction) -> OwnerLabels:
    """Return the labels of the last proposed owner; empty if there is a note, which is more informative."""
    proposal = incident.findings.owner
    if incident.resolution is not None or proposal is None or proposal.owner is None:
        return OwnerLabels()
    labels = await transaction.predictions.labels_of(proposal.prediction_id)
    owner = proposal.owner.team_id
    right = any(label.correct for label in labels)
    return OwnerLabels(owner if right else "", frozenset({owner} if not all(label.correct for label in labels) else ()))
