"""Check what a language model reports of an incident against what it read: by rules, then by a judge.

Rules compare exactly: names, commands, identifiers and times of day must have been read. Other numbers may be calculated, and
are the judge's. That is the model itself, if it proved in its exam that it can tell. It reads all sentences of the cause in one call, each
with the nearest line, and says whether the lines say each fact of that very object. Without a judge, a cause is told in the words of
the lines that it rests on.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from core.answering.model_text import oversteps
from core.answering.statements import sentences
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong
from core.model.findings import Evidence
from core.model.language_model import Finding, ModelRequest
from core.model_calls.choice import fitting_texts
from core.model_calls.judge import VERDICT_TOKENS, SourceVerdict, judged
from core.model_calls.prompts import Named
from core.model_calls.prompts import incidents as prompts
from core.ports import LanguageModel
from core.rca.agent.actions import Snapshots
from core.rca.agent.experts import grounded, matched
from core.rca.observation_tools import LIST_CHANGES, LIST_DEPENDENCIES, READ_METRICS
from core.rca.observations import Observations

OWN_TOOLS = frozenset({READ_METRICS, LIST_CHANGES, LIST_DEPENDENCIES})  # what they return is not anybody's log text
WHOLE = 2_000  # characters of a result that a judge reads whole
NEAREST = 12  # lines that it reads of a longer one
READ_TOKENS = 6_000  # of all results
LONGEST_LINE = 400  # characters

_JOINED = re.compile(r"[=/(),]|(?<!\d):")  # not those of a time of day
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """A finding as far as what was read shows it; None if that shows none. `left_out` counts its other sentences."""

    finding: Finding | None
    evidence: tuple[Evidence, ...]
    left_out: int


async def checked_finding(
    finding: Finding,
    snapshots: Snapshots,
    observations: Observations,
    judge: LanguageModel | None,
    request: ModelRequest,
) -> CheckedFinding:
    """Return what a finding says that was read. `request` gives requester and urgency."""
    stated = len(sentences(finding.root_cause)) + len(sentences(finding.solution))
    supported_part = await asyncio.to_thread(supported, finding, snapshots, observations)  # aligns megabytes of text
    evidence = await asyncio.to_thread(grounded, finding.evidence, snapshots.read, observations)
    if not (supported_part.root_cause and evidence):
        return CheckedFinding(None, (), stated)
    cause = await _judged_cause(supported_part, snapshots.read, judge, request, otherwise=evidence[0].quote)
    if not cause:
        return CheckedFinding(None, (), stated)
    left = len(sentences(cause)) + len(sentences(supported_part.solution))
    return CheckedFinding(replace(supported_part, root_cause=cause), evidence, max(0, stated - left))


async def _judged_cause(
    finding: Finding, read: Mapping[str, str], judge: LanguageModel | None, request: ModelRequest, otherwise: str
) -> str:
    """Return the sentences of the cause that were read; `otherwise` if nobody can tell."""
    statements = sentences(finding.root_cause)
    open_statements = await asyncio.to_thread(_not_copied, statements, read)
    if not open_statements:
        return finding.root_cause
    if judge is None:
        return otherwise
    try:
        verdicts = await _verdicts(open_statements, finding, read, judge, request)
    except (InvalidReply, ModelUnavailable, PromptTooLong):
        return otherwise
    refused = [
        each for each, verdict in zip(open_statements, verdicts, strict=True) if verdict is not SourceVerdict.SAID
    ]
    return " ".join(each for each in statements if each not in refused)


def _not_copied(statements: Sequence[str], read: Iterable[str]) -> list[str]:
    """Return the statements that do not stand in what was read, word by word."""
    texts = "\n".join(f" {' '.join(_WORD.findall(text.lower()))} " for text in read)
    return [each for each in statements if f" {' '.join(_WORD.findall(each.lower()))} " not in texts]


async def _verdicts(
    statements: Sequence[str], finding: Finding, read: Mapping[str, str], judge: LanguageModel, request: ModelRequest
) -> list[SourceVerdict]:
    results = await asyncio.to_thread(_nearest_results, finding, read)
    lines = [line for result in results for line in result.splitlines()[1:]]
    named = [
        Named(each, max(lines, key=lambda line: len(_words(each) & _words(line)), default="")) for each in statements
    ]
    places = await fitting_texts(judge, prompts.judge((), named), VERDICT_TOKENS * len(named), results, READ_TOKENS)
    return await judged(prompts.judge([results[place] for place in places], named), len(named), judge, request)


def _nearest_results(finding: Finding, read: Mapping[str, str]) -> list[str]:
    """Return the results that were read below their calls, nearest first: short ones whole, of others the nearest lines."""
    wanted = _words("\n".join((finding.root_cause, *finding.evidence)))
    results: list[tuple[int, str]] = []
    for text, call in read.items():
        lines = text.splitlines()
        shared = [len(wanted & _words(line)) for line in lines]
        if len(text) > WHOLE:
            places = sorted(range(len(lines)), key=lambda place: -shared[place])[:NEAREST]
            lines = [lines[place][:LONGEST_LINE] for place in sorted(places)]
        results.append((max(shared, default=0), "\n".join((call, *lines))))
    return [result for _, result in sorted(results, key=lambda each: -each[0])]


def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.lower()))


def supported(finding: Finding, snapshots: Snapshots, observations: Observations) -> Finding:
    """Return the finding without sentences whose names, times or commands were not read.

    A cause is an inference, so it may say what no text does; but what it names must have been read. What no judge reads, a
    solution or a disproof, has no other numbers than what was read. A solution is not taken
    from what others wrote: a sentence of theirs is dropped, and so are its names and commands if only a log or an outside
    system has them. It may quote documents, runbooks and past incidents.
    """
    given = (observations.incident.description, *observations.services)
    own = [text for text, call in snapshots.read.items() if call.partition("(")[0] in OWN_TOOLS]

    def kept(text: str, readable: str, *, is_judged: bool = False) -> list[str]:
        readable += f"\n{_JOINED.sub(' ', readable)}"  # “total=4” says 4
        return [each for each in sentences(text) if not oversteps(each, readable, only_times=is_judged)]

    read = "\n".join((*given, *snapshots.read))
    cause = kept(finding.root_cause, read, is_judged=True)
    solution = [
        each
        for each in kept(finding.solution, "\n".join((*given, *own, *snapshots.advice)))
        if not any(
            matched(" ".join(each.split()), text) for text in (observations.incident.description, *snapshots.read)
        )
    ]
    disproof = kept(finding.disproof, read)
    return replace(finding, root_cause=" ".join(cause), solution=" ".join(solution), disproof=" ".join(disproof))
