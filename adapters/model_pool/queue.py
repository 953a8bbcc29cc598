"""The queue of requests for a language model."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from core.model.errors import ModelUnavailable
from core.model.language_model import Urgency

MAX_PASSED_OVER = 8  # starts of more urgent requests after which a waiting class gets one


@dataclass(eq=False, slots=True)
class QueuePlace:
    """A request's place in the queue. `granted` is the index of its server; `tried` contains the failed ones.

    `ends_at` is its deadline by the event loop's clock. `prompt` is the text that its server will cache. `width` is the
    number of requested replies.
    """

    urgency: Urgency
    requester: str
    ends_at: float
    prompt: str
    width: int = 1
    tried: set[int] = field(default_factory=set[int])
    granted: asyncio.Future[int] = field(init=False)  # recreated whenever it waits
    number: int = -1  # order of arrival; negative before it is queued
    round: int = 0


class RequestQueue:
    """A bounded queue: by urgency, and within an urgency the requesters in turn.

    No class starves: one that `MAX_PASSED_OVER` starts have passed over gets the next one, so that each has at least a ninth
    of the starts. Within a class, no requester is served twice while another one waits.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tickets: list[QueuePlace] = []
        self._numbers = count()
        self._passed_over: Counter[Urgency] = Counter()
        self._round: Counter[Urgency] = Counter()  # the current round-robin round of each class
        self._served: dict[Urgency, set[str]] = {urgency: set() for urgency in Urgency}  # in that round

    @property
    def _waiting(self) -> list[QueuePlace]:
        """Return the waiting tickets, without those whose task was cancelled and has not removed them yet."""
        return [ticket for ticket in self._tickets if not ticket.granted.done()]

    def add(self, ticket: QueuePlace) -> None:
        """Queue a ticket. One that returns after its server failed keeps its place.

        A full queue drops its newest ticket of the lowest urgency, whose `granted` then raises ModelUnavailable.
        """
        if ticket.number < 0:
            ticket.number = next(self._numbers)
            ticket.round = self._next_round(ticket)
        ticket.granted = asyncio.get_running_loop().create_future()
        if not self.waiting(ticket.urgency):
            self._passed_over[ticket.urgency] = 0
        self._tickets.append(ticket)
        if len(self._waiting) > self._capacity:
            last = max(self._waiting, key=lambda waiting: (waiting.urgency, waiting.number))
            self.refuse(last, ModelUnavailable(f"The language model's queue is full ({self._capacity} requests)."))

    def _next_round(self, ticket: QueuePlace) -> int:
        current = self._round[ticket.urgency]
        rounds = [
            waiting.round
            for waiting in self._waiting
            if (waiting.urgency, waiting.requester) == (ticket.urgency, ticket.requester)
        ]
        last = max(rounds, default=current if ticket.requester in self._served[ticket.urgency] else current - 1)
        return max(current, last + 1)

    def order(self) -> list[QueuePlace]:
        """Return all waiting tickets, the next one first."""
        overdue = {urgency for urgency, passed in self._passed_over.items() if passed >= MAX_PASSED_OVER}
        return sorted(
            self._waiting,
            key=lambda ticket: (ticket.urgency not in overdue, ticket.urgency, ticket.round, ticket.number),
        )

    def start(self, ticket: QueuePlace, server: int) -> None:
        """Remove a ticket and grant it a server."""
        self.discard(ticket)
        urgency = ticket.urgency
        for other in Urgency:
            if other > urgency and self.waiting(other):
                self._passed_over[other] += 1
        self._passed_over[urgency] = 0
        if ticket.round > self._round[urgency]:
            self._round[urgency] = ticket.round
            self._served[urgency].clear()
        self._served[urgency].add(ticket.requester)
        ticket.granted.set_result(server)

    def refuse(self, ticket: QueuePlace, error: ModelUnavailable) -> None:
        """Remove a ticket and pass the error to its waiter."""
        self.discard(ticket)
        ticket.granted.set_exception(error)

    def discard(self, ticket: QueuePlace) -> None:
        """Remove a ticket, if it is queued."""
        if ticket in self._tickets:
            self._tickets.remove(ticket)

    def waiting(self, urgency: Urgency) -> int:
        """Return the number of waiting tickets of this urgency."""
        return sum(ticket.urgency is urgency for ticket in self._waiting)
