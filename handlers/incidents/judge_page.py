"""Judge whether a new incident needs a person or can wait, before it is first posted. Learn from what people did."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import structlog

from core.confidence.calibrator import fit
from core.model.badge import Holding
from core.model.conversation import Channel
from core.model.errors import Unavailable
from core.model.findings import PageJudgement
from core.model.incident import Incident, IncidentState
from core.model.prediction import Estimator, Evaluation, PredictionKind
from core.model.relation import RelationKind
from core.ports import ChangeReader, Clock, LearnedStore, Store, TimeWindow
from core.triage.episodes import Episode, episode_of
from core.triage.paging import PRIOR_VERSION, VERSION, PageModel, has_enough, prior, prior_probability
from handlers.common.ports import Ports
from handlers.common.record_prediction import record_prediction
from handlers.common.stored_incident import update_incident

ENGINE = "evidence"
NEEDS_A_PERSON = "needs a person"
DEPLOYING = timedelta(minutes=30)  # after a deployment, during which it counts as in progress
DEPLOYS = frozenset({"deploy", "deployment", "release", "rollout"})  # kinds of changes
MAX_OPEN = 500  # other open incidents considered
DEADLINE = 1.0  # seconds to find out about deployments; the message does not wait longer

log = structlog.get_logger()


async def judge_page(incident: Incident, ports: Ports) -> Incident:
    """Return the incident with its judgement; by the prior while too little was learned from earlier ones.

    It is held back if `holding` allows that in all of its channels, and the judgement is certain enough. Raises
    Unavailable. After any other failure it has no judgement and is posted.
    """
    if (
        incident.findings.page is not None
        or incident.placement.message is not None
        or incident.state is not IncidentState.OPEN
    ):
        return incident
    try:
        learned = ports.paging.page_models
        return await _judged(incident, await learned.load(), ports) if learned is not None else incident
    except Unavailable:
        raise
    except Exception:  # a bug here must not keep an incident from being posted
        log.exception("page not judged", incident=incident.id)
        return incident


async def _judged(incident: Incident, learned: PageModel | None, ports: Ports) -> Incident:
    holding, model = ports.paging.holding, learned or prior()
    async with ports.store.transaction() as transaction:
        others = await transaction.incidents.latest_open(MAX_OPEN)
    new = replace(
        episode_of(incident),
        severity=incident.severity,
        deploying=await _is_deploying(incident, ports.readers.changes, ports.clock),
        has_parent=incident.part_of is not None or incident.relation(RelationKind.MAY_BE_PART_OF) is not None,
    )
    still_open = [episode_of(each) for each in others]
    facts = await asyncio.to_thread(lambda: ports.paging.pages().facts(new, still_open))
    raw = model.probability(facts)
    prediction_id, badge = await record_prediction(
        PredictionKind.PAGE,
        incident.id,
        NEEDS_A_PERSON,
        Evaluation(1.0, raw),
        ports,
        engine=ENGINE,
        estimator_version=VERSION if learned else PRIOR_VERSION,
    )
    from_prior = learned is None and badge.probability is None
    if from_prior:
        badge = replace(badge, probability=prior_probability(raw))
    is_held = (
        holding.below is not None
        and _is_allowed(incident, holding, ports.chats.channels)
        and model.may_wait(raw, badge.probability, facts, holding.below)
    )
    held_until = incident.opened_at + holding.length if is_held else None
    facts_then = new.severity, new.deploying, held_until, new.has_parent
    page = PageJudgement(badge, prediction_id, facts.evidence, *facts_then, from_prior)
    return await update_incident(
        incident.id, lambda latest: latest.with_findings(page=latest.findings.page or page), ports.store, incident
    )


def _is_allowed(incident: Incident, holding: Holding, channels: Sequence[Channel]) -> bool:
    """Return whether all places of an incident are channels in which it may be held back."""
    allowed = {item for each in channels if each.name in holding.channels for item in each.ids.items()}
    return all(
        (place.platform, place.channel) in allowed for place in (incident.placement.place, *incident.placement.also_in)
    )


async def _is_deploying(incident: Incident, readers: Sequence[ChangeReader], clock: Clock) -> bool:
    """Return whether the service was just deployed. False if that cannot be found out in time."""
    now = clock.now()
    window = TimeWindow(now - DEPLOYING, now)
    try:
        async with asyncio.timeout(DEADLINE):
            read = await asyncio.gather(*(reader.changes(window) for reader in readers))
    except (Unavailable, TimeoutError) as error:
        log.info("deployments unknown", incident=incident.id, reason=str(error) or "too slow")
        return False
    return any(each.kind in DEPLOYS and incident.service in each.touched for changes in read for each in changes)


async def learn_pages(
    episodes: Sequence[Episode],
    *,
    models: LearnedStore[PageModel],
    fit_model: Callable[[Sequence[Episode]], Awaitable[PageModel | None]],
    store: Store,
    clock: Clock,
) -> bool:
    """Fit the model and its calibrator from ended incidents (nightly). Returns whether there were enough."""
    model = await fit_model(episodes) if has_enough(episodes) else None
    if model is None:
        return False
    now = clock.now()
    version = f"{PredictionKind.PAGE}:{ENGINE}:{VERSION}:{now:%Y%m%dT%H%M%S}"
    calibrator = await asyncio.to_thread(fit, model.labels, version, now)
    if calibrator is None:
        return False
    await models.save(model)
    async with store.transaction() as transaction:
        await transaction.predictions.adopt(Estimator(PredictionKind.PAGE, ENGINE, VERSION), calibrator)
    return True
