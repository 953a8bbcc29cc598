"""The input and output of evaluations: JSON lines, intervals, figures as JSON and tables, and a recorded language model.

The model is a server whose replies are recorded in a file, or replayed from one.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import statistics
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from adapters.http import client_session
from bot.config.settings import load_settings
from bot.wiring.application import llama_server
from core.confidence.measures import bootstrap
from core.model.errors import MalformedInput, ModelUnavailable
from core.model.language_model import Abilities, ModelReply, ModelRequest, OnText, ignore_text
from core.ports import LanguageModel

OPENERS: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}


def json_lines(path: Path, *fields: str) -> list[dict[str, str]]:
    """Return the objects of a JSON lines file (plain, .gz or .xz), at least one, each with these fields.

    Raises MalformedInput that names the line.
    """
    expected = f"expected a JSON object with {', '.join(fields)} on each line"
    rows: list[Any] = []
    where = str(path)
    try:
        with OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, start=1):
                where = f"{path}, line {number}"
                row: Any = json.loads(line) if line.strip() else None
                rows += [] if row is None else [row]
                if row is not None and not (isinstance(row, dict) and set(fields) <= row.keys()):
                    raise MalformedInput(f"{where}: {expected}.")
    except (OSError, EOFError, lzma.LZMAError, UnicodeDecodeError) as error:
        raise MalformedInput(f"{path} cannot be read: {error}.") from error
    except ValueError as error:
        raise MalformedInput(f"{where}: {expected}: {error}.") from error
    if not rows:
        raise MalformedInput(f"{path} is empty: {expected}.")
    return rows


def write_json(figures: Mapping[str, Any], path: Path | None) -> None:
    """Write the figures to `path` as indented JSON, if there is a path."""
    if path is not None:
        path.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def cell(row: Mapping[str, Any], name: str, form: str = ".2f") -> str:
    """Return a figure for a table: “0.57 [0.47–0.66]” where it has an interval, nothing where it is None or missing."""
    value, interval = row.get(name), row.get(f"{name}_ci")
    if value is None:
        return ""
    shown = format(value, form) if isinstance(value, float) else str(value)
    return f"{shown} [{interval[0]:.2f}–{interval[1]:.2f}]" if interval else shown


def print_rows(console: Console, headers: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print a table without truncation. Columns that do not fit follow below, next to the first column again."""
    first, *rest = zip(headers, *rows, strict=True)
    unbounded = console.options.update(max_width=10_000)
    while rest:
        count = len(rest)
        while count > 1 and Measurement.get(console, unbounded, _table([first, *rest[:count]])).maximum > console.width:
            count -= 1
        console.print(_table([first, *rest[:count]], title))
        rest, title = rest[count:], ""


def _table(columns: Sequence[Sequence[str]], title: str = "") -> Table:
    headers, *rows = zip(*columns, strict=True)
    table = Table(*headers, title=title or None)
    for row in rows:
        table.add_row(*row)
    return table


SEED = 7


def bootstrap_interval(values: Sequence[float], seed: int = SEED) -> list[float]:
    """Return the 95 % percentile bootstrap interval of the mean, as [low, high]."""
    return rounded(bootstrap(np.mean, np.asarray(values, float), seed=seed))


def wilson_interval(held: Sequence[bool]) -> list[float]:
    """Return the 95 % Wilson interval of a share, as [low, high]. `held` has at least one element."""
    from scipy.stats import binomtest

    low, high = binomtest(sum(held), len(held)).proportion_ci(method="wilson")
    return rounded((float(low), float(high)))


def rounded(interval: tuple[float, float]) -> list[float]:
    """Return the interval rounded to four digits."""
    return [round(end, 4) for end in interval]


DEADLINE = 1_800.0  # seconds for one reply; long, so that a slow server can be measured
ASKING = ModelRequest((), requester="eval", deadline=DEADLINE)
BYTES_PER_TOKEN = 3  # a token is seldom shorter; an estimate that needs no server and is the same in every replay


@dataclass(frozen=True, slots=True)
class CallCost:
    """The cost of one recorded call: seconds, and tokens that a server read, took from its cache, and generated."""

    seconds: float
    prompt_tokens: int
    cached_tokens: int
    generated_tokens: int


# The server's replies in the call that is being recorded: several calls may be, each in a task of its own.
_REPLIES: ContextVar[list[ModelReply]] = ContextVar("replies")


def add_to_call(reply: ModelReply) -> None:
    """Add a reply to the cost of the call that is being recorded. Give this to the server as `on_reply`."""
    _REPLIES.get().append(reply)


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
        self.calls: list[CallCost] = []
        try:
            lines = file.read_text("utf-8").splitlines() if model is None or file.exists() else []
            for line in lines:
                row = json.loads(line)
                self._known[row["key"]] = row
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise MalformedInput(f"{file} is not a recording of a language model: {type(error).__name__}.") from error

    @property
    def name(self) -> str:
        return self._model.name if self._model else str(self._known.get("model", {}).get("value", "recorded"))

    async def context_tokens(self) -> int:
        tokens: int = await self._called("context", lambda model: model.context_tokens())
        await self._called("model", _name_of)
        return tokens

    async def count_tokens(self, text: str) -> int:
        return -(-len(text.encode("utf-8", "replace")) // BYTES_PER_TOKEN)

    async def abilities(self) -> Abilities:
        async def ask(model: LanguageModel) -> dict[str, Any]:
            return asdict(await model.abilities())

        return Abilities(**await self._called("abilities", ask))

    async def generate(self, request: ModelRequest, on_text: OnText = ignore_text) -> ModelReply:
        (reply,) = await self._replied("generate", request, 1)
        return reply

    async def sample(self, request: ModelRequest, count: int) -> list[ModelReply]:
        return await self._replied("sample", request, count)

    async def expect(self, request: ModelRequest, choices: Sequence[str]) -> dict[str, float]:
        key = _key("expect", request, list(choices))
        return await self._called(key, lambda model: model.expect(request, choices))

    async def _replied(self, method: str, request: ModelRequest, count: int) -> list[ModelReply]:
        async def ask(model: LanguageModel) -> list[dict[str, Any]]:
            replies = await model.sample(request, count) if count > 1 else [await model.generate(request)]
            return [asdict(reply) for reply in replies]

        return [ModelReply(**each) for each in await self._called(_key(method, request, count), ask)]

    async def _called(self, key: str, ask: Callable[[LanguageModel], Awaitable[Any]]) -> Any:
        """Return what the file holds for a call, or what is asked for and added."""
        if key not in self._known:
            if self._model is None:
                raise ModelUnavailable(f"{self._file} has no reply to this request: record it again.")
            replies: list[ModelReply] = []
            _REPLIES.set(replies)
            started = time.perf_counter()
            value = await ask(self._model)
            cost = CallCost(
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
            self.calls.append(CallCost(*(row[name] for name in CallCost.__slots__)))
        return row["value"]


async def _name_of(model: LanguageModel) -> str:
    return model.name


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


OpenedModel = AbstractAsyncContextManager[RecordedModel | None]
NO_MODEL: OpenedModel = nullcontext()


@asynccontextmanager
async def recorded_model(
    llm: str = "", record: Path | None = None, replay: Path | None = None
) -> AsyncGenerator[RecordedModel | None]:
    """Open the replies in the file `replay`, or the server at the address `llm`; None with neither.

    A server's replies are added to the file `record`. Those that it already holds are reused, so that an interrupted
    measurement can continue. Raises MalformedInput if a file is not a recording.
    """
    if replay is not None:
        model = RecordedModel(replay)
        await model.context_tokens()
        yield model
    elif llm:
        async with client_session() as session:
            with TemporaryDirectory(prefix="plumbline-eval-") as folder:
                server = llama_server(llm, load_settings(), session, add_to_call)
                model = RecordedModel(record or Path(folder) / "replies.jsonl", server)
                await model.context_tokens()
                yield model
    else:
        yield None


def costs(cases: Sequence[Sequence[CallCost]]) -> dict[str, float]:
    """Return the medians over the cases that a model was asked about, each with its calls."""
    totals = [
        (
            sum(call.seconds for call in calls),
            sum(call.prompt_tokens for call in calls),
            sum(call.cached_tokens for call in calls),
            len(calls),
        )
        for calls in cases
    ] or [(0.0, 0, 0, 0)]
    seconds, tokens, cached, calls = (statistics.median(each) for each in zip(*totals, strict=True))
    return {"asked": len(cases), "seconds": seconds, "tokens": tokens, "cached_tokens": cached, "calls": calls}


def paired(pairs: Iterable[tuple[bool, bool]]) -> dict[str, int]:
    """Return how many cases a model gets right and the evidence engine does not, and the other way round."""
    results = list(pairs)
    return {
        "gained": sum(ours and not theirs for ours, theirs in results),
        "lost": sum(theirs and not ours for ours, theirs in results),
    }


def print_model(figures: Mapping[str, Any], console: Console) -> None:
    """Print the gains, losses and costs of the model; nothing without one."""
    if "paired" not in figures:
        return
    for name, row in figures["paired"].items():
        console.print(f"{name}: {row['gained']} right that the evidence engine has wrong, {row['lost']} the other way.")
    console.print(
        f"{figures['model']}: {figures['exam']} in its exam; asked about {figures['asked']} cases, with a median of "
        f"{figures['calls']:.0f} calls, {figures['tokens']:.0f} tokens read ({figures['cached_tokens']:.0f} cached), "
        f"{figures['seconds']:.1f} s."
    )
