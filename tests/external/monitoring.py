"""A real Prometheus and a real Alertmanager, watching one made-up service on loopback."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import yaml
from aiohttp import web

SERVICE = "till"
LIMIT = 1.0  # seconds of latency above which the alert fires
READY = 30.0  # seconds that a server may take to start


@dataclass(slots=True)
class Till:
    """The service that is watched: a page of metrics. `latency` is what a test changes."""

    latency: float = 0.2  # seconds
    requests: int = 0
    scrapes: int = 0
    scraped: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def metrics(self, request: web.Request) -> web.Response:
        self.requests += 30
        async with self.scraped:
            self.scrapes += 1
            self.scraped.notify_all()
        lines = [
            "# TYPE till_latency_seconds gauge",
            f"till_latency_seconds {self.latency}",
            "# TYPE till_requests counter",
            f'till_requests_total{{code="200"}} {self.requests}',
        ]
        return web.Response(text="\n".join([*lines, ""]))

    async def scraped_again(self, times: int) -> None:
        """Wait until Prometheus has come by that many times more."""
        wanted = self.scrapes + times
        async with self.scraped:
            await self.scraped.wait_for(lambda: self.scrapes >= wanted)


@dataclass(frozen=True, slots=True)
class Monitoring:
    till: Till
    prometheus_url: str
    alertmanager_url: str


@asynccontextmanager
async def monitoring(folder: Path, webhook_url: str, token: str = "") -> AsyncIterator[Monitoring]:
    """Both servers, on free ports; alerts are delivered to `webhook_url` with `token` as bearer."""
    till = Till()
    till_port, prometheus_port, alertmanager_port = (free_port() for _ in range(3))
    _write(folder, webhook_url, token, till_port, alertmanager_port)
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_served(till, till_port))
        await stack.enter_async_context(
            _started(
                "prometheus-alertmanager",
                f"--config.file={folder / 'alertmanager.yml'}",
                f"--storage.path={folder / 'alertmanager'}",
                f"--web.listen-address=127.0.0.1:{alertmanager_port}",
                "--cluster.listen-address=",
                ready=f"http://127.0.0.1:{alertmanager_port}/-/ready",
            )
        )
        await stack.enter_async_context(
            _started(
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'prometheus'}",
                f"--web.listen-address=127.0.0.1:{prometheus_port}",
                ready=f"http://127.0.0.1:{prometheus_port}/-/ready",
            )
        )
        yield Monitoring(till, f"http://127.0.0.1:{prometheus_port}", f"http://127.0.0.1:{alertmanager_port}")


def _write(folder: Path, webhook_url: str, token: str, till_port: int, alertmanager_port: int) -> None:
    webhook: dict[str, object] = {"url": webhook_url, "send_resolved": True}
    if token:
        webhook["http_config"] = {"authorization": {"credentials": token}}
    alertmanager = {
        "route": {"receiver": "plumbline", "group_by": ["alertname"], "group_wait": "0s", "group_interval": "1s"},
        "receivers": [{"name": "plumbline", "webhook_configs": [webhook]}],
    }
    rule = {
        "alert": "TillLatencyHigh",
        "expr": f"till_latency_seconds > {LIMIT}",
        "labels": {"severity": "page"},
        "annotations": {"summary": "The till answers in {{ $value }} s", "description": "Customers wait to pay."},
    }
    prometheus = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["rules.yml"],
        "scrape_configs": [
            {
                "job_name": "tills",
                "static_configs": [{"targets": [f"127.0.0.1:{till_port}"], "labels": {"service": SERVICE}}],
            }
        ],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [f"127.0.0.1:{alertmanager_port}"]}]}]},
    }
    rules = {"groups": [{"name": "till", "rules": [rule]}]}
    for name, content in {"alertmanager": alertmanager, "prometheus": prometheus, "rules": rules}.items():
        (folder / f"{name}.yml").write_text(yaml.safe_dump(content), encoding="utf-8")


@asynccontextmanager
async def _served(till: Till, port: int) -> AsyncIterator[None]:
    app = web.Application()
    app.router.add_get("/metrics", till.metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    yield
    await runner.cleanup()


@asynccontextmanager
async def _started(*command: str, ready: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        async with asyncio.timeout(READY):
            await answers(ready)
        yield
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def answers(url: str) -> None:
    """Ask until the server says that it is ready: it has no way to tell by itself."""
    async with aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url) as response:
                    if response.status == 200:
                        return
            except aiohttp.ClientConnectionError:
                pass
            await asyncio.sleep(0.1)


def free_port() -> int:
    """A port of loopback that nobody listened on a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
