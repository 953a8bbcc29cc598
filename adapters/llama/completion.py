"""Request bodies of completions, and the assembly of replies from a stream.

The grammar of a JSON schema has bounds for everything that is open, and allows nothing that the schema forbids. Without
bounds, a small model that cannot end a number, a text or a list would continue to `max_tokens` and leave truncated JSON.

The control tokens of chat templates are broken up in texts that are data, so that no tokenizer interprets them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, Field

from adapters.tool_calls.form import CallPart, step_of
from core.model.language_model import ModelReply, ModelRequest
from core.model_calls.constrained_reply import TokenStep
from core.model_calls.prompts import plain

CHAT = "v1/chat/completions"
COMPLETION = "v1/completions"
SEEDS = 2**32 - 1  # a server accepts smaller seeds; this one means a random seed
ROUNDED = 1e-3  # by which a logarithm of a probability may exceed 0
# A model with a reasoning mode would use up `max_tokens` before its answer.
TEMPLATE_OPTIONS = {"enable_thinking": False}

_THOUGHT = re.compile(r"\A(?:(?!</think>).)*+</think>\s*+", re.DOTALL)
_THINKING = re.compile(r"\s*+<think>")
_THINKS = re.compile(r"<think>\s*+\Z")
_CHANNELS = re.compile(r"<\|start\|>assistant\Z")


Shape = Callable[[Mapping[str, Any]], Mapping[str, Any]]
"""Returns the body of a chat in another form."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A request in the form of a server: path, body, and the length of its prompt in tokens."""

    path: str
    body: Mapping[str, Any]
    prompt_tokens: int


def messages_of(request: ModelRequest, special: Collection[str] = ()) -> list[dict[str, str]]:
    """Return the messages in the format of all servers, without the usual control tokens and the `special` ones of one."""
    return [
        {"role": str(message.role), "content": without_special_tokens(message.text, special)}
        for message in request.messages
    ]


def prompt_texts(body: Mapping[str, Any]) -> list[str]:
    """Return the texts of a chat: those of its messages, the calls in them, and the definitions of the tools."""
    called = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    return [*(message["content"] for message in body["messages"]), *map(json.dumps, (*called, *body.get("tools", ())))]


def ready_for_reply(prompt: str) -> str:
    """Return a prompt that the model continues with its reply and not with a thought.

    After a template that opens `<think>`, the reply would be part of the thought; that of gpt-oss expects a channel
    first.
    """
    if _THINKS.search(prompt):
        return f"{prompt.rstrip()}\n\n</think>\n\n"
    return f"{prompt}<|channel|>final<|message|>" if _CHANNELS.search(prompt) else prompt


def without_thought(text: str) -> str:
    """Return a reply without the thought at its beginning; empty if that has not ended."""
    rest = _THOUGHT.sub("", text, count=1)
    return "" if _THINKING.match(rest) else rest


def chat_body(request: ModelRequest, model: str, special: Collection[str] = ()) -> dict[str, Any]:
    """Return the body of a chat completion for a llama.cpp server. Each of the two ignores the other's fields."""
    body = _body(request, model)
    body |= {"messages": messages_of(request, special), "chat_template_kwargs": TEMPLATE_OPTIONS}
    if request.schema is not None:
        body["response_format"] = {"type": "json_object", "schema": grammar_schema(request.schema)}
    return body


def completion_body(request: ModelRequest, model: str, prompt: list[int]) -> dict[str, Any]:
    """Return the body of a completion of a tokenized prompt."""
    body = _body(request, model) | {"prompt": prompt}
    if request.schema is not None:
        body["json_schema"] = grammar_schema(request.schema)
    return body


def _body(request: ModelRequest, model: str) -> dict[str, Any]:
    return {
        "model": model,
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.seed % SEEDS,
        "repeat_penalty": 1.0,  # one server's default is higher, which distorts all probabilities
        "stream": True,
        "stream_options": {"include_usage": True},
        "cache_prompt": True,
    }


class _Alternative(BaseModel):
    token: str
    logprob: float = Field(le=ROUNDED)  # neither more than certain, nor no number


class _Step(_Alternative):
    top_logprobs: list[_Alternative] = []


class _Steps(BaseModel):
    content: list[_Step] | None = None


class _Delta(BaseModel):
    content: str | None = None
    # thoughts, if the server separates them from the reply, under either name
    reasoning_content: str | None = None
    reasoning: str | None = None
    tool_calls: list[CallPart] | None = None


class _Choice(BaseModel):
    index: int = Field(default=0, ge=0)
    text: str | None = None  # of a completion
    delta: _Delta = _Delta()  # of a chat
    finish_reason: str | None = None
    logprobs: _Steps | None = None


class _PromptDetails(BaseModel):
    cached_tokens: int | None = Field(default=None, ge=0)


class _Usage(BaseModel):
    prompt_tokens: int = Field(ge=0)
    completion_tokens: int = Field(ge=0)
    prompt_tokens_details: _PromptDetails | None = None


class StreamPart(BaseModel):
    """One event of a stream."""

    choices: list[_Choice] = []
    usage: _Usage | None = None


@dataclass(slots=True)
class GrowingReply:
    """The received part of a reply. `prompt_tokens` is our own count, for a server that does not report it.

    `copied`: its slot reused the prompt computed for another reply.
    """

    prompt_tokens: int
    copied: bool
    texts: list[str] = field(default_factory=list)
    steps: list[TokenStep] = field(default_factory=list)
    calls: list[CallPart] = field(default_factory=list[CallPart])  # of tools
    thoughts: int = 0  # pieces of thoughts, which are not part of the reply
    finish_reason: str | None = None
    usage: _Usage | None = None

    def add(self, choice: _Choice) -> None:
        """Add a piece."""
        self.finish_reason = choice.finish_reason or self.finish_reason
        text = choice.delta.content or choice.text or ""
        self.calls += choice.delta.tool_calls or []
        self.thoughts += bool(choice.delta.reasoning_content or choice.delta.reasoning)
        if text:
            self.texts.append(text)
            self.steps += [_token_step(step) for step in (choice.logprobs and choice.logprobs.content) or []]

    @property
    def text(self) -> str:
        """Return the text without thoughts; the JSON of a step, if a tool is called."""
        text = without_thought("".join(self.texts))
        return step_of(self.calls, text) if self.calls else text

    def reply(self) -> ModelReply:
        # Without a report, one piece is one token, or a few that make one character.
        pieces = len(self.texts) + len(self.calls) + self.thoughts
        usage = self.usage or _Usage(prompt_tokens=self.prompt_tokens, completion_tokens=pieces)
        cached = (usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0
        return ModelReply(
            self.text,
            usage.prompt_tokens,
            usage.prompt_tokens if self.copied else min(cached, usage.prompt_tokens),
            usage.completion_tokens,
            self.finish_reason != "length",
        )


class GrowingReplies:
    """The replies to one request, from a stream in which their pieces are interleaved."""

    def __init__(self, prompt_tokens: int) -> None:
        self._prompt_tokens = prompt_tokens
        self._replies: dict[int, GrowingReply] = {}
        self._finished = 0  # index of the reply that finished last, to which a usage without index belongs

    def add(self, event: Mapping[str, Any]) -> str:
        """Add an event, and return the first reply so far; empty if it did not grow.

        Raises pydantic's ValidationError if the event is invalid.
        """
        piece = StreamPart.model_validate(event)
        for choice in piece.choices:
            reply = self._replies.setdefault(choice.index, GrowingReply(self._prompt_tokens, copied=choice.index > 0))
            reply.add(choice)
            if choice.finish_reason:
                self._finished = choice.index
        if piece.usage is not None and self._finished in self._replies:
            self._replies[self._finished].usage = piece.usage
        grew = any(not choice.index and (choice.delta.content or choice.text) for choice in piece.choices)
        return self._replies[0].text if grew else ""

    @property
    def finished(self) -> list[GrowingReply]:
        """Return the finished replies, in the order of their index."""
        return [reply for _, reply in sorted(self._replies.items()) if reply.finish_reason]


def _token_step(step: _Step) -> TokenStep:
    """Return a step.

    If several tokens have the same text (such as incomplete characters), the most probable one counts.
    """
    alternatives = {step.token: step.logprob}
    for alternative in step.top_logprobs:
        alternatives[alternative.token] = max(alternative.logprob, alternatives.get(alternative.token, float("-inf")))
    return TokenStep(step.token, alternatives)


LARGEST = 999_999_999  # for integers without bounds
LONGEST = 1_000  # characters of a text without a limit; llama.cpp's own grammars allow 2 000
MOST = 32  # items of a list without a limit

# llguidance, an optional backend of a server, allows unlimited white space in JSON unless told otherwise. These
# separators are the ones that models and our prompts use: without the space after a colon, a model that would start a
# list with a space token would most probably leave it empty.
OPTIONS = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}


def grammar_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return `schema` with closed objects, with bounds where there are none, and with options for llama.cpp."""
    return {**bounded_schema(schema), **OPTIONS}


def bounded_schema(part: Any) -> Any:
    """Return a schema, or a part of one, with closed objects and with bounds, without options of a grammar."""
    if isinstance(part, list):
        return [bounded_schema(value) for value in part]
    if not isinstance(part, Mapping):
        return part
    return {
        **_bounds(part),
        **{key: value if key in {"enum", "const"} else bounded_schema(value) for key, value in part.items()},
    }


def _bounds(part: Mapping[str, Any]) -> dict[str, Any]:
    if "enum" in part or "const" in part:
        return {}
    match part.get("type"):
        case "object" if "properties" in part:
            return {"additionalProperties": False}
        case "integer" if not part.keys() & {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}:
            return {"minimum": -LARGEST, "maximum": LARGEST}
        case "string" if not part.keys() & {"maxLength", "pattern", "format"}:
            return {"maxLength": LONGEST}
        case "array" if "maxItems" not in part:
            return {"maxItems": MOST}
        case _:
            return {}


# `<|im_end|>` (Qwen), `<|eot_id|>` (Llama 3), `<|channel|>` (gpt-oss), and with the bars of full width (DeepSeek); in other
# brackets EXAONE, MiniMax and, with a bar at the end, Gemma 4.
_BARRED = re.compile(r"<\||\[e~|<\w{1,30}\|>|\[\|\w{1,30}\|\]|\]~!?b[\[\]]")
# Those without bars: Gemma, Llama 2, SmolLM, StarCoder, GLM, InternLM, Command R, Nemotron, Seed, the thoughts and tool calls of
# Qwen 3; in brackets Mistral, BERT, GLM, LM Studio's tool calls, and Gemma's own two.
_NAMED = re.compile(
    r"</?(?:s|bos|eos|eot|eod|pad|unk|mask|cls|sep|sop|eop|eoh|eoa|think|tools?|tool_calls?|tool_responses?|tool_results?"
    r"|tool_sep|function_calls?|function=[^>]+|parameter=[^>]+|arg_key|arg_value|(?:start|end)_of_\w+|turn|image_soft_token"
    r"|unused\d+|reserved_\d+|SPECIAL_\d+|TOKENS_UNUSED_\d+|extra_id_\d+|(?:BOS|EOS|PAD|UNK|CLS|SEP|MASK)_TOKEN|PRE|SUF|MID|EOT"
    r"|(?:seed|minimax):[\w:]+|longcat_\w+|fim[_-]\w+|repo_?name|file_sep|filename|gh_stars|issue_\w+|jupyter_\w+"
    r"|empty_output|SYS)>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|(?:END_)?TOOL_REQUEST|THINK|ARGS|CALL_ID"
    r"|IMG\w*|multimodal|[gs]?MASK|CLS|SEP|PAD|UNK|BOS|EOS|@BOS@)\]"
)
_OPENING = re.compile(
    r"[<＜﹤](?=([^<>＜＞﹤﹥\n]{0,60}[>＞﹥]?))|[\[［](?=([^\[\]［］\n]{0,60}[\]］]?))|[\]］](?=([~～][^\s\[\]]{0,9}[\[\]]))"
)
_IN_TEMPLATE = re.compile(r"<[^\s<>{}%'\"]{1,40}>|\[/?[A-Z][A-Z_]{1,30}\]")


def template_tokens(template: str) -> frozenset[str]:
    """Return the apparent control tokens of a chat template in Jinja."""
    return frozenset(_IN_TEMPLATE.findall(template))


def without_special_tokens(text: str, special: Collection[str] = ()) -> str:
    """Return the text with a space after the first character of every control token.

    This covers the usual families of models, and the `special` tokens of one server, also in characters of another width and
    with invisible ones in between, because some tokenizers read these alike.
    """

    def opened(match: re.Match[str]) -> str:
        apparent = plain(match[0] + (match[1] or match[2] or match[3] or ""))
        is_token = apparent in special or _BARRED.match(apparent) or _NAMED.fullmatch(apparent)
        return f"{match[0]} " if is_token else match[0]

    return _OPENING.sub(opened, text)
