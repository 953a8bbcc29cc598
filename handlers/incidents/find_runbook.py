"""Read the runbook that an incident's alerts name, and quote from it what to do next."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

from core.incidents.runbook import (
    Section,
    best_section,
    fit,
    has_command,
    is_at,
    is_named_by,
    linked_addresses,
    read_section,
    runbook_query,
    runbook_url,
    sections_of,
)
from core.knowledge.retriever import READ, Retriever
from core.model.conversation import Audience
from core.model.document import Passage
from core.model.errors import Unavailable
from core.model.incident import Incident, Runbook

MAX_LINKS = 3  # pages that a runbook leads to, and that are read as well

log = structlog.get_logger()


async def find_runbook(incident: Incident, *, retriever: Retriever, audience: Audience) -> Incident:
    """Return the incident with its runbook: the next action and its command, else the address that an alert names.

    Only what `audience` may read is quoted. Where the section that fits a known cause has no command, and leads to a
    page that fits it as well and has one, that page is quoted.
    """
    url = runbook_url(incident)
    try:
        pages = await _pages(incident, retriever, audience)
        section = await _section(incident, pages, retriever, audience) if pages else None
    except Unavailable as error:  # triage does not wait for it
        log.warning("runbook cannot be looked up", incident=incident.id, reason=str(error))
        section = None
    if section is not None:
        return replace(incident, runbook=await asyncio.to_thread(read_section, section, incident, url))
    return replace(incident, runbook=Runbook(url) if url else None)


async def _pages(incident: Incident, retriever: Retriever, audience: Audience) -> list[Passage]:
    """Return one passage of each page that the alerts name, those that are named by their address first."""
    found = await _found(runbook_query(incident), retriever, audience)
    url = runbook_url(incident)
    return sorted((each for each in found if is_named_by(incident, each)), key=lambda each: not is_at(url, each))


async def _found(query: str, retriever: Retriever, audience: Audience) -> list[Passage]:
    passages = [each.passage for each in await retriever.retrieve(query, audience, READ)]
    return list({passage.document_id: passage for passage in reversed(passages)}.values())[::-1]


async def _section(
    incident: Incident, pages: Sequence[Passage], retriever: Retriever, audience: Audience
) -> Section | None:
    section = best_section(sections_of(await retriever.page(pages[0].document_id, audience)), incident)
    if section is None or has_command(section) or not (own := fit(section, incident)):
        return section
    for address in linked_addresses(section)[:MAX_LINKS]:
        words = address.rpartition("/")[2].partition("#")[0].rpartition(".")[0].replace("-", " ") or address
        linked = next((each for each in await _found(words, retriever, audience) if is_at(address, each)), None)
        if linked is None:
            continue
        there = best_section(sections_of(await retriever.page(linked.document_id, audience)), incident)
        if there is not None and has_command(there) and fit(there, incident) >= own:
            return there
    return section
