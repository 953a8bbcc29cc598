"""The language model of an evaluation: a server whose replies are recorded, or a recording of one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from adapters.llama.server import LlamaServer
from adapters.recorded_model import RecordedModel
from core.model.language_model import ModelReply, ModelRequest

DEADLINE = 1_800.0  # seconds for one reply: a slow server is measured, not given up
ASKING = ModelRequest((), requester="eval", deadline=DEADLINE)


@dataclass(frozen=True, slots=True)
class Recorded:
    """The choice of a command line: `llm` is the address of a server, `record` and `replay` are files; none: no model.

    What a recording holds already is not asked again, so that a measurement that was broken off goes on.
    """

    llm: str = ""
    record: Path | None = None
    replay: Path | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[RecordedModel | None]:
        """Open the model; None without one. Raises MalformedInput if a file is no recording."""
        if self.replay is not None:
            model = RecordedModel(self.replay)
            await model.context_tokens()
            yield model
        elif self.llm:
            async with aiohttp.ClientSession() as session:
                with TemporaryDirectory(prefix="plumbline-eval-") as folder:
                    counted: list[RecordedModel] = []

                    def add(reply: ModelReply) -> None:
                        counted[0].add(reply)

                    file = self.record or Path(folder) / "replies.jsonl"
                    counted.append(RecordedModel(file, LlamaServer(self.llm, session, on_reply=add)))
                    await counted[0].context_tokens()
                    yield counted[0]
        else:
            yield None


NO_MODEL = Recorded()
