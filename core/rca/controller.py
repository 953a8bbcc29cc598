"""Thought, action and observation of a language model over read-only tools, again and again (RCAgent, section 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from core.model.errors import InvalidReply, ModelUnavailable, PromptTooLong, ToolUnavailable
from core.model.language_model import ModelRequest
from core.model.trajectory import Action, Ending, Finding, Step, Trajectory
from core.model_calls.prompts import rca as prompts
from core.ports import LanguageModel, Tool
from core.rca.actions import MAX_CALL_TOKENS, MAX_FINDING_TOKENS, Choices, Refused, Snapshots, call_of, parse, schema

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
            observation, was_read = f"{action.tool} gave no answer within {deadline:.0f} s.", False
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
