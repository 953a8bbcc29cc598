"""Servers with OpenAI's interface over real HTTP: one like vLLM, one like Ollama, and one with nothing but chats.

Paths, bodies, errors and events are those of vLLM's `entrypoints/openai` and of Ollama's `openai` and `api` packages.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fakes.llama_server import CONTEXT, FakeLlamaServer, event, served, tokens_of

MODEL = "tiny"
MOST_LOGPROBS = 20
KINDS = ("vllm", "ollama", "bare")


@dataclass
class FakeGeneralServer(FakeLlamaServer):
    """Chats alone. `schemas`, `odds_told`: whether it heeds `response_format`, `logprobs`; else it ignores the field."""

    kind: str = "bare"
    schemas: bool = False
    odds_told: bool = False
    unknown_fields: frozenset[str] = frozenset()  # that make it refuse a request
    pages: dict[str, Any] = field(default_factory=dict)  # what it answers at further paths

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/v1/models", self._models)
        app.router.add_get("/{page:.*}", self._page)
        return app

    async def _page(self, request: web.Request) -> web.Response:
        if request.path not in self.pages:
            return web.json_response({"detail": "Not Found"}, status=404)
        return web.json_response(self.pages[request.path])

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": MODEL, "object": "model", "owned_by": "me"}]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        if refusal := self._refusal(body):
            return refusal
        words = self._words(body)
        if body.get("stream"):
            return await self._stream(request, self._events(body, words))
        text = self._reply(body)
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        told = self._logprobs(tokens_of(text)[0], body)
        usage = self._usage(words, len(tokens_of(text)))
        return web.json_response(
            {"object": "chat.completion", "model": MODEL, "choices": [choice | {"logprobs": told}], "usage": usage}
        )

    def _words(self, body: dict[str, Any]) -> int:
        return sum(len(one["content"].split()) + 1 for one in body["messages"])

    def _refusal(self, body: dict[str, Any]) -> web.Response | None:
        if unknown := sorted(self.unknown_fields & body.keys()):
            return _error(400, f"Unrecognized request argument supplied: {unknown[0]}", "invalid_request_error", None)
        if body["model"] != MODEL:
            return _error(404, f"The model `{body['model']}` does not exist.", "NotFoundError", 404)
        if self._words(body) + body["max_tokens"] > self.context:
            return _error(400, f"This model's maximum context length is {self.context} tokens.", "BadRequestError", 400)
        return None

    def _reply(self, body: dict[str, Any]) -> str:
        """The script's words. Without schemas, a schema is read where a model reads it, and the JSON stands in a fence."""
        if self.schemas:
            return self.script(body)
        free = {key: value for key, value in body.items() if key != "response_format"}
        _, asked, schema = body["messages"][-1]["content"].rpartition("JSON schema:\n\n")
        if not asked:
            return self.script(free)
        read, _ = json.JSONDecoder().raw_decode(schema)
        return f"Sure, here it is:\n```json\n{self.script(free | {'json_schema': read})}\n```"

    def _events(self, body: dict[str, Any], words: int) -> list[dict[str, Any]]:
        text = self._reply(body)
        tokens = tokens_of(text)[: body["max_tokens"]]
        finish = "length" if len(tokens_of(text)) > len(tokens) else "stop"
        return [
            event(0, {"role": "assistant", "content": ""}),
            *(event(0, {"content": token}, self._logprobs(token, body)) for token in tokens),
            event(0, {"content": ""}, finish=finish),
            *self._ending(words, len(tokens)),
        ]

    def _ending(self, words: int, generated: int) -> list[dict[str, Any]]:
        return []

    def _usage(self, words: int, generated: int) -> dict[str, Any]:
        return {"prompt_tokens": words, "completion_tokens": generated, "total_tokens": words + generated}

    def _logprobs(self, token: str, body: dict[str, Any]) -> dict[str, Any] | None:
        return super()._logprobs(token, body) if self.odds_told else None


@dataclass
class FakeVllmServer(FakeGeneralServer):
    """vLLM: schemas, probabilities of 20 tokens, and the context in its list of models."""

    kind: str = "vllm"
    schemas: bool = True
    odds_told: bool = True
    counts: bool = False  # whether `/tokenize` is reachable; a gateway often passes `/v1` alone

    def application(self) -> web.Application:
        app = super().application()
        app.router.add_get("/health", self._well)
        if self.counts:
            app.router.add_post("/tokenize", self._tokenize)
        return app

    async def _well(self, request: web.Request) -> web.Response:
        return web.Response()

    async def _models(self, request: web.Request) -> web.Response:
        card = {"id": MODEL, "object": "model", "created": 1_764_000_000, "owned_by": "vllm", "root": MODEL}
        return web.json_response(
            {"object": "list", "data": [card | {"parent": None, "max_model_len": self.context, "permission": []}]}
        )

    async def _tokenize(self, request: web.Request) -> web.Response:
        words = (await request.json())["prompt"].split()
        tokens = list(range(len(words)))
        return web.json_response({"count": len(words), "max_model_len": self.context, "tokens": tokens})

    def _refusal(self, body: dict[str, Any]) -> web.Response | None:
        asked = body.get("top_logprobs") or 0
        if asked > MOST_LOGPROBS:
            message = f"Requested sample logprobs of {asked}, which is greater than max allowed: {MOST_LOGPROBS}"
            return _error(400, message, "BadRequestError", 400)
        return super()._refusal(body)

    def _ending(self, words: int, generated: int) -> list[dict[str, Any]]:
        usage = self._usage(words, generated) | {"prompt_tokens_details": None}
        return [{"object": "chat.completion.chunk", "model": MODEL, "choices": [], "usage": usage}]


@dataclass
class FakeOllamaServer(FakeGeneralServer):
    """Ollama: schemas, no probabilities, and a prompt that is too long is cut silently.

    `loaded`: the model is in memory, and `/api/ps` tells its context if `context_told` (Ollama 0.11 and newer).
    """

    kind: str = "ollama"
    schemas: bool = True
    context_told: bool = True
    loaded: bool = False
    cut: bool = False

    def application(self) -> web.Application:
        app = super().application()
        app.router.add_get("/api/version", self._version)
        app.router.add_get("/api/ps", self._running)
        app.router.add_post("/api/show", self._show)
        return app

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"version": "0.12.6"})

    async def _models(self, request: web.Request) -> web.Response:
        names = ("nomic-embed-text:latest", f"{MODEL}:latest")
        data = [{"id": name, "object": "model", "created": 1_764_000_000, "owned_by": "library"} for name in names]
        return web.json_response({"object": "list", "data": data})

    async def _running(self, request: web.Request) -> web.Response:
        running: dict[str, Any] = {"name": f"{MODEL}:latest", "model": f"{MODEL}:latest", "size_vram": 5_333_539_264}
        running |= {"context_length": self.context} if self.context_told else {}
        return web.json_response({"models": [running] if self.loaded else []})

    async def _show(self, request: web.Request) -> web.Response:
        return web.json_response(
            {
                "parameters": f'num_ctx                        {self.context}\nstop                           "<turn|>"',
                "template": "{{ if .System }}<turn:system>{{ .System }}<turn|>{{ end }}<turn:user>{{ .Prompt }}<turn|>",
                "details": {"format": "gguf", "family": "tiny"},
                "model_info": {"general.architecture": "tiny", "tiny.context_length": 262_144},
                "capabilities": ["completion"],
            }
        )

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.loaded = True
        return await super()._chat(request)

    def _refusal(self, body: dict[str, Any]) -> web.Response | None:
        if body["model"].removesuffix(":latest") != MODEL:
            return _error(404, f"model '{body['model']}' not found", "not_found_error", None)
        self.cut = self.cut or self._words(body) > self.context
        return None

    def _ending(self, words: int, generated: int) -> list[dict[str, Any]]:
        usage = self._usage(min(words, self.context), generated)
        return [{"object": "chat.completion.chunk", "model": MODEL, "choices": [], "usage": usage}]


def _error(status: int, message: str, kind: str, code: int | None) -> web.Response:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return web.json_response({"error": error}, status=status)


@asynccontextmanager
async def fake_model_server(kind: str, context: int = CONTEXT) -> AsyncIterator[FakeLlamaServer]:
    """A server of either llama.cpp or one of KINDS, on a free port of loopback."""
    kinds = {"vllm": FakeVllmServer, "ollama": FakeOllamaServer, "bare": FakeGeneralServer}
    fake = kinds.get(kind, FakeLlamaServer)
    async with served(fake(kind, context=context)) as server:
        yield server
