"""Incidents of a cluster whose evidence is where no fixed plan looks, from the webhook through `serve` to Slack.

A simulated model calls the tools of an MCP server by names that it reads in their answers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations

from tests.benchmarks.simulated_agent import Cause
from tests.fakes.block_kit import texts
from tests.fakes.door_secrets import KNOWN
from tests.fakes.general_servers import fake_model_server
from tests.fakes.mcp_server import served_mcp
from tests.fakes.simulated_server import investigating
from tests.folders import copy_folder
from tests.scenario.home import Home
from tests.scenario.slack import WatchedSlack
from tests.scenario.webhooks import alert, delivery

CONFIG = """
  - kind: mcp
    name: cluster
    url: URL
    tools: {list_objects: The objects of a kind., describe: One object of the cluster with its events.}
models: {use: never, causes: always}
"""


@dataclass(frozen=True)
class Trouble:
    """An incident: what the cluster shows of one object, the line that tells why, and the cause in words."""

    service: str
    title: str
    kind: str
    name: str
    shown: str
    line: str
    cause: str

    @property
    def known(self) -> Cause:
        """What the model understands."""
        calls = [
            {"tool": "cluster_list_objects", "kind": self.kind},
            {"tool": "cluster_describe", "kind": self.kind, "name": self.name},
        ]
        return Cause(
            self.title, self.service, frozenset(), lambda line: self.line in line, self.cause, calls, case=self.name
        )


TROUBLES = (
    Trouble(
        "till",
        "till is not available",
        "pod",
        "till-6f9c4d7b58-x2x4z",
        """\
Name:         till-6f9c4d7b58-x2x4z
Namespace:    hall
Status:       Pending
Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
Events:
  Type     Reason            Age   From               Message
  ----     ------            ----  ----               -------
  Warning  FailedScheduling  70s   default-scheduler  0/3 nodes are available: 3 node(s) had untolerated taint {oven: hot}.
""",
        "0/3 nodes are available: 3 node(s) had untolerated taint {oven: hot}.",
        "No node takes the pods of till, because all of them have a taint that the pods do not tolerate.",
    ),
    Trouble(
        "oven",
        "oven cannot be reached",
        "service",
        "oven",
        """\
Name:              oven
Namespace:         hall
Selector:          app=ovens
Type:              ClusterIP
Port:              http  80/TCP
TargetPort:        8080/TCP
Endpoints:         <none>
""",
        "Selector:          app=ovens",
        "The service of oven selects pods that do not exist, so that it has no endpoints.",
    ),
    Trouble(
        "lamp",
        "lamp restarts again and again",
        "pod",
        "lamp-7d4b9c6f5d-q8w2k",
        """\
Name:         lamp-7d4b9c6f5d-q8w2k
Namespace:    hall
Status:       Running
Containers:
  lamp:
    Port:       9000/TCP
    Liveness:   http-get http://:9900/healthz delay=1s timeout=1s period=5s #success=1 #failure=3
Events:
  Type     Reason     Age   From     Message
  ----     ------     ----  ----     -------
  Warning  Unhealthy  20s   kubelet  Liveness probe failed: Get "http://10.1.0.9:9900/healthz": connection refused
""",
        'Liveness probe failed: Get "http://10.1.0.9:9900/healthz": connection refused',
        "The liveness probe of lamp asks a port on which nothing listens.",
    ),
)


def cluster() -> MCPServer:
    """A cluster that says what its objects are only where it is asked for each by its name."""
    server = MCPServer("cluster", log_level="CRITICAL")
    read_only = ToolAnnotations(read_only_hint=True)

    @server.tool(annotations=read_only)
    def list_objects(kind: str) -> str:
        return "\n".join(each.name for each in TROUBLES if each.kind == kind) or "No resources found."

    @server.tool(annotations=read_only)
    def describe(kind: str, name: str) -> str:
        found = (each.shown for each in TROUBLES if (each.kind, each.name) == (kind, name))
        return next(found, f'Error from server (NotFound): {kind} "{name}" not found')

    return server


async def posted(home: Path, *, with_model: bool) -> dict[str, str]:
    """The message and the details of each incident, by service, with the model or without one."""
    async with (
        WatchedSlack() as slack,
        fake_model_server("vllm", context=200_000) as model,
        served_mcp(cluster()) as tools,
        aiohttp.ClientSession(headers=KNOWN) as http,
    ):
        config = home / "company/plumbline.yaml"
        config.write_text(config.read_text().rstrip() + CONFIG.replace("URL", tools))
        (home / "company/live/now/changes.jsonl").write_text("")
        for telemetry in ("logs/till.log", "metrics/till.csv"):
            (home / "company/live/now" / telemetry).unlink()
        model.script = investigating([each.known for each in TROUBLES])
        async with Home(home, slack, PLUMBLINE_LLM_URL=model.url if with_model else "").life() as bot:
            address = await bot.address()
            for each in TROUBLES:
                told = alert(each.service, service=each.service) | {"annotations": {"summary": each.title}}
                told["labels"]["alertname"] = each.title
                sent = delivery(each.service, told)
                async with http.post(f"{address}webhooks/alertmanager", json=sent) as response:
                    assert response.status == 202, await response.text()
                bot.steps.clear()
                await bot.finishes("details")
            await bot.stop()
        found = {each.service: "" for each in TROUBLES}
        titles = {each.title: each.service for each in TROUBLES}
        roots = {
            message["ts"]: service
            for message in slack.messages
            for title, service in titles.items()
            if "thread_ts" not in message and title in json.dumps(message)
        }
        for message in slack.messages:
            if service := roots.get(message.get("thread_ts", message["ts"])):
                found[service] += "\n".join(texts(message["blocks"])) + "\n"
        return found


@pytest.mark.external
async def test_what_an_agent_reads_by_name_is_the_cause_where_the_fixed_plan_shows_none(
    furnished: Path, tmp_path: Path
) -> None:
    copy_folder(furnished, tmp_path / "without")
    copy_folder(furnished, tmp_path / "with")
    without = await posted(tmp_path / "without", with_model=False)
    told = await posted(tmp_path / "with", with_model=True)
    for trouble in TROUBLES:
        assert trouble.cause not in without[trouble.service]
        assert trouble.line not in without[trouble.service]
        message = told[trouble.service]
        assert trouble.cause.rstrip(".") in message
        assert trouble.line.partition("  ")[0] in message
        assert f"cluster_describe({trouble.kind}, {trouble.name})" in message
        assert f"Undo what happened to {trouble.service}." in message
        assert f"{trouble.service} stays in trouble" in message
        assert "the language model" in message
