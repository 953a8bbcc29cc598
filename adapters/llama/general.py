"""Servers with OpenAI's interface other than those of llama.cpp: vLLM, SGLang, Ollama, LM Studio, LiteLLM and the like.

Such a server is used with what it has. At first it is asked a few short questions, which show which fields of a request
it accepts and what it makes of them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, cast

from adapters.llama.completion import (
    CHAT,
    SEEDS,
    TEMPLATE_OPTIONS,
    Prepared,
    Shape,
    bounded_schema,
    messages_of,
    prompt_texts,
    template_tokens,
    without_thought,
)
from adapters.llama.connection import Denied, LlamaConnection, RequestRefused, Unclear
from core.model.errors import ModelUnavailable
from core.model.language_model import Abilities, ModelRequest
from core.model_calls.constrained_reply import label_schema, with_schema_in_text

# Tokenizers split a text in about this way before they merge bytes: words with the space before them, white space, and
# other characters. A change of case or a digit inside of a word mostly begins another token.
_PARTS = re.compile(r" ?(?P<word>[A-Z]?[a-z]++|[A-Z]++)|(?P<space>\s++)|(?P<other>.)", re.DOTALL)
LETTERS = 4  # of a word in one token
CAPITALS = 2  # of a word in capitals, such as an identifier or encoded bytes


MODELS = "v1/models"
MESSAGE_FRAME = 16  # tokens of a chat template around one message
BATCH = 8  # replies that a server generates concurrently if it computes them in batches
PROBE_TOKENS = 256  # of a reply to a probe; enough for a short thought before it
LABEL = "plumb line"  # a reply that no model gives to a greeting, unless a schema makes it

# Lists that tell the size of the context of a model, and the fields that do.
CONTEXTS = {
    MODELS: ("max_model_len", "context_length", "context_window", "max_context_length"),  # vLLM and SGLang; hosted ones
    "api/ps": ("context_length",),  # Ollama, of a loaded model
    "api/v0/models": ("loaded_context_length",),  # LM Studio
    "model/info": ("max_input_tokens", "max_tokens"),  # LiteLLM
}
LISTED = 8  # models named in an error
_OLLAMA_CONTEXT = re.compile(r"\bnum_ctx\s++(\d++)")


@dataclass(frozen=True, slots=True)
class GeneralDialect:
    """A server with OpenAI's chat completions, and with the abilities that it has shown.

    `options` keep a model from thinking aloud, as far as the server knows them. `special` are the control tokens of its
    chat template, if it tells them.
    """

    model: str
    context: int
    slots: int
    abilities: Abilities
    options: Mapping[str, Any]
    special: frozenset[str] = frozenset()

    health: ClassVar[str] = MODELS
    copies: ClassVar[bool] = False
    logprobs: ClassVar[Mapping[str, Any]] = {
        "logprobs": True,
        "top_logprobs": 20,
    }  # the most that OpenAI and vLLM allow
    unfiltered: ClassVar[Mapping[str, Any]] = {"top_p": 1.0}

    async def count(self, connection: LlamaConnection, text: str) -> int:
        if not self.abilities.counts:
            return estimated_tokens(text)
        question = {"model": self.model, "prompt": text, "add_special_tokens": False}
        answer = await connection.post("tokenize", question)  # as vLLM counts them
        if not isinstance(count := answer.get("count"), int):
            raise ModelUnavailable(f"The model server at {connection.host} no longer counts tokens.")
        return count

    async def prepare(self, connection: LlamaConnection, request: ModelRequest, shape: Shape) -> Prepared:
        adapted = request if request.schema is None or self.abilities.schemas else with_schema_in_text(request)
        body = {
            "model": self.model,
            "messages": messages_of(adapted, self.special),
            "max_tokens": request.max_tokens,
            "temperature": request.temperature,
            "seed": request.seed % SEEDS,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.options,
            **(_response_format(request.schema) if request.schema is not None and self.abilities.schemas else {}),
        }
        texts = prompt_texts(shaped := shape(body))
        return Prepared(CHAT, shaped, await self.count(connection, "\n".join(texts)) + MESSAGE_FRAME * (len(texts) + 1))


async def general_dialect(connection: LlamaConnection, model: str, context: int, parallel: int) -> GeneralDialect:
    """Detect the abilities of a server. `model`, `context` and `parallel` are the operator's; empty ones are asked for.

    Raises ModelUnavailable if the server has no such interface, does not tell its model or the size of its context, or
    does not answer.
    """
    listed = model_entries(await _answer_or_empty(connection.get(MODELS), (RequestRefused, Unclear)))
    if not listed and not model:
        raise ModelUnavailable(
            f"The server at {connection.host} is neither llama-server nor llama_cpp.server, and lists no models as "
            "OpenAI's interface does. If it has that interface, set PLUMBLINE_LLM_MODEL."
        )
    is_ollama = "version" in await _answer_or_empty(connection.get("api/version"))
    name = model or await chosen_model(connection, listed)
    try:
        options = await _options(connection, name, {"reasoning_effort": "none"} if is_ollama else {})
    except RequestRefused as error:
        names = ", ".join(map(_name, listed[:LISTED])) or "none"
        raise ModelUnavailable(
            f"The model server at {connection.host} refuses questions to {name}; it lists: {names}."
        ) from error
    abilities = await _abilities(connection, name, options)
    details = await _answer_or_empty(connection.post("api/show", {"model": name})) if is_ollama else {}
    slots = parallel or (BATCH if any("max_model_len" in entry for entry in listed) else 1)
    return GeneralDialect(
        name,
        context or await _context(connection, name, str(details.get("parameters") or "")),
        slots,
        Abilities(abilities.odds, abilities.schemas, abilities.counts, slots),
        options,
        template_tokens(str(details.get("template") or "")),
    )


async def chosen_model(connection: LlamaConnection, listed: list[dict[str, Any]]) -> str:
    """Return the name of the loaded model, else of the first one that is not for embeddings."""
    running = [
        *model_entries(await _answer_or_empty(connection.get("api/ps"))),  # Ollama
        *(each for each in listed if each.get("status") and each["status"]["value"] == "loaded"),  # a router
    ]
    names = [_name(entry) for entry in (*running, *listed)]
    return next((name for name in names if "embed" not in name.lower()), names[0])


async def _context(connection: LlamaConnection, model: str, parameters: str) -> int:
    for path, fields in CONTEXTS.items():
        for entry in model_entries(await _answer_or_empty(connection.get(path))):
            info = entry.get("model_info")
            merged = entry | (info if isinstance(info, dict) else {})
            sizes = [merged[field] for field in fields if type(merged.get(field)) is int and merged[field] > 0]
            if sizes and _name(entry) in {model, f"{model}:latest"}:
                return sizes[0]
    if match := _OLLAMA_CONTEXT.search(parameters):
        return int(match[1])
    raise ModelUnavailable(
        f"The model server at {connection.host} does not report the size of the context of {model}: set "
        "PLUMBLINE_LLM_CONTEXT."
    )


async def _options(connection: LlamaConnection, model: str, effort: dict[str, Any]) -> dict[str, Any]:
    """Return the options against thinking aloud, if the server does not refuse them. Raises Refused if it refuses all."""
    options = {"chat_template_kwargs": TEMPLATE_OPTIONS, **effort}
    try:
        await connection.post(CHAT, _probe(model) | options)
    except RequestRefused:
        await connection.post(CHAT, _probe(model))
        return {}
    return options


async def _abilities(connection: LlamaConnection, model: str, options: dict[str, Any]) -> Abilities:
    probe = _probe(model) | options
    shaped = await _answer_or_empty(connection.post(CHAT, probe | _response_format(label_schema([LABEL]))))
    measured = await _answer_or_empty(connection.post(CHAT, {**probe, **GeneralDialect.logprobs}))
    alternatives = _first_choice(measured, "logprobs", "content", 0, "top_logprobs")
    counted = await _answer_or_empty(connection.post("tokenize", {"model": model, "prompt": LABEL}))
    return Abilities(
        odds=isinstance(alternatives, list) and len(cast("list[object]", alternatives)) > 1,
        schemas=without_thought(str(_first_choice(shaped, "message", "content"))).strip() == json.dumps(LABEL),
        counts=isinstance(counted.get("count"), int),
    )


def _probe(model: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Say hello."}]
    return {"model": model, "messages": messages, "max_tokens": PROBE_TOKENS, "temperature": 0.0, "seed": 0}


def _response_format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "reply", "schema": bounded_schema(schema)}}
    }


def _name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("id") or entry.get("name") or entry.get("model_name"))


def model_entries(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the entries of a list of models; empty if it is none."""
    entries = answer.get("data", answer.get("models"))
    return [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []


async def _answer_or_empty(
    answer: Awaitable[dict[str, Any]], unknown: tuple[type[ModelUnavailable], ...] = (RequestRefused, Unclear, Denied)
) -> dict[str, Any]:
    """Return an answer; empty if the server does not know the question, which some say with a page or with 403."""
    try:
        return await answer
    except unknown:
        return {}


def _first_choice(answer: Mapping[str, Any], *path: str | int) -> Any:
    """Return what stands at a path of the first choice of a reply that was not streamed; None if there is no such thing."""
    value: Any = answer
    for step in ("choices", 0, *path):
        try:
            value = value[step]
        except (LookupError, TypeError):
            return None
    return value


def estimated_tokens(text: str) -> int:
    """Return a length in tokens that hardly any tokenizer exceeds, so that a prompt fits."""
    return sum(_length(part) for part in _PARTS.finditer(text))


def _length(part: re.Match[str]) -> int:
    if word := part["word"]:
        return math.ceil(len(word) / (CAPITALS if word.isupper() else LETTERS))
    return 1 if part["space"] else max(1, len(part["other"].encode("utf-8", "replace")) - 1)
