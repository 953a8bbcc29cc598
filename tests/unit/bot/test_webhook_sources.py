"""The secret of each webhook source, and who is let in with which."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from adapters.alerts.generic import GenericSection
from adapters.clock import SystemClock
from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import webhook_parser, webhook_sources
from core.model.alert import AlertDelivery
from core.model.errors import ConfigurationError
from tests.fakes.monitoring_systems.opsgenie import Opsgenie
from tests.fakes.monitoring_systems.pagerduty import PagerDuty
from tests.fakes.monitoring_systems.system import encoded

SHARED, OWN = "shared between all", "of PagerDuty alone"
SECTIONS = {"pagerduty": GenericSection(secret_env="PAGERDUTY_WEBHOOK_SECRET")}


@pytest.fixture
async def client(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TestClient[web.Request, web.Application]]:
    monkeypatch.setenv("PAGERDUTY_WEBHOOK_SECRET", OWN)

    async def accept(delivery: AlertDelivery) -> str:
        return delivery.source

    async def ready() -> str:
        return ""

    app = build_app(
        webhooks=Webhooks(webhook_sources(SECTIONS), accept, SHARED, SystemClock()),
        chats={},
        ready=ready,
        add_console=lambda _: None,
    )
    async with TestClient(TestServer(app)) as opened:
        yield opened


BODIES = {"pagerduty": encoded(PagerDuty().fire()), "opsgenie": encoded(Opsgenie().fire())}


@pytest.mark.parametrize(
    ("source", "headers", "status"),
    [
        ("pagerduty", PagerDuty().headers(BODIES["pagerduty"], OWN), 202),
        ("pagerduty", PagerDuty().headers(BODIES["pagerduty"], SHARED), 401),
        ("pagerduty", {"Authorization": f"Bearer {OWN}"}, 202),
        ("pagerduty", {"Authorization": f"Bearer {SHARED}"}, 401),
        ("pagerduty", {}, 401),
        ("opsgenie", {"Authorization": f"Bearer {SHARED}"}, 202),
        ("opsgenie", {"Authorization": f"Bearer {OWN}"}, 401),
        ("opsgenie", PagerDuty().headers(BODIES["opsgenie"], SHARED), 401),
        ("fax", {"Authorization": f"Bearer {SHARED}"}, 404),
        ("fax", {}, 401),
    ],
)
async def test_a_source_is_let_in_with_its_own_secret_or_else_with_the_shared_one(
    client: TestClient[web.Request, web.Application], source: str, headers: dict[str, str], status: int
) -> None:
    body = BODIES.get(source, b"{}")
    async with client.post(
        f"/webhooks/{source}", data=body, headers={"Content-Type": "application/json", **headers}
    ) as response:
        assert response.status == status
        answer = await response.json()
    assert answer == {"incident": source} if status == 202 else answer["error"].endswith(".")


def test_a_secret_that_is_not_in_the_environment_is_a_mistake_in_the_configuration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("PAGERDUTY_WEBHOOK_SECRET", raising=False)
    with pytest.raises(ConfigurationError, match=r"webhooks\.pagerduty needs PAGERDUTY_WEBHOOK_SECRET"):
        webhook_sources(SECTIONS)


@pytest.mark.parametrize("path", ["$.", "a b", "$[?(@.x"])
def test_a_path_that_is_none_is_a_mistake_in_the_configuration(path: str) -> None:
    sections = {"generic": GenericSection(title=(path,))}
    with pytest.raises(ConfigurationError, match=r"in plumbline\.yaml, or in a definition, is not a JSONPath: "):
        webhook_sources(sections)


def test_a_format_that_nobody_described_is_none() -> None:
    with pytest.raises(ConfigurationError, match="There is no webhook format generic: use one of alertmanager"):
        webhook_parser({}, "generic")
