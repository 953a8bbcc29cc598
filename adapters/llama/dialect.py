"""Differences between the kinds of servers, and the abilities of a server, detected once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

from adapters.llama.completion import (
    CHAT,
    COMPLETION,
    TEMPLATE_OPTIONS,
    Prepared,
    Shape,
    chat_body,
    completion_body,
    messages_of,
    prompt_texts,
    ready_for_reply,
    template_tokens,
)
from adapters.llama.connection import Denied, LlamaConnection, RequestRefused, TooLong, Unclear
from adapters.llama.general import (
    MESSAGE_FRAME,
    MODELS,
    GeneralDialect,
    chosen_model,
    general_dialect,
    model_entries,
)
from core.model.errors import ModelUnavailable
from core.model.language_model import Abilities, ModelRequest

T = TypeVar("T")

_CONTEXT = re.compile(r"context length is (\d+)")

OVERLONG = " a" * 300_000  # more tokens than any supported context
LOGPROB_TOKENS = 400  # most probable tokens requested per position; a label beyond them counts as impossible
LOGPROBS = {"logprobs": True, "top_logprobs": LOGPROB_TOKENS, "n_probs": LOGPROB_TOKENS}  # of chats, of completions


UNFILTERED = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}


@dataclass(frozen=True, slots=True)
class NativeDialect:
    """`llama-server`: parallel slots, several replies per prompt, cached tokens reported.

    Every request names the model: a server that was started without one is a router, which starts a server of its own for each
    model and passes on what names it.

    It assigns a request to the idle slot with the longest common prefix. Choosing a slot ourselves would only make a
    request wait while others are idle.
    """

    model: str
    context: int
    slots: int
    special: frozenset[str] = frozenset()  # control tokens that its chat template and its properties name

    health: ClassVar[str] = "health"
    copies: ClassVar[bool] = True
    logprobs: ClassVar[Mapping[str, Any]] = LOGPROBS
    unfiltered: ClassVar[Mapping[str, Any]] = UNFILTERED

    @property
    def abilities(self) -> Abilities:
        return Abilities(parallel=self.slots)

    async def count(self, connection: LlamaConnection, text: str) -> int:
        answer = await connection.post(
            "tokenize", {"model": self.model, "content": text, "add_special": False, "parse_special": False}
        )
        return len(_value(answer, "tokens", list))

    async def prepare(self, connection: LlamaConnection, request: ModelRequest, shape: Shape) -> Prepared:
        """Prepare a chat, or with a schema a completion of the chat's prompt.

        With a schema, a chat also allows a fence around the JSON, which costs tokens and hides log probabilities, and
        its parser rejects some JSON that its own grammar allows.
        """
        templated = await connection.post(
            "apply-template",
            shape(
                {
                    "model": self.model,
                    "messages": messages_of(request, self.special),
                    "chat_template_kwargs": TEMPLATE_OPTIONS,
                }
            ),
        )
        prompt = ready_for_reply(_value(templated, "prompt", str))
        tokenized = await connection.post("tokenize", {"model": self.model, "content": prompt, "add_special": True})
        tokens = _value(tokenized, "tokens", list)
        if request.schema is None:
            return Prepared(CHAT, shape(chat_body(request, self.model, self.special)), len(tokens))
        return Prepared(COMPLETION, completion_body(request, self.model, tokens), len(tokens))


@dataclass(frozen=True, slots=True)
class PythonDialect:
    """`llama_cpp.server`: one request at a time, one reply per prompt, the last prompt cached.

    Start it with `--interrupt_requests false`: by default it aborts a stream when the next request arrives.
    """

    model: str
    context: int
    has_logprobs: bool
    marks: int  # tokens counted with every text: the one that begins a prompt
    slots: int = 1

    health: ClassVar[str] = "openapi.json"  # its other paths wait for the current request
    copies: ClassVar[bool] = False
    logprobs: ClassVar[Mapping[str, Any]] = LOGPROBS
    unfiltered: ClassVar[Mapping[str, Any]] = UNFILTERED

    @property
    def abilities(self) -> Abilities:
        return Abilities(odds=self.has_logprobs)

    async def count(self, connection: LlamaConnection, text: str) -> int:
        return await _counted(connection, self.model, text) - self.marks

    async def prepare(self, connection: LlamaConnection, request: ModelRequest, shape: Shape) -> Prepared:
        texts = prompt_texts(body := shape(chat_body(request, self.model)))
        return Prepared(CHAT, body, await self.count(connection, "\n".join(texts)) + MESSAGE_FRAME * (len(texts) + 1))


Dialect = NativeDialect | PythonDialect | GeneralDialect
"""One kind of server.

`health` is the path that answers while the server works, also while it is busy. `copies`: one request can ask for as many
replies to its prompt as there are slots. `logprobs` are the fields of a request that ask for log probabilities,
`unfiltered` those for sampling without truncation. `model` is the
server's name for its model, `context` the maximum number of tokens of a prompt and its reply together, and `slots` the number
of replies that are generated concurrently. `prepare` overestimates the prompt's length if the server does not report its chat
template.
"""


async def dialect_of(connection: LlamaConnection, model: str = "", context: int = 0, parallel: int = 0) -> Dialect:
    """Detect the kind of server. `model` selects one if it has several, `context` overrides the size that it reports, and
    `parallel` is the number of concurrent replies of one that does not report it.

    Raises ModelUnavailable if it is of no known kind, or does not answer.
    """
    dialect = (
        await _native(connection, model)
        or await _python(connection, model)
        or await general_dialect(connection, model, context, parallel)
    )
    return replace(dialect, context=context) if context else dialect


async def _native(connection: LlamaConnection, model: str) -> NativeDialect | None:
    try:
        properties = await connection.get("props")
        if properties.get("role") == "router":  # started without a model
            model = model or await chosen_model(connection, model_entries(await connection.get(MODELS)))
            properties = await connection.get("props", model=model)
    except (RequestRefused, Unclear, Denied):
        return None
    if "default_generation_settings" not in properties:
        return None
    settings = _value(properties, "default_generation_settings", dict)
    named = model or str(properties.get("model_alias") or properties.get("model_path"))
    named_tokens = {str(properties.get(key) or "") for key in ("bos_token", "eos_token")} - {""}
    return NativeDialect(
        named,
        _value(settings, "n_ctx", int),
        max(1, _value(properties, "total_slots", int)),
        template_tokens(str(properties.get("chat_template") or "")) | named_tokens,
    )


async def _python(connection: LlamaConnection, model: str) -> PythonDialect | None:
    try:
        named = model or str(_value(await connection.get("v1/models"), "data", list)[0]["id"])
        marks = await _counted(connection, named, "")
    except (RequestRefused, Unclear, Denied, Lacking, LookupError, TypeError):
        return None
    return PythonDialect(
        named, await _context(connection, named), await _reports_logprobs(connection, named), marks=marks
    )


async def _counted(connection: LlamaConnection, model: str, text: str) -> int:
    return _value(await connection.post("extras/tokenize/count", {"input": text, "model": model}), "count", int)


async def _context(connection: LlamaConnection, model: str) -> int:
    """Return the context size, which the server reports only when it refuses a prompt as too long, before computing it."""
    try:
        await connection.post(CHAT, _probe(model, OVERLONG))
    except TooLong as error:
        if match := _CONTEXT.search(error.reason):
            return int(match[1])
    raise ModelUnavailable(f"The model server at {connection.host} does not report the size of its context.")


async def _reports_logprobs(connection: LlamaConnection, model: str) -> bool:
    """Return whether it reports log probabilities.

    With `--logits_all false` it refuses, or leaves them out of a stream silently.
    """
    try:
        await connection.post(CHAT, _probe(model, "a") | {"logprobs": True, "top_logprobs": 1})
    except RequestRefused:
        return False
    return True


def _probe(model: str, text: str) -> dict[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": text}], "max_tokens": 1}


class Lacking(ModelUnavailable):
    """An answer of a server lacks a field."""


def _value(answer: dict[str, Any], key: str, kind: type[T]) -> T:
    value = answer.get(key)
    if not isinstance(value, kind):
        raise Lacking(f"The model server answered without {key}. Plumbline does not support this server.")
    return value
