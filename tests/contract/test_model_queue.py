"""The order in which waiting requests are served, whatever comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from adapters.model_queue import MAX_PASSED_OVER, QueuePlace, RequestQueue
from core.model.language_model import Urgency

ARRIVALS = st.tuples(st.sampled_from(Urgency), st.sampled_from("abcd"))
STEPS = st.lists(st.one_of(ARRIVALS, st.none()), max_size=80)  # an arrival, or the start of the next


def ticket(urgency: Urgency, requester: str) -> QueuePlace:
    return QueuePlace(urgency, requester)


def start_next(queue: RequestQueue) -> QueuePlace:
    head = queue.order()[0]
    queue.start(head)
    return head


@given(STEPS)
async def test_everything_that_waits_is_started_once_in_the_order_that_was_told(
    steps: list[tuple[Urgency, str] | None],
) -> None:
    queue = RequestQueue(capacity=100)
    arrived: list[QueuePlace] = []
    started: list[QueuePlace] = []
    for step in steps:
        if step is not None:
            arrived.append(ticket(*step))
            queue.add(arrived[-1])
        elif queue.order():
            started.append(start_next(queue))
    while queue.order():
        started.append(start_next(queue))
    assert {id(one) for one in started} == {id(one) for one in arrived}
    assert len(started) == len(arrived)


@given(STEPS)
async def test_no_class_is_passed_over_for_long_and_no_requester_twice_in_a_row(
    steps: list[tuple[Urgency, str] | None],
) -> None:
    queue = RequestQueue(capacity=100)
    passed = dict.fromkeys(Urgency, 0)
    for step in [*steps, *[None] * len(steps)]:
        if step is not None:
            queue.add(ticket(*step))
            continue
        if not queue.order():
            continue
        before = queue.order()
        head = start_next(queue)
        for urgency in Urgency:
            still_waits = any(one.urgency is urgency for one in before if one is not head)
            passed[urgency] = passed[urgency] + 1 if still_waits and urgency is not head.urgency else 0
        # The two other classes may each take a turn that was due while this one's came.
        assert all(count <= MAX_PASSED_OVER + 2 for count in passed.values())


@given(st.lists(ARRIVALS, min_size=1, max_size=40))
async def test_within_a_class_nobody_gets_two_turns_more_than_another_who_waits(
    arrivals: list[tuple[Urgency, str]],
) -> None:
    queue = RequestQueue(capacity=100)
    for urgency, requester in arrivals:
        queue.add(ticket(urgency, requester))
    turns: dict[tuple[Urgency, str], int] = {}
    while queue.order():
        head = start_next(queue)
        turns[head.urgency, head.requester] = turns.get((head.urgency, head.requester), 0) + 1
        for other in queue.order():
            if other.urgency is head.urgency:
                assert turns[head.urgency, head.requester] <= turns.get((other.urgency, other.requester), 0) + 1
