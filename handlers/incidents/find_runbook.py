"""Find the runbook that an incident's alerts name, and quote the next action from it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog

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
from core.model.findings import Runbook
from core.model.incident import Incident

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
    return replace(incident, runbook=runbook)


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
