"""Suggest an incident's severity, the known incident that it duplicates, and the next action of its runbook.

Each comes with its evidence, and the first two with a badge. A person decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import structlog

from core.incidents.readable import visible
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
from core.model.conversation import Audience
from core.model.document import Passage
from core.model.errors import Unavailable
from core.model.findings import Runbook, SeveritySuggestion
from core.model.incident import Incident, incident_readers
from core.model.prediction import PredictionKind
from core.model.relation import Relation, RelationKind
from core.triage.history import IncidentHistory
from core.triage.suggestions import (
    DUPLICATE_VERSION,
    SEVERITY_VERSION,
    assess_severity,
    duplicate_candidates,
    evaluate_duplicate,
)
from handlers.common.ports import Ports
from handlers.common.record_prediction import is_rejected, record_prediction

ENGINE = "evidence"
COMPARED = 200  # latest incidents compared


async def suggest_duplicate(incident: Incident, ports: Ports, *, audience: Audience) -> Incident:
    """Return the incident with its probable duplicate, among the incidents that its readers may see.

    If that one is itself a confirmed duplicate, its original is suggested. A confirmed duplicate is kept, a rejected
    suggestion is not repeated, and a merged incident gets none.
    """
    if incident.relation(RelationKind.DUPLICATE_OF) is not None or incident.part_of is not None:
        return incident
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(COMPARED)
    channels = await ports.chats.channels_of(recent)
    others = visible(recent, audience, channels)
    ranked = await asyncio.to_thread(duplicate_candidates, incident, others, ports.company.dependencies)
    candidate = next((each for each in ranked if each.convinces), None)
    if candidate is None:
        return incident.without_relation(RelationKind.MAY_DUPLICATE)
    evaluation = evaluate_duplicate(incident, candidate, [each.score for each in ranked if each is not candidate])
    original = _root(candidate.incident, others)
    prediction_id, badge = await record_prediction(
        PredictionKind.DUPLICATE,
        incident.id,
        original.id,
        evaluation,
        ports,
        engine=ENGINE,
        estimator_version=DUPLICATE_VERSION,
    )
    if await is_rejected(prediction_id, ports.store):
        return incident.without_relation(RelationKind.MAY_DUPLICATE)
    return incident.with_relation(
        Relation(
            RelationKind.MAY_DUPLICATE,
            original.id,
            original.title,
            candidate.evidence,
            badge=badge,
            prediction_id=prediction_id,
            readers=incident_readers(original, channels),
        )
    )


def _root(incident: Incident, others: Sequence[Incident]) -> Incident:
    """Return the original of a confirmed duplicate, as far as it is visible; otherwise the incident itself."""
    by_id = {other.id: other for other in others}
    seen = {incident.id}
    while (confirmed := incident.relation(RelationKind.DUPLICATE_OF)) is not None:
        original = by_id.get(confirmed.incident_id)
        if original is None or original.id in seen:
            break
        seen.add(original.id)
        incident = original
    return incident


async def suggest_severity(incident: Incident, ports: Ports, *, history: IncidentHistory) -> Incident:
    """Return the incident with a suggested severity; with none if too few similar incidents are known.

    A severity that a person set is kept, with its suggestion. A rejected suggestion is not repeated.
    """
    if incident.severity_by:
        return incident
    assessment = await asyncio.to_thread(assess_severity, incident, history)
    if assessment is None:
        return incident.with_findings(suggested_severity=None)
    prediction_id, badge = await record_prediction(
        PredictionKind.SEVERITY,
        incident.id,
        assessment.severity,
        assessment.evaluation,
        ports,
        engine=ENGINE,
        estimator_version=SEVERITY_VERSION,
        group=assessment.severity,
        references=assessment.references,
    )
    if await is_rejected(prediction_id, ports.store):
        return incident.with_findings(suggested_severity=None)
    suggestion = SeveritySuggestion(assessment.severity, assessment.evidence, badge, prediction_id)
    return incident.with_findings(suggested_severity=suggestion)


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
