from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from core.model.alert import Severity
from core.model.conversation import Audience
from core.model.findings import PastIncident
from core.triage.owner_model import IncidentHistory

POOL = "Connection pool of the gateway exhausted"
SCANNER = "Scanners at the gate show red"


def past(id_: str, title: str, **changes: str) -> PastIncident:
    return PastIncident(
        id=id_,
        title=title,
        description=changes.get("description", ""),
        service=changes.get("service", ""),
        severity=Severity.WARNING,
        started_at=datetime(2026, 1, 1, tzinfo=UTC),
        owner="team",
        root_cause=changes.get("root_cause", ""),
    )


def test_the_most_similar_incident_comes_first() -> None:
    history = IncidentHistory([past("A", SCANNER), past("B", POOL), past("C", "Pool of the pool boys closed")])
    assert [found.incident.id for found in history.similar("the connection pool is exhausted", 5)] == ["B", "C"]


def test_an_incident_that_says_the_same_has_similarity_one() -> None:
    (found,) = IncidentHistory([past("A", POOL), past("B", SCANNER)]).similar(POOL, 1)
    assert found.similarity == pytest.approx(1.0, abs=1e-6)


def test_words_that_no_incident_knows_lower_the_similarity() -> None:
    history = IncidentHistory([past("A", POOL), past("B", SCANNER)])
    known, diluted = history.similar(POOL, 1), history.similar(f"{POOL} zeppelin marmalade", 1)
    assert diluted[0].similarity < known[0].similarity


def test_the_service_counts_and_the_root_cause_does_not() -> None:
    history = IncidentHistory([past("A", "slow", service="gateway"), past("B", "slow", root_cause="gateway gateway")])
    found = {neighbour.incident.id: neighbour.similarity for neighbour in history.similar("gateway", 5)}
    assert found.keys() == {"A"}


def test_an_incident_does_not_find_itself() -> None:
    history = IncidentHistory([past("A", POOL), past("B", POOL)])
    assert [found.incident.id for found in history.similar(POOL, 1, without=frozenset({"A"}))] == ["B"]


@pytest.mark.parametrize("text", ["", "the of and", "zeppelin"])
def test_a_text_without_a_known_word_finds_nothing(text: str) -> None:
    assert IncidentHistory([past("A", POOL)]).similar(text, 5) == []


def test_an_empty_history_finds_nothing() -> None:
    assert IncidentHistory([]).similar(POOL, 5) == []


def test_a_history_of_empty_incidents_finds_nothing() -> None:
    assert IncidentHistory([past("A", ""), past("B", "")]).similar(POOL, 5) == []


def test_an_audience_finds_only_what_it_may_read() -> None:
    private = replace(past("P", POOL), readers=frozenset({"channel:vault"}))
    history = IncidentHistory([private, past("A", "Pool of the gateway drained")])
    vault = Audience(frozenset({"public", "channel:vault"}))
    assert [found.incident.id for found in history.readable_by(Audience()).similar(POOL, 5)] == ["A"]
    assert [found.incident.id for found in history.readable_by(vault).similar(POOL, 5)] == ["P", "A"]
    assert history.readable_by(Audience(frozenset())).similar(POOL, 5) == []


def test_a_view_of_the_history_is_built_once_for_all_who_read_the_same() -> None:
    history = IncidentHistory([replace(past("P", POOL), readers=frozenset({"channel:vault"})), past("A", POOL)])
    assert history.readable_by(Audience()) is history.readable_by(Audience(frozenset({"public", "channel:help"})))
