"""Answer questions about owners, dependencies, on-call rotas, changes, incidents and runbooks from the workspace's own records."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

import structlog

from core.answering.caveats import OwnershipLine, claims, names_page, pages_titled
from core.answering.find import RETRIEVED, read_as
from core.answering.lookup import RECENT, Fact, Lookup, Names, known_services, lookup, may_be_recorded
from core.answering.statements import cited
from core.incidents.readable import visible
from core.incidents.runbook import RunbookSearch
from core.model.answer import RECORDS, Answer, Citation, Sentence
from core.model.badge import Evaluation
from core.model.conversation import PUBLIC, Question
from core.model.errors import ToolUnavailable
from core.model.incident import Incident
from core.model.messages import ON_CALL_UNKNOWN
from core.model.team import Team, team_named
from core.ports import Change, ChangeReader, TimeWindow
from core.rca.dependencies import callees
from handlers.common.ports import Chats, Company, Ports
from handlers.incidents.ping_owner import find_on_call
from handlers.incidents.suggestions import runbook_of

VERSION = "records-1"  # stored with every prediction
CERTAIN = Evaluation(1.0, 1.0)
DOUBTFUL = Evaluation(0.5, 0.5)  # for a misspelt name, an unread word, or a thing that is found by its words

DEADLINE = 8.0  # seconds per change system
MAX_SHOWN = 6  # changes or incidents shown
MAX_OWNERS = 3  # teams that are named for one thing
MAX_TEAMS = 12  # teams whose on-call people are listed
MAX_DETAIL = 300  # characters per change
LOOKED_AT = 50  # latest incidents searched
DAYS_AHEAD = 14  # searched for the next person on call
CONFIGURATION = "plumbline.yaml"

log = structlog.get_logger()


async def requested_record(question: Question, ports: Ports) -> Lookup | None:
    """Return the record that a question asks for; None if the documents should answer it."""
    names = Names(known_services(ports.company.teams, ports.company.dependencies), ports.company.teams)
    if not may_be_recorded(question.text, names):
        return None  # before incidents are read, since most questions ask for a document
    alerts = frozenset(alert.name for each in await _seen(question, ports) for alert in each.alerts)
    return lookup(question.text, question.history, replace(names, alerts=alerts), question.asked_at)


async def _seen(question: Question, ports: Ports) -> list[Incident]:
    """Return the latest incidents that the audience of a question may see."""
    async with ports.store.transaction() as transaction:
        recent = await transaction.incidents.recent(LOOKED_AT)
    return visible(recent, question.audience, await ports.chats.channels_of(recent))


async def answer_from_records(question: Question, wanted: Lookup, ports: Ports) -> tuple[Answer, Evaluation] | None:
    """Return the answer with its evaluation; None if the records lack it, or this audience may not read it.

    Teams, rotas and changes require an audience of workspace members, an incident requires that the audience may see
    it, and a runbook that it may read it. Raises IndexUnavailable.
    """
    if wanted.fact not in (Fact.RUNBOOK, Fact.INCIDENTS) and PUBLIC not in question.audience.readers:
        return None
    findings = await _READ[wanted.fact](wanted, question, ports)
    if findings is None:
        return None
    notes = (
        read_as(dict(wanted.respelt)),
        f"I did not understand “{wanted.unread}”." if wanted.unread else "",
        findings.note,
    )
    answer = Answer(
        question.id,
        question.text,
        tuple(findings.sentences),
        tuple(findings.citations),
        RECORDS,
        note=" ".join(filter(None, notes)),
        tentative=findings.doubtful or any(notes),
    )
    return answer, DOUBTFUL if answer.tentative else CERTAIN


async def facts_about(service: str, question: Question, ports: Ports) -> list[str]:
    """Return who owns a service and its latest change, a sentence each; empty if this audience may not read it."""
    answers = await asyncio.gather(
        *(answer_from_records(question, Lookup(each, service=service), ports) for each in (Fact.OWNER, Fact.CHANGES))
    )
    return [answer.sentences[0].text for answer, _ in filter(None, answers)]


@dataclass(slots=True)
class _Findings:
    """Sentences of an answer, with their citations. If `doubtful`, they may not say what was asked."""

    sentences: list[Sentence] = field(default_factory=list[Sentence])
    citations: list[Citation] = field(default_factory=list[Citation])
    note: str = ""
    doubtful: bool = False

    def add(self, text: str, title: str, quote: str = "", heading: str = "", url: str = "") -> _Findings:
        """Return itself with one more sentence, which has a citation of its record."""
        citation = Citation(len(self.citations) + 1, title, "", title, heading, "", url, quote)
        self.citations.append(citation)
        self.sentences.append(Sentence(text, (citation.number,)))
        return self


def _team(wanted: Lookup, company: Company) -> Team | None:
    return next((each for each in company.teams if wanted.team == each.id or (wanted.service in each.services)), None)


async def _owner(wanted: Lookup, question: Question, ports: Ports) -> _Findings | None:
    if wanted.claimed:
        return await _owner_of_thing(wanted.claimed, question, ports)
    team = _team(wanted, ports.company)
    if team is None or (wanted.team and not team.services):
        return None
    owned = _listed([wanted.service] if wanted.service else sorted(team.services))
    return _Findings().add(
        f"{team.name} owns {owned}.{_reached(team, ports.chats)}",
        ports.company.origins.get(wanted.service, CONFIGURATION),
        f"{team.name}: {', '.join(sorted(team.services))}",
        "Services of teams",
    )


async def _dependencies(wanted: Lookup, _: Question, ports: Ports) -> _Findings:
    """Return the services that call those of a service or team, or that they call; with a doubt if none is stated."""
    team = _team(wanted, ports.company)
    own = {wanted.service} if wanted.service else team.services if team else {wanted.claimed}
    if wanted.fact is Fact.CALLERS:
        related = {caller for caller, called in ports.company.dependencies.items() if not own.isdisjoint(called)}
    else:
        related = {called for service in own for called in ports.company.dependencies.get(service, ())}
    others = sorted(related - own)
    named = wanted.service or wanted.claimed or (team.name if team else "")
    text = f"{CONFIGURATION} states no dependency of this kind for {named}."
    if others:
        subjects, objects = (others, [named]) if wanted.fact is Fact.CALLERS else ([named], others)
        text = f"{_listed(subjects)} {'calls' if len(subjects) == 1 else 'call'} {_listed(objects)}."
    return _Findings(doubtful=not others).add(text, CONFIGURATION, "", "Dependencies")


def _reached(team: Team | None, chats: Chats) -> str:
    """Return a sentence on the channel of a team, if it has a public one."""
    public = {channel.name for channel in chats.channels if not channel.private}
    return f" Reach them in #{team.channel}." if team is not None and team.channel in public else ""


async def _owner_of_thing(thing: str, question: Question, ports: Ports) -> _Findings | None:
    """Return who owns a thing that is no service, by the file that says so; None if none does."""
    ranked = claims(thing, ports.company.teams)
    page = await _page_owner(thing, question, ports)
    if page is not None and (names_page(thing) or not ranked):
        return page
    return _code_owners(thing, ports.company) or _claimed(ranked, ports)


async def _on_call_for_thing(wanted: Lookup, question: Question, ports: Ports) -> _Findings | None:
    """Return who is on call for what the document of a single team says that it owns, with a doubt."""
    own = [claim for claim in claims(wanted.claimed, ports.company.teams) if claim.is_own]
    teams = [team for team in ports.company.teams if team.name in {claim.owner for claim in own}]
    duty = replace(wanted, claimed="", team=teams[0].id) if len(teams) == 1 else None
    if duty is None or (findings := await _on_call(duty, question, ports)) is None:
        return None
    findings.doubtful = True
    return findings.add(own[0].sentence, f"{own[0].author}: what it owns", own[0].line)


def _claimed(ranked: Sequence[OwnershipLine], ports: Ports) -> _Findings | None:
    """Return the best lines of team documents, one for each owner that they name."""
    by_owner = {claim.owner: claim for claim in reversed(ranked) if claim.is_own is ranked[0].is_own}
    if not by_owner or len(by_owner) > MAX_OWNERS:
        return None
    findings = _Findings(doubtful=True)
    for claim in sorted(by_owner.values(), key=ranked.index):
        findings.add(
            f"{claim.sentence}{_reached(team_named(claim.owner, ports.company.teams), ports.chats)}",
            f"{claim.author}: what it owns",
            claim.line,
        )
    return findings


async def _page_owner(thing: str, question: Question, ports: Ports) -> _Findings | None:
    """Return the owner of the page with these words in its title; None if there is none, or several have other owners."""
    ranked = await ports.knowledge.retriever.retrieve(thing, question.audience, RETRIEVED)
    named = pages_titled(thing, [each.passage for each in ranked])
    if len({page.owner for page in named}) != 1:
        return None
    team = team_named(named[0].owner, ports.company.teams)
    owner = team.name if team else named[0].owner
    statement = f"The page “{named[0].title}” belongs to {owner}.{_reached(team, ports.chats)}"
    return _Findings([Sentence(statement, (1,))], [cited(1, named[0], "", 0, "")], doubtful=not names_page(thing))


def _code_owners(thing: str, company: Company) -> _Findings | None:
    """Return the owners of a path that a question names, by CODEOWNERS; None if no rule applies to it."""
    findings = _Findings()
    for path in (word for word in thing.split() if "/" in word):
        for rule in (rule for code in company.code for rule in code.rules_for_traced(path)):
            teams = [team for team in company.teams if team.id in rule.owners]
            if teams:
                owners = _listed([team.name for team in teams])
                findings.add(
                    f"The code in `{path}` belongs to {owners}.",
                    "CODEOWNERS",
                    f"{rule.pattern} {' '.join(rule.owners)}",
                )
    return findings if findings.sentences else None


async def _on_call(wanted: Lookup, question: Question, ports: Ports) -> _Findings | None:
    if wanted.claimed:
        return await _on_call_for_thing(wanted, question, ports)
    now, company = question.asked_at, ports.company
    team = _team(wanted, company)
    if team is None:
        return await _all_on_call(wanted, now, company) if not (wanted.service or wanted.team) else None
    people, unknown, schedule = await _duty(team, wanted, now, company)
    of = f"{team.name} (owner of {wanted.service})" if wanted.service and wanted.service != team.id else team.name
    at = f" on {wanted.window.start:%A %Y-%m-%d}" if wanted.window else ""
    if unknown:
        return _Findings().add(f"On call for {of}{at}: {ON_CALL_UNKNOWN.format(name=unknown)}.", schedule)
    if not people and not team.rota:
        return None
    statement = f"On call for {of}{at}: {_in_order(people) or 'nobody'}"
    if team.rota and schedule == CONFIGURATION and not at:
        until = team.rota.next_turn(now)
        statement += f" until {_moment(until)}, then {_in_order(team.rota.on_duty(until))}"
    elif wanted.later and (after := await _next(team, people, now, company)):
        statement += f". Next: {after}"
    findings = _Findings().add(f"{statement}.", schedule, "", "On call")
    if at and not team.rota and schedule == CONFIGURATION and wanted.window and wanted.window.end != now:
        findings.note = f"{CONFIGURATION} lists only who is on call today."
    return findings


async def _all_on_call(wanted: Lookup, now: datetime, company: Company) -> _Findings | None:
    """Return the people on call for each team, where known."""
    duties = await asyncio.gather(*(_duty(team, wanted, now, company) for team in company.teams))
    on_call = [(team, *each) for team, each in zip(company.teams, duties, strict=True) if each[0]]
    findings = _Findings()
    for team, people, _, schedule in on_call[:MAX_TEAMS]:
        number = next((each.number for each in findings.citations if each.title == schedule), 0)
        if number:
            findings.sentences.append(Sentence(f"{team.name}: {_in_order(people)}.", (number,)))
        else:
            findings.add(f"{team.name}: {_in_order(people)}.", schedule, "", "On call")
    if len(on_call) > MAX_TEAMS:
        findings.sentences.append(
            Sentence(f"Ask for one of the other {len(on_call) - MAX_TEAMS} teams by its name.", ())
        )
    return findings if on_call else None


async def _duty(team: Team, wanted: Lookup, now: datetime, company: Company) -> tuple[tuple[str, ...], str, str]:
    """Return the people on call at the requested time, the schedule that failed (if any), and the schedule's name."""
    people, unknown = await find_on_call(team, company.schedules, wanted.window.start if wanted.window else now)
    return (
        tuple(people),
        unknown,
        next((each.name for each in company.schedules if team.id in each.teams), CONFIGURATION),
    )


async def _next(team: Team, people: Sequence[str], at: datetime, company: Company) -> str:
    """Return the next person on call by an external schedule, checked day by day; empty if unknown or unchanged."""
    if not any(team.id in each.teams for each in company.schedules if each.name != CONFIGURATION):
        return ""
    for days in range(1, DAYS_AHEAD + 1):
        others, unknown = await find_on_call(team, company.schedules, at + timedelta(days=days))
        if unknown:
            return ""
        if others and tuple(others) != tuple(people):
            return f"{_in_order(others)}, by {_moment(at + timedelta(days=days))}"
    return ""


async def _changes(wanted: Lookup, question: Question, ports: Ports) -> _Findings | None:
    if not ports.readers.changes:
        return None
    window = wanted.window or TimeWindow(question.asked_at - RECENT, question.asked_at)
    team = _team(wanted, ports.company)
    services = frozenset([wanted.service]) if wanted.service else team.services if team is not None else None
    read = await asyncio.gather(*(_read(reader, window) for reader in ports.readers.changes))
    by_id = {(change.id, change.service): change for changes in read for change in changes or ()}
    recent = sorted(by_id.values(), key=lambda change: change.at, reverse=True)
    latest = [change for change in recent if services is None or change.service in services]
    unread = [reader.name for reader, changes in zip(ports.readers.changes, read, strict=True) if changes is None]
    findings = _Findings(note=f"I could not read {_listed(unread)}." if unread else "")
    of = wanted.service or (team.name if team is not None else "")
    subject = f"of {of} " if of else ""
    span = f"between {_moment(window.start)} and {_moment(window.end)}"
    if not latest:
        findings.add(
            f"No change {subject}is recorded {span}.",
            _listed([reader.name for reader in ports.readers.changes if reader.name not in unread] or unread),
        )
        latest = [change for change in recent if change.service in callees(wanted.service, ports.company.dependencies)]
        subject = f"of what {of} depends on "
        if latest:
            findings.sentences.append(Sentence(f"What {of} depends on was changed:", ()))
    for change in latest[:MAX_SHOWN]:
        findings.add(_change(change), change.id, change.detail[:MAX_DETAIL], change.title, change.url)
    if len(latest) > MAX_SHOWN:
        findings.sentences.append(
            Sentence(f"{len(latest) - MAX_SHOWN} earlier changes {subject}are recorded {span}.", ())
        )
    return findings


async def _read(reader: ChangeReader, window: TimeWindow) -> list[Change] | None:
    try:
        async with asyncio.timeout(DEADLINE):
            return await reader.changes(window)
    except (ToolUnavailable, TimeoutError) as error:
        log.warning("changes not read", system=reader.name, reason=str(error) or "too slow")
        return None


def _change(change: Change) -> str:
    by = f" by {change.author}" if change.author else ""
    detail = change.detail[:MAX_DETAIL] + ("…" if len(change.detail) > MAX_DETAIL else "")
    return f"{_moment(change.at)}: {change.kind} of {change.service}{by}: {change.title}. {detail}".strip()


async def _incidents(wanted: Lookup, question: Question, ports: Ports) -> _Findings:
    async with ports.store.transaction() as transaction:
        opened = await transaction.incidents.latest_open(LOOKED_AT)
        recent = await transaction.incidents.recent(LOOKED_AT) if wanted.window else []
    team = next((team for team in ports.company.teams if team.id == wanted.team), None)
    services = team.services if team is not None else frozenset([wanted.service])
    past = [each for each in recent if wanted.window and wanted.window.start <= each.started_at < wanted.window.end]
    latest = {each.id: each for each in (*opened, *past)}.values()
    incidents = [
        each
        for each in visible(latest, question.audience, (await ports.chats.channels_of(latest)))
        if not services.isdisjoint({each.service, *(alert.service for alert in each.alerts)})
    ]
    findings, named = _Findings(), team.name if team is not None else wanted.service
    for incident in incidents[:MAX_SHOWN]:
        findings.add(
            f"{named}: {_incident(incident)}",
            f"incident {incident.id}",
            incident.title,
            "",
            next((alert.url for alert in incident.alerts if alert.url), ""),
        )
    if not incidents:
        findings.add(f"No open incident that this channel can see affects {named}.", "incidents of Plumbline")
    return findings


def _incident(incident: Incident) -> str:
    owner = incident.findings.likely_owner
    facts = [
        f"{incident.state_text()}, since {_moment(incident.started_at)}",
        f"owner: {owner.team_name}" if owner else "",
    ]
    return f"{incident.title} ({', '.join(filter(None, facts))})."


async def _runbook(wanted: Lookup, question: Question, ports: Ports) -> _Findings | None:
    """Return the page that an alert names, with its first action; None if no page is known."""
    name, seen = wanted.alert, await _seen(question, ports)
    urls = (alert.runbook_url for each in seen for alert in each.alerts if alert.name == name and alert.runbook_url)
    runbook = await runbook_of(RunbookSearch((name,), next(urls, "")), ports.knowledge.retriever, question.audience)
    if runbook is None:
        return None
    if runbook.citation is None:
        return _Findings().add(f"The alert {name} names {runbook.url} as its runbook.", runbook.url, url=runbook.url)
    steps = (runbook.next_action, runbook.command and f"```\n{runbook.command}\n```")
    sentences = (f"The runbook of {name} is “{runbook.citation.title}”.", *filter(None, steps))
    return _Findings([Sentence(each, (1,)) for each in sentences], [runbook.citation])


_READ: Mapping[Fact, Callable[[Lookup, Question, Ports], Awaitable[_Findings | None]]] = {
    Fact.RUNBOOK: _runbook,
    Fact.INCIDENTS: _incidents,
    Fact.CHANGES: _changes,
    Fact.CALLERS: _dependencies,
    Fact.CALLEES: _dependencies,
    Fact.OWNER: _owner,
    Fact.ON_CALL: _on_call,
}


def _in_order(people: Sequence[str]) -> str:
    first, *others = people or ("",)
    return " ".join([first, "first, then", ", then ".join(others)]) if others else first


def _listed(names: Sequence[str]) -> str:
    *others, last = names or ("",)
    return f"{', '.join(others)} and {last}" if others else last


def _moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
