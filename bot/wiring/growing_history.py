"""The past incidents: those that the sources hold, and those that ended here with a note on why or a known owner.

Every process has its own copy, and looks now and then for what ended, or was judged, wherever people said so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog

from core.model.audience import incident_audience
from core.model.closed_incident import OwnerLabels, closed_incident
from core.model.conversation import Audience, Channel
from core.model.errors import StoreUnavailable
from core.model.incident import Incident, PastIncident
from core.model.prediction import PredictionKind
from core.model.team import Team
from core.ports import Clock, Store, Transaction
from core.triage.history import IncidentHistory

MAX_ENDED = 5_000  # latest incidents that ended and are learned from
EVERY = 30.0  # seconds between looks for what is new
LOADED = (
    20.0  # a look that took long is followed by a pause of so many times as long: building the history takes a core
)
OVERLAP = timedelta(minutes=5)  # that is read again: clocks differ, and what began to be written may be seen late
WHOLE = timedelta(days=1)  # after which all of it is read: what was reopened or deleted is taken out by that alone

log = structlog.get_logger()


class GrowingHistory:
    """The history as of the last look; whoever searches it meanwhile goes on in the one before."""

    def __init__(
        self, incidents: Sequence[PastIncident], channels: Sequence[Channel], teams: Sequence[Team], clock: Clock
    ) -> None:
        self._incidents = tuple(incidents)
        self._channels = channels
        self._teams = teams
        self._clock = clock
        self._known = {incident.id for incident in self._incidents}
        self._closed: dict[str, tuple[datetime, PastIncident]] = {}  # by id; with when it was opened
        self._whole = IncidentHistory(self._incidents)
        self._whole_at: datetime | None = None
        self._read_at: datetime | None = None
        self._reading = asyncio.Lock()

    @property
    def whole(self) -> IncidentHistory:
        """All of it, whoever may read it: to learn from, never to show."""
        return self._whole

    @property
    def incidents(self) -> tuple[PastIncident, ...]:
        """All of them, whoever may read them: to learn from, never to show."""
        return self._whole.incidents

    def readable_by(self, audience: Audience) -> IncidentHistory:
        """See `IncidentHistory.readable_by`."""
        return self._whole.readable_by(audience)

    async def grow(self, store: Store) -> None:
        """Take in all that ended. An incident is read by those who may read what is said in its channel."""
        async with self._reading:
            await self._read_whole(store)

    async def catch_up(self, store: Store) -> None:
        """Take in what ended, or was judged, since the last look. Cheap where nothing was."""
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
            await self._take(labelled, self._closed)
            self._read_at = now

    async def follow(self, store: Store) -> None:
        """Catch up again and again until cancelled."""
        pause = EVERY
        while True:
            await asyncio.sleep(pause)
            began = time.monotonic()
            try:
                await self.catch_up(store)
            except StoreUnavailable as error:
                log.warning("past incidents wait", reason=str(error))
            except Exception:  # a mistake of ours: what ended is not to be missed for good
                log.exception("past incidents cannot be read")
            pause = max(EVERY, LOADED * (time.monotonic() - began))

    async def _read_whole(self, store: Store) -> None:
        now = self._clock.now()
        async with store.transaction() as transaction:
            ended = [
                (each, await _owner_labels(each, transaction)) for each in await transaction.incidents.ended(MAX_ENDED)
            ]
        await self._take(ended, {})
        self._read_at = self._whole_at = now

    async def _take(
        self, labelled: Iterable[tuple[Incident, OwnerLabels]], before: dict[str, tuple[datetime, PastIncident]]
    ) -> None:
        closed = dict(before)
        for each, labels in labelled:
            readers = incident_audience(each, self._channels).disclosed_to
            past = closed_incident(each, self._teams, readers, labels)
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
    """Return the labels of the owner that was proposed last; a note says more."""
    proposal = incident.owner
    if incident.resolution is not None or proposal is None or proposal.owner is None:
        return OwnerLabels()
    said = await transaction.predictions.labels_of(proposal.prediction_id)
    owner = proposal.owner.team_id
    right = any(label.correct for label in said)
    return OwnerLabels(owner if right else "", frozenset({owner} if not all(label.correct for label in said) else ()))
