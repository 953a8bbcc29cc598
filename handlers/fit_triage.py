"""Nightly: learn from the past incidents which team owns which incidents, and calibrate the owner's badge by it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from core.confidence.calibrator import fit as fit_calibrator
from core.confidence.owner_evidence import VERSION, labels_from
from core.confidence.prediction import Estimator, PredictionKind
from core.incident import PastIncident
from core.ports import Clock, OwnerModelStore, Store
from core.team import Team
from core.triage.owner_model import OwnerModel
from core.triage.training import training_incidents
from handlers.triage_incident import ENGINE

Fit = Callable[[Sequence[PastIncident], Sequence[Team]], Awaitable[OwnerModel | None]]


async def fit_triage(
    past: Sequence[PastIncident],
    *,
    teams: Sequence[Team],
    models: OwnerModelStore,
    fit: Fit,
    store: Store,
    clock: Clock,
) -> bool:
    """Whether there was enough to learn from; if not, the model in use stays.

    Where nobody has judged an owner yet, the first calibrator learns from the past incidents that the model was checked
    on. Not where they name services that a team owns: then ownership speaks too, and only labels tell how well.
    """
    incidents = training_incidents(past, teams)
    model = await fit(incidents, teams)
    if model is None:
        return False
    await models.save(model)
    owned = {service for team in teams for service in team.services}
    if not any(incident.service in owned for incident in incidents):
        await _calibrate(model, store, clock)
    return True


async def _calibrate(model: OwnerModel, store: Store, clock: Clock) -> None:
    estimator, now = Estimator(PredictionKind.OWNER, ENGINE, VERSION), clock.now()
    async with store.transaction() as transaction:
        if await transaction.predictions.calibrator(estimator) is not None:
            return
        first = fit_calibrator(labels_from(model), f"{estimator.kind}:{ENGINE}:{VERSION}:{now:%Y%m%dT%H%M%S}", now)
        if first is not None:
            await transaction.predictions.adopt(estimator, first)
