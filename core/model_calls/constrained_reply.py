"""Replies within a form: valid JSON from a server without grammars, and label probabilities from log probabilities.

The reply is cleaned and parsed. If it does not satisfy the schema, the model is asked to write the content as YAML, and
that as JSON, for a few rounds.

A reply that must be one of the labels (a JSON string) is generated once. At each token, the server reports the most
probable alternatives, ignoring the constraint. Alternatives that continue some label share the probability of that
position; the others are forbidden and drop out. The result for a label is the probability of constrained sampling at
temperature 1, whatever its tokenization.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import yaml

from core.model.errors import InvalidReply
from core.model.language_model import ChatMessage, ModelReply, ModelRequest, Role
from core.model.text import refuse_deep_yaml
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
    try:
        if fault_under(value, schema):
            return None
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError):  # a date, a key that is not a string, an infinity
        return None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def fault_under(value: Any, schema: Mapping[str, Any]) -> str:
    """Return a fault of a value under a schema, in words of the schema and not of the value; empty if it is valid."""
    from jsonschema import Draft202012Validator  # 60 ms that only a bot with a model pays

    validator: Any = Draft202012Validator(schema)
    return next(
        (
            f"{'.'.join(map(str, error.absolute_path)) or 'it'} does not satisfy {error.validator}: {error.validator_value}"
            for error in validator.iter_errors(value)
        ),
        "",
    )


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


@dataclass(frozen=True, slots=True)
class TokenStep:
    """A generated token, with the log probabilities (natural) of the most probable tokens at its position, itself
    included.
    """

    text: str
    alternatives: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabelReading:
    """The result of one reply. All probabilities sum to 1.

    `settled` maps labels to probabilities. `undecided` maps groups of labels that continue alike, off the generated
    path, to their shared probability; a reply constrained to such a group resolves it.
    """

    settled: Mapping[str, float]
    undecided: Mapping[tuple[str, ...], float]


def label_schema(labels: Sequence[str]) -> dict[str, object]:
    """Return the JSON schema of a reply that is one of `labels`."""
    return {"type": "string", "enum": list(labels)}


def read_labels(steps: Sequence[TokenStep], labels: Sequence[str]) -> LabelReading | None:
    """Return the probabilities of `labels` (two or more, distinct) from a reply; None if the reply begins none of them."""
    spelled = {label: json.dumps(label, ensure_ascii=False) for label in labels}
    settled, undecided = dict.fromkeys(labels, 0.0), dict[tuple[str, ...], float]()
    alive, written, weight = tuple(labels), "", 1.0
    for original in steps:
        step = original if written else _without_space(original)
        if not step.text:
            continue
        rests = {label: spelled[label][len(written) :] for label in alive}
        path = _begun_by(step.text, rests)
        if not path:
            return None
        carried = 0.0
        for group, share in _shares(step, rests, path).items():
            if len(group) == 1:
                settled[group[0]] += weight * share
            elif group == path:
                carried = weight * share
            else:
                undecided[group] = undecided.get(group, 0.0) + weight * share
        if len(path) == 1:
            return LabelReading(settled, undecided)
        alive, weight = path, carried
        written += step.text
    return None


def _without_space(step: TokenStep) -> TokenStep:
    """Return the token without leading space, which carries no information."""
    alternatives: dict[str, float] = {}
    for text, logprob in step.alternatives.items():
        bare = text.lstrip()
        alternatives[bare] = max(logprob, alternatives.get(bare, logprob))
    return TokenStep(step.text.lstrip(), alternatives)


def _begun_by(text: str, rests: Mapping[str, str]) -> tuple[str, ...]:
    """Return the labels whose remainder can continue with this token, or end within it."""
    return tuple(
        label
        for label, rest in rests.items()
        if text and (rest.startswith(text) or (text.startswith(rest) and text[len(rest) :].isspace()))
    )


def _shares(step: TokenStep, rests: Mapping[str, str], path: tuple[str, ...]) -> dict[tuple[str, ...], float]:
    """Return the share of this position for each group of labels that continue alike.

    A token off the path that leaves all labels open is another tokenization of their common prefix. It is assumed to
    have the same odds as the path, and left out.
    """
    groups = {text: _begun_by(text, rests) for text in step.alternatives}
    informative = {
        text: group for text, group in groups.items() if group and (len(group) < len(rests) or group == path)
    }
    highest = max(step.alternatives[text] for text in informative)
    masses: dict[tuple[str, ...], float] = {}
    for text, group in informative.items():
        masses[group] = masses.get(group, 0.0) + math.exp(step.alternatives[text] - highest)
    total = math.fsum(masses.values())
    return {group: mass / total for group, mass in masses.items()}
