"""The code expert: reads the definition of a name in the evidence, and the code that it uses (RCAgent, section 3.2.2).

Pending names are in a queue. Reading ends when the queue is empty or contains only external dependencies, which the
repositories do not define. `CodeExpertTool` follows what a definition refers to, without a language model; of `CodeExpert`, the
model reads each definition and suggests the next.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model_calls.prompts import rca_code as prompts
from core.model_calls.prompts.rca_code import CodeReading, CodeSummary
from core.model_calls.structured_reply import structured
from core.ports import CodeDefinition, CodeReader, ToolParameter
from core.rca.agent.actions import Snapshots
from core.rca.agent.budget import MeteredModel

MAX_DEFINITIONS = 12  # read for one name
MAX_ROUNDS = 4  # calls between the first and the last definition read
MAX_NAMES = 40  # looked up at once
MAX_TEXT = 2_400  # characters of a definition that are shown
AMBIGUOUS = 2  # definitions of a name without its class; with more, the name is ambiguous
READING_TOKENS = 800  # room for the longest reading
SUMMARY_TOKENS = 1_000  # room for the longest summary
SHARE = 0.4  # of what is left of the budget that one symbol may take
LEAST_REPLIES = 2  # one definition and the summary
MAX_EXTERNAL = 20  # external names that are listed
_SEPARATOR = re.compile(r"[.#:$/\\()*\s]+")


@dataclass(frozen=True, slots=True)
class CodeExpertTool:
    """Tool for the controller that returns code."""

    code: CodeReader
    name: str = "read_code"
    description: str = "Reads a class or function that a stack trace or log message names, and what it calls."
    parameters: tuple[ToolParameter, ...] = field(
        default=(ToolParameter("symbol", "the name of a class or function, such as Pool.acquire"),)
    )

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return the code that was read, and the external names at which reading stopped. Raises ToolUnavailable."""
        wanted = qualified(arguments["symbol"])
        read, external = await self._read(wanted)
        if not read:
            # Without the symbol, because the model's own words must not come back as an observation.
            return f"That is not defined in {self.code.name}: it may be an external dependency."
        stopped = f"External, not read: {', '.join(external[:MAX_EXTERNAL])}." if external else ""
        return "\n\n".join([*(_shown(each) for each in read), stopped]).strip()

    async def _read(self, wanted: tuple[str, ...]) -> tuple[list[CodeDefinition], list[str]]:
        """Return the definitions in order of reading, and the names without a definition."""
        read: list[CodeDefinition] = []
        external: list[str] = []
        queue = [wanted] if wanted else []
        seen = set(queue)
        for _ in range(MAX_ROUNDS):
            if not queue or len(read) >= MAX_DEFINITIONS:
                break
            pending, queue = queue[:MAX_NAMES], queue[MAX_NAMES:]
            definitions = await self.code.definitions(sorted({part for name in pending for part in name[-2:]}))
            for name in pending:
                meant = _meant(name, definitions, read)
                if not meant and not any(each.name in name for each in definitions):
                    external.append(".".join(name))
                new = [each for each in meant if each not in read][: MAX_DEFINITIONS - len(read)]
                read += new
                next_names = [qualified(each) for one in new for each in one.references]
                queue += [each for each in dict.fromkeys(next_names) if each and each not in seen]
                seen.update(next_names)
        return read, external


@dataclass(frozen=True, slots=True)
class CodeExpert:
    """Tool for the controller that lets the model read code (figure 2). What it reads is kept in `snapshots`.

    `request` gives requester and urgency; its messages are replaced. It reads as many definitions as fit into the budget at
    the measured speed of the model.
    """

    model: MeteredModel
    request: ModelRequest
    code: CodeReader
    snapshots: Snapshots
    name: str = "analyse_code"
    description: str = "An expert reads a class or function and what it uses, and says how it can fail."
    parameters: tuple[ToolParameter, ...] = field(
        default=(ToolParameter("symbol", "the name of a class or function, such as Pool.acquire"),)
    )

    @property
    def deadline(self) -> float:
        return self.model.limits.seconds

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return a summary of the code, and what was read. Raises ToolUnavailable."""
        symbol = arguments["symbol"]
        read: dict[str, str] = {}  # the title of each definition, and what the model says of it
        external: list[str] = []
        try:
            await self._read(symbol, read, external)
            if not read:
                return f"That is not defined in {self.code.name}, or there is no budget left to read it."
            summary = await self._summary(symbol, [f"{title}\n{analysis}" for title, analysis in read.items()])
        except (ModelUnavailable, PromptTooLong) as error:
            raise ToolUnavailable(str(error)) from error
        stopped = f"External, not read: {', '.join(external[:MAX_EXTERNAL])}." if external else ""
        return "\n".join(filter(None, (summary, f"Read: {'; '.join(read)}.", stopped)))

    async def _read(self, symbol: str, read: dict[str, str], external: list[str]) -> None:
        """Add each definition to `read` with its analysis, and names without a definition to `external`."""
        queue, definitions = [wanted] if (wanted := qualified(symbol)) else [], list[CodeDefinition]()
        seen = set(queue)
        while queue:
            name = queue.pop(0)
            meant = _meant(name, await self.code.definitions(sorted(set(name[-2:]))), definitions)
            if not meant:
                external.append(".".join(name))
            for definition in (each for each in meant if each not in definitions):
                if len(definitions) >= MAX_DEFINITIONS or self.model.replies_left(SHARE) < LEAST_REPLIES:
                    return
                definitions.append(definition)
                text = _shown(definition)
                self.snapshots.keep(text, f"code of {definition.repository}, {definition.path}")
                analysis = await self._analysed(text, symbol)
                read[_title(definition)] = analysis.analysis
                suggested = dict.fromkeys(qualified(each) for each in analysis.read_next)
                queue += [each for each in suggested if each and each not in seen]
                seen.update(suggested)

    async def _analysed(self, text: str, symbol: str) -> CodeReading:
        request = replace(self.request, messages=prompts.read_definition(text, symbol), max_tokens=READING_TOKENS)
        try:
            return await structured(self.model, request, CodeReading)
        except InvalidReply:
            return CodeReading("", ())

    async def _summary(self, symbol: str, analyses: Sequence[str]) -> str:
        request = replace(self.request, messages=prompts.summarise(analyses, symbol), max_tokens=SUMMARY_TOKENS)
        try:
            return (await structured(self.model, request, CodeSummary)).summary
        except InvalidReply:
            return "\n\n".join(analyses)


def qualified(symbol: str) -> tuple[str, ...]:
    """Return the parts of a name in any language, outermost first: `shop/pool.(*Pool).Acquire`, `Pool#acquire`."""
    return tuple(part for part in _SEPARATOR.split(symbol) if part.isidentifier())


def _meant(
    name: Sequence[str], definitions: Iterable[CodeDefinition], read: Sequence[CodeDefinition]
) -> list[CodeDefinition]:
    """Return the definitions that a name can mean: in its class, otherwise in files read before; empty if too many."""
    named = [each for each in definitions if each.name == name[-1]]
    if len(name) > 1:
        of_class = [each for each in named if each.container == name[-2]]
        if of_class or not named:
            return of_class or [each for each in definitions if each.name == name[-2]][:AMBIGUOUS]
    near = [each for each in named if any(each.path == other.path for other in read)]
    return near or (named if len(named) <= AMBIGUOUS else [])


def _shown(definition: CodeDefinition) -> str:
    text = definition.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT].rpartition(chr(10))[0]}\n… {len(text)} characters in all"
    return f"{_title(definition)}:\n{text}"


def _title(definition: CodeDefinition) -> str:
    name = f"{definition.container}.{definition.name}" if definition.container else definition.name
    return f"{name} in {definition.repository}, {definition.path}, line {definition.line}"
