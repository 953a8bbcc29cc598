from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from core.triage.embeddings import MAX_CHARACTERS, MAX_RAW_CHARACTERS, Embeddings, digest_of, embedded_text
from core.triage.owner_model import OwnerModel
from core.triage.text_similarity import IncidentText
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


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("BÃ¼ro 7: der Drucker streikt", "Büro 7: der Drucker streikt"),
        ("does not start_x000D_\nsince today_x000d_", "does not start\nsince today"),
        ("it says_x0020_â€œno diskâ€\x9d", 'it says "no disk"'),
        ("columns _x0041y_, _x00GG_ and _xD800_ stay", "columns _x0041y_, _x00GG_ and _xD800_ stay"),
        ("Zürich ist offline", "Zürich ist offline"),
    ],
)
def test_what_exports_broke_is_repaired_before_it_is_embedded(raw: str, clean: str) -> None:
    assert embedded_text(replace(puzzles()[0], title="", description=raw, service="")) == clean


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("disk full\n\nReceived from: ann@example.com\nplease free it", "disk full\nplease free it"),
        ("received from: ann@example.com the disk is full", "the disk is full"),
        (" > Von: Ann\n > Gesendet: Montag\n > Betreff: Platte voll", "> Betreff: Platte voll"),
        ("De\u00a0: Ann\nEnvoyé\u00a0: lundi\nÀ\u00a0: Bo\nObjet\u00a0: disque plein", "Objet : disque plein"),
        ("De: Ann\nFecha: lunes\nPara: Bo <bo@example.com>\nAsunto: disco lleno", "Asunto: disco lleno"),
        ("From: Ann <ann@example.com> Sent: Monday Subject: disk full", "Subject: disk full"),
        ("see [cid:image001.png@01D20514.E5F6A280] ask <mailto:ann@example.com>", "see ask"),
        (
            f"From: Ann\nSent: Monday, {'all that an export put on one line ' * 6}",
            "Monday," + " all that an export put on one line" * 6,
        ),
        ("From: ann@example.com", "From: ann@example.com"),
    ],
)
def test_what_mail_programs_add_is_not_embedded(raw: str, clean: str) -> None:
    assert embedded_text(replace(puzzles()[0], title="", description=raw, service="")) == clean


@pytest.mark.parametrize(
    "said",
    [
        "runbook https://example.com/disk from: the wiki",
        "node@ and @node stay, 10 @ 20.5 too",
        "From: checkout-api\nTo: payments-db",
        "Sent: 0 packets",
        "Date: column is NULL",
        "From: Ann Sent: Monday To: Helpdesk Subject: blank pages",
        "postgresql@14-main.service failed",
        "cannot clone git@github.com:payments/till",
        "postgres://orders@db.payments.internal/orders is slow",
        "lodash@4.17.21 breaks the table",
    ],
)
def test_what_only_looks_like_mail_is_embedded_as_it_is(said: str) -> None:
    assert embedded_text(replace(puzzles()[0], title="", description=said, service="")) == said


def test_lines_that_differ_in_blanks_alone_are_embedded_once() -> None:
    said = "the disk  is full \nthe disk is\tfull"
    assert embedded_text(replace(puzzles()[0], title="", description=said, service="")) == "the disk is full"


def test_text_without_end_is_cut_before_it_is_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    monkeypatch.setattr("core.triage.embeddings._repaired", lambda text: seen.append(text) or text)
    text = embedded_text(replace(incident(), title="".join(f"{number}\n" for number in range(100_000))))
    assert len(seen[0]) == MAX_RAW_CHARACTERS
    assert len(text) == MAX_CHARACTERS


def test_each_line_of_an_incident_is_embedded_once() -> None:
    lines = embedded_text(incident()).splitlines()
    assert incident().title in lines
    assert len(lines) == len(set(lines))
