"""The code expert: reads the definition of a name in the evidence, and the code that it calls (RCAgent, section 3.2.2).

Pending names are in a queue. Reading ends when the queue is empty or contains only external dependencies, which the
repositories do not define.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from core.ports import CodeReader, Definition, ToolParameter

MAX_DEFINITIONS = 12  # read for one name
MAX_ROUNDS = 4  # calls between the first and the last definition read
MAX_NAMES = 40  # looked up at once
MAX_TEXT = 2_400  # characters of a definition that are shown
AMBIGUOUS = 2  # definitions of a name without its class; with more, the name is ambiguous
MAX_EXTERNAL = 20  # external names that are listed
_SEPARATOR = re.compile(r"[.#:$/\\()*\s]+")


@dataclass(frozen=True, slots=True)
class CodeExpert:
    """Tool for the controller."""

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

    async def _read(self, wanted: tuple[str, ...]) -> tuple[list[Definition], list[str]]:
        """Return the definitions in order of reading, and the names without a definition."""
        read: list[Definition] = []
        external: list[str] = []
        queue = [wanted] if wanted else []
        seen = set(queue)
        for _ in range(MAX_ROUNDS):
            if not queue or len(read) >= MAX_DEFINITIONS:
                break
            pending, queue = queue[:MAX_NAMES], queue[MAX_NAMES:]
            found = await self.code.definitions(sorted({part for name in pending for part in name[-2:]}))
            for name in pending:
                meant = _meant(name, found, read)
                if not meant and not any(each.name in name for each in found):
                    external.append(".".join(name))
                new = [each for each in meant if each not in read][: MAX_DEFINITIONS - len(read)]
                read += new
                next_names = [qualified(each) for one in new for each in one.references]
                queue += [each for each in dict.fromkeys(next_names) if each and each not in seen]
                seen.update(next_names)
        return read, external


def qualified(symbol: str) -> tuple[str, ...]:
    """Return the parts of a name in any language, outermost first: `shop/pool.(*Pool).Acquire`, `Pool#acquire`."""
    return tuple(part for part in _SEPARATOR.split(symbol) if part.isidentifier())


def _meant(name: Sequence[str], found: Iterable[Definition], read: Sequence[Definition]) -> list[Definition]:
    """Return the definitions that a name can mean: in its class, otherwise in files read before; empty if too many."""
    named = [each for each in found if each.name == name[-1]]
    if len(name) > 1:
        of_class = [each for each in named if each.container == name[-2]]
        if of_class or not named:
            return of_class or [each for each in found if each.name == name[-2]][:AMBIGUOUS]
    near = [each for each in named if any(each.path == other.path for other in read)]
    return near or (named if len(named) <= AMBIGUOUS else [])


def _shown(definition: Definition) -> str:
    text = definition.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT].rpartition(chr(10))[0]}\n… {len(text)} characters in all"
    title = f"{definition.container}.{definition.name}" if definition.container else definition.name
    return f"{title} in {definition.repository}, {definition.path}, line {definition.line}:\n{text}"
