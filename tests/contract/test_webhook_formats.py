"""What every webhook format makes of the same story, and of nonsense."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.alerts.generic import GenericSection, definitions
from bot.config.section import FORMATS
from bot.web.webhook_sources import webhook_parsers, webhook_sources
from core.incidents.folding import fold, open_from
from core.model.alert import AlertDelivery, Severity
from core.model.conversation import Place, Platform
from core.model.errors import MalformedInput
from core.model.incident import Incident, IncidentState
from tests.cases import every_case
from tests.fakes.monitoring_systems.home_made import GENERIC
from tests.fakes.monitoring_systems.incident_io import IncidentIo
from tests.fakes.monitoring_systems.system import PERSON, RUNBOOK, TITLE, MonitoringSystem, Payload, encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS

NOW = datetime(2026, 3, 14, 9, 30, tzinfo=UTC)
BEGAN = NOW - timedelta(minutes=4)
WEBHOOKS = {"generic": GenericSection.model_validate(GENERIC)}
PARSERS = webhook_parsers(WEBHOOKS)

MAX_SENTENCE = 700  # characters


@pytest.fixture(params=SYSTEMS, ids=[system.__name__ for system in SYSTEMS])
def system(request: pytest.FixtureRequest) -> MonitoringSystem:
    return request.param("INC1", BEGAN)


def read(system: MonitoringSystem, payload: Payload, received_at: datetime = NOW) -> AlertDelivery | None:
    return PARSERS[system.source](encoded(payload), received_at)


def understood(system: MonitoringSystem, payload: Payload) -> AlertDelivery:
    delivery = read(system, payload)
    assert delivery is not None
    return delivery


def story(system: MonitoringSystem, *payloads: Payload) -> Incident:
    first, *others = (understood(system, payload) for payload in payloads)
    incident = open_from(first, "i1", Place(Platform.CONSOLE, "incidents"))
    for delivery in others:
        incident = fold(incident, delivery)
    return incident


def test_what_fires_opens_an_incident(system: MonitoringSystem) -> None:
    incident = story(system, system.fire())
    assert (incident.source, incident.service) == (system.source, "till")
    assert incident.title.startswith(TITLE)
    assert (incident.state, incident.acknowledged) == (IncidentState.OPEN, None)
    assert incident.severity is not Severity.CRITICAL
    assert BEGAN - timedelta(seconds=1) < incident.started_at <= BEGAN + timedelta(seconds=1)


def test_the_runbook_that_an_alert_names_is_known(system: MonitoringSystem) -> None:
    (alert, *_) = understood(system, system.fire()).alerts
    assert alert.runbook_url == (RUNBOOK if system.names_runbook else "")


def test_what_gets_worse_is_the_same_incident_and_worse(system: MonitoringSystem) -> None:
    fire, update = system.fire(), system.update()
    assert understood(system, fire).group_key == understood(system, update).group_key
    assert understood(system, fire).key != understood(system, update).key
    incident = story(system, fire, update)
    assert incident.state is IncidentState.OPEN
    assert incident.severity is (Severity.CRITICAL if system.rates else Severity.WARNING)


def test_who_acknowledges_is_told(system: MonitoringSystem) -> None:
    if not system.acknowledges:
        pytest.skip("it knows no acknowledgements")
    incident = story(system, system.fire(), system.acknowledge())
    assert incident.state is IncidentState.OPEN
    assert incident.acknowledged is not None
    assert incident.acknowledged.by == PERSON
    assert BEGAN < incident.acknowledged.at <= NOW
    assert story(system, system.fire(), system.acknowledge(), system.update()).acknowledged is not None


def test_what_is_over_is_resolved(system: MonitoringSystem) -> None:
    incident = story(system, system.fire(), system.update(), system.resolve())
    assert (incident.state, incident.firing_count) == (IncidentState.RESOLVED, 0)
    assert all(alert.ends_at is not None for alert in incident.alerts)


def test_what_fires_again_is_the_same_group(system: MonitoringSystem) -> None:
    incident = story(system, system.fire(), system.update(), system.resolve(), system.fire())
    assert (incident.state, incident.reopened_count) == (IncidentState.OPEN, 1)


def test_another_incident_is_another_group(system: MonitoringSystem) -> None:
    other = type(system)("INC2", BEGAN)
    assert understood(system, system.fire()).group_key != understood(other, other.fire()).group_key


def test_a_test_is_no_alert(system: MonitoringSystem) -> None:
    if not system.tests:
        pytest.skip("it has no test notification")
    assert read(system, system.test()) is None


def test_a_request_that_is_sent_again_has_the_same_key(system: MonitoringSystem) -> None:
    fire = system.fire()
    again = read(system, fire, NOW + timedelta(hours=1))
    assert again is not None
    assert again.key == understood(system, fire).key


def test_no_time_lies_in_the_future(system: MonitoringSystem) -> None:
    hurried = type(system)("INC1", NOW + timedelta(days=400))
    for payload in (hurried.fire(), hurried.update(), hurried.resolve()):
        for alert in understood(system, payload).alerts:
            assert alert.starts_at <= NOW
            assert alert.ends_at is None or alert.ends_at <= NOW
            assert alert.as_of is None or alert.as_of <= NOW


# --- signatures ------------------------------------------------------------------------------------------------------

SIGNING = [each for each in SYSTEMS if each.headers is not MonitoringSystem.headers]


@pytest.mark.parametrize("kind", SIGNING)
def test_only_what_is_signed_with_the_secret_is_taken_as_signed(kind: type[MonitoringSystem]) -> None:
    system = kind()
    body = encoded(system.fire())
    is_signed = webhook_sources(WEBHOOKS)[system.source].is_signed
    assert is_signed is not None
    headers = system.headers(body, "secret")
    assert is_signed(headers, body, "secret")
    assert not is_signed(headers, body + b" ", "secret")
    assert not is_signed(headers, body, "another secret")
    assert not is_signed({}, body, "secret")
    assert not is_signed({name: f"{value}0" for name, value in headers.items()}, body, "secret")
    assert not is_signed(dict.fromkeys(headers, "v1=é,\udcff"), body, "secret")


def test_the_signature_that_svix_publishes_is_accepted_only_while_it_is_new(monkeypatch: pytest.MonkeyPatch) -> None:
    """https://docs.svix.com/receiving/verifying-payloads/how-manual"""
    is_signed = webhook_sources(WEBHOOKS)["incident_io"].is_signed
    assert is_signed is not None
    headers = {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    }
    body = b'{"event_type":"ping","data":{"success":true}}'
    for age, accepted in ((-301, False), (-299, True), (0, True), (299, True), (301, False)):
        monkeypatch.setattr("time.time", lambda age=age: 1731705121.0 + age)
        assert is_signed(headers, body, "whsec_plJ3nmyCDGBKInavdOK15jsl") is accepted


def test_who_acknowledged_first_is_told_with_the_time_of_it_although_it_is_repeated() -> None:
    system = IncidentIo("INC1", BEGAN)
    incident = story(system, system.fire(), system.acknowledge(), system.acknowledge())
    assert incident.acknowledged is not None
    assert incident.acknowledged.at == BEGAN + timedelta(seconds=2)


@pytest.mark.parametrize("kind", ["private_incident.incident_created_v2", "public_incident.follow_up_created_v2"])
def test_of_what_is_private_or_no_incident_incident_io_opens_nothing(kind: str) -> None:
    assert read(IncidentIo(), {"event_type": kind, kind: {"id": "01FDAG4SAP"}}) is None


# --- what makes no sense ---------------------------------------------------------------------------------------------

NOTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
ANYTHING = st.recursive(
    NOTHING, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
STRANGE = st.one_of(
    ANYTHING,
    st.sampled_from(
        ["\x00", "\x00" * 9, "9999-12-31T23:59:59-14:00", "0001-01-01T00:00:00+14:00", "1e308", "-1", "x" * 9_999]
    ),
    st.integers(min_value=-(10**40), max_value=10**40),
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in a body that something else could stand at."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


def replaced(value: Any, path: tuple[str | int, ...], other: Any) -> Any:
    if not path:
        return other
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


def assert_bounded(delivery: AlertDelivery | None) -> None:
    for alert in delivery.alerts if delivery is not None else ():
        assert len(alert.summary) <= 500
        assert len(alert.name) <= 512
        assert len(alert.fingerprint) <= 70
        assert len(alert.labels) <= 64
        assert alert.starts_at.tzinfo is not None
        assert "\x00" not in f"{alert} {delivery.group_key if delivery else ''}"


def tolerated(parse: Callable[[bytes, datetime], AlertDelivery | None], body: bytes) -> None:
    """Parse, and accept one thing alone besides a delivery: one sentence that refuses."""
    refusal = ""
    delivery = None
    try:
        delivery = parse(body, NOW)
    except MalformedInput as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert len(refusal) < MAX_SENTENCE
    assert_bounded(delivery)


@settings(max_examples=max(100, settings().max_examples))
@given(st.sampled_from(sorted(PARSERS)), st.one_of(st.binary(max_size=200), ANYTHING.map(json.dumps).map(str.encode)))
def test_no_body_raises_anything_but_malformed_input(source: str, body: bytes) -> None:
    tolerated(PARSERS[source], body)


@settings(max_examples=max(100, settings().max_examples))
@given(st.sampled_from(SYSTEMS), st.data())
def test_no_change_of_a_body_raises_anything_but_malformed_input(kind: type[MonitoringSystem], data: Any) -> None:
    """Strange values at every place where the format has one: what reads it is reached."""
    system = kind("INC1", BEGAN)
    payload: Any = data.draw(st.sampled_from([system.fire(), system.update(), system.resolve()]))
    for _ in range(data.draw(st.integers(1, 3))):
        payload = replaced(payload, data.draw(st.sampled_from(places(payload))), data.draw(STRANGE))
    tolerated(PARSERS[system.source], json.dumps(payload).encode())


WRONG = (b"", b"null", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"a":' * 100_000, rb'"\ud800"')


@every_case(("source", "body"), product(sorted(PARSERS), WRONG))
def test_a_wrong_body_is_refused(source: str, body: bytes) -> None:
    with pytest.raises(MalformedInput, match=r"^The [\w. ]+ webhook ") as raised:
        PARSERS[source](body, NOW)
    assert len(str(raised.value)) < MAX_SENTENCE


def test_every_format_has_its_story() -> None:
    missing = set(FORMATS.all()) - set(definitions()) - {each.source for each in SYSTEMS} - {"alertmanager"}
    assert not missing, f"{missing}: add a MonitoringSystem to tests/fakes/monitoring_systems, and to SYSTEMS there"
