"""A file of a language model's replies, which are recorded once from a server and replayed without one."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from core.model.errors import MalformedInput, ModelUnavailable
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.ports import LanguageModel

BYTES_PER_TOKEN = 3  # a token is seldom shorter; an estimate that needs no server and is the same in every replay


@dataclass(frozen=True, slots=True)
class Call:
    """The cost of one recorded call: seconds, and tokens that a server read, took from its cache, and generated."""

    seconds: float
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int


# The replies of the call that is being recorded: several calls may be, each in a task of its own.
_REPLIES: ContextVar[list[ModelReply]] = ContextVar("replies")


class RecordedModel:
    """Implements `core.ports.LanguageModel` over a file of JSON lines, one for each call.

    The key is a hash of messages, schema, parameters and choices. A call that the file lacks goes to `model` and is
    added; without a model, it raises ModelUnavailable. `calls` lists the calls made or replayed here, in order.
    """

    def __init__(self, file: Path, model: LanguageModel | None = None) -> None:
        """Read the file, which may be missing if there is a model. Raises MalformedInput if it is not a recording."""
        self._file = file
        self._model = model
        self._known: dict[str, dict[str, Any]] = {}
        self.calls: list[Call] = []
        try:
            lines = file.read_text("utf-8").splitlines() if model is None or file.exists() else []
            for line in lines:
                row = json.loads(line)
                self._known[row["key"]] = row
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MalformedInput(f"{file} is not a recording of a language model: {type(error).__name__}.") from error

    def add(self, reply: ModelReply) -> None:
        """Add a reply of the server to the cost of the current call. Pass this method to LlamaServer as `on_reply`."""
        _REPLIES.get().append(reply)

    @property
    def name(self) -> str:
        return self._model.name if self._model else str(self._known.get("model", {}).get("value", "recorded"))

    async def context_tokens(self) -> int:
        async def ask() -> int:
            assert self._model is not None
            return await self._model.context_tokens()

        tokens = cast("int", await self._called("context", ask))
        await self._called("model", self._ask_name)
        return tokens

    async def count_tokens(self, text: str) -> int:
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

    async def abilities(self) -> Abilities:
        async def ask() -> dict[str, Any]:
            assert self._model is not None
            return asdict(await self._model.abilities())

        return Abilities(**cast("dict[str, Any]", await self._called("abilities", ask)))

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        (reply,) = await self._replied("generate", request, 1)
        return reply

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        return await self._replied("sample", request, count)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        async def ask() -> dict[str, float]:
            assert self._model is not None
            return await self._model.expect(request, choices)

        return cast("dict[str, float]", await self._called(_key("expect", request, list(choices)), ask))

    async def _replied(self, method: str, request: ModelRequest, count: int) -> list[ModelReply]:
        async def ask() -> list[dict[str, Any]]:
            assert self._model is not None
            replies = await self._model.sample(request, count) if count > 1 else [await self._model.generate(request)]
            return [asdict(reply) for reply in replies]

        values = cast("list[dict[str, Any]]", await self._called(_key(method, request, count), ask))
        return [ModelReply(**each) for each in values]

    async def _ask_name(self) -> str:
        assert self._model is not None
        return self._model.name

    async def _called(self, key: str, ask: Callable[[], Awaitable[object]]) -> object:
        if key not in self._known:
            if self._model is None:
                raise ModelUnavailable(f"{self._file} has no reply to this request: record it again.")
            replies: list[ModelReply] = []
            _REPLIES.set(replies)
            started = time.perf_counter()
            value = await ask()
            cost = Call(
                round(time.perf_counter() - started, 3),
                sum(reply.prompt_tokens for reply in replies),
                sum(reply.cached_tokens for reply in replies),
                sum(reply.generated_tokens for reply in replies),
            )
            self._known[key] = {"key": key, "value": value, **asdict(cost)}
            with self._file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(self._known[key], ensure_ascii=False) + "\n")
        row = self._known[key]
        if key not in {"context", "model", "abilities"}:
            self.calls.append(Call(*(row[name] for name in Call.__slots__)))
        return row["value"]


def _key(method: str, request: ModelRequest, more: object) -> str:
    """Return a hash of the parts of a request that determine its reply: neither the caller nor the deadline."""
    hashed = {
        "method": method,
        "messages": [(str(message.role), message.text) for message in request.messages],
        "schema": request.schema,
        "parameters": [request.max_tokens, request.temperature, request.seed],
        "more": more,
    }
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()[:32]
