"""A language model that works on a request until the test lets it go on."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from core.model.language_model import ModelReply, ModelRequest, OnText, ignore_text
from tests.fakes.language_model import ScriptedModel


@dataclass
class GatedModel(ScriptedModel):
    """`arrivals` gets each request as it comes; `open_gate` lets the oldest that still runs end."""

    arrivals: asyncio.Queue[ModelRequest] = field(default_factory=asyncio.Queue)
    cancelled: list[ModelRequest] = field(default_factory=list)
    _gates: list[asyncio.Event] = field(default_factory=list)

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        await self._wait(request)
        return await super().generate(request)

    async def _wait(self, request: ModelRequest) -> None:
        gate = asyncio.Event()
        self._gates.append(gate)
        self.arrivals.put_nowait(request)
        try:
            await gate.wait()
        except asyncio.CancelledError:
            self._gates.remove(gate)
            self.cancelled.append(request)
            raise

    def open_gate(self) -> None:
        self._gates.pop(0).set()
