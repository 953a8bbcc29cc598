from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from bot.evaluation import triage
from core.model.errors import MalformedInput
from tests.benchmarks.asked_model import simulated_teams
from tests.benchmarks.triage_baselines import Scorer, beside, content_based, inverted_index, linear_svm, mart
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.language_model import ScriptedModel
from tests.fakes.past_incidents import TEAMS
from tests.fakes.puzzles import SENSES, STRANGE_WORDS, puzzles
from tests.fakes.recordings import after_its_exam

WORDS = {"printing": "printer toner paper", "access": "password token login", "network": "switch cable router"}
TICKETS = [
    {"title": f"{word} {verb}", "body": f"{word} {verb} in hall{place}", "owner": team}
    for team, words in WORDS.items()
    for place in range(45)
    for word, verb in zip([*words.split(), "thing", "screen"], ("broken", "lost", "slow", "odd", "dark"), strict=True)
]
TEXTS = [str(ticket["body"]) for ticket in TICKETS]
OWNERS = np.array([sorted(WORDS).index(ticket["owner"]) for ticket in TICKETS])


def written(path: Path, tickets: list[dict[str, str]]) -> Path:
    path.write_text("".join(json.dumps(ticket) + "\n" for ticket in tickets), encoding="utf-8")
    return path


@pytest.mark.external  # seconds
def test_every_method_is_measured_on_every_ticket_once(tmp_path: Path) -> None:
    tickets = written(tmp_path / "tickets.jsonl", TICKETS)
    found = beside(triage.run(tickets, folds=2), triage.splits_of(tickets, folds=2), {"inverted_index": inverted_index})
    assert (found["cases"], found["folds"]) == (len(TICKETS), 2)
    assert found["results"].keys() == {"plumbline", "without_negotiation", "inverted_index"}
    for row in found["results"].values():
        hops = [row[f"hop@{hop}"] for hop in range(1, 6)]
        assert hops == sorted(hops)
        assert hops[2] == 1.0  # there are three teams
        low, high = row["hop@1_ci"]
        assert low <= row["hop@1"] <= high
        assert {"macro_f1", "ece", "coverage@precision90", "ece_ci"} <= row.keys()
    assert found["results"]["plumbline"]["hop@1"] > 0.7


def test_an_embedding_model_is_measured_beside_what_remains_without_it(tmp_path: Path) -> None:
    tickets = [{"title": each.title, "body": "", "owner": each.owner} for each in puzzles()]
    teams = [{"title": word, "body": "", "owner": TEAMS[SENSES[word]].id} for word in STRANGE_WORDS]
    train, test = written(tmp_path / "train.jsonl", tickets), written(tmp_path / "test.jsonl", teams)
    found = triage.run(train, test, embedder=FakeEmbedder(SENSES))
    assert found["embeddings"] == "fake"
    assert found["results"]["plumbline"]["hop@1"] == 1.0
    assert found["results"]["without_embedding"]["hop@1"] < 0.7
    console = Console(width=120, record=True)
    triage.print_table(found, console)
    assert "embeddings: fake" in console.export_text()


def test_a_test_file_makes_one_split(tmp_path: Path) -> None:
    train, test = written(tmp_path / "train.jsonl", TICKETS), tmp_path / "test.jsonl.gz"
    with gzip.open(test, "wt", encoding="utf-8") as file:
        file.write(json.dumps({"title": "toner empty", "body": "toner gone", "owner": "printing"}) + "\n")
    found = triage.run(train, test)
    assert (found["cases"], found["folds"]) == (1, 1)


def test_equal_texts_never_stand_on_both_sides() -> None:
    tickets = [triage.Ticket(f"Title {n % 7}!", "BODY" if n % 2 else "body", "a") for n in range(60)]
    for known, asked in triage._folds(tickets, 3):
        assert {ticket.key for ticket in known}.isdisjoint(ticket.key for ticket in asked)


@pytest.mark.parametrize("baseline", [content_based, inverted_index, linear_svm, mart])
def test_a_baseline_finds_the_team_whose_words_are_used(baseline: Scorer) -> None:
    scores = baseline(TEXTS, OWNERS, 3, ["toner lost in hall5", "password broken in hall5"])
    assert scores.argmax(axis=1).tolist() == [sorted(WORDS).index("printing"), sorted(WORDS).index("access")]


@pytest.mark.parametrize(
    ("confidence", "correct", "coverage"),
    [([0.9, 0.8, 0.2], [1, 1, 0], 2 / 3), ([0.9, 0.8, 0.2], [0, 1, 1], 0.0), ([0.9, 0.8], [1, 1], 1.0)],
)
def test_coverage_is_the_most_that_can_be_decided_at_the_precision(
    confidence: list[float], correct: list[int], coverage: float
) -> None:
    assert triage._coverage(np.array(confidence), np.array(correct, float)) == pytest.approx(coverage)


def test_macro_f1_counts_every_team_alike() -> None:
    owners, first = np.array([0, 0, 0, 1]), np.array([0, 0, 0, 0])
    assert triage._macro_f1(owners, first) == pytest.approx((6 / 7 + 0) / 2)


@pytest.mark.parametrize("line", ["{", "[]", '{"title": "a", "body": "b"}'])
def test_a_line_that_is_no_ticket_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "tickets.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(MalformedInput, match="line 1"):
        triage.run(path)


def test_too_few_tickets_are_refused(tmp_path: Path) -> None:
    with pytest.raises(MalformedInput, match="too few"):
        triage.run(written(tmp_path / "tickets.jsonl", TICKETS[:50]))


def test_the_owners_that_a_language_model_decides_on_are_paired(tmp_path: Path) -> None:
    tickets = written(tmp_path / "tickets.jsonl", TICKETS)
    model = ScriptedModel(odds=lambda _, choices: {each: 5.0 if each == "network" else 1.0 for each in choices})
    figures = triage.run(tickets, folds=2, llm=after_its_exam(model, tmp_path), sample=18)
    assert figures["cases"] == 18
    assert (figures["asked"], figures["calls"]) == (4, 1)
    assert figures["paired"] == {"model": {"gained": 2, "lost": 2}, "plumbline": {"gained": 0, "lost": 0}}
    assert figures["results"]["model"]["hop@1"] == figures["results"]["evidence"]["hop@1"]


def test_agents_of_a_simulated_model_find_teams_that_the_evidence_does_not(tmp_path: Path) -> None:
    odd = [
        {"title": "thing odd", "body": f"room{number} has a thing that is odd", "owner": owner}
        for number, owner in enumerate(list(WORDS) * 4)
    ]
    train, test = written(tmp_path / "train.jsonl", TICKETS), written(tmp_path / "test.jsonl", odd)
    owners = {triage.as_incident(each["title"], each["body"]).description: each["owner"] for each in odd}
    found = triage.run(train, test, llm=simulated_teams(owners, 1.0))
    assert found["calls"] > 1, "agents were asked"
    assert found["results"]["evidence"]["hop@1"] < found["results"]["plumbline"]["hop@1"] == 1.0
    assert found["paired"]["plumbline"]["lost"] == 0
