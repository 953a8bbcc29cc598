"""One module is all that a new kind of thing needs: it is found, configured, described and used."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer

from adapters import alerts
from adapters.clock import SystemClock
from bot.config.webhook_sections import formats
from bot.config.workspace import json_schema, load_workspace
from bot.web.openapi import describe
from bot.web.routes import Webhooks, build_app
from bot.web.webhook_sources import webhook_sources
from core.model.alert import AlertDelivery
from core.model.errors import ConfigurationError
from tests.fakes.new_kinds.package import NEW_KINDS, added_to

SECRET = "a secret of the fax machine alone"


@pytest.fixture
def fax() -> Iterator[None]:
    with added_to(alerts, NEW_KINDS / "alerts"):
        yield


def configured(folder: Path, text: str) -> Path:
    file = folder / "plumbline.yaml"
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.usefixtures("fax")
async def test_signed_webhook_of_a_new_module_reaches_the_bot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAX_SECRET", SECRET)
    workspace = load_workspace(configured(tmp_path, "webhooks: {fax: {secret_env: FAX_SECRET}}"))
    received = list[AlertDelivery]()

    async def accept(delivery: AlertDelivery) -> str:
        received.append(delivery)
        return "i1"

    async def ready() -> str:
        return ""

    webhooks = Webhooks(webhook_sources(workspace.webhooks), accept, "another secret", SystemClock())
    app = build_app(webhooks=webhooks, slack=None, teams=None, ready=ready, add_console=lambda _: None)
    body = json.dumps({"number": 7, "title": "Paper is out"}).encode()
    signature = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    statuses = list[int]()
    async with TestClient(TestServer(app)) as client:
        for signed in (signature, signature[::-1]):
            headers = {"X-Fax-Signature": signed, "Content-Type": "application/json"}
            async with client.post("/webhooks/fax", data=body, headers=headers) as response:
                statuses.append(response.status)
    assert statuses == [202, 401]
    assert [(each.source, each.group_key, each.alerts[0].summary) for each in received] == [
        ("fax", "7", "Paper is out")
    ]


@pytest.mark.usefixtures("fax")
def test_webhook_of_a_new_module_is_in_both_schemas() -> None:
    assert "fax" in json_schema()["$defs"]["WebhooksSection"]["properties"]
    assert "/webhooks/fax" in describe()["paths"]


@pytest.mark.usefixtures("fax")
def test_wrong_setting_of_a_webhook_names_its_line(tmp_path: Path) -> None:
    file = configured(tmp_path, "name: x\nwebhooks:\n  fax:\n    secret: FAX_SECRET\n")
    with pytest.raises(ConfigurationError, match=r"line 4: webhooks\.fax\.secret: unknown key\.$"):
        load_workspace(file)


def test_webhook_that_no_module_declares_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"line 1: webhooks\.fax: unknown key\.$"):
        load_workspace(configured(tmp_path, "webhooks: {fax: {secret_env: FAX_SECRET}}"))


def test_two_modules_that_claim_one_webhook_are_an_error(tmp_path: Path) -> None:
    text = (NEW_KINDS / "alerts" / "fax.py").read_text(encoding="utf-8")
    (tmp_path / "telex.py").write_text(text.replace('"fax"', '"grafana"'), encoding="utf-8")
    expected = r"^adapters\.alerts\.grafana and adapters\.alerts\.telex both declare grafana: rename one of them\.$"
    with added_to(alerts, tmp_path), pytest.raises(ValueError, match=expected):
        formats()
