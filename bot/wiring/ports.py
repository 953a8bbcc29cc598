"""The ports that handlers are called with, built from the parts of the application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import fields
from functools import partial

from bot.config.workspace import current_teams
from bot.wiring.application import Core, ingest, redactor
from core.model.conversation import Audience, Platform
from core.model.curated import SOURCE as CURATED
from core.model.messages import Home
from core.ports import FileReader, ThreadReader
from handlers.common.ports import AudienceAt, IncidentPorts, Ports, QuestionPorts, Readers, no_queue
from handlers.common.post_message import Poster
from handlers.common.show_waiting import QueuedQuestions
from handlers.questions.show_home import home_of


def incident_ports(core: Core, poster: Poster, audiences: Mapping[Platform, AudienceAt] | None = None) -> IncidentPorts:
    """Return the ports of incidents and their investigation."""
    workspace, tools = core.workspace, core.tools
    return IncidentPorts(
        store=core.store,
        poster=poster,
        clock=core.clock,
        redact=redactor(core),
        channels=workspace.channels,
        teams=workspace.teams,
        dependencies=workspace.dependencies,
        maintenance=workspace.maintenance,
        schedules=core.schedules,
        history_for=core.history.readable_by,
        audiences=audiences or {},
        public_url=core.settings.public_url,
        messages_per_minute=workspace.messages_per_minute,
        policy=workspace.policy,
        monitors=tools.monitors,
        readers=Readers(
            tools.logs,
            tools.metrics,
            tools.changes,
            workspace.dependencies,
            code=tools.code,
            toolboxes=tools.toolboxes,
            embedder=core.knowledge.chosen,
            graphs=tools.graphs,
            owners=workspace.code,
            teams=workspace.teams,
        ),
        code=workspace.code,
        owner_models=core.owner_models,
        embedder=core.knowledge.chosen,
        current_teams=partial(current_teams, workspace),
        retriever=core.knowledge.retriever,
        examined=core.examined,
        judge=core.model if workspace.two_step else None,
        targets=tuple(section.target for section in workspace.filing),
        publishers=core.publishers,
        holding=workspace.holding,
        limits=workspace.limits,
        page_models=core.page_models,
        pages=core.history.pages,
    )


def question_ports(
    core: Core,
    poster: Poster,
    threads: Mapping[Platform, ThreadReader] | None = None,
    queued: QueuedQuestions | None = None,
    audiences: Mapping[Platform, AudienceAt] | None = None,
    files: Mapping[Platform, FileReader] | None = None,
) -> QuestionPorts:
    """Return the ports of questions, commands and feedback. `queued` are the questions that wait for their work."""
    workspace = core.workspace
    incidents = incident_ports(core, poster, audiences)

    async def publish() -> None:
        await ingest(core, only=CURATED)

    return QuestionPorts(
        **{field.name: getattr(incidents, field.name) for field in fields(Ports)},
        incidents=incidents,
        retriever=core.knowledge.retriever,
        index=core.knowledge.index,
        examined=core.examined,
        help_desk=workspace.help_desk,
        changes=core.tools.changes,
        origins=workspace.origins,
        position=core.model.position if core.model else no_queue,
        threads=threads or {},
        files=files or {},
        queued=queued or QueuedQuestions(),
        settings=workspace_settings(core),
        lifetime=workspace.curated_for,
        publish=publish,
        learn=partial(core.history.catch_up, core.store),
    )


def home_pages(core: Core) -> Callable[[Sequence[str], Audience], Awaitable[Home]]:
    """Return a function that builds the home page of a person with these names, for this audience."""
    return partial(home_of, ports=question_ports(core, Poster(core.store, {})))


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
