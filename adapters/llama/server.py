"""A language model server as a LanguageModel."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar
from weakref import WeakValueDictionary

import aiohttp
from pydantic import ValidationError

from adapters.llama.completion import GrowingReplies, GrowingReply, Shape
from adapters.llama.connection import LlamaConnection, RequestRefused, TooMany
from adapters.llama.dialect import Dialect, dialect_of
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.language_model import Abilities, ChatMessage, ModelReply, ModelRequest, OnText, ignore_text
from core.model_calls.constrained_reply import LabelReading, label_schema, read_labels, with_valid_json

LABEL_FRAME = 8  # tokens that a reply may have around a label: its quotes, and space after it
NEGLIGIBLE = 0.05  # probability of labels with a common prefix that is divided evenly, without another reply
BEGINNING = 2  # leading messages that the prompts of one job have in common: the instructions and the evidence
COUNTING = 30.0  # seconds to wait for the detection of the server, or to count tokens
SHORTEST_PAUSE = 1.0  # seconds before a server that asks to wait is asked again, whatever it says
DETECTING = 180.0  # seconds to detect the server; some load their model for the first question

T = TypeVar("T")
OnReply = Callable[[ModelReply], None]
Watch = Callable[[str, ModelRequest], AbstractContextManager[Callable[[Sequence[ModelReply]], None]]]
"""Opens a context around one call, given the model's name and the request. Its value takes the replies of the call."""


async def _together(calls: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return the results of concurrent calls. If one fails, the others are cancelled and its error is raised."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    return [task.result() for task in tasks]


class LlamaServer:
    """`llama-server`, `llama_cpp.server`, or another server with OpenAI's interface. The kind and its abilities are
    detected once.

    Every reply is read as a stream, because these servers stop when the connection is closed, which enforces deadlines
    and cancellation. `on_reply` is called for each finished reply, including auxiliary ones, for token metrics;
    `watch` for each call.
    """

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        *,
        model: str = "",
        api_key: str = "",
        context: int = 0,
        parallel: int = 0,
        draws: int = 1,
        on_reply: OnReply = lambda _: None,
        watch: Watch | None = None,
    ) -> None:
        """Create the client.

        `url` is the server's address, with or without `/v1`. `model` is needed if the server has several, `context`
        (tokens) if it does not report it, and `parallel` is the number of concurrent replies if it does not report that,
        or if the address is that of a load balancer before several servers. Of a server that reports no probabilities,
        `draws` replies are the odds.
        """
        self._connection = LlamaConnection(url, session, api_key)
        self._model = model
        self._parallel = parallel
        self._draws = draws
        self._detection = partial(dialect_of, self._connection, model, context, parallel)
        self._on_reply = on_reply
        self._watch: Watch = watch or (lambda *_: nullcontext(lambda _: None))
        self._dialect: Dialect | None = None
        self._detecting: asyncio.Task[Dialect] | None = None
        self._alike: WeakValueDictionary[tuple[ChatMessage, ...], asyncio.Lock] = WeakValueDictionary()

    @property
    def address(self) -> str:
        """Return the server's host and port."""
        return self._connection.host

    @property
    def name(self) -> str:
        """Return the configured name, else the server's own name once known, else its address."""
        return self._model or (self._dialect.model if self._dialect else self._connection.host)

    async def context_tokens(self) -> int:
        async with self._within(COUNTING):
            return (await self._known_dialect()).context

    async def check_health(self) -> int:
        """Return the number of slots. Raises ModelUnavailable if the server does not answer or still loads its model.

        A busy server passes.
        """
        async with self._within(COUNTING):
            dialect = await self._known_dialect()
            await self._connection.check(dialect.health)
            return self._parallel or dialect.slots

    async def count_tokens(self, text: str) -> int:
        async with self._within(COUNTING):
            return await (await self._known_dialect()).count(self._connection, text) if text else 0

    async def abilities(self) -> Abilities:
        async with self._within(COUNTING):
            abilities = (await self._known_dialect()).abilities
            return abilities if abilities.odds else replace(abilities, draws=self._draws)

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        async with self._within(request.deadline):
            replies = await self._several(request, {}, on_text)
            return await self._valid(request, replies[0])

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        """Return replies, as the port says. Their seeds are the request's and the following ones."""
        async with self._within(request.deadline):
            return [await self._valid(request, reply) for reply in await self._drawn(request, count)]

    async def _valid(self, request: ModelRequest, grown: GrowingReply) -> ModelReply:
        return await with_valid_json(request, grown.reply(), self._one)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        """Return label probabilities, as the port says, by the method of `core/model_calls/constrained_reply.py`, at
        temperature 1.

        It takes one reply of a few tokens, and another one for labels with a common prefix off the generated path. A server
        without log probabilities is asked for one reply, or for several whose shares are the odds.
        Requests with a common prefix are sent one after the other: sent concurrently, all but one would use slots that
        must compute the prefix again, which takes longer.
        """
        alike = self._alike.setdefault(request.messages[:BEGINNING], asyncio.Lock())
        async with self._within(request.deadline), alike:
            odds = dict.fromkeys(choices, 0.0)
            undecided = [(tuple(choices), 1.0)]
            while undecided:
                labels, weight = undecided.pop()
                reading = await self._read(request, labels)
                for label, probability in reading.settled.items():
                    odds[label] += weight * probability
                for group, share in reading.undecided.items():
                    if weight * share >= NEGLIGIBLE:
                        undecided.append((group, weight * share))
                    else:
                        odds |= {label: odds[label] + weight * share / len(group) for label in group}
            return odds

    async def _read(self, request: ModelRequest, labels: tuple[str, ...]) -> LabelReading:
        length = max(len(label.encode()) for label in labels) + LABEL_FRAME
        labelling = replace(request, schema=label_schema(labels), max_tokens=length, temperature=0.0)
        dialect = await self._known_dialect()
        if dialect.abilities.odds:
            (grown,) = await self._several(labelling, dialect.logprobs)
            if reading := read_labels(grown.steps, labels):
                return reading
        drawing, counts = replace(labelling, temperature=float(self._draws > 1)), dict.fromkeys(labels, 0)
        for drawn in await self._drawn(drawing, self._draws, dialect.unfiltered):
            reply = await self._valid(drawing, drawn)
            if not reply.complete:
                raise InvalidReply(f"{self.name} chose none of the given labels.")
            counts[json.loads(reply.text)] += 1
        return LabelReading({label: count / self._draws for label, count in counts.items()}, {})

    async def _drawn(
        self, request: ModelRequest, count: int, options: Mapping[str, object] = MappingProxyType({})
    ) -> list[GrowingReply]:
        """Return `count` replies to one prompt, as many at a time as the server has slots."""
        dialect = await self._known_dialect()
        replies: list[GrowingReply] = []
        while len(replies) < count:
            wanted = min(dialect.slots, count - len(replies))
            seeds = [request.seed + len(replies) + number for number in range(wanted)]
            if dialect.copies:
                batches = [await self._several(replace(request, seed=seeds[0]), {**options, "n": wanted})]
            else:
                batches = await _together([self._several(replace(request, seed=seed), options) for seed in seeds])
            replies += [reply for batch in batches for reply in batch]
        return replies

    async def _one(self, request: ModelRequest) -> ModelReply:
        return (await self._several(request, {}))[0].reply()

    async def _several(
        self, request: ModelRequest, options: Mapping[str, object], on_text: OnText = ignore_text
    ) -> list[GrowingReply]:
        """Return the complete replies to one request. A server that asks to wait is asked again, if the deadline allows it."""
        ends_at = asyncio.get_running_loop().time() + request.deadline
        while True:
            try:
                return await self._once(request, options, on_text)
            except ModelUnavailable as busy:
                pause = busy.retry_after
                if pause is None or asyncio.get_running_loop().time() + pause >= ends_at:
                    raise
            await asyncio.sleep(max(pause, SHORTEST_PAUSE))

    async def _once(
        self,
        request: ModelRequest,
        options: Mapping[str, object],
        on_text: OnText,
        shape: Shape = dict,
    ) -> list[GrowingReply]:
        dialect = await self._known_dialect()
        prepared = await dialect.prepare(self._connection, request, shape)
        if prepared.prompt_tokens + request.max_tokens > dialect.context:
            raise PromptTooLong(
                f"A prompt of {prepared.prompt_tokens} tokens and a reply of {request.max_tokens} do not fit into the "
                f"context of {self.name} ({dialect.context} tokens)."
            )
        replies = GrowingReplies(prepared.prompt_tokens)
        with self._watch(self.name, request) as report:
            async with aclosing(self._connection.events(prepared.path, {**prepared.body, **options})) as events:
                async for event in events:
                    try:
                        if text := replies.add(event):
                            on_text(text)
                    except ValidationError as error:
                        raise ModelUnavailable(f"{self.name} sent an event that is not part of a reply.") from error
            if not replies.finished:
                raise ModelUnavailable(f"{self.name} ended the stream before its reply was complete.")
            report([reply.reply() for reply in replies.finished])
        for reply in replies.finished:
            self._on_reply(reply.reply())
        return replies.finished

    async def _known_dialect(self) -> Dialect:
        if self._dialect is not None:
            return self._dialect
        if self._detecting is None:
            # Not cancelled with the caller: callers with a short deadline would otherwise restart the detection forever.
            self._detecting = asyncio.create_task(self._detect_dialect())
            self._detecting.add_done_callback(self._detected)
        return await asyncio.shield(self._detecting)

    async def _detect_dialect(self) -> Dialect:
        async with asyncio.timeout(DETECTING):
            self._dialect = await self._detection()
        return self._dialect

    def _detected(self, detecting: asyncio.Task[Dialect]) -> None:
        self._detecting = None
        if not detecting.cancelled():
            detecting.exception()  # mark the exception as retrieved, even if nobody waits

    @asynccontextmanager
    async def _within(self, seconds: float) -> AsyncIterator[None]:
        """Limit the time of a call. After a failure, the server is detected again."""
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError as error:
            raise ModelUnavailable(f"{self.name} did not answer in time.") from error
        except (RequestRefused, TooMany):
            raise
        except ModelUnavailable:
            self._dialect = None
            raise
