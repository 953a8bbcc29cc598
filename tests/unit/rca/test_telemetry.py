from __future__ import annotations

import numpy as np

from core.rca.dependencies import Telemetry, origins
from tests.cases import every_case

GRAPH = {"web": ("shop", "search"), "shop": ("bank", "stock"), "search": ("stock",)}
CALLS = {"web": 1.0, "shop": 0.5, "search": 2.0, "bank": 0.5, "stock": 1.0}
BY_CHANCE = np.random.default_rng(7)


def telemetry(points: int, faults: dict[str, float] | None = None, drift: float = 1.0) -> Telemetry:
    """Latencies that add up along the calls; the faults last from the third point to the fourth."""
    own = {service: drift * (0.1 + 0.005 * BY_CHANCE.standard_normal(points)) for service in CALLS}
    for service, seconds in (faults or {}).items():
        own[service][2:4] += seconds
    spent = {"bank": own["bank"], "stock": own["stock"]}
    spent["shop"] = own["shop"] + spent["bank"] + 0.5 * spent["stock"]
    spent["search"] = own["search"] + 0.2 * spent["stock"]
    spent["web"] = own["web"] + 0.5 * spent["shop"] + 2.0 * spent["search"]
    return Telemetry(spent, {service: 100 * calls * np.ones(points) for service, calls in CALLS.items()})


@every_case("cause", CALLS)
def test_the_service_in_which_the_time_is_lost_comes_first(cause: str) -> None:
    found = origins(GRAPH, "web", telemetry(500), telemetry(5, {cause: 1.0}))
    assert next(iter(found)) == cause


@every_case("cause", CALLS)
def test_levels_that_drifted_since_do_not_mislead(cause: str) -> None:
    found = origins(GRAPH, "web", telemetry(500), telemetry(5, {cause: 1.0}, drift=1.5))
    assert next(iter(found)) == cause


def test_a_movement_that_is_too_small_to_matter_is_not_the_origin() -> None:
    found = origins(GRAPH, "web", telemetry(500), telemetry(5, {"shop": 1.0, "stock": 0.05}))
    assert next(iter(found)) == "shop"


def test_a_service_that_the_symptom_does_not_call_is_no_origin() -> None:
    found = origins({"web": ("shop",), "shop": ("bank",)}, "web", telemetry(500), telemetry(5, {"stock": 1.0}))
    assert set(found) == {"web", "shop", "bank"}


def test_a_symptom_that_did_not_move_has_no_origin_below_it() -> None:
    usual, now = telemetry(500), telemetry(5)
    still = Telemetry({service: np.full(5, 0.1) for service in now.values}, now.requests)
    calm = Telemetry({service: np.full(500, 0.1) for service in usual.values}, usual.requests)
    found = origins(GRAPH, "web", calm, still)
    assert [service for service, score in found.items() if score > 0] == ["web"]


def test_missing_values_and_services_without_ordinary_operation_are_no_sign() -> None:
    usual, now = telemetry(500), telemetry(5, {"bank": 1.0})
    blind = Telemetry({**now.values, "stock": np.full(5, np.nan), "search": 9 * np.arange(5.0)}, now.requests)
    known = Telemetry({**usual.values, "search": np.full(500, np.nan)}, usual.requests)
    assert next(iter(origins(GRAPH, "web", known, blind))) == "bank"


def test_a_circle_of_calls_ends() -> None:
    circle = {**GRAPH, "bank": ("shop", "bank")}
    assert set(origins(circle, "web", telemetry(500), telemetry(5, {"bank": 1.0}))) == set(CALLS)
