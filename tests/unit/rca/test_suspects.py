from __future__ import annotations

import re
from dataclasses import replace

from core.confidence.calibrator import PROBABLE, badge_for
from core.model.badge import Badge, Strength
from core.model.findings import Origin
from core.rca.explain import explain
from core.rca.incident_signals import LEEWAY, survey
from core.rca.observations import Observations
from core.rca.tool_outputs import ToolOutput
from tests.cases import every_case
from tests.fakes.outage import change, errors, gauge, minutes, observations, traffic

CALM = [traffic(service) for service in ("shop", "cart", "login", "stock")]
WAITING = errors("shop", "Connection is not available, pool request timed out", since=-8)
BANNER = change("C-2", "shop", -9, "New banner on the start page")


def first_origin(seen: Observations) -> Origin | None:
    cause = explain(seen)[0].cause
    return cause.origin if cause else None


def test_the_diff_tells_the_change_that_did_it_from_a_later_one() -> None:
    pool = replace(change("C-1", "shop", -14, "Cleanup"), diff="-maximumPoolSize: 40\n+maximumPoolSize: 4")
    explanation, evaluation = explain(observations([*CALM, WAITING], changes=[pool, BANNER]))
    assert explanation.cause is not None
    assert explanation.cause.change is not None
    assert explanation.cause.change.id == "C-1"
    assert "-maximumPoolSize: 40\n+maximumPoolSize: 4" in [each.quote for each in explanation.cause.evidence]
    assert explanation.first_failing == "shop"
    assert evaluation is not None


@every_case("host", ["api.paygrid.example", "local.paygrid.example", "internal-api.paygrid.example", "svc.paygrid.com"])
def test_errors_that_name_a_host_outside_are_no_change_of_ours(host: str) -> None:
    outage = errors("shop", f"POST https://{host}/v2/charges -> 503 Service Unavailable", since=-8)
    explanation, _ = explain(observations([*CALM, outage], changes=[BANNER]))
    assert explanation.cause is not None
    assert (explanation.cause.origin, explanation.cause.change) == (Origin.EXTERNAL, None)
    assert explanation.cause.subject == host


@every_case(
    "host", ["pay.internal.example.com", "orders-db.example.com", "pay.svc-eu.example.com", "redis-1.example.com"]
)
def test_errors_that_name_a_host_of_our_own_blame_nobody_outside(host: str) -> None:
    outage = errors("shop", f"POST https://{host}/v2/charges -> 503 Service Unavailable", since=-8)
    explanation, _ = explain(observations([*CALM, outage], changes=[BANNER]))
    assert all(each.origin is not Origin.EXTERNAL for each in explanation.hypotheses)


@every_case(
    "line",
    [
        (
            "connect() failed (111: Connection refused) while connecting to upstream, client: 10.1.0.9, server: "
            'www.acme.com, request: "GET /pay HTTP/1.1", upstream: "http://INSIDE:8080/pay", host: "www.acme.com"'
        ),
        '{"authority":"www.acme.com","path":"/pay","response_flags":"UF","upstream_host":"INSIDE:8080"}',
        '{"RequestHost":"www.acme.com","ServiceURL":"http://INSIDE:8080","error":"connection refused"}',
        'Get "https://www.acme.com/pay": dial tcp INSIDE:443: connect: connection refused',
        'Get "https://www.acme.com/pay": dial tcp: lookup www.acme.com on INSIDE:53: server misbehaving',
    ],
)
def test_the_host_that_was_asked_for_is_not_failing_if_what_was_called_is_inside(line: str) -> None:
    called = errors("shop", line.replace("INSIDE", "10.2.0.4"), since=-8)
    explanation, _ = explain(observations([*CALM, called]))
    assert all(each.origin is not Origin.EXTERNAL for each in explanation.hypotheses)


def test_a_host_whose_public_address_refuses_is_failing() -> None:
    refused = errors("shop", "dial www.acme.com (93.184.215.14:443): connection refused", since=-8)
    assert first_origin(observations([*CALM, refused])) is Origin.EXTERNAL


def test_a_host_that_the_change_speaks_of_is_its_doing() -> None:
    outage = errors("shop", "lookup api.paygrid.example: no such host", since=-8)
    moved = replace(change("C-1", "shop", -9, "New provider"), diff="-url: api.old.example\n+url: api.paygrid.example")
    explanation, _ = explain(observations([*CALM, outage], changes=[moved]))
    assert explanation.cause is not None
    assert any(each.change is not None and each.change.id == "C-1" for each in explanation.hypotheses)


def test_errors_about_one_record_are_no_change_of_ours() -> None:
    poison = [
        replace(line, text="cannot import invoice-48213: amount is not a number")
        for line in errors("shop", "x", since=-8)
    ]
    explanation, _ = explain(observations([*CALM, poison], changes=[BANNER]))
    assert explanation.cause is not None
    assert (explanation.cause.origin, explanation.cause.subject) == (Origin.DATA, "invoice-48213")


def test_more_requests_everywhere_are_no_change_of_ours() -> None:
    busy = [
        gauge(service, "requests_per_second", lambda offset: 50 if offset < -10 else 220)
        for service in ("edge", "shop", "cart", "stock")
    ]
    shed = errors("shop", "load shedding active", since=-8)
    assert first_origin(observations([*CALM, shed], busy, [BANNER])) is Origin.LOAD


def test_a_slow_rise_is_dated_to_its_beginning_and_found_in_the_change_of_that_time() -> None:
    leak = gauge("shop", "memory_rss_mb", lambda offset: 400 + max(0.0, offset + 42) * 15)
    early = change("C-1", "shop", -42, "Remember baskets")
    killed = errors("shop", "GC overhead: 92 % of time", since=-4)
    explanation, _ = explain(observations([*CALM, killed], [leak], [early, BANNER]))
    assert explanation.cause is not None
    assert explanation.cause.change is not None
    assert explanation.cause.change.id == "C-1"


def test_a_change_from_after_the_first_sign_is_never_named() -> None:
    late = replace(change("C-9", "shop", -2, "Pool size"), diff="-maximumPoolSize: 40\n+maximumPoolSize: 4")
    seen = observations([*CALM, WAITING], changes=[late])
    explanation, _ = explain(seen)
    assert minutes(-2) > survey(seen).first_sign + LEEWAY
    assert all(each.change is None for each in explanation.hypotheses)


def test_two_changes_that_nothing_tells_apart_are_possibilities_and_neither_is_to_be_undone() -> None:
    twins = [change(id_, "shop", -9, "Update") for id_ in ("C-1", "C-2")]
    explanation, evaluation = explain(observations([*CALM, WAITING], changes=twins))
    badge = badge_for(evaluation, None, scale=PROBABLE) if evaluation is not None else None
    assert badge is not None
    assert not badge.is_sure
    doubtful = replace(explanation, badge=badge)
    assert re.fullmatch(r"Possibly: “Update” .*\((C-\d)\).*; or: deploy (?!\1)C-\d \(Update\)\.", doubtful.summary)
    alone = replace(doubtful, hypotheses=doubtful.hypotheses[:1])
    assert alone.summary.endswith("; or: a cause that shows in nothing that was read.")
    sure = replace(explanation, badge=Badge(Strength.STRONG))
    assert sure.summary == explanation.hypotheses[0].cause
    assert sure.hypotheses[0].next_check.startswith("Roll back ")


def test_a_service_that_is_named_by_its_address_is_the_one_that_does_not_answer() -> None:
    table = "NAME    TYPE        CLUSTER-IP   EXTERNAL-IP   PORT(S)   AGE\ncart    ClusterIP   10.0.0.7     <none>        80/TCP    9d\n"
    refused = errors("shop", "Get http://10.0.0.7:80/basket: context deadline exceeded", since=-8)
    seen = replace(
        observations([traffic("shop"), refused]), outputs=(ToolOutput("kubectl_get", {"kind": "services"}, table),)
    )
    cause = explain(seen)[0].cause
    assert cause is not None
    assert cause.cause.startswith("cart does not answer shop as it should; ")
