from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from core.triage.owner_model import MAX_EMBEDDED, Embeddings, IncidentText, OwnerModel, digest_of, embedded_text
from tests.fakes.outage import incident
from tests.fakes.past_incidents import TEAMS
from tests.fakes.puzzles import SENSES, STRANGE_WORDS, puzzles

UNIT = np.eye(len(TEAMS), dtype=np.float32)


def embeddings() -> Embeddings:
    return Embeddings("m", {digest_of(embedded_text(each)): UNIT[SENSES[each.title]] for each in puzzles()})


@cache
def model() -> OwnerModel:
    fitted = OwnerModel.fitted(puzzles(), embeddings())
    assert fitted is not None
    return fitted


@cache
def without() -> OwnerModel:
    fitted = OwnerModel.fitted(puzzles())
    assert fitted is not None
    return fitted


def test_what_is_said_in_words_never_heard_goes_to_the_team_that_it_means() -> None:
    for word in STRANGE_WORDS:
        found = model().probabilities(IncidentText(word, word), UNIT[SENSES[word]])
        assert max(found, key=lambda team: found[team]) == TEAMS[SENSES[word]].id
        assert max(found.values()) > 0.9
        assert sum(found.values()) == pytest.approx(1.0)


def test_without_a_vector_it_says_what_a_model_of_the_words_says() -> None:
    for word in STRANGE_WORDS[:5]:
        text = IncidentText(word, word)
        assert model().probabilities(text) == without().probabilities(text)


def test_the_badge_is_calibrated_on_what_is_said_with_vectors() -> None:
    shares = [np.mean([held.correct for held in fitted.held_out]) for fitted in (model(), without())]
    assert shares[0] > 0.95
    assert shares[1] < 0.7


def test_an_incident_without_a_vector_is_no_teacher() -> None:
    some = Embeddings("m", dict(list(embeddings().vectors.items())[1:]))
    with pytest.raises(KeyError):
        OwnerModel.fitted(puzzles(), some)


def test_lines_that_differ_in_blanks_alone_are_embedded_once() -> None:
    said = "the disk  is full \nthe disk is\tfull"
    assert embedded_text(replace(puzzles()[0], title="", description=said, service="")) == "the disk is full"


def test_text_without_end_is_cut() -> None:
    text = embedded_text(replace(incident(), title="".join(f"{number}\n" for number in range(100_000))))
    assert len(text) == MAX_EMBEDDED


def test_each_line_of_an_incident_is_embedded_once() -> None:
    lines = embedded_text(incident()).splitlines()
    assert incident().title in lines
    assert len(lines) == len(set(lines))
