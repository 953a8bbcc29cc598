"""`plumbline tools try` shows what is asked, what is understood, and no secret."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from rich.console import Console

from bot.commands.commands import run_try
from bot.config.settings import Settings
from core.model.errors import ConfigurationError


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async def logs(request: web.Request) -> web.Response:
        asked = await request.json()
        assert request.headers["DD-API-KEY"] == "first secret+"
        if "service:" not in asked["filter"]["query"]:
            return web.json_response({"errors": ["first secret+ may not"]}, status=403)
        said = {
            "timestamp": (datetime.now(UTC) - timedelta(minutes=1)).isoformat(),
            "message": "no\x1bpaper",
            "status": "error",
        }
        return web.json_response({"data": [{"attributes": said}]})

    async def metrics(request: web.Request) -> web.Response:
        return web.json_response({"series": []})

    app = web.Application()
    app.add_routes([web.post("/api/v2/{kind}/{path:.*}", logs), web.get("/api/v1/query", metrics)])
    async with TestServer(app) as server:
        yield str(server.make_url("")).rstrip("/")


@pytest.fixture
def settings(tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("FIRST", "first secret+")
    monkeypatch.setenv("SECOND", "second-secret")
    file = tmp_path / "plumbline.yaml"
    tool = f"{{kind: datadog, url: '{address}', api_key_env: FIRST, application_key_env: SECOND}}"
    file.write_text(f"tools:\n  - {tool}\n", encoding="utf-8")
    return Settings.model_validate({"PLUMBLINE_CONFIG": file, "PLUMBLINE_DATA_DIR": tmp_path})


async def told(settings: Settings, name: str) -> tuple[int, str]:
    out = io.StringIO()
    code = await run_try(settings, name, "till", 60, Console(file=out, width=200))
    return code, out.getvalue()


async def test_the_requests_and_what_was_understood_are_shown_without_a_secret(settings: Settings) -> None:
    code, text = await told(settings, "Datadog")
    assert code == 1
    assert "POST http://127.0.0.1" in text
    assert "DD-API-KEY: …" in text
    assert r'"query": "service:\"till\""' in text
    assert "answered with status 200" in text
    assert "understood: 1 log records" in text
    assert "ERROR no paper" in text
    assert "understood: 0 series" in text
    assert "not read: Datadog at " in text
    assert "secret" not in text


async def test_a_tool_that_is_not_there_is_named_with_those_that_are(settings: Settings) -> None:
    with pytest.raises(ConfigurationError, match="no tool Loki; it has: Datadog"):
        await told(settings, "Loki")
