"""The loop of thought, action and observation of a language model over read-only tools (RCAgent, section 3).

Several endings of one investigation are sampled, and the finding is the one on which they agree (section 3.4). The loop
runs within a budget of tokens and seconds, if tools may show something that the fixed plan cannot ask for.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

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
    parse,
    schema,
)

MAX_STEPS = 15  # RCAgent, section 5.3
MAX_REPLY = 2_000  # characters kept of a reply
LAST_TRIES = 3  # attempts at a valid finding in the last step
MAX_TOKENS = 24_000  # read and written in all steps, except those from a server's cache
MAX_SECONDS = 180.0  # for all steps
ENOUGH = 0.75  # share of either budget from which only finalising is allowed
TOOL_DEADLINE = 20.0  # seconds

Listener = Callable[[Step], Awaitable[None]]  # receives every step when it is taken


@dataclass(slots=True)
class Investigation:
    """One run of the controller over one incident. `request` gives requester and urgency; its messages are replaced.

    `services` are the possible places of a cause; if empty, any text is allowed. By default, steps are decoded greedily, as in
    section 4.1.
    """

    model: LanguageModel
    tools: Sequence[Tool]
    services: tuple[str, ...]
    request: ModelRequest
    listener: Listener | None = None
    temperature: float = 0.0
    snapshots: Snapshots = field(default_factory=Snapshots)
    steps: list[Step] = field(default_factory=list[Step])
    finding: Finding | None = None  # set once the model has finalised, and kept whatever happens afterwards
    tokens: int = 0  # read and written so far
    began: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.began

    @property
    def spent(self) -> float:
        """Return the larger share of the budgets of tokens and seconds that is spent; above 1 if it is exceeded."""
        return max(self.tokens / MAX_TOKENS, self.seconds / MAX_SECONDS)

    async def run(self, incident: str) -> Trajectory:
        """Investigate until the model finalises; the last step allows nothing else. Invalid replies raise no error."""
        opening = self.opening(incident)
        try:
            while len(self.steps) < MAX_STEPS - 1 + LAST_TRIES:
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
        taken = await self._observed(reply, action)
        branch = replace(self, steps=[*self.steps, taken], listener=None)
        ended = await branch.run(incident)
        self.tokens = branch.tokens  # one budget for all
        return ended

    def opening(self, incident: str) -> prompts.Messages:
        """Return the start of every prompt of the investigation: the rules, the task, the tools and the incident."""
        return prompts.opening(incident, self.tools, MAX_STEPS)

    def choices(self) -> Choices:
        """Return the actions that may be taken at the next step."""
        last = len(self.steps) >= MAX_STEPS - 1 or self.spent >= ENOUGH
        called = {call_of(step.action) for step in self.steps if step.action and not step.fault}
        return Choices(self.tools, self.services, self.snapshots, called, must_finalise=last)

    async def _step(self, opening: prompts.Messages) -> Finding | None:
        """Take one step. Return the finding if the model finalised."""
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
        """Return the model's next reply, with observations reduced to keys, oldest first, until the prompt fits."""
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
                self.tokens += said.prompt_tokens - said.cached_tokens + said.generated_tokens
                return said.text
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
        was_read = True
        try:
            async with asyncio.timeout(TOOL_DEADLINE):
                observation = await tool.call(self._expanded(tool, action.arguments))
        except ToolUnavailable as error:
            observation, was_read = f"{action.tool} could not be read: {error}", False
        except TimeoutError:
            observation, was_read = f"{action.tool} did not answer within {TOOL_DEADLINE:.0f} s.", False
        key = self.snapshots.keep(observation or "Nothing was found.", written=not was_read)
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
        return Trajectory(tuple(self.steps), Ending.FINALISED if self.finding else otherwise, self.finding)


SAMPLES = 10  # RCAgent, section 4.1
SLOW = 60.0  # seconds of the first run above which no samples are drawn, because they would take as long again


async def investigate(investigation: Investigation, incident: str, *, samples: int = SAMPLES) -> Trajectory:
    """Run the controller greedily; from the step at which it finalises, sample more endings and let them vote.

    A sample may take further actions before it ends (trajectory-level self-consistency). Returns the finding nearest to
    all others. After a run of more than SLOW seconds, or without budget, no samples are drawn.
    """
    trajectory = await investigation.run(incident)
    hurried = investigation.seconds > SLOW or investigation.spent >= ENOUGH
    if trajectory.finding is None or samples == 0 or hurried:
        return trajectory
    findings = (trajectory.finding, *await _drawn(investigation, incident, samples))
    return replace(trajectory, finding=vote(findings), samples=findings)


def vote(findings: Sequence[Finding]) -> Finding:
    """Return the finding whose cause and solution are nearest to the mean of all by their terms (section 3.4.1).

    The paper's alternative, a merge by the model, is more similar to a reference text. But it reads all findings once
    more, and a merged quote is in no observation, so that it could not be shown as evidence.
    """
    counted = [Counter(terms(f"{finding.root_cause}\n{finding.solution}")) for finding in findings]
    vocabulary = sorted({term for counts in counted for term in counts})
    rows = np.array([[counts[term] for term in vocabulary] for counts in counted], dtype=np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return findings[int(np.argmax(rows @ rows.mean(axis=0)))]


async def _drawn(investigation: Investigation, incident: str, samples: int) -> list[Finding]:
    """Return the findings of the samples that have one."""
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
        elif (ended := await investigation.branch(reply.text, chosen, incident)).finding is not None:
            found.append(ended.finding)
    return found
