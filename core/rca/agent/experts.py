"""The experts that read code and logs with a language model (RCAgent, section 3.2.2), and only quote what they were shown.

The code expert keeps pending names in a queue. The model reads each definition and suggests the next. Reading ends when the
queue is empty or contains only external dependencies, which the repositories do not define.

The log expert reads every part of a log beside similar incidents, and then sums up what it read. What the model claims to have copied from a chunk is kept
only if it stands there, and shown as it stands there (algorithm 1).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.fuzz import partial_ratio_alignment

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.findings import Evidence, EvidenceKind, SimilarIncident
from core.model.language_model import ModelRequest
from core.model_calls.choice import fitting_texts, structured
from core.model_calls.metered_model import MeteredModel
from core.model_calls.prompts import incidents as prompts
from core.model_calls.prompts.incidents import ChunkReading, CodeReading, CodeSummary, Interpretation, LogSummary
from core.ports import CodeDefinition, CodeReader, Embedder, ToolParameter
from core.rca.agent.actions import Snapshots
from core.rca.log_lines import Chunk, chunked, quote_of, templates_of
from core.rca.observation_tools import LIST_CHANGES, LIST_DEPENDENCIES, READ_METRICS
from core.rca.observations import Observations

MIN_QUOTE = 12  # characters; a shorter quote would be found anywhere
KINDS = {
    READ_METRICS: EvidenceKind.METRIC,
    LIST_CHANGES: EvidenceKind.CHANGE,
    LIST_DEPENDENCIES: EvidenceKind.TOPOLOGY,
}
"""The kinds of what tools return, by name. What others return is text, like a log."""
ALIKE = 90.0  # percent of a quote's characters that must be in the text in order (algorithm 1, line 17: 0.9)


def grounded(quotes: Iterable[str], read: Mapping[str, str], observations: Observations) -> tuple[Evidence, ...]:
    """Return the quotes found in one of the texts that were `read`, in the wording of that text, with their sources.

    `read` maps each text to the call that returned it. A quote that is not found, or is too short, is dropped.
    """
    located = (_evidence(quote, read, observations) for quote in quotes)
    return tuple({evidence.quote: evidence for evidence in located if evidence is not None}.values())


def _evidence(quote: str, read: Mapping[str, str], observations: Observations) -> Evidence | None:
    quote = " ".join(quote.split())
    if len(quote) < MIN_QUOTE:
        return None
    matches = ((match, call) for text, call in read.items() if (match := matched(quote, text)))
    verbatim, call = next(matches, ("", ""))
    return _located(verbatim, call, observations) if verbatim else None


def matched(quote: str, text: str) -> str:
    """Return the part of a text that a quote copies; empty if it copies none."""
    text = " ".join(text.split())
    if len(text) < len(quote):
        return ""
    alignment = partial_ratio_alignment(quote, text, score_cutoff=ALIKE)
    return text[alignment.dest_start : alignment.dest_end].strip() if alignment else ""


def _located(verbatim: str, call: str, observations: Observations) -> Evidence:
    """Return the log record or change that a quote comes from, otherwise what the call returned, without a time."""
    for line in observations.logs:
        if _same(quote_of(line.text), verbatim):
            return Evidence(EvidenceKind.LOG, f"log of {line.service}", quote_of(line.text), line.at)
    for change in observations.changes:
        if change.id in verbatim or _same(change.title, verbatim):
            return Evidence(
                EvidenceKind.CHANGE,
                f"{change.name} by {change.author or 'unknown'}",
                change.title,
                change.at,
                change.url,
            )
    return Evidence(KINDS.get(call.partition("(")[0], EvidenceKind.LOG), call, verbatim)


def _same(original: str, verbatim: str) -> bool:
    original = " ".join(original.split())
    return bool(original) and (original in verbatim or verbatim in original)


MAX_DEFINITIONS = 12  # read for one name
MAX_TEXT = 2_400  # characters of a definition that are shown
AMBIGUOUS = 2  # definitions of a name without its class; with more, the name is ambiguous
CODE_READING_TOKENS = 800  # room for the longest reading
CODE_SUMMARY_TOKENS = 1_000  # room for the longest summary
SHARE = 0.4  # of what is left of the budget that one symbol or log may take
LEAST_REPLIES = 2  # one definition or part of a log, and the summary
MAX_EXTERNAL = 20  # external names that are listed
_SEPARATOR = re.compile(r"[.#:$/\\()*\s]+")


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
        request = replace(self.request, messages=prompts.read_definition(text, symbol), max_tokens=CODE_READING_TOKENS)
        try:
            return await structured(self.model, request, CodeReading)
        except InvalidReply:
            return CodeReading("", ())

    async def _summary(self, symbol: str, analyses: Sequence[str]) -> str:
        request = replace(
            self.request, messages=prompts.summarise_code(analyses, symbol), max_tokens=CODE_SUMMARY_TOKENS
        )
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
    near = [each for each in named if each.path in {other.path for other in read}]
    return near or (named if len(named) <= AMBIGUOUS else [])


def _shown(definition: CodeDefinition) -> str:
    text = definition.text
    if len(text) > MAX_TEXT:
        text = f"{text[:MAX_TEXT].rpartition(chr(10))[0]}\n… {len(text)} characters in all"
    return f"{_title(definition)}:\n{text}"


def _title(definition: CodeDefinition) -> str:
    name = f"{definition.container}.{definition.name}" if definition.container else definition.name
    return f"{name} in {definition.repository}, {definition.path}, line {definition.line}"


AT_ONCE = 30  # interpretations that are summarised at once
MAX_CHUNK = 6_000  # characters of a part of a log that is read at once
MAX_LINE = 1_000  # characters of a line that are read
MAX_LINES = 100_000  # of a log, the last ones
EXAMPLES = 3  # earlier incidents beside a chunk
LOG_READING_TOKENS = 2_000  # room for the longest reading
LOG_SUMMARY_TOKENS = 800  # room for the longest summary
CUT = "Only {read} of {parts} parts of this log were read, those with the rarest lines: the budget allows no more."
UNREAD = "There is no budget left to read it: its first and last lines are above."
NOTHING = "Nothing in this log could be shown to be out of the ordinary."

Past = Callable[[str], Sequence[SimilarIncident]]  # returns the past incidents that a text resembles, nearest first


@dataclass(frozen=True, slots=True)
class LogExpert:
    """Tool for the controller. `request` gives requester and urgency; its messages are replaced.

    It reads every part of the log, the rarest lines first, until its share of the budget is spent, and then sums up what it
    read.
    """

    model: MeteredModel
    request: ModelRequest
    past: Past = lambda _: ()
    embedder: Embedder | None = None
    name: str = "analyse_log"
    description: str = "An expert reads a log and says what it shows, with the lines that it rests on."
    parameters: tuple[ToolParameter, ...] = field(
        default=(ToolParameter("snapshot", "the key of a result with log messages", snapshot=True),)
    )

    @property
    def deadline(self) -> float:
        return self.model.limits.seconds

    async def call(self, arguments: Mapping[str, str]) -> str:
        """Return what the log shows, and how much of it was not read.

        Raises ToolUnavailable if the model does not answer or has too little room.
        """
        if self.model.replies_left(SHARE) < LEAST_REPLIES:
            return UNREAD
        lines = [line[:MAX_LINE] for line in arguments["snapshot"].splitlines() if line.strip()][-MAX_LINES:]
        most_tokens = self.model.tokens + SHARE * (self.model.limits.tokens - self.model.tokens)
        read: dict[int, list[Interpretation]] = {}
        try:
            parts = await self._parts(lines)
            with suppress(TimeoutError):
                async with asyncio.timeout(SHARE * (self.model.limits.seconds - self.model.seconds)):
                    for place in sorted(range(len(parts)), key=lambda place: -parts[place].rarity):
                        if self.model.tokens < most_tokens:
                            read[place] = await self._read(parts[place].text)
            shown = await self._reduced([each for place in sorted(read) for each in read[place]])
        except (ModelUnavailable, PromptTooLong) as error:
            raise ToolUnavailable(str(error)) from error
        return shown if len(read) == len(parts) else f"{shown}\n{CUT.format(read=len(read), parts=len(parts))}"

    async def _parts(self, lines: Sequence[str]) -> list[Chunk]:
        """Return the chunks of a log packed into as few parts as hold MAX_CHUNK characters each, in their order."""
        vectors = None
        if self.embedder is not None and lines:
            vectors = np.asarray(await self.embedder.embed_passages(templates_of(lines)), dtype=np.float32)
        return packed(await asyncio.to_thread(chunked, lines, vectors))

    async def _read(self, chunk: str) -> list[Interpretation]:
        """Return the interpretations of a chunk whose evidence stands in it (lines 13 to 20)."""
        examples = [f"{each.title} → {each.root_cause}" for each in self.past(chunk)[:EXAMPLES] if each.root_cause]
        messages = prompts.read_chunk(chunk, await self._fitting(chunk, examples))
        try:
            reading = await structured(
                self.model, replace(self.request, messages=messages, max_tokens=LOG_READING_TOKENS), ChunkReading
            )
        except InvalidReply:
            return []
        return [
            replace(each, evidence=verbatim)
            for each in reading.interpretations
            if each.meaning.strip() and (verbatim := copied(each.evidence, chunk))
        ]

    async def _fitting(self, chunk: str, examples: Sequence[str]) -> list[str]:
        """Return the examples that fit beside the chunk (line 14)."""
        try:
            places = await fitting_texts(self.model, prompts.read_chunk(chunk, ()), LOG_READING_TOKENS, examples)
        except PromptTooLong:  # not even one: the chunk may still fit alone
            return []
        return [examples[place] for place in places]

    async def _reduced(self, kept: Sequence[Interpretation]) -> str:
        """Return the summary with the lines that matter to it (line 22); of many, the summary of those of each batch."""
        while len(kept) > AT_ONCE:
            kept = [
                each
                for start in range(0, len(kept), AT_ONCE)
                for each in (await self._summary(kept[start : start + AT_ONCE]))[1][: prompts.MAX_TOLD]
            ]
        summary, chosen = await self._summary(kept) if kept else (NOTHING, ())
        return f"{summary}\n{_listed(chosen)}".strip()

    async def _summary(self, kept: Sequence[Interpretation]) -> tuple[str, Sequence[Interpretation]]:
        """Return the summary, and the interpretations that it chooses; all of them if the reply is of no use."""
        request = replace(self.request, messages=prompts.summarise_log(kept), max_tokens=LOG_SUMMARY_TOKENS)
        try:
            reply = await structured(self.model, request, LogSummary)
        except (InvalidReply, PromptTooLong):
            return "", kept
        chosen = [kept[number - 1] for number in dict.fromkeys(reply.interpretations) if 0 < number <= len(kept)]
        return reply.summary.strip(), chosen or kept[: prompts.MAX_TOLD]


def copied(evidence: str, chunk: str) -> str:
    """Return the lines of the chunk that `evidence` is a copy of, as they stand there; empty if it is none.

    Algorithm 1 asks for Levenshtein(e, p) < L(p) − 0.9·L(e), which a long p grants to almost any e. Here e is compared with
    the part of the chunk that is most like it.
    """
    text = "\n".join(line.strip() for line in evidence.splitlines() if line.strip())
    if not MIN_QUOTE <= len(text) <= len(chunk):
        return ""
    alignment = partial_ratio_alignment(text, chunk, score_cutoff=ALIKE)
    if alignment is None:
        return ""
    line_end = chunk.find("\n", alignment.dest_end)
    return chunk[chunk.rfind("\n", 0, alignment.dest_start) + 1 : line_end if line_end >= 0 else len(chunk)]


def packed(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the chunks joined while they hold at most MAX_CHUNK characters; a longer one is split between lines.

    The rarity of a part is that of the mean line of its rarest chunk.
    """
    parts: list[Chunk] = []
    for chunk in chunks:
        lines = [(line,) for line in chunk.lines] if len(chunk.text) > MAX_CHUNK else [chunk.lines]
        for piece in lines:
            fits = parts and len(parts[-1].text) + len("\n".join(piece)) < MAX_CHUNK
            before = parts.pop() if fits else replace(chunk, lines=(), rarity=0.0)
            rarity = max(before.rarity, chunk.rarity / len(chunk.lines))
            parts.append(replace(before, lines=(*before.lines, *piece), rarity=rarity))
    return parts


def _listed(interpretations: Sequence[Interpretation]) -> str:
    return "\n".join(f"- {' '.join(each.meaning.split())}\n{each.evidence}" for each in interpretations)
