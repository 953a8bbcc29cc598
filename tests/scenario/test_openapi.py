"""The description of our HTTP interface: it is valid, and every route is in it and nothing else."""

from __future__ import annotations

import json
import re

import pytest
from jsonschema import Draft202012Validator
from typer.testing import CliRunner

from adapters.alerts.fields import Format
from bot.cli import app
from bot.config.section import FORMATS
from bot.web.routes import AGENT_METADATA
from bot.web.webhook_sources import describe
from tests.cases import every_case
from tests.fakes.monitoring_systems.system import MonitoringSystem
from tests.fakes.monitoring_systems.systems import SYSTEMS
from tests.scenario.application import RunningBot

# Of a bot with `sign_in`; `test_signing_in.py` asks for each of them.
OF_ACCOUNTS = {("/console/sign-in", "get"), ("/console/signed-in", "get"), ("/console/sign-out", "post")}
METHODS = {"get", "post", "put", "delete", "patch"}


@pytest.mark.asyncio(loop_scope="session")
async def test_every_route_is_described_and_nothing_else(bot: RunningBot) -> None:
    served = {
        (re.sub(r":[^}]*}", "}", route.resource.canonical), route.method.lower())
        for route in bot.app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    served |= OF_ACCOUNTS
    paths = describe()["paths"]
    described = {
        (re.sub("^/webhooks/.*", "/webhooks/{source}", path), method)
        for path, operations in paths.items()
        for method in METHODS & operations.keys()
    }
    assert described == served


def test_every_door_but_those_of_the_platform_and_the_login_asks_for_a_credential() -> None:
    for path, operations in describe()["paths"].items():
        for method in METHODS & operations.keys():
            if operations[method].get("security") == []:
                assert path in {
                    *(
                        "/healthz",
                        "/readyz",
                        "/metrics",
                        "/console/login",
                        "/console/sign-in",
                        "/console/signed-in",
                        "/console/static/{name}",
                    ),
                    *AGENT_METADATA,
                }


@every_case("system", SYSTEMS)
def test_what_a_monitoring_system_sends_is_as_described(
    system: type[MonitoringSystem],
) -> None:
    description = describe()
    body = description["paths"][f"/webhooks/{system.source}"]["post"]["requestBody"]["content"]["application/json"]
    validator = Draft202012Validator(body["schema"] | {"components": description["components"]})
    assert [error.message for error in validator.iter_errors(system().fire())] == []


def test_every_format_has_a_schema_of_its_own() -> None:
    schemas = describe()["components"]["schemas"]
    assert all(schemas[each.source]["properties"] for each in FORMATS.all().values() if isinstance(each, Format))


def test_the_description_is_printed() -> None:
    printed = CliRunner().invoke(app, ["openapi"])
    assert printed.exit_code == 0
    assert json.loads(printed.stdout) == describe()
