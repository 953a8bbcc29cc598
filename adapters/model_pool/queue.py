"""The queue of requests that wait for a language model, in the order in which they will be served."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from itertools import count

from core.model.errors import ModelUnavailable
from core.model.language_model import Urgency

PATIENCE = 8  # starts of more urgent requests after which a waiting class gets one


@dataclass(eq=False, slots=True)
class Ticket:
    """One request's place in the queue. `granted` is the server that it may use, as an index; `tried` those that failed.

    `ends_at` is its deadline in the time of the event loop. `prompt` is what its server will have computed. `width` is
    how many replies it asks for at once.
    """

    urgency: Urgency
    requester: str
    ends_at: float
    prompt: str
    width: int = 1
    tried: set[int] = field(default_factory=set[int])
    granted: asyncio.Future[int] = field(init=False)  # made anew whenever it waits
    number: int = -1  # in the order of arrival; below 0: not seen yet
    round: int = 0


class RequestQueue:
    """A bounded queue: urgent requests first, within an urgency one of each requester in turn.

    Nobody starves: a class of urgency that `PATIENCE` starts have passed over gets the next one, so that each has at
    least a ninth of the starts; and within a class nobody is served twice while another requester waits.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._tickets: list[Ticket] = []
        self._numbers = count()
        self._passed_over: Counter[Urgency] = Counter()
        self._round: Counter[Urgency] = Counter()  # the round-robin round that each class is in
        self._served: dict[Urgency, set[str]] = {urgency: set() for urgency in Urgency}  # in that round

    @property
    def _waiting(self) -> list[Ticket]:
        """Without those whose task was cancelled and has not come round to take them out."""
        return [ticket for ticket in self._tickets if not ticket.granted.done()]

    def add(self, ticket: Ticket) -> None:
        """Let a ticket wait. One that comes back after its server failed goes on from its old place.

        A full queue gives up its newest ticket of the lowest urgency, whose `granted` then raises ModelUnavailable.
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
            self.refuse(last, ModelUnavailable(f"The language model has {self._capacity} requests waiting already."))

    def _next_round(self, ticket: Ticket) -> int:
        current = self._round[ticket.urgency]
        rounds = [
            waiting.round
            for waiting in self._waiting
            if (waiting.urgency, waiting.requester) == (ticket.urgency, ticket.requester)
        ]
        last = max(rounds, default=current if ticket.requester in self._served[ticket.urgency] else current - 1)
        return max(current, last + 1)

    def order(self) -> list[Ticket]:
        """Everything that waits, the next first."""
        overdue = {urgency for urgency, passed in self._passed_over.items() if passed >= PATIENCE}
        return sorted(
            self._waiting,
            key=lambda ticket: (ticket.urgency not in overdue, ticket.urgency, ticket.round, ticket.number),
        )

    def start(self, ticket: Ticket, server: int) -> None:
        """Take a ticket out and grant it a server."""
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

    def refuse(self, ticket: Ticket, error: ModelUnavailable) -> None:
        """Take a ticket out; whoever waits for it gets the error."""
        self.discard(ticket)
        ticket.granted.set_exception(error)

    def discard(self, ticket: Ticket) -> None:
        """Take a ticket out, if it is there."""
        if ticket in self._tickets:
            self._tickets.remove(ticket)

    def waiting(self, urgency: Urgency) -> int:
        """How many tickets of this urgency wait."""
        return sum(ticket.urgency is urgency for ticket in self._waiting)
