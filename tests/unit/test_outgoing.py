"""What is far goes out through the proxy of the environment, and nothing near does."""

from __future__ import annotations

import pytest

from adapters import http
from adapters.slack.client import slack_client

PROXY = "http://proxy.example:3128"


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": PROXY, "no_proxy": "10.0.0.7,.svc"}
    http.prepare(environment)
    http.prepare(environment)  # by a second command of the same process
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
        monkeypatch.delenv(name.swapcase() if name != "NETRC" else "netrc", raising=False)
    assert environment["NO_PROXY"].split(",") == ["10.0.0.7", ".svc", *http.NEAR]


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
    assert http.proxy_for(url) == (PROXY if is_proxied else None)
    assert slack_client("xoxb-1", url).proxy == http.proxy_for(url)
