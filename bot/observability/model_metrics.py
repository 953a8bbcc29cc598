"""Metrics of the language model for GET /metrics. Read on request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import REGISTRY, CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from adapters.model_pool.breaker import BreakerState
from adapters.model_pool.pool import PoolStatus
from core.model.language_model import ModelReply


@dataclass(slots=True)
class TokenTally:
    """Token counts since start: prompt tokens, those served from a cache, and reply tokens."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def add(self, reply: ModelReply) -> None:
        self.prompt += reply.prompt_tokens
        self.cached += reply.cached_tokens
        self.generated += reply.generated_tokens


class ModelCollector(Collector):
    """Collector of a pool's queue, slots, circuit breakers and tokens."""

    def __init__(self, status: Callable[[], PoolStatus], tally: TokenTally) -> None:
        self._status = status
        self._tally = tally

    def collect(self) -> Iterable[Metric]:
        status = self._status()
        waiting = GaugeMetricFamily("plumbline_model_waiting", "Requests waiting for the model", labels=["urgency"])
        for urgency, count in status.waiting.items():
            waiting.add_metric([urgency.name.lower()], count)
        busy = GaugeMetricFamily("plumbline_model_slots_busy", "Requests a server works on", labels=["server"])
        slots = GaugeMetricFamily("plumbline_model_slots", "Requests a server can work on at once", labels=["server"])
        breaker = GaugeMetricFamily(
            "plumbline_model_breaker", "1 for the state that a server's breaker is in", labels=["server", "state"]
        )
        requests = CounterMetricFamily(
            "plumbline_model_requests", "Requests to a server, by what became of them", labels=["server", "outcome"]
        )
        for server in status.servers:
            busy.add_metric([server.address], server.busy)
            slots.add_metric([server.address], server.slots)
            for state in BreakerState:
                breaker.add_metric([server.address, state.value], float(state is server.breaker))
            for outcome, count in server.outcomes.items():
                requests.add_metric([server.address, outcome.value], count)
        return [waiting, busy, slots, breaker, requests, *self._tokens()]

    def _tokens(self) -> Iterable[Metric]:
        tally = self._tally
        for name, text, tokens in (
            ("prompt_tokens", "Tokens of prompts", tally.prompt),
            ("cached_prompt_tokens", "Tokens of prompts that were not computed anew", tally.cached),
            ("generated_tokens", "Tokens of replies", tally.generated),
        ):
            counter = CounterMetricFamily(f"plumbline_model_{name}", text)
            counter.add_metric([], tokens)
            yield counter
        share = GaugeMetricFamily("plumbline_model_cached_prompt_share", "Share of prompt tokens served from a cache")
        share.add_metric([], tally.cached / tally.prompt if tally.prompt else 0.0)
        yield share


@contextmanager
def collected(
    status: Callable[[], PoolStatus], tally: TokenTally, registry: CollectorRegistry = REGISTRY
) -> Generator[None]:
    """Register a collector for a pool until the block ends."""
    collector = ModelCollector(status, tally)
    registry.register(collector)
    try:
        yield
    finally:
        registry.unregister(collector)
