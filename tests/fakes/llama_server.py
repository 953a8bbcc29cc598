"""A llama.cpp server of either kind over real HTTP, with answers as recorded from the real ones and scripted words."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from aiohttp import web
from aiohttp.test_utils import TestServer

Fake = TypeVar("Fake", bound="FakeLlamaServer")
CONTEXT = 512  # tokens; a token is a word or a mark of JSON
SLOTS = 4


def an_answer(body: dict[str, Any]) -> str:
    """What is valid under the schemas that the contract uses."""
    shape = body.get("response_format", {})
    schema = body.get("json_schema") or shape.get("schema") or shape.get("json_schema", {}).get("schema")
    if schema is None:
        return f"The disk is full. Seed {body['seed']}."
    return json.dumps(schema["enum"][0] if "enum" in schema else {"cause": "disk", "sure": True})


@dataclass
class FakeLlamaServer:
    """`kind` is `native` or `python`. A test sets how it goes wrong, and looks at the bodies that came."""

    kind: str = "native"
    script: Callable[[dict[str, Any]], str] = an_answer  # where it raises an HTTPException, that is the answer
    context: int = CONTEXT
    odds: dict[str, float] = field(default_factory=dict)  # text of a token → probability, the same in each place
    status: int = 200
    error: dict[str, Any] = field(default_factory=dict)
    retry_after: str = ""
    api_key: str = ""
    embeddings: Any = None  # what it answers instead of vectors
    ranking: Any = None  # what it answers instead of an order: the passage with most words of the question first
    longest_embedded: int = 10_000  # words of a text that it embeds
    logits_all: bool = True  # of the python server: whether it tells log probabilities
    sent: bytes | None = None  # in place of the events of a stream
    breaks_off: bool = False  # in the middle of a stream
    waits: asyncio.Event | None = None  # in the middle of a stream, for this
    waiting: asyncio.Event = field(default_factory=asyncio.Event)  # it does
    left: asyncio.Event = field(default_factory=asyncio.Event)  # a client went away in the middle of a stream
    bodies: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    routed: dict[str, str] = field(
        default_factory=dict
    )  # of a native server started without a model: each with its state

    @property
    def chats(self) -> list[dict[str, Any]]:
        """The bodies of streamed chat completions."""
        return [body for body in self.bodies if body.get("stream")]

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._chat)
        app.router.add_post("/v1/embeddings", self._embeddings)
        app.router.add_post("/v1/rerank", self._rerank)
        if self.kind == "native":
            app.router.add_get("/health", self._health)
            app.router.add_get("/props", self._properties)
            app.router.add_post("/tokenize", self._tokenize)
            app.router.add_post("/apply-template", self._template)
        else:
            app.router.add_get("/openapi.json", self._health)
        if self.kind != "native" or self.routed:
            app.router.add_get("/v1/models", self._models)
        if self.kind != "native":
            app.router.add_post("/extras/tokenize/count", self._count)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        if self.api_key and request.headers.get("Authorization") != f"Bearer {self.api_key}":
            return web.json_response({"error": {"code": 401, "message": "Invalid API Key"}}, status=401)
        if self.status != 200:
            headers = {"Retry-After": self.retry_after} if self.retry_after else {}
            return web.json_response({"error": self.error}, status=self.status, headers=headers)
        return await handler(request)

    async def _health(self, request: web.Request) -> web.Response:
        return web.json_response({"status": "ok"})

    async def _properties(self, request: web.Request) -> web.Response:
        if self.routed and request.query.get("model") not in self.routed:
            nothing = {"params": None, "n_ctx": 0}
            return web.json_response(
                {"role": "router", "model_alias": "llama-server", "default_generation_settings": nothing}
            )
        settings = {"params": {"seed": 4294967295}, "n_ctx": self.context}
        return web.json_response(
            {"default_generation_settings": settings, "total_slots": SLOTS, "model_alias": "tiny", "build_info": "b0"}
        )

    async def _models(self, request: web.Request) -> web.Response:
        if self.routed:
            listed = [{"id": name, "status": {"value": state}} for name, state in self.routed.items()]
            return web.json_response({"object": "list", "data": listed})
        return web.json_response({"object": "list", "data": [{"id": "tiny", "object": "model", "owned_by": "me"}]})

    async def _tokenize(self, request: web.Request) -> web.Response:
        if self.routed and (await request.json()).get("model") not in self.routed:
            return web.json_response({"error": {"message": "model name is missing from the request"}}, status=400)
        return web.json_response({"tokens": list(range(len((await request.json())["content"].split())))})

    async def _template(self, request: web.Request) -> web.Response:
        body = await request.json()
        if self.routed and body.get("model") not in self.routed:
            return web.json_response({"error": {"message": "model name is missing from the request"}}, status=400)
        self.bodies.append(body)
        parts = [f"<|{one['role']}|> {one['content']}" for one in body["messages"]]
        return web.json_response({"prompt": " ".join([*map(json.dumps, body.get("tools", ())), *parts])})

    async def _count(self, request: web.Request) -> web.Response:
        return web.json_response({"count": 1 + len((await request.json())["input"].split())})  # 1: the first mark

    async def _embeddings(self, request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        if any(len(text.split()) > self.longest_embedded for text in texts):
            error = {"code": 500, "message": "input is too large to process. increase the physical batch size"}
            return web.json_response({"error": error}, status=500)
        rows = [
            {"object": "embedding", "index": index, "embedding": [3.0, 4.0 * len(text.split())]}
            for index, text in enumerate(texts)
        ]
        return web.json_response({"object": "list", "data": rows[::-1]} if self.embeddings is None else self.embeddings)

    async def _rerank(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        if self.waits is not None:
            await self.waits.wait()
        wanted = set(body["query"].split())
        rows = [
            {
                "index": index,
                "relevance_score": 3.0 * len(wanted & set(text.split())) - 10,
            }  # below 0, as llama-server's
            for index, text in enumerate(body["documents"])
        ]
        return web.json_response({"results": rows} if self.ranking is None else self.ranking)

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        words = len(body.get("prompt", ())) + sum(len(one["content"].split()) + 1 for one in body.get("messages", ()))
        if words + body["max_tokens"] > self.context:
            message = (
                f"This model's maximum context length is {self.context} tokens. However, you requested {words} tokens"
            )
            return web.json_response({"error": {"message": message, "code": "context_length_exceeded"}}, status=400)
        if body.get("logprobs") and not self.logits_all:
            message = "logprobs is not supported for models created with logits_all=False"
            return web.json_response({"error": {"message": message, "type": "internal_server_error"}}, status=500)
        if not body.get("stream"):
            return web.json_response({"choices": [{"index": 0, "message": {"content": "a"}}]})
        events = self._events(body, words)
        return await self._stream(request, events)

    async def _stream(self, request: web.Request, events: list[dict[str, Any]]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        if self.sent is not None:
            await response.write(self.sent)
            return response
        try:
            for number, event in enumerate(events):
                await response.write(f"data: {json.dumps(event)}\n\n".encode())
                if number == 2 and self.breaks_off:
                    assert request.transport is not None
                    request.transport.close()
                if number == 2 and self.waits is not None:
                    self.waiting.set()
                    await self.waits.wait()
        except (ConnectionError, asyncio.CancelledError):
            self.left.set()
            raise
        await response.write(b": ping\n\ndata: [DONE]\n\n")
        return response

    def _events(self, body: dict[str, Any], words: int) -> list[dict[str, Any]]:
        count = body.get("n", 1) if self.kind == "native" else 1
        texts = [self.script({**body, "seed": body["seed"] + number}) for number in range(count)]
        events = [event(index, {"role": "assistant", "content": None}) for index in range(count)]
        for index, text in enumerate(texts):
            tokens = tokens_of(text)[: body["max_tokens"]]
            events += [event(index, {"content": token}, self._logprobs(token, body)) for token in tokens]
            events.append(event(index, {}, finish="length" if len(tokens_of(text)) > len(tokens) else "stop"))
            if self.kind == "native":
                details = {"cached_tokens": words - 1 if len(self.chats) > 1 else 0}
                usage = {"completion_tokens": len(tokens), "prompt_tokens": words, "prompt_tokens_details": details}
                events.append({"choices": [], "object": "chat.completion.chunk", "usage": usage})
        return events

    def _logprobs(self, token: str, body: dict[str, Any]) -> dict[str, Any] | None:
        if not body.get("logprobs"):
            return None
        told = {"?": 0.5, token: 0.25, **self.odds}
        top = [{"token": text, "bytes": None, "logprob": math.log(value)} for text, value in told.items()]
        return {
            "content": [{"token": token, "logprob": math.log(told[token]), "top_logprobs": top[: body["top_logprobs"]]}]
        }


def tokens_of(text: str) -> list[str]:
    """Words with the space before them; the quotes of a JSON string by themselves."""
    if text.startswith('"'):
        return [text[0], text[1:-1], text[-1]]
    first, *others = text.split(" ")
    return [first, *(f" {word}" for word in others)]


def event(
    index: int, delta: dict[str, Any], logprobs: dict[str, Any] | None = None, finish: str | None = None
) -> dict[str, Any]:
    choice = {"index": index, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
    return {"choices": [choice], "object": "chat.completion.chunk", "model": "tiny"}


@asynccontextmanager
async def fake_llama_server(kind: str = "native", context: int = CONTEXT) -> AsyncIterator[FakeLlamaServer]:
    """A llama.cpp server on a free port of loopback."""
    async with served(FakeLlamaServer(kind, context=context)) as fake:
        yield fake


@asynccontextmanager
async def served(fake: Fake) -> AsyncIterator[Fake]:
    """This server on a free port of loopback."""
    async with TestServer(fake.application()) as server:
        fake.url = str(server.make_url("/"))
        yield fake
