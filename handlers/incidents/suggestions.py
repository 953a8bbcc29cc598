"""Judge whether a new incident needs a person, and suggest the next action, from a runbook.

The judgement comes before the first post, and is learned from what people did. A person decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta

import structlog

from core.confidence.calibrator import fit as fit_calibrator
from core.incidents.runbook import (
    RunbookSearch,
    RunbookSection,
    best_section,
    fit,
    has_command,
    is_at,
    linked_addresses,
    read_section,
    runbook_search,
    sections_of,
)
from core.knowledge.retriever import READ, Retriever
from core.model.badge import Estimator, Evaluation, PredictionKind
from core.model.conversation import Audience
from core.model.document import Passage
from core.model.errors import Unavailable
from core.model.findings import PageJudgement, RelationKind, Runbook
from core.model.incident import Incident, IncidentState
from core.ports import ChangeReader, Clock, LearnedStore, Store, TimeWindow
from core.triage.paging import (
    PRIOR_VERSION,
    VERSION,
    Episode,
    PageModel,
    episode_of,
    has_enough,
    prior,
    prior_probability,
)
from handlers.common.ports import Ports
from handlers.common.record_prediction import record_prediction
from handlers.common.stored_incident import update_incident

ENGINE = "evidence"
MAX_LINKS = 3  # linked pages that are read as well

log = structlog.get_logger()


async def find_runbook(incident: Incident, *, retriever: Retriever, audience: Audience) -> Incident:
    """Return the incident with its runbook: the next action and its command, or only the address that an alert names.

    Quotes only what `audience` may read.
    """
    wanted = runbook_search(incident)
    try:
        runbook = await runbook_of(wanted, retriever, audience)
    except Unavailable as error:  # triage goes on without the runbook
        log.warning("runbook cannot be looked up", incident=incident.id, reason=str(error))
        runbook = Runbook(wanted.url) if wanted.url else None
    return incident.with_findings(runbook=runbook)


async def runbook_of(wanted: RunbookSearch, retriever: Retriever, audience: Audience) -> Runbook | None:
    """Return the runbook with the action that fits the cause, or with its address alone; None if there is neither.

    If the section that fits a known cause has no command, but links to a page that fits as well and has one, that page
    is quoted. Raises IndexUnavailable.
    """
    passages = await _pages(wanted.query, retriever, audience)
    pages = sorted(filter(wanted.names, passages), key=lambda each: not is_at(wanted.url, each))
    section = await _section(wanted.cause, pages, retriever, audience) if pages else None
    if section is not None:
        return await asyncio.to_thread(read_section, section, wanted.cause, wanted.url)
    return Runbook(wanted.url) if wanted.url else None


async def _pages(query: str, retriever: Retriever, audience: Audience) -> list[Passage]:
    passages = [each.passage for each in await retriever.retrieve(query, audience, READ)]
    return list({passage.document_id: passage for passage in reversed(passages)}.values())[::-1]


async def _section(
    cause: frozenset[str], pages: Sequence[Passage], retriever: Retriever, audience: Audience
) -> RunbookSection | None:
    section = best_section(sections_of(await retriever.page(pages[0].document_id, audience)), cause)
    if section is None or has_command(section) or not (own := fit(section, cause)):
        return section
    for address in linked_addresses(section)[:MAX_LINKS]:
        words = address.rpartition("/")[2].partition("#")[0].rpartition(".")[0].replace("-", " ") or address
        linked = next((each for each in await _pages(words, retriever, audience) if is_at(address, each)), None)
        if linked is None:
            continue
        there = best_section(sections_of(await retriever.page(linked.document_id, audience)), cause)
        if there is not None and has_command(there) and fit(there, cause) >= own:
            return there
    return section


DEPLOYING = timedelta(minutes=30)  # after a deployment, during which it counts as in progress
MAX_OPEN = 500  # other open incidents considered
DEADLINE = 1.0  # seconds to find out about deployments; the message does not wait longer


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
        "needs a person",
        Evaluation(1.0, raw),
        ports,
        engine=ENGINE,
        estimator_version=VERSION if learned else PRIOR_VERSION,
    )
    from_prior = learned is None and badge.probability is None
    if from_prior:
        badge = replace(badge, probability=prior_probability(raw))
    allowed = {item for each in ports.chats.channels if each.name in holding.channels for item in each.ids.items()}
    is_held = (
        holding.below is not None
        and all((place.platform, place.channel) in allowed for place in incident.placement.places)
        and model.may_wait(raw, badge.probability, facts, holding.below)
    )
    held_until = incident.opened_at + holding.length if is_held else None
    facts_then = new.severity, new.deploying, held_until, new.has_parent
    page = PageJudgement(badge, prediction_id, facts.evidence, *facts_then, from_prior)
    return await update_incident(
        incident.id, lambda latest: latest.with_findings(page=latest.findings.page or page), ports.store, incident
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
    return any(each.is_deployment and incident.service in each.touched for changes in read for each in changes)


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
    calibrator = await asyncio.to_thread(fit_calibrator, model.labels, version, now)
    if calibrator is None:
        return False
    await models.save(model)
    async with store.transaction() as transaction:
        await transaction.predictions.adopt(Estimator(PredictionKind.PAGE, ENGINE, VERSION), calibrator)
    return True
