"""What a cluster and a build server say, from a webhook or a question on the local page to what the chat shows."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.fakes.tool_servers import FakeGitLab, FakeKubernetes, reached
from tests.scenario.bot_client import BotClient, is_done, of_kind
from tests.scenario.company import write_company
from tests.scenario.mortal_bot import MortalBot
from tests.scenario.webhooks import alert

pytestmark = pytest.mark.asyncio(loop_scope="module")

KILLED = {
    "phase": "Running",
    "containerStatuses": [
        {
            "name": "main",
            "restartCount": 7,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
        }
    ],
}
TOOLS = """
tools:
  - kind: kubernetes
    url: "{cluster}"
    token_env: TOOL_TOKEN
    services: {{till: {{namespace: live, selector: app=till}}, shelf: {{namespace: live, selector: app=shelf}}}}
  - {{kind: gitlab_ci, name: GitLab, url: "{builds}", token_env: TOOL_TOKEN, services: {{till: acme/api}}}}
"""


class Home:
    """A bot that reads a cluster and a build server, and whoever talks to it."""

    def __init__(self, client: BotClient, builds: str) -> None:
        self.client = client
        self.builds = builds

    async def press(self, message: dict[str, Any], verdict: str) -> None:
        form = {"incident": message["payload"]["incident"]["id"], "verdict": verdict}
        headers = {"HX-Request": "true"}
        async with self.client.session.post(
            f"{self.client.address}console/feedback", data=form, headers=headers
        ) as response:
            assert response.status == 200, await response.text()

    async def reply(self, thread: int, text: str) -> None:
        form = {"channel": "help", "text": text, "thread": str(thread)}
        async with self.client.session.post(f"{self.client.address}console/messages", data=form) as response:
            assert response.status == 200, await response.text()

    async def explained(self, text: str) -> dict[str, Any]:
        """Ask, and the incident's message that answers, once it is done."""
        before = {message["id"] for message in await self.client.messages("help")}
        await self.client.ask("help", text)

        def found(messages: list[dict[str, Any]]) -> dict[str, Any] | None:
            told = [each for each in of_kind(messages, "incident") if each["id"] not in before]
            return next((each for each in told if is_done(each["payload"]["incident"])), None)

        return await self.client.until("help", found)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def home(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Home]:
    folder = tmp_path_factory.mktemp("outside")
    cluster = FakeKubernetes()
    cluster.statuses = {"till": {"phase": "Running"}, "shelf": KILLED}
    at = f"{datetime.now(UTC) - timedelta(minutes=30):%Y-%m-%dT%H:%M:%S.000Z}"
    builds = FakeGitLab([{"id": 2, "status": "failed", "ref": "main", "sha": "4f2c", "created_at": at}])
    async with AsyncExitStack() as stack:
        addresses = {
            name: (await stack.enter_async_context(reached(server))).url.rstrip("/")
            for name, server in (("cluster", cluster), ("builds", builds))
        }
        config = write_company(folder / "company")
        config.write_text(config.read_text().partition("tools:")[0] + TOOLS.format(**addresses))
        environment = {
            "PLUMBLINE_CONFIG": str(config),
            "PLUMBLINE_DATA_DIR": str(folder / "data"),
            "PLUMBLINE_PORT": "0",
            "TOOL_TOKEN": "tool-token",
        }
        bot = MortalBot(environment, folder / "log")
        stack.callback(bot.close)
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Home(BotClient(await bot.address(), session), addresses["builds"])
        await bot.stop()


async def test_what_only_the_cluster_tells_is_the_cause_of_an_alert(home: Home) -> None:
    incident_id = await home.client.deliver("group", alert("a1"))
    assert incident_id is not None
    incident = await home.client.incident(incident_id, is_done)
    (cause, *_) = incident["findings"]["explanation"]["hypotheses"]
    assert cause["service"] == "shelf"
    assert "OOMKilled: it ran out of memory at its limit of 512Mi" in cause["cause"]
    assert {each["source"] for each in cause["evidence"]} & {"kubernetes_pods(shelf)", "kubernetes_objects(shelf)"}
    assert cause["responsibility"] == "dependency"


async def test_a_link_to_a_run_is_read_and_what_people_confirm_reads_the_next_one(home: Home) -> None:
    question = f"rca {home.builds}/acme/api/-/pipelines/2"
    told = await home.explained(question)
    (cause, *_) = told["payload"]["incident"]["findings"]["explanation"]["hypotheses"]
    assert cause["cause"].startswith("GitLab run 2 of acme/api failed at test: unit (script_failure): ")
    assert "E   assert 1 == 2" in [evidence["quote"] for evidence in cause["evidence"]]

    await home.press(told, "cause-right")
    await home.reply(told["thread"], "correct: lines 1 to 1")

    def learned(messages: list[dict[str, Any]]) -> bool:
        return any(
            "to find the cause of the next failure" in json.dumps(each["payload"])
            for each in of_kind(messages, "notice")
        )

    await home.client.until("help", learned)
    again = await home.explained(question)
    (cause, *_) = again["payload"]["incident"]["findings"]["explanation"]["hypotheses"]
    assert [evidence["quote"] for evidence in cause["evidence"]] == ["collecting"]


async def test_a_pasted_build_log_is_read_for_its_failing_lines(home: Home) -> None:
    log = "$ make\ncc -c tree.c\ntree.c:12:9: error: unknown type name 'leaf'\nmake: *** [tree.o] Error 1\nexit code 2"
    told = await home.explained(f"rca why did the till not build?\n{log}")
    (cause, *_) = told["payload"]["incident"]["findings"]["explanation"]["hypotheses"]
    assert cause["cause"].startswith("the pasted build log of till failed: ")
    assert "tree.c:12:9: error: unknown type name 'leaf'" in [evidence["quote"] for evidence in cause["evidence"]]
