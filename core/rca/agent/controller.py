"""The loop of thought, action and observation of a language model over read-only tools (RCAgent, section 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model.trajectory import Action, Ending, Finding, Step, Trajectory
from core.model_calls.prompts import rca as prompts
from core.ports import Tool
from core.rca.agent.actions import (
    MAX_CALL_TOKENS,
    MAX_FINDING_TOKENS,
    Choices,
    RefusedAction,
    Snapshots,
    call_of,
    parse,
    schema,
)
from core.rca.agent.budget import ENOUGH, MeteredModel
from core.rca.observation_tools import PAST_INCIDENTS

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
    snapshots: Snapshots = field(default_factory=Snapshots)
    steps: list[Step] = field(default_factory=list[Step])
    finding: Finding | None = None  # set once the model has finalised, and kept whatever happens afterwards

    async def run(self, incident: str) -> Trajectory:
        """Investigate until the model finalises; the last step allows nothing else. Invalid replies raise no error."""
        opening = self.opening(incident)
        try:
            while len(self.steps) < self.model.limits.steps - 1 + LAST_TRIES:
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
        return await replace(self, steps=[*self.steps, taken], finding=None, listener=None).run(incident)

    def opening(self, incident: str) -> prompts.Messages:
        """Return the start of every prompt of the investigation: the rules, the task, the tools and the incident."""
        return prompts.opening(incident, self.tools, self.model.limits.steps)

    def choices(self) -> Choices:
        """Return the actions that may be taken at the next step."""
        last = len(self.steps) >= self.model.limits.steps - 1 or self.model.spent >= ENOUGH
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
        shows = not isinstance(tool, Expert) and tool.name != PAST_INCIDENTS
        try:
            async with asyncio.timeout(deadline):
                observation = await tool.call(self._expanded(tool, action.arguments))
        except ToolUnavailable as error:
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
        ending = Ending.FINALISED if self.finding else otherwise
        return Trajectory(tuple(self.steps), ending, self.finding, model=self.model.name)
