from __future__ import annotations

from dataclasses import replace

import pytest

from core.incidents.runbook import filled_command
from core.model.incident import Incident
from tests.samples import alert, explained_incident

LABELS = {
    "namespace": "shop",
    "pod_name": "till-7f9",
    "instance": "10.0.0.1:9100",
    "evil": "a; reboot",
    "flag": "--all",
}


def incident(*labels: dict[str, str]) -> Incident:
    alerts = tuple(replace(alert(number), labels=each) for number, each in enumerate(labels))
    return replace(explained_incident(), service="till", alerts=alerts)


def command(text: str, *labels: dict[str, str]) -> str:
    return filled_command(text, incident(*(labels or (LABELS,))))


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("kubectl -n <namespace> delete pod <your-pod-name>", "kubectl -n shop delete pod till-7f9"),
        ("kubectl -n $NAMESPACE logs ${POD}", "kubectl -n shop logs till-7f9"),
        ("curl {{ $labels.instance }}/metrics", "curl 10.0.0.1:9100/metrics"),
        ("systemctl restart {{service}}", "systemctl restart till"),
    ],
)
def test_a_placeholder_is_filled_with_the_label_of_its_name(text: str, filled: str) -> None:
    assert command(text) == filled


def test_a_command_that_cannot_be_filled_is_left_out() -> None:
    for text in (
        "restart <node>",
        "run $TICKET",
        "run <evil>",
        "run <flag>",
        "kubectl get pods ...",
        "run <your-name>",
    ):
        assert command(text) == "", text
    assert command("delete <pod>", {"pod": "a"}, {"pod": "b"}) == ""
    assert command("delete <pod>", {"pod": "a"}, {"pod": "a"}) == "delete a"


def test_what_is_no_placeholder_stays_as_it_is_written() -> None:
    for text in (
        "kubectl get pods -o jsonpath='{.items[*].metadata.name}'",
        "docker ps --format '{{.Names}}'",
        "awk '{print $NF}' access.log",
        "for node in a b; do ssh $node reboot; done",
        "count=3; scale $count",
        "psql < dump.sql > out.txt",
        "go test ./...",
    ):
        assert command(text) == text, text
