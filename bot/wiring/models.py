"""Wiring of the language model's server behind its queue."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from pathlib import Path

import aiohttp

from adapters.llama.server import LlamaServer, OnReply, ignore_reply, unwatched
from adapters.model_queue import ModelQueue
from bot.config.settings import Settings
from bot.tracing import ModelCollector, TokenTally, agent_operation, model_calls, registered
from core.answering.model_exam import EXAM_VERSION, Marks
from core.model_calls.choice import Trust, Use
from core.model_calls.metered_model import untraced
from core.ports import LanguageModel
from handlers.common.examine_model import ExaminedModel

EXAM_FILE = "language-model.json"  # in the data directory: the outcome of the exam


@asynccontextmanager
async def open_model(
    settings: Settings, session: aiohttp.ClientSession, draws: int = 1
) -> AsyncGenerator[ModelQueue | None]:
    """Open the server in PLUMBLINE_LLM_URL behind its queue until the block ends; None if none is configured.

    Does not wait for the server: health checks find it when it comes up.
    """
    if not settings.llm_url:
        yield None
        return
    tally = TokenTally()
    server = llama_server(settings.llm_url, settings, session, tally.add, draws)
    queue = ModelQueue(server, server.check_health, server.address)
    with registered(ModelCollector(lambda: queue.status, tally)):
        async with queue.watched():
            yield queue


def llama_server(
    url: str, settings: Settings, session: aiohttp.ClientSession, on_reply: OnReply = ignore_reply, draws: int = 1
) -> LlamaServer:
    """Return one server, with what the settings say of the model."""
    return LlamaServer(
        url,
        session,
        model=settings.llm_model,
        api_key=settings.llm_api_key.get_secret_value() if settings.llm_api_key else "",
        context=settings.llm_context,
        parallel=settings.llm_parallel,
        draws=draws,
        on_reply=on_reply,
        watch=model_calls(url) if settings.traces_model_calls else unwatched,
    )


@asynccontextmanager
async def open_exam(
    model: LanguageModel | None, settings: Settings, trust: Mapping[Use, Trust]
) -> AsyncGenerator[ExaminedModel | None]:
    """Open the model for answers, causes and owners, trusted as the operator says; None without one.

    `trust` is that of plumbline.yaml; PLUMBLINE_LLM_USE holds for the uses that it does not name. A model that is to be
    measured takes an exam, whose outcome is stored in the data directory.
    """
    trusted = {use: trust.get(use, settings.llm_trust) for use in Use}
    if model is None or set(trusted.values()) == {Trust.NEVER}:
        yield None
        return
    kept = KeptExam(settings.data_dir / EXAM_FILE, model)
    examined = ExaminedModel(
        model, kept.load, kept.save, trusted, agent_operation if settings.traces_model_calls else untraced
    )
    try:
        yield examined
    finally:
        await examined.close()


class KeptExam:
    """The outcome of a model's exam in a file."""

    def __init__(self, file: Path, model: LanguageModel) -> None:
        self._file = file
        self._model = model

    def load(self) -> Marks | None:
        """Return the marks; None if the file is missing, or is about another model or exam."""
        with suppress(OSError, ValueError, TypeError, KeyError):
            kept = json.loads(self._file.read_text("utf-8"))
            if (kept["model"], kept["version"]) == (self._model.name, EXAM_VERSION):
                return Marks(**kept["marks"])
        return None

    def save(self, marks: Marks) -> None:
        outcome = {"model": self._model.name, "version": EXAM_VERSION, "marks": asdict(marks)}
        with suppress(OSError):  # then it is examined again after the next start
            self._file.parent.mkdir(parents=True, exist_ok=True)
            self._file.write_text(json.dumps(outcome), "utf-8")
