"""Plumbline's own MCP server, for the agents that plumbline.yaml names. Its SDK is loaded only if there are any."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from adapters.agents.protected_resource import resource_at
from bot.config.settings import Settings, named_secret
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, open_core
from bot.wiring.ports import all_ports
from core.model.conversation import PUBLIC, Audience, Channel, named_readers
from core.model.errors import ConfigurationError
from core.ports import AgentCaller
from handlers.questions.answer_agents import AnswerAgents

if TYPE_CHECKING:
    from adapters.agents.endpoint import AgentEndpoint


async def open_agents(core: Core, stack: AsyncExitStack) -> AgentEndpoint | None:
    """Serve MCP until the stack is closed, and return its endpoint; None if no agent is configured."""
    sections = core.workspace.agents
    if not sections:
        return None
    from adapters.agents.endpoint import AgentEndpoint

    callers = {
        named_secret(section.token_env, section.name): agent_caller(
            section.name, section.channels, core.workspace.channels
        )
        for section in sections
    }
    if len(callers) < len(sections):
        raise ConfigurationError("Two agents have the same token. Give each agent its own.")
    endpoint = AgentEndpoint(agent_tools(core), callers, core.clock, resource_at(core.settings.public_url))
    await endpoint.start(stack)
    return endpoint


def agent_caller(name: str, channels: Sequence[str], known_channels: Sequence[Channel]) -> AgentCaller:
    """Return a caller that is shown what everybody in the workspace may read, and what these channels may read."""
    readers = named_readers(channels, known_channels) | {PUBLIC}
    return AgentCaller(name, Audience(readers, readers))


def agent_tools(core: Core) -> AnswerAgents:
    """Return the tools. They use no language model: the agent has its own, and need not wait for a second one."""
    return AnswerAgents(all_ports(replace(core, model=None, examined=None)))


async def run_mcp(settings: Settings, channel: str) -> int:
    """Serve MCP on standard input and output until the input ends. `channel` as for `plumbline ask`."""
    from adapters.agents.server import agent_server

    workspace = load_workspace(settings.config)
    if channel and channel not in {each.name for each in workspace.channels}:
        raise ConfigurationError(f"There is no channel {channel} in plumbline.yaml.")
    async with open_core(settings, workspace) as core:
        if not await core.knowledge.index.count():
            sys.stderr.write("plumbline: Nothing is indexed yet. Run `plumbline ingest`.\n")
        caller = agent_caller("terminal", [channel] if channel else [], workspace.channels)
        await agent_server(agent_tools(core), caller).run_stdio_async()
    return 0
