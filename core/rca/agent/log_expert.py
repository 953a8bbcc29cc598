"""The log expert: a language model reads a log chunk by chunk beside similar incidents (RCAgent, section 3.2.2).

What it claims to have copied from a chunk is kept only if it stands there, and shown as it stands there (algorithm 1).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.fuzz import partial_ratio_alignment

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model.past_incident import SimilarIncident
from core.model_calls.context_budget import fitting_texts
from core.model_calls.prompts import rca_log as prompts
from core.model_calls.prompts.rca_log import ChunkReading, Interpretation, LogSummary
from core.model_calls.structured_reply import structured
from core.ports import Embedder, ToolParameter
from core.rca.agent.budget import MeteredModel
from core.rca.agent.grounding import ALIKE, MIN_QUOTE
from core.rca.agent.log_chunks import Chunk, chunked, templates_of
from core.rca.failures import trouble
from core.rca.log_lines import cut

MAX_CHUNKS = 8  # read of one log, those with the rarest lines
MAX_CHUNK = 6_000  # characters of a chunk; a longer one is split between lines
MAX_LINE = 1_000  # characters of a line that are read
MAX_LINES = 100_000  # of a log, the last ones
MAX_COMPLAINTS = 20  # lines quoted if there is no budget for reading
EXAMPLES = 3  # earlier incidents beside a chunk
READING_TOKENS = 2_000  # room for the longest reading
SUMMARY_TOKENS = 800  # room for the longest summary
SHARE = 0.4  # of what is left of the budget that one log may take
LEAST_REPLIES = 2  # one chunk and the summary
NOTHING = "Nothing in this log could be shown to be out of the ordinary."

Past = Callable[[str], Sequence[SimilarIncident]]  # returns the past incidents that a text resembles, nearest first


def no_past(_: str) -> Sequence[SimilarIncident]:
    """Return no past incidents."""
    return ()


@dataclass(frozen=True, slots=True)
class LogExpert:
    """Tool for the controller. `request` gives requester and urgency; its messages are replaced.

    It reads as many chunks as fit into the budget at the measured speed of the model. If none does, it quotes the lines
    that complain, which takes no call.
    """

    model: MeteredModel
    request: ModelRequest
    past: Past = no_past
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
        """Return what the log shows. Raises ToolUnavailable if the model does not answer or has too little room."""
        replies = min(self.model.replies_left(SHARE), MAX_CHUNKS + 1)
        if replies < LEAST_REPLIES:
            return _complaints(arguments["snapshot"])
        lines = [line[:MAX_LINE] for line in arguments["snapshot"].splitlines() if line.strip()][-MAX_LINES:]
        kept: list[Interpretation] = []
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(SHARE * (self.model.limits.seconds - self.model.seconds)):
                    for chunk in await self._chunks(lines, replies - 1):
                        kept += await self._read(chunk)
            return await self._summary(kept) if kept else NOTHING
        except (ModelUnavailable, PromptTooLong) as error:
            raise ToolUnavailable(str(error)) from error

    async def _chunks(self, lines: Sequence[str], count: int) -> list[str]:
        """Return the `count` chunks with the rarest lines, in their order."""
        vectors = None
        if self.embedder is not None and lines:
            vectors = np.asarray(await self.embedder.embed_passages(templates_of(lines)), dtype=np.float32)
        chunks = [part for chunk in await asyncio.to_thread(chunked, lines, vectors) for part in _parts(chunk)]
        rarest = sorted(chunks, key=lambda chunk: -chunk.rarity)[:count]
        return [chunk.text for chunk in sorted(rarest, key=lambda chunk: chunk.start)]

    async def _read(self, chunk: str) -> list[Interpretation]:
        """Return the interpretations of a chunk whose evidence stands in it (lines 13 to 20)."""
        past_incidents = (each for each in self.past(chunk)[:EXAMPLES] if each.root_cause)
        examples = [prompts.example(each.title, each.root_cause) for each in past_incidents]
        messages = prompts.read_chunk(chunk, await self._fitting(chunk, examples))
        try:
            reading = await structured(
                self.model, replace(self.request, messages=messages, max_tokens=READING_TOKENS), ChunkReading
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
            places = await fitting_texts(self.model, prompts.read_chunk(chunk, ()), READING_TOKENS, examples)
        except PromptTooLong:  # not even one: the chunk may still fit alone
            return []
        return [examples[place] for place in places]

    async def _summary(self, kept: Sequence[Interpretation]) -> str:
        """Return the summary with the lines that matter to it; all that was kept if the reply is of no use (line 22)."""
        messages = prompts.summarise(kept)
        try:
            reply = await structured(
                self.model, replace(self.request, messages=messages, max_tokens=SUMMARY_TOKENS), LogSummary
            )
        except (InvalidReply, PromptTooLong):
            return _listed(kept)
        chosen = [kept[number - 1] for number in dict.fromkeys(reply.interpretations) if 0 < number <= len(kept)]
        return f"{reply.summary.strip()}\n{_listed(chosen or kept[: prompts.MAX_TOLD])}".strip()


def copied(evidence: str, chunk: str) -> str:
    """Return the lines of the chunk that `evidence` is a copy of, as they stand there; empty if it is none.

    Algorithm 1 asks for Levenshtein(e, p) < L(p) − 0.9·L(e), which a long p grants to almost any e. Here e is compared with
    the part of the chunk that is most like it.
    """
    text = "\n".join(line.strip() for line in evidence.splitlines() if line.strip())
    if not MIN_QUOTE <= len(text) <= len(chunk):
        return ""
    start = chunk.find(text)
    end = start + len(text)
    if start < 0:
        alignment = partial_ratio_alignment(text, chunk, score_cutoff=ALIKE)
        if alignment is None:
            return ""
        start, end = alignment.dest_start, alignment.dest_end
    line_end = chunk.find("\n", end)
    return chunk[chunk.rfind("\n", 0, start) + 1 : line_end if line_end >= 0 else len(chunk)]


def _parts(chunk: Chunk) -> list[Chunk]:
    """Return the chunk, or parts of it of at most MAX_CHUNK characters, split between lines."""
    parts: list[list[str]] = [[]]
    for line in chunk.lines:
        if parts[-1] and sum(map(len, parts[-1])) + len(parts[-1]) + len(line) > MAX_CHUNK:
            parts.append([])
        parts[-1].append(line)
    share = chunk.rarity / len(parts)
    return [replace(chunk, lines=tuple(part), rarity=share) for part in parts]


def _complaints(text: str) -> str:
    lines = [(report.strength, line) for line in dict.fromkeys(text.splitlines()) if (report := trouble(line))]
    ranked = sorted(lines, key=lambda each: -each[0])[:MAX_COMPLAINTS]
    return "\n".join(cut(line) for _, line in ranked) or "Nothing in it complains."


def _listed(interpretations: Sequence[Interpretation]) -> str:
    return "\n".join(f"- {' '.join(each.meaning.split())}\n{each.evidence}" for each in interpretations)
