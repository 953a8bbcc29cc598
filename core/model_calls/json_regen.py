"""Valid JSON from a model server without grammars: JsonRegen (RCAgent, section 3.3.1).

The reply is cleaned and parsed. If it does not satisfy the schema, the model is asked to write the content as YAML, and
that as JSON, for a few rounds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import yaml

from core.model.errors import InvalidReply
from core.model.language_model import ChatMessage, ModelReply, ModelRequest, Role
from core.model.lenient_formats import refuse_deep_yaml
from core.model_calls.prompts import template

ROUNDS = 2  # of two replies each: YAML, then JSON

Ask = Callable[[ModelRequest], Awaitable[ModelReply]]

# Unambiguous, so that long blank input cannot cause backtracking.
_FENCED = re.compile(r"```[a-z]*[^\S\n]*\n(.*?)```", re.DOTALL)
_TRAILING_COMMA = re.compile(r",(\s*[}\]])")


def with_schema_in_text(request: ModelRequest) -> ModelRequest:
    """Return the request with its schema at the end of its last message, for a server without schemas."""
    *before, last = request.messages
    written = json.dumps(request.schema, ensure_ascii=False)
    text = template("json_schema").substitute(text=last.text, schema=written)
    return replace(request, messages=(*before, replace(last, text=text)))


async def with_valid_json(request: ModelRequest, reply: ModelReply, ask: Ask) -> ModelReply:
    """Return `reply` if it satisfies the request's schema or was truncated at `max_tokens`; otherwise a repaired one.

    Raises InvalidReply after ROUNDS rounds without success, and the errors of `ask`.
    """
    schema = request.schema
    if schema is None or not reply.complete:
        return reply
    for _ in range(ROUNDS):
        if (text := valid_json(reply.text, schema)) is not None:
            return replace(reply, text=text)
        in_yaml = await ask(_after(replace(request, schema=None), reply.text, template("json_regen_yaml").substitute()))
        if (text := _json_of_yaml(in_yaml.text, schema)) is not None:
            return replace(in_yaml, text=text)
        written = json.dumps(schema, ensure_ascii=False)
        reply = await ask(_after(request, in_yaml.text, template("json_regen_json").substitute(schema=written)))
    if (text := valid_json(reply.text, schema)) is not None:
        return replace(reply, text=text)
    raise InvalidReply(f"The model gave no JSON that is valid under the schema, after {ROUNDS} rounds of repair.")


def valid_json(text: str, schema: Mapping[str, Any]) -> str | None:
    """Return the JSON in `text`, with unambiguous repairs; None if there is none or it violates `schema`."""
    for candidate in _candidates(text):
        try:
            value: Any = json.loads(candidate, strict=False)  # raw line breaks within strings are accepted
        except (ValueError, RecursionError):
            continue
        if (written := _written(value, schema)) is not None:
            return written
    return None


def _written(value: Any, schema: Mapping[str, Any]) -> str | None:
    """Return `value` as JSON that every parser accepts: no infinities, no lone surrogates."""
    from jsonschema import Draft202012Validator  # 60 ms that only a bot with a model pays

    try:
        validator: Any = Draft202012Validator(schema)
        if not validator.is_valid(value):
            return None
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a date, a key that is not a string, an infinity
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _candidates(text: str) -> list[str]:
    """Return candidates for JSON: the text, fenced blocks, first to last bracket, that without trailing commas, and the
    text and the blocks as strings.
    """
    fenced = [match.strip() for match in _FENCED.findall(text)]
    begin = min((at for at in (text.find("{"), text.find("[")) if at >= 0), default=0)
    end = max(text.rfind("}"), text.rfind("]")) + 1
    cut = text[begin:end]
    return [text, *fenced, cut, _TRAILING_COMMA.sub(r"\1", cut), *map(json.dumps, [text.strip(), *fenced])]


def _json_of_yaml(text: str, schema: Mapping[str, Any]) -> str | None:
    fenced = _FENCED.findall(text)
    text = fenced[0] if fenced else text
    try:
        refuse_deep_yaml(text)
        value = yaml.load(text, Loader=_PlainLoader)  # noqa: S506 a safe loader, made safer
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return _written(value, schema)


class _PlainLoader(yaml.SafeLoader):
    """A loader without aliases, a few lines of which can expand to gigabytes of JSON."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias")
        return super().compose_node(parent, index)


def _after(request: ModelRequest, reply: str, instruction: str) -> ModelRequest:
    conversation = (ChatMessage(Role.ASSISTANT, reply), ChatMessage(Role.USER, instruction))
    return replace(request, messages=request.messages + conversation)
