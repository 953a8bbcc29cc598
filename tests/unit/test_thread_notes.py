"""What people write in an incident's thread is read for causes, and nothing else is made of it."""

from __future__ import annotations

from dataclasses import replace

from core.incidents.thread_notes import bears_on_cause, named_first, with_note, without_denied
from core.model.findings import EvidenceKind, ThreadNote
from core.rca.explain import explain
from core.rca.observations import Observations
from tests.cases import every_case
from tests.fakes.outage import change, errors, incident, observations, traffic
from tests.samples import START

MAX_NOTES = 20
POOL = change("C-1", "shop", -11, "Smaller pool", "config", "maximumPoolSize of the connection pool from 40 to 4")
FLAG = change("C-2", "stock", -12, "Flag early-bird on", "flag", "early-bird for everybody")
WAITING = errors("shop", "Connection is not available, pool request timed out", since=-10.5)
STOCK = errors("stock", "early-bird lookup failed", since=-11)


def note(text: str, person: str = "Dana") -> ThreadNote:
    return ThreadNote(person, text, START)


def seen(*texts: str) -> Observations:
    noted = replace(incident(), notes=tuple(note(text) for text in texts))
    return observations([traffic("shop"), traffic("stock"), WAITING, STOCK], changes=[POOL, FLAG], of=noted)


@every_case(
    "text",
    [
        "it's not the database",
        "it is not C-1",
        "Which means it is *not* CHG-9212",
        "We can exclude the pool",
        "Turns out the certificate expired",
        "I think it's the new flag",
        "see CHG-9212",
        "the root cause is DNS",
        "rolled back 4fe21ab, looks better",
        "pg-payments isn't to blame",
    ],
)
def test_what_names_or_rules_out_a_cause_is_a_note(text: str) -> None:
    assert bears_on_cause(text)


@every_case(
    "text",
    ["on it", "thanks!", "is it the database?", "what changed", "why is it slow?", "joining the call", "lgtm 👍", ""],
)
def test_questions_and_chatter_are_none(text: str) -> None:
    assert not bears_on_cause(text)


def test_report_is_no_remark() -> None:
    assert bears_on_cause("it is not the pool. ".ljust(1_000, "x"))
    assert not bears_on_cause("it is not the pool. ".ljust(1_001, "x"))


def test_a_change_that_a_person_ruled_out_is_no_cause_and_the_message_says_who_did() -> None:
    assert any(each.evidence[0].source.startswith("config C-1") for each in explain(seen())[0].hypotheses)
    for said in ("it is not C-1", "it's not the connection pool"):
        left, ruled_out = without_denied(seen(said))
        assert [each.id for each in left.changes] == ["C-2"]
        assert ruled_out == ("config C-1 of shop: ruled out by a person in the thread.",)
        found = named_first(explain(left)[0], left.incident.notes, ruled_out)
        assert all("C-1" not in hypothesis.cause for hypothesis in found.hypotheses)
        assert ruled_out[0] in found.ruled_out


def test_the_signs_of_a_service_that_was_ruled_out_are_left_out_and_those_of_the_incidents_own_stay() -> None:
    left, _ = without_denied(seen("it isn't stock, and it is not shop"))
    assert {line.service for line in left.logs} == {"shop"}


def test_what_a_person_named_comes_first_with_the_note_as_evidence() -> None:
    seen_with_note = seen("I think it is the early-bird flag")
    explained, _ = explain(seen_with_note)
    found = named_first(explained, seen_with_note.incident.notes, ())
    (first, *_) = found.hypotheses
    assert first.service == "stock"
    assert (first.evidence[0].kind, first.evidence[0].source) == (EvidenceKind.NOTE, "Dana")
    assert found.rechecked_after == note("I think it is the early-bird flag")
    assert not any(each.kind is EvidenceKind.NOTE for other in found.hypotheses[1:] for each in other.evidence)
    assert len(found.hypotheses) > 1


def test_cause_was_looked_at_again_after_latest_remark() -> None:
    seen_twice = seen("it is not the disk", "I think it is the early-bird flag")
    found = named_first(explain(seen_twice)[0], seen_twice.incident.notes, ())
    assert found.rechecked_after == note("I think it is the early-bird flag")
    assert named_first(explain(seen())[0], (), ()).rechecked_after is None


def test_a_note_is_kept_once_and_the_latest_ones_are() -> None:
    kept = incident()
    for number in range(MAX_NOTES + 1):
        for _ in range(2):
            kept = with_note(kept, replace(note(f"not C-{number}"), at=START.replace(second=number)))
    assert [each.text for each in kept.notes] == [f"not C-{number}" for number in range(1, MAX_NOTES + 1)]
