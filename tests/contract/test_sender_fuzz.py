"""What a sender tells is accepted or refused with its reason, however its payload is damaged, and never turned round.

PLUMBLINE_FUZZ_EXAMPLES says how many damaged payloads are read in all.
"""

from __future__ import annotations

import json
import os
import random
from copy import copy, deepcopy
from typing import Any

import pytest

from core.incidents.folding import fold, open_from
from core.model.alert import AlertDelivery, AlertStatus
from core.model.conversation import Place, Platform
from core.model.errors import MalformedInput
from tests.cases import every_case
from tests.contract.sender_payloads import BEGAN, NOW, PARSERS, SENDERS, STATES, STORIES, Sender
from tests.fakes.monitoring_systems.servicenow import ServiceNow
from tests.fakes.monitoring_systems.system import Payload, encoded
from tests.fakes.monitoring_systems.systems import SYSTEMS

EXAMPLES = int(os.environ.get("PLUMBLINE_FUZZ_EXAMPLES", "500"))
DEPTH = 300
VALUES = [
    None,
    True,
    False,
    0,
    -1,
    70,
    1e308,
    10**40,
    "",
    "x",
    "\ufffd",
    "\x00",
    "Tier Zero",
    [],
    {},
    [[]],
    {"x": None},
]
PLACE = Place(Platform.CONSOLE, "incidents")
UNTOLD = {"zabbix": "event_update_status", "argo_cd": "operationState"}
"""The field by which a sender tells updates, if it tells any: a body without it is that of one that tells none."""


class _Twin(str):
    """A key that a dictionary may hold twice."""

    __slots__ = ()
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        return self is other


def _payloads() -> list[tuple[str, Payload]]:
    told = [(each.source, each.tell(1, over)) for each in SENDERS for over in (False, True)]
    documented = [(source, payload) for source, payload, _ in STATES.values()]
    systems = [(kind.source, kind("INC1", BEGAN).update()) for kind in SYSTEMS]
    stories = [(source, step["body"]) for source, story in STORIES.items() for step in story]
    return told + documented + systems + stories


PAYLOADS = _payloads()


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Return every container with each of its keys."""
    inner = (
        list(value.items()) if isinstance(value, dict) else list(enumerate(value)) if isinstance(value, list) else []
    )
    return [place for key, each in inner for place in ((value, key), *_places(each))]


def damaged(payload: Payload, rng: random.Random) -> Any:
    """Return the payload with one field dropped, renamed, emptied, retyped, moved, doubled or nested."""
    result = deepcopy(payload)
    holder, key = rng.choice(_places(result))
    value = holder[key]
    match rng.choice(["drop", "rename", "null", "retype", "reorder", "double", "nest", "deepen"]):
        case "drop":
            del holder[key]
        case "rename" if isinstance(holder, dict):
            holder[f"x_{key}"] = holder.pop(key)
        case "null":
            holder[key] = None
        case "retype":
            holder[key] = rng.choice([each for each in VALUES if type(each) is not type(value)])
        case "reorder" if isinstance(holder, dict):
            holder |= {name: holder.pop(name) for name in rng.sample(list(holder), len(holder))}
        case "double" if isinstance(holder, dict):
            holder[_Twin(key)] = value
        case "double":
            holder.insert(key, value)
        case "nest":
            holder[key] = [value] if rng.random() < 0.5 else {"value": value}
        case _:
            for _ in range(rng.choice([3, 30, DEPTH])):
                value = [value]
            holder[key] = value
    return result


def read(source: str, payload: Any) -> AlertDelivery | None:
    return PARSERS[source](json.dumps(payload).encode(), NOW)


def read_or_refused(source: str, payload: Any) -> tuple[str, AlertDelivery | None]:
    try:
        return "", read(source, payload)
    except MalformedInput as error:
        return str(error), None


@every_case("sender", SENDERS)
def test_a_part_that_may_be_missing_may_be_of_any_type(sender: Sender) -> None:
    payload = sender.tell(1, False)
    for holder, key in _places(payload):
        before = copy(holder)
        del holder[key]
        refusal, expected = read_or_refused(sender.source, payload)
        _restore(holder, before)
        for value in () if refusal else (None, [], {"x": None}):
            holder[key] = value
            refusal, delivery = read_or_refused(sender.source, payload)
            assert not refusal, f"{key} = {value!r}: {refusal}"
            assert _states(delivery) == _states(expected), f"{key} = {value!r}"
        holder[key] = before[key]


def _restore(holder: Any, before: Any) -> None:
    """Give a container its members back, in their order."""
    holder.clear()
    holder.update(before) if isinstance(holder, dict) else holder.extend(before)


def _states(delivery: AlertDelivery | None) -> list[AlertStatus]:
    return [alert.status for alert in delivery.alerts] if delivery is not None else []


@every_case("sender", SENDERS)
def test_json_of_a_template_is_read(sender: Sender) -> None:
    payload = sender.tell(1, False)
    expected = _states(read(sender.source, payload))
    written = json.dumps(payload)
    for body in (f"{written[:-1]},}}", f"{written}\n\0", written.replace("}}", "} , }").replace("}]", "},]")):
        assert _states(PARSERS[sender.source](body.encode(), NOW)) == expected, body


def test_line_break_in_a_text_does_not_lose_the_alert() -> None:
    body = json.dumps(SENDERS[0].tell(1, False)).replace('"summary": "', '"summary": "High\tload\n')
    delivery = PARSERS[SENDERS[0].source](body.encode(), NOW)
    assert delivery is not None
    assert delivery.alerts[0].summary.startswith("High\tload\n")


def test_alert_without_a_state_is_left_out_and_the_others_of_its_group_stay() -> None:
    payload = SENDERS[0].tell(1, False)
    payload["alerts"].append({name: value for name, value in payload["alerts"][0].items() if name != "status"})
    delivery = PARSERS[SENDERS[0].source](json.dumps(payload).encode(), NOW)
    assert delivery is not None
    assert len(delivery.alerts) == len(payload["alerts"]) - 1
    assert delivery.unread == (f"alerts.{len(payload['alerts']) - 1} (status: Field required)",)


def test_parts_left_out_are_named_with_reasons_within_limits() -> None:
    payload = SENDERS[0].tell(1, False)
    payload["alerts"][0]["labels"] |= {f"{number}{'x' * 500}": None for number in range(200)}
    delivery = PARSERS[SENDERS[0].source](json.dumps(payload).encode(), NOW)
    assert delivery is not None
    assert len(delivery.unread) == 64
    assert all(
        "alerts.0.labels." in part and part.endswith("(Input should be a valid string)") for part in delivery.unread
    )
    assert max(map(len, delivery.unread)) < 300


@every_case("source", sorted(PARSERS))
def test_a_damaged_payload_is_accepted_or_refused_and_never_turned_round(source: str) -> None:
    rng = random.Random(f"senders {source} {EXAMPLES}")
    payloads = [payload for name, payload in PAYLOADS if name == source]
    for _ in range(EXAMPLES // len(PARSERS)):
        original = rng.choice(payloads)
        body = damaged(original, rng)
        meant = read(source, original)
        refusal, understood = read_or_refused(source, body)
        assert not refusal or refusal.endswith("."), body
        if meant is None or refusal:
            continue
        assert understood is not None, f"silently dropped: {json.dumps(body)}"
        states = {alert.status for alert in meant.alerts}
        if states == {AlertStatus.UPDATED} and UNTOLD.get(source, "") not in {"", *(key for _, key in _places(body))}:
            states.add(AlertStatus.FIRING)
        turned = {alert.status for alert in understood.alerts} - states - {AlertStatus.UPDATED}
        assert not turned, f"{states} became {turned}: {json.dumps(body)}"
        if understood.fires:
            assert fold(open_from(understood, "i1", PLACE), understood).title


@every_case("source", sorted({source for source, _ in PAYLOADS}))
def test_an_update_of_which_a_part_says_nothing_opens_and_ends_no_incident(source: str) -> None:
    for payload in (deepcopy(payload) for name, payload in PAYLOADS if name == source):
        if set(_states(read(source, payload))) != {AlertStatus.UPDATED}:
            continue
        for holder, key in _places(payload):
            stated = holder[key]
            for value in (None, {}):
                holder[key] = value
                _, delivery = read_or_refused(source, payload)
                assert {*_states(delivery)} <= {AlertStatus.UPDATED}, f"{key} = {value!r}: {json.dumps(payload)}"
            holder[key] = stated


def test_a_number_with_a_sign_is_another_state() -> None:
    for state, status in ((1, AlertStatus.FIRING), (-1, AlertStatus.UPDATED)):
        record = ServiceNow("INC1", BEGAN).record("", "3") | {"state": state}
        assert _states(read("servicenow", record)) == [status], state


def test_the_damages_reach_every_sender_and_most_are_survived() -> None:
    """A fuzzer whose payloads are all refused would prove nothing."""
    rng = random.Random("coverage")
    for source in PARSERS:
        payloads = [payload for name, payload in PAYLOADS if name == source]
        results = [read_or_refused(source, damaged(rng.choice(payloads), rng)) for _ in range(40)]
        assert sum(understood is not None for _, understood in results) >= 12, source


@pytest.mark.parametrize("text", ["\ufffd", "Seats \ufffd sold", "\ufffd\ufffd"])
def test_replacement_characters_are_text_like_any_other(text: str) -> None:
    for source, payload in PAYLOADS:
        body = encoded(payload)
        for word in (b"Charges wait for a connection", b"p99 is 4 s"):
            body = body.replace(word, json.dumps(text).strip('"').encode())
        understood = PARSERS[source](body, NOW)
        assert (understood is None) == (PARSERS[source](encoded(payload), NOW) is None)
