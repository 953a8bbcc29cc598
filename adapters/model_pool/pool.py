"""A pool of servers with the same language model: queued, fair, and available while one server is."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from adapters.llama.connection import RequestRefused
from adapters.model_pool.queue import QueuePlace, RequestQueue
from adapters.model_pool.server import BreakerState, ModelServer, RequestOutcome, ServerLoad, ServerStatus
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, Urgency, ignore_text
from core.ports import Clock, LanguageModel

CAPACITY = 64  # requests that may wait
HEALTH_PERIOD = 10.0  # seconds between health checks of a server
HEALTH_TIMEOUT = 5.0  # seconds per health check
COUNT_TIMEOUT = 30.0  # seconds; a server with one slot counts only when it is idle

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PoolStatus:
    """The state of a pool: waiting requests by urgency, and its servers."""

    waiting: dict[Urgency, int]
    servers: tuple[ServerStatus, ...]


class ModelPool:
    """The LanguageModel port over servers with the same model.

    A request waits in a bounded queue for a free slot: people before incidents before background work, requesters in
    turn, none starved (see RequestQueue). Background work never uses all slots of a pool with several. A request for
    several replies counts as that many, and begins when one slot is free. Of the free servers, the one with the most of
    the prompt cached is chosen, else the least busy one. A request whose server fails keeps its place in the queue and
    goes to another server. The deadline covers all of that. Cancelling the task that awaits a reply removes the request
    from the queue or frees its slot.
    """

    def __init__(self, servers: Sequence[ModelServer], clock: Clock, capacity: int = CAPACITY) -> None:
        self._servers = [ServerLoad(server, clock) for server in servers]
        self._queue = RequestQueue(capacity)

    # --- the port ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._servers[0].server.model.name

    async def context_tokens(self) -> int:
        """Return the smallest context of the available servers, so that a prompt fits any of them."""
        return min([tokens async for tokens in self._answers(lambda model: model.context_tokens())])

    async def count_tokens(self, text: str) -> int:
        async with aclosing(self._answers(lambda model: model.count_tokens(text))) as answers:
            return await anext(answers)

    async def abilities(self) -> Abilities:
        of_servers = [abilities async for abilities in self._answers(lambda model: model.abilities())]
        return Abilities(
            odds=all(each.odds for each in of_servers),
            schemas=all(each.schemas for each in of_servers),
            counts=all(each.counts for each in of_servers),
            parallel=sum(each.parallel for each in of_servers),
        )

    async def _answers(self, ask: Callable[[LanguageModel], Awaitable[T]]) -> AsyncGenerator[T]:
        """Yield the answers of the servers, one after the other. Raises ModelUnavailable if no server answers."""
        failure, answered = self._down(), False
        for load in self._reachable():
            try:
                async with asyncio.timeout(COUNT_TIMEOUT):
                    answer = await ask(load.server.model)
            except ModelUnavailable as error:
                failure = error
            except TimeoutError:
                continue
            else:
                answered = True
                yield answer
        if not answered:
            raise failure

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        return await self._run(request, lambda model, inner: model.generate(inner, on_text))

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        return await self._run(request, lambda model, inner: model.sample(inner, count), width=count)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        return await self._run(request, lambda model, inner: model.expect(inner, choices))

    # --- for people and operators ------------------------------------------------------------------------------------

    def position(self, requester: str) -> int:
        """Return the place in the queue of this requester's next request, from 1; 0 if none waits."""
        order = [ticket.requester for ticket in self._queue.order()]
        return order.index(requester) + 1 if requester in order else 0

    @property
    def status(self) -> PoolStatus:
        return PoolStatus(
            waiting={urgency: self._queue.waiting(urgency) for urgency in Urgency},
            servers=tuple(load.status for load in self._servers),
        )

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Check the health of every server repeatedly, until the block ends."""
        watch = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            watch.cancel()
            await asyncio.wait([watch])

    async def _watch(self) -> None:
        while True:
            await self.check_health()
            await asyncio.sleep(HEALTH_PERIOD)

    async def check_health(self) -> None:
        """Check the health of every server, and update its number of slots."""
        await asyncio.gather(*(self._check(load) for load in self._servers))
        self._dispatch()

    async def _check(self, load: ServerLoad) -> None:
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT):
                slots = await load.server.check()
        except (ModelUnavailable, TimeoutError):
            load.breaker.failed()
        else:
            load.resize(slots)
            load.breaker.recovered()

    # --- scheduling --------------------------------------------------------------------------------------------------

    async def _run(
        self, request: ModelRequest, call: Callable[[LanguageModel, ModelRequest], Awaitable[T]], width: int = 1
    ) -> T:
        """Return the result of a call on a free server, or on another one if that fails."""
        ticket = _ticket(request, width)
        while True:
            load = await self._start(ticket)
            try:
                with self._held(ticket, load):
                    return await self._within(ticket, call(load.server.model, _remaining(request, ticket)))
            except ModelUnavailable:
                if not self._may_still_start(ticket):
                    raise

    async def _within(self, ticket: QueuePlace, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(ticket.ends_at):
                return await work
        except TimeoutError:
            raise ModelUnavailable(f"{self.name} did not answer before the request's deadline.") from None

    @contextmanager
    def _held(self, ticket: QueuePlace, load: ServerLoad) -> Generator[None]:
        """Free the slot afterwards, and record the outcome."""
        outcome = RequestOutcome.ABANDONED
        try:
            yield
            outcome = RequestOutcome.ANSWERED
        except (PromptTooLong, InvalidReply):
            outcome = RequestOutcome.ANSWERED
            raise
        except RequestRefused:
            # The server is healthy and refuses this request; others are not affected.
            outcome = RequestOutcome.ANSWERED
            ticket.tried.add(self._servers.index(load))
            raise
        except ModelUnavailable:
            # A timeout may be due to a long queue or prompt; a dead server is found by its health check.
            if not _is_over(ticket):
                outcome = RequestOutcome.FAILED
                ticket.tried.add(self._servers.index(load))
            raise
        finally:
            load.stop(ticket, outcome)
            self._dispatch()

    async def _start(self, ticket: QueuePlace) -> ServerLoad:
        """Wait for a slot. Raises ModelUnavailable if the queue is full, no server is available, or the time is up."""
        self._queue.add(ticket)
        self._dispatch()
        try:
            return self._servers[await self._within(ticket, ticket.granted)]
        except (asyncio.CancelledError, ModelUnavailable):
            self._queue.discard(ticket)
            if not ticket.granted.cancelled() and ticket.granted.exception() is None:
                # The slot was granted at the moment the waiting ended.
                self._servers[ticket.granted.result()].abandon(ticket)
                self._dispatch()
            raise

    def _dispatch(self) -> None:
        """Start every request that can start now, and refuse those without an available server."""
        for ticket in self._queue.order():
            if not self._has_server(ticket):
                self._queue.refuse(ticket, self._down())
        while (start := self._next_start()) is not None:
            ticket, server = start
            self._servers[server].start(ticket)
            self._queue.start(ticket, server)

    def _next_start(self) -> tuple[QueuePlace, int] | None:
        for ticket in self._queue.order():
            server = self._server_for(ticket)
            if server is not None:
                return ticket, server
        return None

    def _server_for(self, ticket: QueuePlace) -> int | None:
        if ticket.urgency is Urgency.BACKGROUND and not self._room_for_background():
            return None
        able = [
            index
            for index, load in enumerate(self._servers)
            if index not in ticket.tried and load.free > 0 and load.breaker.allows
        ]
        if len(able) < 2:
            return able[0] if able else None
        return max(able, key=lambda index: self._fitness(index, ticket.prompt))

    def _fitness(self, index: int, prompt: str) -> tuple[float, float]:
        load = self._servers[index]
        return load.cached_share(prompt), load.free / load.slots

    def _room_for_background(self) -> bool:
        loads = self._reachable()
        slots = sum(load.slots for load in loads)
        return sum(load.busy_with_background for load in loads) < max(1, slots - 1)

    def _reachable(self) -> list[ServerLoad]:
        return [load for load in self._servers if load.breaker.state is not BreakerState.OPEN]

    def _may_still_start(self, ticket: QueuePlace) -> bool:
        return not _is_over(ticket) and self._has_server(ticket)

    def _has_server(self, ticket: QueuePlace) -> bool:
        """Return whether a server is available for it, free or not."""
        return any(
            index not in ticket.tried and load.breaker.state is not BreakerState.OPEN
            for index, load in enumerate(self._servers)
        )

    def _down(self) -> ModelUnavailable:
        addresses = ", ".join(load.server.address for load in self._servers)
        return ModelUnavailable(f"{self.name} is down at {addresses}. Run `plumbline doctor` for details.")


def _ticket(request: ModelRequest, width: int = 1) -> QueuePlace:
    return QueuePlace(
        urgency=request.urgency,
        requester=request.requester,
        ends_at=asyncio.get_running_loop().time() + request.deadline,
        prompt="\n".join(message.text for message in request.messages),
        width=width,
    )


def _is_over(ticket: QueuePlace) -> bool:
    return asyncio.get_running_loop().time() >= ticket.ends_at


def _remaining(request: ModelRequest, ticket: QueuePlace) -> ModelRequest:
    return replace(request, deadline=ticket.ends_at - asyncio.get_running_loop().time())
