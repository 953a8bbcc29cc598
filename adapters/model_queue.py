"""A language model server behind a queue, in which nobody waits for another member's flood."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TypeVar

from adapters.llama.connection import RequestRefused
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, Urgency, ignore_text
from core.ports import LanguageModel

CAPACITY = 64  # requests that may wait
MAX_PASSED_OVER = 8  # starts of more urgent requests after which a waiting class gets one
HEALTH_PERIOD = 10.0  # seconds between health checks
HEALTH_TIMEOUT = 5.0  # seconds per health check

T = TypeVar("T")


class RequestOutcome(StrEnum):
    """The outcome of a request to the server."""

    ANSWERED = "answered"  # also with a refusal of this request
    FAILED = "failed"
    ABANDONED = "abandoned"  # timed out or cancelled; many of these suggest that the server hangs


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """The state of the server and its queue: waiting requests by urgency, and finished ones since the bot started.

    The server is left alone while it is not `up`.
    """

    address: str
    up: bool
    busy: int
    slots: int
    waiting: Mapping[Urgency, int]
    outcomes: Mapping[RequestOutcome, int]


@dataclass(eq=False, slots=True)
class QueuePlace:
    """A request's place in the queue. `width` is the number of requested replies; `granted` is set when it may start."""

    urgency: Urgency
    requester: str
    width: int = 1
    granted: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    round: int = 0


class RequestQueue:
    """A bounded queue: by urgency, and within an urgency the requesters in turn.

    No class starves: one that `MAX_PASSED_OVER` starts have passed over gets the next one, so that each has at least a ninth
    of the starts. Within a class, no requester is served twice while another one waits.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._places: list[QueuePlace] = []  # in the order of their arrival
        self._passed_over: Counter[Urgency] = Counter()
        self._round: Counter[Urgency] = Counter()  # the current round-robin round of each class
        self._served: dict[Urgency, set[str]] = {urgency: set() for urgency in Urgency}  # in that round

    @property
    def _waiting(self) -> list[QueuePlace]:
        """Return the waiting places, without those whose task was cancelled and has not removed them yet."""
        return [place for place in self._places if not place.granted.done()]

    def add(self, place: QueuePlace) -> None:
        """Queue a request.

        A full queue drops its newest request of the lowest urgency, whose `granted` then raises ModelUnavailable.
        """
        urgency = place.urgency
        current = self._round[urgency]
        rounds = [
            waiting.round
            for waiting in self._waiting
            if (waiting.urgency, waiting.requester) == (urgency, place.requester)
        ]
        last = max(rounds, default=current if place.requester in self._served[urgency] else current - 1)
        place.round = max(current, last + 1)
        if not self.waiting(urgency):
            self._passed_over[urgency] = 0
        self._places.append(place)
        if len(self._waiting) > self._capacity:
            last_place = max(reversed(self._waiting), key=lambda waiting: waiting.urgency)
            self.refuse(last_place, f"The language model's queue is full ({self._capacity} requests).")

    def order(self) -> list[QueuePlace]:
        """Return all waiting places, the next one first."""
        overdue = {urgency for urgency, passed in self._passed_over.items() if passed >= MAX_PASSED_OVER}
        return sorted(self._waiting, key=lambda place: (place.urgency not in overdue, place.urgency, place.round))

    def start(self, place: QueuePlace) -> None:
        """Remove a request, which may start."""
        self.discard(place)
        urgency = place.urgency
        for other in Urgency:
            if other > urgency and self.waiting(other):
                self._passed_over[other] += 1
        self._passed_over[urgency] = 0
        if place.round > self._round[urgency]:
            self._round[urgency] = place.round
            self._served[urgency].clear()
        self._served[urgency].add(place.requester)
        place.granted.set_result(None)

    def refuse(self, place: QueuePlace, reason: str) -> None:
        """Remove a request, whose `granted` then raises ModelUnavailable."""
        self.discard(place)
        place.granted.set_exception(ModelUnavailable(reason))

    def discard(self, place: QueuePlace) -> None:
        """Remove a request, if it is queued."""
        if place in self._places:
            self._places.remove(place)

    def waiting(self, urgency: Urgency) -> int:
        """Return the number of waiting requests of this urgency."""
        return sum(place.urgency is urgency for place in self._waiting)


class ModelQueue:
    """The LanguageModel port over one server, or over a load balancer before several servers with the same model.

    A request waits in a bounded queue for a free slot: people before incidents before background work, requesters in
    turn, none starved (see RequestQueue). Background work never uses all of several slots. A request for several replies
    counts as that many, and begins when one slot is free. The deadline covers the wait. Cancelling the task that awaits a
    reply removes the request from the queue or frees its slot.

    After a request or health check has failed, every request is refused at once, until a health check passes.
    """

    def __init__(
        self, model: LanguageModel, check: Callable[[], Awaitable[int]], address: str, capacity: int = CAPACITY
    ) -> None:
        """Open the queue. `check` returns the number of slots, and raises ModelUnavailable if the server is unhealthy."""
        self._model = model
        self._check = check
        self._address = address
        self._queue = RequestQueue(capacity)
        self._running: list[QueuePlace] = []
        self._slots = 1
        self._outcomes = Counter(dict.fromkeys(RequestOutcome, 0))
        self._is_up = True

    # --- the port ----------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        return self._model.name

    async def context_tokens(self) -> int:
        return await self._available().context_tokens()

    async def count_tokens(self, text: str) -> int:
        return await self._available().count_tokens(text)

    async def abilities(self) -> Abilities:
        return await self._available().abilities()

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        return await self._run(request, lambda timed: self._model.generate(timed, on_text))

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        return await self._run(request, lambda timed: self._model.sample(timed, count), width=count)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        return await self._run(request, lambda timed: self._model.expect(timed, choices))

    # --- for people and operators ------------------------------------------------------------------------------------

    def position(self, requester: str) -> int:
        """Return the place in the queue of this requester's next request, from 1; 0 if none waits."""
        order = [place.requester for place in self._queue.order()]
        return order.index(requester) + 1 if requester in order else 0

    @property
    def status(self) -> ModelStatus:
        return ModelStatus(
            self._address,
            self._is_up,
            min(self._busy(), self._slots),
            self._slots,
            {urgency: self._queue.waiting(urgency) for urgency in Urgency},
            dict(self._outcomes),
        )

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None]:
        """Check the server's health repeatedly, until the block ends."""

        async def watch() -> None:
            while True:
                await self.check_health()
                await asyncio.sleep(HEALTH_PERIOD)

        watching = asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def check_health(self) -> None:
        """Check the server's health, and update its number of slots."""
        try:
            async with asyncio.timeout(HEALTH_TIMEOUT):
                self._slots = await self._check()
            self._is_up = True
        except (ModelUnavailable, TimeoutError):
            self._is_up = False
        self._dispatch()

    # --- scheduling --------------------------------------------------------------------------------------------------

    async def _run(self, request: ModelRequest, call: Callable[[ModelRequest], Awaitable[T]], width: int = 1) -> T:
        """Return the result of a call with what is left of the request's deadline, once a slot is free."""
        now = asyncio.get_running_loop().time
        ends_at = now() + request.deadline
        place = QueuePlace(request.urgency, request.requester, width)
        self._queue.add(place)
        self._dispatch()
        try:
            async with asyncio.timeout_at(ends_at):
                await place.granted
                outcome = RequestOutcome.ABANDONED
                try:
                    result = await call(replace(request, deadline=ends_at - now()))
                    outcome = RequestOutcome.ANSWERED
                except (PromptTooLong, InvalidReply, RequestRefused):
                    outcome = RequestOutcome.ANSWERED  # the server is healthy; other requests are not affected
                    raise
                except ModelUnavailable:
                    # A timeout may be due to a long prompt; a dead server is found by its health check.
                    if now() < ends_at:
                        outcome = RequestOutcome.FAILED
                    raise
                finally:
                    self._outcomes[outcome] += 1
                    if outcome is not RequestOutcome.ABANDONED:
                        self._is_up = outcome is RequestOutcome.ANSWERED
                return result
        except TimeoutError:
            raise ModelUnavailable(f"{self.name} did not answer before the request's deadline.") from None
        finally:
            self._queue.discard(place)
            if place in self._running:  # also if its slot was granted at the moment when the waiting ended
                self._running.remove(place)
            self._dispatch()

    def _dispatch(self) -> None:
        """Start every request that can start now; refuse all while the server is left alone."""
        if not self._is_up:
            for place in self._queue.order():
                self._queue.refuse(place, self._down)
        while self._busy() < self._slots and (place := next(filter(self._may_start, self._queue.order()), None)):
            self._running.append(place)
            self._queue.start(place)

    def _may_start(self, place: QueuePlace) -> bool:
        """Return whether a free slot may be used for this request: background work leaves one of several to others."""
        return place.urgency is not Urgency.BACKGROUND or self._busy(Urgency.BACKGROUND) < max(1, self._slots - 1)

    def _busy(self, *urgencies: Urgency) -> int:
        """Return the number of busy slots; more than there are if a request for several replies began with one slot."""
        return sum(
            min(place.width, self._slots) for place in self._running if place.urgency in (urgencies or tuple(Urgency))
        )

    def _available(self) -> LanguageModel:
        if not self._is_up:
            raise ModelUnavailable(self._down)
        return self._model

    @property
    def _down(self) -> str:
        return f"{self.name} is down at {self._address}. Run `plumbline doctor` for details."
