"""Every client of ours goes out through the proxy of the environment, and nothing near does."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from adapters import outgoing
from adapters.slack.client import slack_client
from tests.adversarial import PACKAGES, ROOT

PROXY = "http://proxy.example:3128"
CLIENTS = {"ClientSession": "adapters/outgoing.py"}
"""Classes that open connections, and the only file that may make one, because the class looks for no proxy by itself."""


def calls() -> Iterator[tuple[str, ast.Call]]:
    for package in PACKAGES:
        for file in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    yield str(file.relative_to(ROOT)), node


def name_of(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def test_no_client_is_made_that_knows_no_proxy() -> None:
    every = list(calls())
    made = {(file, name_of(call)) for file, call in every if name_of(call) in CLIENTS}
    assert made == {(file, name) for name, file in CLIENTS.items()}
    for file, call in every:
        if name_of(call) in ("AsyncHTTPTransport", "AsyncSocketModeHandler"):
            assert "proxy" in {keyword.arg for keyword in call.keywords}, file
        if name_of(call) == "AsyncWebClient":
            assert file == "adapters/slack/client.py"


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "no_proxy": "10.0.0.7,.svc"}
    outgoing.prepare(environment)
    outgoing.prepare(environment)  # by a second command of the same process
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        monkeypatch.delenv(name.swapcase() if name != "NETRC" else "netrc", raising=False)
    assert environment["NO_PROXY"].split(",") == ["10.0.0.7", ".svc", *outgoing.NEAR]


@pytest.mark.usefixtures("proxied")
@pytest.mark.parametrize(
    ("url", "is_proxied"),
    [
        ("https://slack.com/api/", True),
        ("http://prometheus.example:9090", True),
        ("http://127.0.0.1:8081/v1", False),
        ("http://localhost:11434", False),
        ("http://[::1]:8081", False),
        ("http://169.254.169.254/metadata", False),
        ("https://kubernetes.default.svc", False),
        ("https://10.0.0.7:6443", False),
    ],
)
def test_only_what_is_far_goes_through_the_proxy(url: str, *, is_proxied: bool) -> None:
    assert outgoing.proxy_for(url) == (PROXY if is_proxied else None)
    assert slack_client("xoxb-1", url).proxy == outgoing.proxy_for(url)
