"""The loop of thought, action and observation of a language model over read-only tools, within a budget.

RCAgent, sections 3 and 3.4. Of several endings of one investigation, the finding on which they agree is taken. The vote
decides which cause it is; the model merges the findings that name it.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from core.knowledge.terms import terms
from core.model.errors import IndexUnavailable, InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import Action, Ending, Finding, ModelRequest, Step, Trajectory
from core.model_calls.metered_model import Limits, MeteredModel, Trace, untraced
from core.model_calls.prompts import incidents as prompts
from core.ports import Tool
from core.rca.agent.actions import (
    MAX_CALL_TOKENS,
    MAX_FINDING_TOKENS,
    Choices,
    RefusedAction,
    Snapshots,
    call_of,
    finding_of,
    finding_schema,
    parse,
    schema,
)
from core.rca.observation_tools import ADVICE

MAX_REPLY = 2_000  # characters kept of a reply
LAST_TRIES = 3  # attempts at a valid finding in the last step
TOOL_DEADLINE = 20.0  # seconds

Listener = Callable[[Step], Awaitable[None]]  # receives every step when it is taken


@runtime_checkable
class Expert(Protocol):
    """A tool that lets the model read something, within `deadline` seconds (RCAgent, section 3.2.2).

    Its output is what a model wrote, and so no evidence; it keeps what it read in the snapshots of the investigation.
    """

    @property
    def deadline(self) -> float: ...


@dataclass(slots=True)
class Investigation:
    """One run of the controller over one incident. `request` gives requester and urgency; its messages are replaced.

    `services` are the possible places of a cause; if empty, any text is allowed. `changes` are the ids of those that may be
    the cause. By default, steps are decoded greedily, as in section 4.1.
    """

    model: MeteredModel
    tools: Sequence[Tool]
    services: tuple[str, ...]
    request: ModelRequest
    changes: tuple[str, ...] = ()
    listener: Listener | None = None
    temperature: float = 0.0
    trace: Trace = untraced
    limits: Limits = field(default_factory=Limits)  # of steps and samples; the budget is that of the model
    snapshots: Snapshots = field(default_factory=Snapshots)
    steps: list[Step] = field(default_factory=list[Step])
    finding: Finding | None = None  # set once the model has finalised, and kept whatever happens afterwards

    async def run(self, incident: str) -> Trajectory:
        """Investigate until the model finalises; the last step allows nothing else. Invalid replies raise no error."""
        opening = self.opening(incident)
        try:
            while len(self.steps) < self.limits.steps - 1 + LAST_TRIES:
                self.finding = await self._step(opening)
                if self.finding is not None:
                    break
        except ModelUnavailable:
            return self.ended(Ending.MODEL_UNAVAILABLE)
        except PromptTooLong:
            pass
        return self.ended(Ending.FAILED)

    async def branch(self, reply: str, action: Action, incident: str) -> Trajectory:
        """Return the trajectory of a copy of this investigation that takes this action next."""
        steps = [*self.steps, await self._observed(reply, action)]
        return await replace(self, steps=steps, finding=None, listener=None).run(incident)

    def opening(self, incident: str) -> prompts.Messages:
        """Return the start of every prompt of the investigation: the rules, the task, the tools and the incident."""
        return prompts.opening(incident, self.tools, self.limits.steps)

    def choices(self) -> Choices:
        """Return the actions that may be taken at the next step."""
        last = len(self.steps) >= self.limits.steps - 1 or self.model.is_low
        called = {call_of(step.action) for step in self.steps if step.action and not step.fault}
        return Choices(self.tools, self.services, self.snapshots, called, must_finalise=last, changes=self.changes)

    async def _step(self, opening: prompts.Messages) -> Finding | None:
        """Take one step. Return the finding if the model finalised."""
        choices = self.choices()
        reply = ""
        try:
            reply = await self._reply(opening, choices)
            chosen = parse(reply, choices)
        except RefusedAction as refused:
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
        """Return the model's next reply, with observations reduced to keys, oldest first, until the prompt fits."""
        for folded in range(len(self.steps) + 1):
            try:
                reply = await self.model.generate(
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
                return reply.text
        raise AssertionError("unreachable: the last round returns or raises")

    def messages(self, opening: prompts.Messages, folded: int = 0) -> prompts.Messages:
        """Return the conversation so far. The first `folded` steps contain only the keys of their observations."""
        taken = [
            replace(step, shown="(see the snapshot)") if place < folded and step.snapshot else step
            for place, step in enumerate(self.steps)
        ]
        return (*opening, *(message for step in taken for message in prompts.step_taken(step)))

    async def _observed(self, reply: str, action: Action) -> Step:
        tool = next(tool for tool in self.tools if tool.name == action.tool)
        deadline = tool.deadline if isinstance(tool, Expert) else TOOL_DEADLINE
        shows = not isinstance(tool, Expert) and tool.name not in ADVICE
        try:
            async with asyncio.timeout(deadline):
                with self.trace("execute_tool", tool.name):
                    observation = await tool.call(self._expanded(tool, action.arguments))
            if tool.name in ADVICE:
                self.snapshots.advice.append(observation)
        except (ToolUnavailable, IndexUnavailable) as error:
            observation, shows = f"{action.tool} could not be read: {error}", False
        except TimeoutError:
            observation, shows = f"{action.tool} did not answer within {deadline:.0f} s.", False
        key = self.snapshots.keep(observation or "Nothing was found.", action.call if shows else "")
        return Step(reply[:MAX_REPLY], action, self.snapshots.head(key), snapshot=key)

    def _expanded(self, tool: Tool, arguments: Mapping[str, str]) -> dict[str, str]:
        """Return the arguments with every snapshot key replaced by its observation."""
        wanted = {parameter.name for parameter in tool.parameters if parameter.snapshot}
        return {name: self.snapshots.by_key[value] if name in wanted else value for name, value in arguments.items()}

    async def _add(self, step: Step) -> None:
        self.steps.append(step)
        if self.listener:
            await self.listener(step)

    def ended(self, otherwise: Ending) -> Trajectory:
        """Return the trajectory so far. It ends with `otherwise`, unless the model has finalised."""
        return Trajectory(
            tuple(self.steps), Ending.FINALISED if self.finding else otherwise, self.finding, model=self.model.name
        )


LEAST_SAMPLES = 2  # fewer tell nothing about agreement
NOT_DRAWN = "{count} further endings not drawn"
SHARE = 0.8  # of what is left of the budget that may be spent on samples; the rest merges them


async def investigate(investigation: Investigation, incident: str) -> Trajectory:
    """Run the controller greedily; from the step at which it finalises, sample more endings and let them vote.

    A sample may take further actions before it ends (section 3.4.2). Samples are drawn until no further one could change the
    vote, at most as many as the limits allow, and as fit into what is left of the budget at the measured speed of the
    model; none if fewer than LEAST_SAMPLES do.
    """
    trajectory, model, limits = await investigation.run(incident), investigation.model, investigation.limits
    if trajectory.finding is None or not limits.samples:
        return trajectory
    count = min(limits.samples, model.replies_left(SHARE)) if not model.is_low else 0
    count = count if count >= LEAST_SAMPLES else 0
    findings = await _voting(investigation, incident, trajectory.finding, count) if count else (trajectory.finding,)
    if count < limits.samples and _votes_to_come(findings, limits.samples - len(findings) + 1):
        model.left_out[NOT_DRAWN.format(count=limits.samples - len(findings) + 1)] = None
    if not count:
        return trajectory
    elected = vote(findings)
    return replace(trajectory, finding=await _merged(elected, findings, investigation), samples=findings)


def _votes_to_come(findings: Sequence[Finding], left: int) -> int:
    """Return how many of the samples that are `left` must be drawn at least before none could change the vote."""
    causes: list[Finding] = []
    for each in findings:
        causes += [] if any(map(each.names_same, causes)) else [each]
    votes = sorted((sum(map(cause.names_same, findings)) for cause in causes), reverse=True)
    lead = votes[0] - sum(votes[1:2])
    return (left - lead) // 2 + 1 if lead <= left else 0


def vote(findings: Sequence[Finding]) -> Finding:
    """Return the finding nearest to the mean of those that name the most frequent cause (section 3.4.1).

    Findings are compared by the terms of cause and solution. Of causes that are equally frequent, the one nearest to the
    mean of all findings wins.
    """
    counted = [Counter(terms(f"{finding.root_cause}\n{finding.solution}")) for finding in findings]
    vocabulary = sorted({term for counts in counted for term in counts})
    rows = np.array([[counts[term] for term in vocabulary] for counts in counted], dtype=np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    nearness = rows @ rows.mean(axis=0)
    frequency = [sum(each.names_same(other) for other in findings) for each in findings]
    return findings[max(range(len(findings)), key=lambda place: (frequency[place], nearness[place]))]


async def _voting(investigation: Investigation, incident: str, first: Finding, count: int) -> tuple[Finding, ...]:
    """Return the first finding and those of the samples, of which at most `count` are drawn."""
    choices, findings, drawn = investigation.choices(), [first], 0
    request = replace(
        investigation.request,
        messages=investigation.messages(investigation.opening(incident)),
        schema=schema(choices),
        max_tokens=MAX_FINDING_TOKENS,
        temperature=1.0,
    )
    while wanted := min(_votes_to_come(findings, count - drawn), count - drawn):
        try:
            replies = await investigation.model.sample(replace(request, seed=request.seed + drawn), wanted)
        except (InvalidReply, ModelUnavailable, PromptTooLong):
            break
        drawn += wanted
        endings = (_ending_of(reply.text, choices, investigation, incident) for reply in replies)
        findings += [each for each in await asyncio.gather(*endings) if each is not None]
    return tuple(findings)


async def _ending_of(reply: str, choices: Choices, investigation: Investigation, incident: str) -> Finding | None:
    """Return the finding of a sample, after the actions that it takes before; None if it has none."""
    try:
        chosen = parse(reply, choices)
    except RefusedAction:
        return None
    if isinstance(chosen, Finding):
        return chosen
    if investigation.model.is_low:
        return None
    return (await investigation.branch(reply, chosen, incident)).finding


async def _merged(elected: Finding, findings: Sequence[Finding], investigation: Investigation) -> Finding:
    """Return the model's merge of the findings that name the elected cause; `elected` if there is only one or it fails.

    The merge may only repeat quotes of the findings, and names the same cause.
    """
    agreeing = [each for each in dict.fromkeys(findings) if each.names_same(elected)]
    if len(agreeing) == 1 or not investigation.model.replies_left():
        return elected
    quotes = list(dict.fromkeys(quote for each in agreeing for quote in each.evidence))
    changes = [elected.change] if elected.change else []
    form = finding_schema([elected.service], changes, quotes)
    request = replace(
        investigation.request,
        messages=prompts.aggregate(agreeing),
        schema=form,
        max_tokens=MAX_FINDING_TOKENS,
        temperature=0.0,
    )
    try:
        reply = await investigation.model.generate(request)
        merged = finding_of(elected.thought, json.loads(reply.text), form)
    except (InvalidReply, ModelUnavailable, PromptTooLong, RefusedAction, ValueError, TypeError, RecursionError):
        return elected
    kept = tuple(quote for quote in merged.evidence if quote in quotes)
    return replace(merged, evidence=kept or elected.evidence) if merged.names_same(elected) else elected
