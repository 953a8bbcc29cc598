"""Thought, action and observation of a language model over read-only tools, again and again (RCAgent, section 3).

Several endings are drawn of one investigation, and what they agree on is its finding (section 3.4).
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from core.knowledge.terms import terms
from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model.trajectory import Action, Ending, Finding, Step, Trajectory
from core.model_calls.prompts import rca as prompts
from core.ports import LanguageModel, Tool
from core.rca.actions import (
    MAX_CALL_TOKENS,
    MAX_FINDING_TOKENS,
    Choices,
    Refused,
    Snapshots,
    call_of,
    finding_schema,
    parse,
    parse_finding,
    schema,
)

MAX_STEPS = 15  # RCAgent, section 5.3
MAX_REPLY = 2_000  # characters of a reply that are kept
LAST_TRIES = 3  # to get a valid finding out of the last step
TOOL_DEADLINE = 20.0  # seconds
EXPERT_DEADLINE = 240.0  # seconds for a tool that reads a snapshot, with the same language model

Listener = Callable[[Step], Awaitable[None]]  # told of every step as it was taken


@dataclass(slots=True)
class Investigation:
    """One run of the controller over one incident. `request` says for whom and how urgent; its messages are replaced.

    `services` are those that a cause may lie in; none: any text. Steps are decoded greedily, as section 4.1 does, unless
    `temperature` says otherwise.
    """

    model: LanguageModel
    tools: Sequence[Tool]
    services: tuple[str, ...]
    request: ModelRequest
    listener: Listener | None = None
    temperature: float = 0.0
    snapshots: Snapshots = field(default_factory=Snapshots)
    steps: list[Step] = field(default_factory=list[Step])
    finding: Finding | None = None  # as soon as the model has finalised: it stands, whatever comes after it

    async def run(self, incident: str) -> Trajectory:
        """Investigate until the model finalises; the last step allows nothing else. Never raises for what it says."""
        opening = self.opening(incident)
        try:
            while len(self.steps) < MAX_STEPS - 1 + LAST_TRIES:
                self.finding = await self._step(opening)
                if self.finding is not None:
                    return self._ended(Ending.FINALISED, self.finding)
        except ModelUnavailable:
            return self._ended(Ending.MODEL_UNAVAILABLE)
        except PromptTooLong:
            return self._ended(Ending.FAILED)
        return self._ended(Ending.FAILED)

    async def branch(self, reply: str, action: Action, incident: str) -> Trajectory:
        """The same investigation, had it taken this action next; this one stays as it is."""
        taken = await self._observed(reply, action)
        return await replace(self, steps=[*self.steps, taken], listener=None).run(incident)

    def opening(self, incident: str) -> prompts.Messages:
        """The rules, the task, the tools and the incident: what every prompt of the investigation begins with."""
        return prompts.opening(incident, self.tools, MAX_STEPS)

    def choices(self) -> Choices:
        """Return the actions that may be taken at the next step."""
        last = len(self.steps) >= MAX_STEPS - 1
        called = {call_of(step.action) for step in self.steps if step.action and not step.fault}
        return Choices(self.tools, self.services, self.snapshots, called, must_finalise=last)

    async def _step(self, opening: prompts.Messages) -> Finding | None:
        """Take one step; the finding if the model finalised."""
        choices = self.choices()
        reply = ""
        try:
            reply = await self._reply(opening, choices)
            chosen = parse(reply, choices)
        except Refused as refused:
            await self._add(Step(reply[:MAX_REPLY], None, "", fault=str(refused)))
            return None
        except InvalidReply as error:
            await self._add(Step(reply[:MAX_REPLY], None, "", fault=f"{error} Reply with one JSON object."))
            return None
        if isinstance(chosen, Finding):
            return chosen
        await self._add(await self._observed(reply, chosen))
        return None

    async def _reply(self, opening: prompts.Messages, choices: Choices) -> str:
        """The next reply of the model; observations are taken back to their keys, oldest first, until the prompt fits."""
        for folded in range(len(self.steps) + 1):
            try:
                said = await self.model.generate(
                    replace(
                        self.request,
                        messages=self.messages(opening, folded),
                        schema=schema(choices),
                        max_tokens=MAX_FINDING_TOKENS if choices.may_finalise else MAX_CALL_TOKENS,
                        temperature=self.temperature,
                    )
                )
            except PromptTooLong:
                if folded == len(self.steps):
                    raise
            else:
                return said.text
        raise AssertionError("unreachable: the last round returns or raises")

    def messages(self, opening: prompts.Messages, folded: int = 0) -> prompts.Messages:
        """The conversation so far, append-only; of the first `folded` steps only the keys of the observations."""
        taken = [
            replace(step, shown="(see the snapshot)") if place < folded and step.snapshot else step
            for place, step in enumerate(self.steps)
        ]
        return (*opening, *(message for step in taken for message in prompts.step_taken(step)))

    async def _observed(self, reply: str, action: Action) -> Step:
        tool = next(tool for tool in self.tools if tool.name == action.tool)
        expert = any(parameter.snapshot for parameter in tool.parameters)
        deadline = EXPERT_DEADLINE if expert else TOOL_DEADLINE
        was_read = not expert
        try:
            async with asyncio.timeout(deadline):
                observation = await tool.call(self._expanded(tool, action.arguments))
        except ToolUnavailable as error:
            observation, was_read = f"{action.tool} could not be read: {error}", False
        except TimeoutError:
            observation, was_read = f"{action.tool} did not answer within {deadline:.0f} s.", False
        key = self.snapshots.keep(observation or "Nothing was found.", written=not was_read)
        return Step(reply[:MAX_REPLY], action, self.snapshots.head(key), snapshot=key)

    def _expanded(self, tool: Tool, arguments: Mapping[str, str]) -> dict[str, str]:
        """The arguments with every snapshot key replaced by its observation."""
        wanted = {parameter.name for parameter in tool.parameters if parameter.snapshot}
        return {name: self.snapshots.by_key[value] if name in wanted else value for name, value in arguments.items()}

    async def _add(self, step: Step) -> None:
        self.steps.append(step)
        if self.listener:
            await self.listener(step)

    def _ended(self, ending: Ending, finding: Finding | None = None) -> Trajectory:
        return Trajectory(tuple(self.steps), ending, finding)


SAMPLES = 10  # RCAgent, section 4.1
SLOW = 60.0  # seconds of the first run above which no samples are drawn: they would take as long again

Embed = Callable[[Sequence[str]], NDArray[np.float64]]  # texts → one row of unit length each


def by_terms(texts: Sequence[str]) -> NDArray[np.float64]:
    """Texts as the counts of their terms: enough to tell findings about one incident apart."""
    counted = [Counter(terms(text)) for text in texts]
    vocabulary = sorted({term for counts in counted for term in counts})
    rows = np.array([[counts[term] for term in vocabulary] for counts in counted], dtype=np.float64)
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


async def investigate(
    investigation: Investigation, incident: str, *, samples: int = SAMPLES, embed: Embed = by_terms, onward: bool = True
) -> Trajectory:
    """Run the controller greedily; from the step at which it finalises, draw `samples` more endings and let them agree.

    `onward`: a sample that would rather look further may do so (trajectory-level self-consistency); otherwise only
    samples that finalise at once count (step-wise). The model merges what was found; where it cannot, the finding
    nearest to all others is taken. After a run of more than SLOW seconds no samples are drawn.
    """
    started = time.monotonic()
    trajectory = await investigation.run(incident)
    if trajectory.finding is None or samples == 0 or time.monotonic() - started > SLOW:
        return trajectory
    drawn = await _drawn(investigation, incident, samples, onward=onward)
    findings = (trajectory.finding, *drawn)
    if len(findings) == 1:
        return replace(trajectory, samples=findings)
    agreed = await aggregated(investigation.model, findings, investigation.services, investigation.request)
    return replace(trajectory, finding=agreed or vote(findings, embed), samples=findings)


def vote(findings: Sequence[Finding], embed: Embed) -> Finding:
    """The finding whose cause and solution are nearest to the mean of all (section 3.4.1, vote with embedding)."""
    rows = embed([f"{finding.root_cause}\n{finding.solution}" for finding in findings])
    return findings[int(np.argmax(rows @ rows.mean(axis=0)))]


async def aggregated(
    model: LanguageModel, findings: Sequence[Finding], services: tuple[str, ...], request: ModelRequest
) -> Finding | None:
    """The findings merged by the model (section 3.4.1, aggregate with LLMs); None if it gives no valid one."""
    asked = replace(
        request,
        messages=prompts.aggregation(findings),
        schema=finding_schema(services),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=0.0,
    )
    try:
        return parse_finding((await model.generate(asked)).text, services)
    except (Refused, InvalidReply, ModelUnavailable, PromptTooLong):
        return None


async def _drawn(investigation: Investigation, incident: str, samples: int, *, onward: bool) -> list[Finding]:
    """The findings of the samples that came to one."""
    opening = investigation.opening(incident)
    choices = investigation.choices()
    request = replace(
        investigation.request,
        messages=investigation.messages(opening),
        schema=schema(choices),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=1.0,
    )
    try:
        replies = await investigation.model.sample(request, samples)
    except (InvalidReply, ModelUnavailable, PromptTooLong):
        return []
    found: list[Finding] = []
    for reply in replies:
        try:
            chosen = parse(reply.text, choices)
        except Refused:
            continue
        if isinstance(chosen, Finding):
            found.append(chosen)
        elif onward and (ended := await investigation.branch(reply.text, chosen, incident)).finding is not None:
            found.append(ended.finding)
    return found
