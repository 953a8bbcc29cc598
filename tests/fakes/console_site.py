"""The local page in front of fakes, on a port of its own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from aiohttp.test_utils import TestServer, unused_port

from adapters.console.console import Console, Replay, SourceStatus
from adapters.console.messages import ConsoleMessenger, Live
from adapters.console.pages import ConsolePages
from adapters.signing_in.accounts import Accounts
from bot.web.routes import Webhooks, build_app
from core.knowledge.passages import passages_of
from core.knowledge.retriever import Retriever
from core.model.badge import Calibrator, Estimator, Outcome, Prediction, PredictionKind, Verdict
from core.model.conversation import Channel, MessageReference, Place, Platform, channel_reader
from core.model.document import Document
from core.model.incident import Incident
from core.model.messages import Message
from core.ports import Clock, EncodedPassage, SparseVector, Transaction
from handlers.questions.redeliver import ask_to_redeliver
from tests.fakes.clock import FakeClock
from tests.fakes.console_messages import InMemoryConsoleMessages
from tests.fakes.inbox import FakeInbox
from tests.fakes.passage_index import FakePassageIndex
from tests.fakes.store.audit import InMemoryAudit
from tests.fakes.store.dead_letters import InMemoryDeadLetters
from tests.fakes.store.tasks import InMemoryTasks

CHANNELS = (
    Channel("help", {Platform.CONSOLE: "help"}),
    Channel("incidents", {Platform.CONSOLE: "incidents", Platform.SLACK: "C0INC"}),
    Channel("vault", {Platform.CONSOLE: "vault"}, private=True),
    Channel("elsewhere", {Platform.SLACK: "C0ELSE"}),
)
EXAMPLES = ("How do I roll back a canary?", "When is the freeze?")


class FakeStore:
    """The stores that the page reads: incidents and predictions."""

    def __init__(self) -> None:
        self.incidents: dict[str, Incident] = {}
        self.claims: dict[str, tuple[Prediction, Outcome | None]] = {}
        self.calibrators: dict[Estimator, Calibrator] = {}
        self.audit = InMemoryAudit()
        self.dead_letters = InMemoryDeadLetters()
        self.tasks = InMemoryTasks()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def lock(self, name: str) -> asyncio.Lock:
        return self._locks[name]

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        incidents = SimpleNamespace(get=self._incident, recent=self._recent_incidents)
        predictions = SimpleNamespace(
            recent=self._recent_claims,
            estimators=self._estimators,
            verdicts=self._verdicts,
            calibrator=self._calibrator_of,
        )
        others = {"audit": self.audit, "dead_letters": self.dead_letters, "tasks": self.tasks}
        yield cast("Transaction", SimpleNamespace(incidents=incidents, predictions=predictions, **others))

    async def _incident(self, incident_id: str) -> Incident | None:
        return self.incidents.get(incident_id)

    async def _recent_incidents(self, limit: int) -> list[Incident]:
        return sorted(self.incidents.values(), key=lambda incident: incident.opened_at, reverse=True)[:limit]

    async def _recent_claims(self, kind: PredictionKind, limit: int) -> list[tuple[Prediction, Outcome | None]]:
        return [claim for claim in self.claims.values() if claim[0].kind is kind][:limit]

    async def _estimators(self) -> list[Estimator]:
        return sorted({claim.estimator for claim, _ in self.claims.values()})

    async def _verdicts(self, estimator: Estimator, limit: int) -> list[Verdict]:
        judged = [(claim, outcome) for claim, outcome in self.claims.values() if outcome]
        return [(claim.probability, outcome.correct) for claim, outcome in judged if claim.estimator == estimator][
            -limit:
        ]

    async def _calibrator_of(self, estimator: Estimator) -> Calibrator | None:
        return self.calibrators.get(estimator)


@dataclass
class Site:
    """A page that is being served, and all that stands behind it."""

    address: str
    messages: InMemoryConsoleMessages
    messenger: ConsoleMessenger
    live: Live
    inbox: FakeInbox
    store: FakeStore
    index: FakePassageIndex
    clock: FakeClock
    sources: list[SourceStatus] = field(default_factory=list)

    async def post(self, place: Place, message: Message) -> MessageReference:
        """Plumbline says something."""
        return await self.messenger.post(place, message, f"intent {len(self.messages.all())}")

    async def file(self, document: Document) -> None:
        """Put a document into the index."""
        nothing = (SparseVector((), ()), np.zeros((1, 4), np.float32))
        await self.index.upsert([EncodedPassage(passage, *nothing) for passage in passages_of(document)])

    def happen(self, incident: Incident) -> None:
        """An incident is stored, or changes."""
        self.store.incidents[incident.id] = incident
        self.live.notify()


@asynccontextmanager
async def console_site(
    *,
    token: str | None = None,
    replays: Mapping[str, Replay] | None = None,
    accounts: Callable[[str, Clock], Accounts] | None = None,
    clock: Clock | None = None,
) -> AsyncIterator[Site]:
    """Serve the page. `accounts` returns those of a page at this address."""
    clock = clock or FakeClock()
    port = unused_port()
    address = f"http://127.0.0.1:{port}"
    live, messages = Live(), InMemoryConsoleMessages()
    site = Site(
        address=address,
        messages=messages,
        messenger=ConsoleMessenger(messages, live, clock),
        live=live,
        inbox=FakeInbox(),
        store=FakeStore(),
        index=FakePassageIndex(),
        clock=cast("FakeClock", clock),
    )
    site.sources.append(SourceStatus("handbook", "folder documents", 60, clock.now() - timedelta(minutes=5)))

    async def sources_status() -> list[SourceStatus]:
        return site.sources

    async def channels_now(readers: Iterable[str]) -> Sequence[Channel]:
        known = set(readers)
        places = {channel.name: set(map(channel_reader, channel.places)) for channel in CHANNELS}
        return [replace(each, private=each.private or not known & places[each.name]) for each in CHANNELS]

    signed_in = accounts(address, clock) if accounts is not None else None
    console = Console(
        messages=messages,
        live=live,
        inbox=site.inbox,
        store=site.store,
        count_passages=site.index.count,
        document=Retriever(site.index, cast("Any", None), channels_now=channels_now).page,
        sources_status=sources_status,
        all_channels=CHANNELS,
        channels_now=channels_now,
        workspace_name="Marigold Ferries",
        clock=clock,
        examples=EXAMPLES,
        replays=replays or {},
    )
    pages = ConsolePages(console, partial(ask_to_redeliver, store=site.store), token, signed_in)
    app = build_app(
        webhooks=Webhooks({}, _no_delivery, None, clock),
        chats={},
        ready=_ready,
        add_console=pages.add_routes,
        is_page_guarded=token is not None or signed_in is not None,
    )
    async with TestServer(app, host="127.0.0.1", port=port):
        yield site


async def _no_delivery(delivery: object) -> str | None:
    raise AssertionError("no webhook is sent here")


async def _ready() -> str:
    return ""
