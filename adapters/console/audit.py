"""The audit log of the local page: its records and its page."""

from __future__ import annotations

from uuid import uuid4

from aiohttp import web

from adapters.console.console import OPERATOR, Console, number_of
from core.model.audit import Act, audit_entry
from core.model.errors import MalformedInput

SHOWN = 100  # entries per page


class AuditLog:
    def __init__(self, console: Console) -> None:
        self._console = console

    async def record(self, request: web.Request, act: Act) -> None:
        """Record an act. The client's address stands for the person, because the page has one token and no accounts.

        Of the query, only the channel is stored, because the rest may quote documents.
        """
        channel = request.query.get("channel")
        entry = audit_entry(
            f"console:{uuid4().hex}",
            self._console.clock.now(),
            act,
            OPERATOR,
            request.path + (f"?channel={channel}" if channel else ""),
            documents=tuple(request.match_info[name] for name in ("document_id",) if name in request.match_info),
            detail=request.remote or "",
        )
        async with self._console.store.transaction() as transaction:
            await transaction.audit.add(entry)

    async def show(self, request: web.Request) -> web.Response:
        """Handle `GET /audit?act=…&before=NUMBER`."""
        act = _act(request.query.get("act", ""))
        before = number_of(request.query["before"]) if "before" in request.query else None
        async with self._console.store.transaction() as transaction:
            entries = await transaction.audit.latest(SHOWN + 1, before, act)
        html = self._console.renderer.page(
            "audit.html",
            entries=entries[:SHOWN],
            older=entries[SHOWN - 1].number if len(entries) > SHOWN else None,
            acts=list(Act),
            act=act,
        )
        return web.Response(text=html, content_type="text/html")


def _act(name: str) -> Act | None:
    try:
        return Act(name) if name else None
    except ValueError:
        raise MalformedInput("There is no such act in the audit log: choose one on the page.") from None
