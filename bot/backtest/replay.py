"""Replay incidents as of their times, and write what would have been said beside what was right.

The export is one timeline of beginnings, ends and questions: of the past, each has only what was before it, the incidents as
they stood, those that were over, and an owner model that is fitted to these. Pages are read as they are today, and tools as far
back as they remember.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, cast

from jinja2 import Environment, PackageLoader
from markdown_it import MarkdownIt
from rich.console import Console
from rich.progress import track
from rich.prompt import Prompt

from bot.backtest.exports import Recorded, read_export
from bot.backtest.questions import (
    Answered,
    Asked,
    Kept,
    Replayed,
    answer_again,
    label_answer,
    question_figures,
    questions_in,
)
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.wiring.application import Core, ingest, open_core, redactor
from bot.wiring.ports import all_ports
from core.knowledge.retriever import Retriever
from core.model.conversation import Channel, Place, Platform
from core.model.document import DocumentKind, Passage, is_curated
from core.model.errors import ConfigurationError, IndexUnavailable
from core.model.findings import Findings, GapReason, PastIncident
from core.model.incident import Incident, IncidentState
from core.model.messages import IncidentMessage
from core.model.team import Team, current_team, team_named
from core.model.text import name_key
from core.ports import PassageIndex
from core.triage.owner_model import IncidentHistory, OwnerModel
from core.views import message_view
from handlers.common.ports import Ports
from handlers.common.stored_incident import stored_incident, update_incident
from handlers.incidents.investigate_incident import conclude_investigation, find_cause, find_owner
from handlers.incidents.open_incident import open_incident

LATER = timedelta(minutes=5)  # after its beginning, an incident is investigated
REFIT = 10  # incidents after which the owner model is fitted again
HERE, PRIVATE = Place(Platform.TERMINAL, "backtest"), Place(Platform.TERMINAL, "private")
OPEN = Channel(HERE.channel, {HERE.platform: HERE.channel})
MARKS = MarkdownIt("zero").enable(["emphasis", "backticks"])
RECORDS = (DocumentKind.INCIDENT, DocumentKind.THREAD)
UNKNOWN, NEITHER = "unknown", "neither"


class Result(Replayed):
    """One replayed incident.

    `owner` is the name of the team that was named first, `asked` those that were asked because none was sure; `causes` are the
    first two. `right_owner` and `right_cause` are None if nobody knows. `seconds` is how long it took. `findings` are those that
    the questions after it are answered from.
    """

    title: str
    started_at: datetime
    message: tuple[str, ...]
    owner: str
    asked: tuple[str, ...]
    causes: tuple[str, ...]
    known_owner: str
    known_cause: str
    right_owner: bool | None
    right_cause: bool | None
    not_read: tuple[str, ...]
    calls: int
    seconds: float
    findings: Findings = Findings()


@dataclass(frozen=True, slots=True)
class _At:
    """A clock that stands still."""

    at: datetime

    def now(self) -> datetime:
        return self.at


class _IndexAsOf:
    """An index without what was recorded or taught after a time: neither an incident nor a question may find its own end.

    Pages are read as they are today.
    """

    def __init__(self, index: PassageIndex, at: datetime) -> None:
        self._index = index
        self._at = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)

    async def read(self, passage_ids: Sequence[str], readers: frozenset[str]) -> list[Passage]:
        return self._of_then(await self._index.read(passage_ids, readers))

    async def passages_of(self, document_id: str, readers: frozenset[str]) -> list[Passage]:
        return self._of_then(await self._index.passages_of(document_id, readers))

    def _of_then(self, passages: Sequence[Passage]) -> list[Passage]:
        return [
            each
            for each in passages
            if (each.updated_at and each.updated_at < self._at)
            or not (each.kind in RECORDS or is_curated(each.document_id))
        ]


async def run_backtest(
    settings: Settings, export: Path, last: int, page: Path, out: Console, *, asks: bool
) -> tuple[list[Result], list[Answered]]:
    """Replay the `last` incidents of an export, and as many questions, and write the page. Returns the results.

    Each result is kept in a file beside the page as soon as it is there: a run that was broken off goes on after it. With
    `asks`, a person at the terminal says what the export does not. Raises MalformedInput for an unreadable export.
    """
    questions = await asyncio.to_thread(questions_in, export)
    recorded, left_out = await asyncio.to_thread(read_export, export, may_be_empty=bool(questions))
    workspace, kept = load_workspace(settings.config), page.with_suffix(".backtest.jsonl")
    config = await asyncio.to_thread(settings.config.read_text, "utf-8") if settings.config else ""
    if recorded and not workspace.teams:
        raise ConfigurationError("No owner could be right: name your teams in plumbline.yaml, and PLUMBLINE_CONFIG.")
    results = Kept(kept, Result, lambda each: _labelled(each, out) if asks else each)
    answers = Kept(kept, Answered, lambda each: label_answer(each, out) if asks else each)
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="plumbline-backtest-"))
        alone = settings.model_copy(update={"database_url": f"sqlite:///{folder}/backtest.sqlite"})
        try:
            core = await stack.enter_async_context(open_core(alone, workspace))
        except IndexUnavailable:
            alone = alone.model_copy(update={"data_dir": Path(folder), "qdrant_url": ""})
            core = await stack.enter_async_context(open_core(alone, workspace))
        if not await core.knowledge.index.count():
            out.print("The documents are read first.")
            await ingest(core)
        timeline: list[tuple[datetime, Recorded | Asked | str]] = [(one.started_at, one) for one in recorded]
        timeline += [(each.asked_at, each) for each in questions[-last:]]
        timeline += [(max(one.started_at, one.resolved_at or one.started_at), one.id) for one in recorded]
        timeline.sort(key=lambda each: each[0])  # what begins and ends at once begins first
        moments = track(timeline, "Replaying", console=out, transient=True)
        await _replay(
            moments, {one.id for one in recorded[-last:]}, _past(core, recorded), config, results, answers, core
        )
    content = page_of(results.replayed, export.name, left_out, answers.replayed)
    await asyncio.to_thread(page.write_text, content, encoding="utf-8")
    return results.replayed, answers.replayed


def _past(core: Core, recorded: Sequence[Recorded]) -> Collection[PastIncident]:
    """Return the incidents of the workspace and of the export, of which the latter hold."""
    past = {each.id: each for each in core.history.whole.incidents}
    owned = [(each.past, _team(each.owner, core.workspace.teams)) for each in recorded]
    return (
        past | {each.id: replace(each, owner=team.id) if team is not None else each for each, team in owned}
    ).values()


async def _replay(
    timeline: Iterable[tuple[datetime, Recorded | Asked | str]],
    replayed: Collection[str],
    past: Collection[PastIncident],
    config: str,
    results: Kept[Result],
    answers: Kept[Answered],
    core: Core,
) -> None:
    """Open every incident and end it, given by its id; investigate the `replayed` ones, and answer the questions, each once."""
    for at, event in timeline:
        earlier = [each for each in past if (each.resolved_at or each.started_at) < at]
        ports = _as_of(at if isinstance(event, Asked) else at + LATER, earlier, core)
        if isinstance(event, str):
            over = {"state": IncidentState.RESOLVED, "resolved_at": at}
            await update_incident(event, lambda latest, it=over: replace(latest, **it), core.store)
        elif isinstance(event, Asked):
            await answers.of(event, config, lambda digest, it=event, ports=ports: answer_again(it, digest, ports))
        else:
            await open_incident(
                event.delivery,
                store=core.store,
                places_for=lambda _, it=event: (PRIVATE if it.private else HERE,),
                new_id=lambda it=event: it.id,
                redact=redactor(core),
                spelling=core.workspace.spelling,
            )
            if event.id in replayed:
                if len(results.replayed) % REFIT == 0:
                    named = [each for each in earlier if each.owner]
                    model = await asyncio.to_thread(OwnerModel.fitted, named)
                    if model is not None:
                        await core.owner_models.save(model)
                result = await results.of(
                    event, config, lambda digest, it=event, ports=ports: _replayed(it, digest, ports)
                )
                kept = {"findings": result.findings}
                await update_incident(event.id, lambda latest, it=kept: replace(latest, **it), core.store)


async def _replayed(one: Recorded, digest: str, ports: Ports) -> Result:
    began = perf_counter()
    await find_owner(one.id, ports)
    await find_cause(one.id, ports)
    await conclude_investigation(one.id, ports.store)
    async with ports.store.transaction() as transaction:
        incident = await stored_incident(one.id, transaction)
    return _result(one, digest, incident, ports.company.teams, perf_counter() - began)


def _as_of(at: datetime, earlier: Sequence[PastIncident], core: Core) -> Ports:
    ports, history, corpus = all_ports(core), IncidentHistory(earlier), core.knowledge
    index = cast("PassageIndex", _IndexAsOf(corpus.index, at))
    retriever = Retriever(index, corpus.encoders, corpus.embedder, core.workspace.lexicon)
    knowledge = replace(ports.knowledge, index=index, retriever=retriever)
    past = replace(ports.past, history_for=history.readable_by)
    chats = replace(ports.chats, channels=(*ports.chats.channels, OPEN))
    return replace(ports, clock=_At(at), chats=chats, past=past, knowledge=knowledge)


def _team(owner: str, teams: Sequence[Team]) -> Team | None:
    """Return the team that an export means, which may call it by its name, an alias or its id."""
    return team_named(owner, teams) or current_team(owner, teams)


def _result(one: Recorded, digest: str, incident: Incident, teams: Sequence[Team], seconds: float) -> Result:
    proposal, explanation = incident.findings.owner, incident.findings.explanation
    named = proposal.owner if proposal is not None else None
    right = _team(one.owner, teams)
    causes = explanation.hypotheses[:2] if explanation is not None else ()
    services = [name_key(each.service) for each in causes]
    view = message_view(IncidentMessage(incident))
    return Result(
        id=one.id,
        digest=digest,
        title=incident.title,
        started_at=one.started_at,
        message=(view.headline, view.state, *(line.plain for line in view.lines)),
        owner=named.team_name if named is not None else "",
        asked=tuple(team.team_name for team in proposal.asked) if proposal is not None else (),
        causes=tuple(each.cause for each in causes),
        known_owner=right.name if right is not None else one.owner,
        known_cause=one.root_cause or one.cause_service,
        right_owner=None if not one.owner else named is not None and right is not None and named.team_id == right.id,
        right_cause=name_key(one.cause_service) in services if one.cause_service else None,
        not_read=tuple(f"{gap.tool}: {gap.reason}" for gap in explanation.gaps if gap.reason is not GapReason.MISSING)
        if explanation
        else (),
        calls=len(explanation.trajectory.steps)
        if explanation is not None and explanation.trajectory is not None
        else 0,
        seconds=round(seconds, 2),
        findings=incident.findings,
    )


def _labelled(result: Result, out: Console) -> Result:
    """Return the result with what a person says of it, who is asked once."""
    if result.right_owner is None:
        out.print("\n".join(result.message), markup=False)
        owner = Prompt.ask("Who owned it? (Enter: unknown)", console=out, default="", show_default=False).strip()
        is_right = name_key(owner) == name_key(result.owner) if owner else None
        result = result.model_copy(update={"known_owner": owner, "right_owner": is_right})
    if result.right_cause is None and result.causes:
        for number, cause in enumerate(result.causes, 1):
            out.print(f"{number}. {cause}", markup=False)
        label = f" It was: {result.known_cause}" if result.known_cause else ""
        choices = [*map(str, range(1, len(result.causes) + 1)), NEITHER, UNKNOWN]
        answer = Prompt.ask(f"Which was the cause?{label}", console=out, choices=choices, default=UNKNOWN)
        if answer != UNKNOWN:
            result = result.model_copy(update={"right_cause": answer != NEITHER})
    return result


def figures_of(results: Sequence[Result]) -> dict[str, int | float]:
    """Return the counts of the page: of owners and causes that somebody knows, and what it took."""
    owners = [each for each in results if each.right_owner is not None]
    causes = [each for each in results if each.right_cause is not None]
    named = [each for each in owners if each.owner]
    return {
        "incidents": len(results),
        "owners_known": len(owners),
        "owners_named": len(named),
        "owners_right": sum(each.right_owner is True for each in named),
        "owners_among_asked": sum(not each.owner and each.known_owner in each.asked for each in owners),
        "causes_known": len(causes),
        "causes_named": sum(bool(each.causes) for each in results),
        "causes_right": sum(each.right_cause is True for each in causes),
        "calls": sum(each.calls for each in results),
        "seconds": round(sum(each.seconds for each in results), 1),
    }


def page_of(results: Sequence[Result], export: str, left_out: Sequence[str], answers: Sequence[Answered] = ()) -> str:
    """Return the page in HTML, the newest incident first."""
    pages = Environment(loader=PackageLoader("bot.backtest", "."), autoescape=True, trim_blocks=True)
    not_read = Counter(gap for each in results for gap in set(each.not_read)).most_common()
    return pages.get_template("page.html").render(
        results=sorted(results, key=lambda each: each.started_at, reverse=True),
        figures=figures_of(results) | question_figures(answers),
        export=export,
        left_out=left_out,
        not_read=not_read,
        answers=answers[::-1],
        marks=MARKS,  # it escapes all else
    )


def print_figures(
    results: Sequence[Result], answers: Sequence[Answered], page: Path, say: Callable[[str], None]
) -> None:
    """Print the figures of the page in a few lines."""
    seen = figures_of(results) | question_figures(answers)
    say(f"{seen['incidents']} incidents replayed as of their times, in {seen['seconds']} s.")
    say(
        f"Right owner first: {seen['owners_right']} of {seen['owners_named']} that were named, of {seen['owners_known']} known."
    )
    say(
        f"Right cause among two: {seen['causes_right']} of {seen['causes_known']} known; a cause was named for {seen['causes_named']}."
    )
    if answers:
        say(
            f"{seen['questions']} questions: something shown for {seen['shown']}, told as the answer for {seen['sure']}; of "
            f"{seen['judged']} that somebody judged, the answer was among three for {seen['among_three']}."
        )
    say(f"Each of them, with what would have been said: {page}")
