"""The ports that handlers are called with, built from the parts of the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from bot.config.workspace import current_teams
from bot.wiring.application import Core, ingest, redactor
from core.model.conversation import Audience, Platform
from core.model.curated import SOURCE as CURATED
from core.model.messages import Home
from core.ports import AudienceAt, FileReader, Messenger, ThreadReader
from handlers.common.ports import (
    Chats,
    Company,
    FilingPorts,
    KnowledgePorts,
    Models,
    Ownership,
    PagingPorts,
    Past,
    Ports,
    Readers,
    no_queue,
)
from handlers.common.show_waiting import QueuedQuestions
from handlers.questions.show_home import home_of


def all_ports(
    core: Core,
    messengers: Mapping[Platform, Messenger] | None = None,
    *,
    audiences: Mapping[Platform, AudienceAt] | None = None,
    threads: Mapping[Platform, ThreadReader] | None = None,
    files: Mapping[Platform, FileReader] | None = None,
    queued: QueuedQuestions | None = None,
) -> Ports:
    """Return the ports of the handlers. `queued` are the questions that wait for their work."""
    workspace = core.workspace
    return Ports(
        store=core.store,
        clock=core.clock,
        redact=redactor(core),
        chats=Chats(
            channels=workspace.channels,
            messengers=messengers or {},
            audiences=audiences or {},
            openness=core.openness,
            threads=threads or {},
            files=files or {},
            public_url=core.settings.public_url,
        ),
        company=Company(
            teams=workspace.teams,
            dependencies=workspace.dependencies,
            code=workspace.code,
            schedules=core.schedules,
            maintenance=workspace.maintenance,
            origins=workspace.origins,
        ),
        readers=Readers(
            core.tools.logs,
            core.tools.metrics,
            core.tools.changes,
            workspace.dependencies,
            code=core.tools.code,
            toolboxes=core.tools.toolboxes,
            embedder=core.knowledge.chosen,
            graphs=core.tools.graphs,
            owners=workspace.code,
            teams=workspace.teams,
            monitors=core.tools.monitors,
        ),
        knowledge=_knowledge(core),
        past=Past(
            history_for=core.history.readable_by,
            reader_names=core.history.reader_names,
            learn=partial(core.history.catch_up, core.store),
        ),
        ownership=Ownership(
            owner_models=core.owner_models,
            embedder=core.knowledge.chosen,
            current_teams=partial(current_teams, workspace),
        ),
        models=Models(
            examined=core.examined,
            judge=core.model if workspace.two_step else None,
            limits=workspace.limits,
            position=core.model.position if core.model else no_queue,
        ),
        paging=PagingPorts(
            policy=workspace.policy,
            holding=workspace.holding,
            page_models=core.page_models,
            pages=core.history.pages,
            messages_per_minute=workspace.messages_per_minute,
        ),
        filing=FilingPorts(targets=tuple(section.target for section in workspace.filing), publishers=core.publishers),
        queued=queued or QueuedQuestions(),
        settings=workspace_settings(core),
    )


def _knowledge(core: Core) -> KnowledgePorts:
    async def publish() -> None:
        await ingest(core, only=CURATED)

    return KnowledgePorts(
        retriever=core.knowledge.retriever,
        index=core.knowledge.index,
        help_desk=core.workspace.help_desk,
        lifetime=core.workspace.curated_for,
        publish=publish,
    )


def home_pages(core: Core) -> Callable[[Sequence[str], Audience], Awaitable[Home]]:
    """Return a function that builds the home page of a person with these names, for this audience."""
    return partial(home_of, ports=all_ports(core))


def workspace_settings(core: Core) -> tuple[tuple[str, str], ...]:
    """Return the settings that members of the workspace may see, as names and values."""
    workspace = core.workspace
    policy = workspace.policy
    public = [f"#{channel.name}" for channel in workspace.channels if not channel.private]
    return (
        (
            "Answers",
            f"quoted from the documents; where unsure, {core.model.name} chooses"
            if core.examined and core.model
            else "quoted from the documents",
        ),
        ("Phrase an owner or a cause as a question", _threshold("below", policy.ask_below)),
        ("Ping an owner", _threshold("above", policy.ping_owner_above)),
        ("Ping two teams if no owner is clear", "yes" if policy.ping_two_when_unsure else "no"),
        ("Lifetime of a confirmed correction", f"{workspace.curated_for.days} days"),
        ("Known channels", ", ".join(public) or "none"),
        ("Settings of one channel", "say “settings” in that channel"),
        *((("Local page", core.settings.public_url),) if core.settings.public_url else ()),
    )


def _threshold(side: str, share: float | None) -> str:
    return "never" if share is None else f"{side} a badge of {100 * share:.0f} %"
