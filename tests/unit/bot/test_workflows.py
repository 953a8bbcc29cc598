"""Which step waits for which."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from inspect import unwrap
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from dbos._dbos import _get_or_create_dbos_registry

from bot.config.settings import Settings
from bot.work.inbox import QUESTION
from bot.work.workflows import MAX_OF_ONE, MAX_RUNNING, Workflows
from core.model.conversation import Audience, Channel, Person, Place, Platform, Question
from core.model.errors import ChatUnavailable, Undeliverable


async def test_a_step_that_a_stop_interrupts_tells_nobody_that_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    begun, told = asyncio.Event(), list[str]()

    async def answer(_question: str) -> None:
        begun.set()
        await asyncio.Event().wait()

    async def apologise(_question: str, reference: str) -> None:
        told.append(reference)

    flows: Any = Workflows(Mock(), Mock(), asyncio.get_running_loop())
    answering = asyncio.create_task(flows._do("answer", answer, "q"))
    await begun.wait()
    await flows.stop()
    assert answering.cancelled(), "it is resumed by the next process"
    with pytest.raises(asyncio.CancelledError):
        await flows._do("apologise", apologise, "q", "after the stop")
    assert told == []


async def test_questions_that_wait_for_a_language_model_hold_up_no_incident_and_no_deletion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The engine knows one of them in a process.
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    done, hanging = list[str](), asyncio.Event()

    async def answer(_question: str) -> None:
        await hanging.wait()

    async def note(reference: str) -> None:
        done.append(reference)

    flows: Any = Workflows(Mock(), Mock(), asyncio.get_running_loop())
    asked = [asyncio.create_task(flows._run("answer", answer, ("q",))) for _ in range(MAX_RUNNING)]
    await asyncio.sleep(0)
    for step in ("present", "retract"):
        await asyncio.wait_for(flows._run(step, note, (step,)), 5)
    assert done == ["present", "retract"]
    hanging.set()
    await asyncio.gather(*asked)


async def test_the_questions_of_one_person_wait_behind_each_other_and_not_before_another_persons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    begun, hanging = list[str](), asyncio.Event()

    async def answer(question: Question, _ports: object) -> None:
        begun.append(question.asker.id)
        await hanging.wait()

    def asked(person: str) -> dict[str, Any]:
        place = Place(Platform.SLACK, "C1")
        question = Question("q", "?", Person(Platform.SLACK, person), place, Audience(), datetime.now(UTC))
        return QUESTION.dump_python(question, mode="json")

    flows: Any = Workflows(Mock(), Mock(), asyncio.get_running_loop())
    people = ["U1"] * 60 + ["U2"]
    workflow = unwrap(Workflows.answer_question)  # without the engine
    monkeypatch.setattr("bot.work.workflows.run_command", answer)
    running = [asyncio.create_task(workflow(flows, "q", asked(person))) for person in people]
    await asyncio.sleep(0.01)
    assert begun == ["U1"] * MAX_OF_ONE + ["U2"]
    hanging.set()
    await asyncio.gather(*running)
    assert len(begun) == 61


IN_BOTH = Channel("ops", {Platform.SLACK: "C1", Platform.TEAMS: "19:t", Platform.CONSOLE: "ops"})


async def test_a_scheduled_post_goes_once_to_each_chat_of_its_channel_whatever_another_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_get_or_create_dbos_registry(), "instance_info_map", {})
    tokens = {"SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": "s", "TEAMS_APP_ID": "a", "TEAMS_APP_PASSWORD": "p"}
    settings = Settings(_env_file=None, **tokens)  # pyright: ignore[reportCallIssue]
    core: Any = SimpleNamespace(settings=settings, workspace=SimpleNamespace(channels=(IN_BOTH,)))
    posted: dict[str, tuple[Platform, str]] = {}
    refusals: dict[Platform, Exception] = {}

    async def post(intent: str, place: Place, _since: datetime) -> None:
        if place.platform in refusals:
            raise refusals[place.platform]
        posted[intent] = (place.platform, place.channel)

    flows: Any = Workflows(core, Mock(), asyncio.get_running_loop())
    payload = {"intent": "post_digest:ops:9", "since": "2026-03-14T09:00:00+00:00"}
    refusals[Platform.SLACK] = ChatUnavailable("Slack is down.")
    with pytest.raises(ChatUnavailable):
        await flows._post_everywhere("ops", payload, post)
    assert posted == {"post_digest:ops:9@teams": (Platform.TEAMS, "19:t")}
    refusals[Platform.TEAMS] = Undeliverable("Teams refuses it.")
    with pytest.raises(ChatUnavailable):  # it passes, so the post is tried again
        await flows._post_everywhere("ops", payload, post)
    refusals.clear()
    await flows._post_everywhere("ops", payload, post)
    assert posted == {
        "post_digest:ops:9": (Platform.SLACK, "C1"),
        "post_digest:ops:9@teams": (Platform.TEAMS, "19:t"),
    }
