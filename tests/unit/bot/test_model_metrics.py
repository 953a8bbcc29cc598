from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest

from adapters.model_queue import ModelStatus, RequestOutcome
from bot.tracing import ModelCollector, TokenTally, registered
from core.model.language_model import ModelReply, Urgency


def status() -> ModelStatus:
    return ModelStatus(
        "gpu:8080",
        up=False,
        busy=4,
        slots=8,
        waiting={Urgency.PERSON: 3, Urgency.INCIDENT: 0, Urgency.BACKGROUND: 7},
        outcomes={RequestOutcome.ABANDONED: 3},
    )


def test_queue_slots_state_and_cache_are_shown_as_they_are_when_asked() -> None:
    registry, tally = CollectorRegistry(), TokenTally()
    with registered(ModelCollector(status, tally), registry):
        assert registry.get_sample_value("plumbline_model_cached_prompt_share") == 0.0
        tally.add(ModelReply("a", prompt_tokens=100, cached_tokens=0, generated_tokens=5))
        tally.add(ModelReply("b", prompt_tokens=100, cached_tokens=90, generated_tokens=7))
        value = registry.get_sample_value
        assert value("plumbline_model_waiting", {"urgency": "background"}) == 7
        assert value("plumbline_model_slots_busy", {"server": "gpu:8080"}) == 4
        assert value("plumbline_model_slots", {"server": "gpu:8080"}) == 8
        assert value("plumbline_model_up", {"server": "gpu:8080"}) == 0
        assert value("plumbline_model_requests_total", {"server": "gpu:8080", "outcome": "abandoned"}) == 3
        assert value("plumbline_model_prompt_tokens_total") == 200
        assert value("plumbline_model_cached_prompt_tokens_total") == 90
        assert value("plumbline_model_generated_tokens_total") == 12
        assert value("plumbline_model_cached_prompt_share") == 0.45


def test_nothing_is_shown_of_a_model_that_is_closed() -> None:
    registry = CollectorRegistry()
    with registered(ModelCollector(status, TokenTally()), registry):
        pass
    assert generate_latest(registry) == b""
