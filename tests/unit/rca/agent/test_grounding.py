from __future__ import annotations

import pytest

from core.model.findings import EvidenceKind
from core.ports import LogLine
from core.rca.agent.experts import grounded
from tests.fakes.outage import START, change, observations

ERROR = "connection pool exhausted, 40 of 40 in use by batch job"
LINE = LogLine("stock", START, "ERROR", ERROR)
CHANGE = change("CHG-7", "stock", -5, "Lower the pool to 40", "config")
SEEN = observations([[LINE]], changes=[CHANGE])
SHOWN = {
    f"09:25, 3 times, ERROR: {ERROR}": "read_logs stock",
    "09:20: config CHG-7 of stock by Asha: Lower the pool to 40": "list_changes stock",
}


@pytest.mark.parametrize(
    "quote", [ERROR, "pool exhausted, 40 of 40 in use", "conection pool exhausted,  40 of 40 in use"]
)
def test_a_quote_of_a_log_line_is_given_as_it_stands_there_with_its_place_and_time(quote: str) -> None:
    (found,) = grounded([quote], SHOWN, SEEN)
    assert (found.kind, found.source, found.quote, found.at) == (EvidenceKind.LOG, "log of stock", ERROR, START)


def test_a_quote_of_a_change_is_given_with_its_author_and_time() -> None:
    (found,) = grounded(["CHG-7 of stock by Asha: Lower the pool to 40"], SHOWN, SEEN)
    assert (found.kind, found.source, found.at) == (EvidenceKind.CHANGE, "config CHG-7 by Asha", CHANGE.at)


@pytest.mark.parametrize(
    ("call", "kind"), [("read_metrics(stock)", EvidenceKind.METRIC), ("describe_pods(stock)", EvidenceKind.LOG)]
)
def test_a_quote_of_something_else_is_given_as_it_stands_there_with_the_call_that_returned_it(
    call: str, kind: EvidenceKind
) -> None:
    read = {"09:27:00: p99 latency rose from 0.4 s to 3 s": call}
    (found,) = grounded(["p99 latency rose from 0.4 s"], read, SEEN)
    assert (found.quote, found.at, found.source, found.kind) == ("p99 latency rose from 0.4 s", None, call, kind)


@pytest.mark.parametrize("quote", ["The disk of the database is full and nobody noticed", "ERROR", "", "40 of 40"])
def test_what_stands_nowhere_or_could_stand_anywhere_is_dropped(quote: str) -> None:
    assert grounded([quote], SHOWN, SEEN) == ()


def test_the_same_evidence_is_given_once() -> None:
    assert len(grounded([ERROR, ERROR[:-4]], SHOWN, SEEN)) == 1
