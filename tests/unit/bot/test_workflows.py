"""Which step waits for which."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock

import pytest
from dbos._dbos import _get_or_create_dbos_registry

from bot.work.workflows import MAX_RUNNING, Workflows


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
