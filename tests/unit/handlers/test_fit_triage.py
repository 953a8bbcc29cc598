from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from adapters.fitting import fit_owners_apart
from core.model.badge import Estimator, PredictionKind
from core.model.findings import PastIncident
from core.model.team import Team
from core.triage.negotiate import VERSION, version_with
from core.triage.owner_model import Embeddings, OwnerModel
from handlers.feedback.recalibrate import fit_triage
from handlers.incidents.triage_incident import ENGINE, embed_past_incidents
from tests.fakes.calibrators import calibrator
from tests.fakes.clock import FakeClock
from tests.fakes.embedder import FakeEmbedder
from tests.fakes.owner_models import FakeOwnerModelStore
from tests.fakes.past_incidents import TEAMS, past_incidents
from tests.fakes.puzzles import SENSES, puzzles
from tests.fakes.store import InMemoryStore

OWNERS = Estimator(PredictionKind.OWNER, ENGINE, VERSION)


async def fit_here(incidents: Sequence[PastIncident], embeddings: Embeddings | None = None) -> OwnerModel | None:
    return await asyncio.to_thread(OwnerModel.fitted, incidents, embeddings)


async def learned(past: Sequence[PastIncident], teams: Sequence[Team], store: InMemoryStore) -> OwnerModel | None:
    models = FakeOwnerModelStore()
    found = await fit_triage(past, teams=teams, models=models, fit=fit_here, store=store, clock=FakeClock())
    assert found is (models.model is not None)
    return models.model


async def test_a_long_history_gives_a_model_and_a_calibrated_badge_before_anybody_pressed_a_button() -> None:
    store = InMemoryStore()
    assert await learned(past_incidents(), TEAMS, store) is not None
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(OWNERS) is not None


async def test_a_calibrator_that_learned_from_people_is_kept() -> None:
    store, from_people = InMemoryStore(), calibrator(0.5, 0.5)
    async with store.transaction() as transaction:
        await transaction.predictions.adopt(OWNERS, from_people)
    await learned(past_incidents(), TEAMS, store)
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(OWNERS) == from_people


async def test_where_services_speak_too_the_history_calibrates_nothing() -> None:
    store = InMemoryStore()
    past = [replace(incident, service=incident.owner) for incident in past_incidents()]
    await learned(past, [replace(team, services=frozenset({team.id})) for team in TEAMS], store)
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(OWNERS) is None


async def test_a_short_history_gives_none() -> None:
    assert await learned(past_incidents()[:50], TEAMS, InMemoryStore()) is None


async def test_a_merged_team_is_learned_under_its_present_id() -> None:
    merged = [*TEAMS[:1], Team("workplace", "Workplace", aliases=("access", "network"))]
    model = await learned(past_incidents(), merged, InMemoryStore())
    assert model is not None
    assert model.teams == ("printing", "workplace")


async def test_a_refit_embeds_only_what_is_new() -> None:
    models, store, embedder, past = FakeOwnerModelStore(), InMemoryStore(), FakeEmbedder(SENSES), puzzles()
    fit = partial(
        fit_triage, teams=TEAMS, models=models, fit=fit_here, store=store, clock=FakeClock(), embedder=embedder
    )
    assert await fit(past[:320])
    assert len(embedder.asked) == 320
    assert await fit(past)
    assert len(embedder.asked) == len(past) == 330
    assert models.model is not None
    assert models.model.embedding is not None
    assert len(models.model.embedding.vectors) == len(past)


async def test_a_badge_by_vectors_has_a_calibrator_of_its_own() -> None:
    store, embedder, from_people = InMemoryStore(), FakeEmbedder(SENSES), calibrator(0.5, 0.5)
    async with store.transaction() as transaction:
        await transaction.predictions.adopt(OWNERS, from_people)
    models = FakeOwnerModelStore()
    assert await fit_triage(
        puzzles(), teams=TEAMS, models=models, fit=fit_here, store=store, clock=FakeClock(), embedder=embedder
    )
    async with store.transaction() as transaction:
        assert await transaction.predictions.calibrator(OWNERS) == from_people
        by_vectors = replace(OWNERS, version=version_with(embedder.name))
        assert await transaction.predictions.calibrator(by_vectors) is not None


async def test_what_is_too_short_to_learn_from_is_not_embedded() -> None:
    embedder = FakeEmbedder(SENSES)
    assert not await fit_triage(
        puzzles()[:50],
        teams=TEAMS,
        models=FakeOwnerModelStore(),
        fit=fit_here,
        store=InMemoryStore(),
        clock=FakeClock(),
        embedder=embedder,
    )
    assert embedder.asked == []


async def test_where_the_embedding_model_fails_the_words_alone_teach() -> None:
    models, embedder = FakeOwnerModelStore(), FakeEmbedder(SENSES)
    embedder.failing = True
    assert await fit_triage(
        past_incidents(),
        teams=TEAMS,
        models=models,
        fit=fit_here,
        store=InMemoryStore(),
        clock=FakeClock(),
        embedder=embedder,
    )
    assert models.model is not None
    assert models.model.embedding is None


@pytest.mark.external  # the process imports scikit-learn
async def test_a_process_of_its_own_learns_the_same() -> None:
    embeddings = await embed_past_incidents(past_incidents(), FakeEmbedder(SENSES))
    apart = await fit_owners_apart(past_incidents(), embeddings)
    here = await fit_here(past_incidents(), embeddings)
    assert apart is not None
    assert here is not None
    assert [each.owner for each in apart.held_out] == [each.owner for each in here.held_out]
    said = [[each.probability for each in model.held_out] for model in (apart, here)]
    assert said[0] == pytest.approx(said[1])  # with another number of threads a sum is another one
