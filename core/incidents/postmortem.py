"""Draft a postmortem from the record of an incident, and the issues that people may file from it.

Every line of a postmortem cites its evidence.

The draft adds no conclusions. If the record has no answer, the line reads “not known”.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from core.incidents.incident_view import format_duration, next_step
from core.knowledge.terms import terms
from core.model.conversation import Audience, Channel
from core.model.findings import Evidence, Explanation, TimelineEntry
from core.model.incident import FilingKind, FilingTarget, Incident, Report
from core.model.messages import ButtonAction

NOT_KNOWN = "not known"
MAX_TEXT = 600  # characters of one quoted text
MAX_ALERTS = 5  # named, the first ones
SHORT = timedelta(minutes=5)  # length of an incident below which a draft is offered only if somebody touched it

_SPECIAL = re.compile(r"([\\`*\[\]<|~&]|(?<![^\W_])_|_(?![^\W_]))")
_ADDRESS = re.compile(r"https?://[^\s<>]{1,500}")
_FIRST = re.compile(r"^([-+#>=/]|\d{1,9}(?=[.)]))")  # GitLab runs a line such as “/close” as a command


@dataclass(frozen=True, slots=True)
class Source:
    """The place where a fact is recorded. `label` and `quote` are untrusted; `url` may be empty."""

    label: str
    quote: str = ""
    url: str = ""


@dataclass(frozen=True, slots=True)
class PostmortemLine:
    """A statement and the numbers of its sources, from 1; without sources only if nothing is known."""

    text: str
    sources: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PostmortemSection:
    title: str
    lines: tuple[PostmortemLine, ...]


@dataclass(frozen=True, slots=True)
class Postmortem:
    """A draft. The sources are numbered from 1 in their order."""

    title: str
    sections: tuple[PostmortemSection, ...]
    sources: tuple[Source, ...]


def worth_a_postmortem(incident: Incident) -> bool:
    """Return whether an incident was cured and has more to report than its alerts: a cause, an owner, or a note."""
    has_cause = incident.findings.cause is not None
    owned = incident.findings.likely_owner is not None
    return incident.is_cured and (has_cause or owned or incident.resolution is not None)


def offers_postmortem(incident: Incident) -> bool:
    """Return whether a draft is offered unasked: not for an incident of less than SHORT that nobody touched."""
    touched = (
        incident.taken_by,
        incident.acknowledged,
        incident.resolution,
    )
    is_touched = any(touched) or bool(incident.hops or incident.notes or incident.filings)
    lasted = incident.resolved_at - incident.started_at if incident.resolved_at is not None else timedelta()
    return worth_a_postmortem(incident) and (is_touched or lasted >= SHORT)


def postmortem_address(incident: Incident, public_url: str) -> str:
    """Return the address of the draft on the local page; only its path if the page's address is unknown."""
    return f"{public_url.rstrip('/')}/incidents/{quote(incident.id, safe='')}/postmortem"


def draft_postmortem(incident: Incident, only: Collection[str] = ()) -> Postmortem:
    """Return the draft as far as the record goes. `only` limits it to these sections and the sources that they cite."""
    draft = _Draft(incident)
    writers = [(title, write) for title, write in _SECTIONS.items() if not only or title in only]
    written = ((title, tuple(write(draft)) or _UNKNOWN.get(title, ())) for title, write in writers)
    sections = tuple(PostmortemSection(title, lines) for title, lines in written if lines)
    return Postmortem(f"Postmortem: {incident.title}", sections, tuple(draft.sources))


def as_markdown(postmortem: Postmortem, *, filed: bool = False) -> str:
    """Return the draft as Markdown. Quoted text in it is never markup, and each line links to its evidence below.

    With `filed`, it is for another system: without its title, and with plain numbers, because not every system gives
    headings an anchor.
    """
    parts: list[str] = []
    if not filed:
        parts += [f"# {escaped(postmortem.title)}"]
        parts += ["Draft from the record of the incident. Complete it before you file it."]
    for section in postmortem.sections:
        parts += [f"## {section.title}", "\n".join(_line(line, filed=filed) for line in section.lines)]
    parts.append("## Evidence")
    for number, source in enumerate(postmortem.sources, start=1):
        parts += [f"### Evidence {number}", _source(source)]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Return plain text as one line of Markdown that shows exactly that text.

    Only characters that could be markup in their position are escaped, because people read and edit the Markdown.
    """
    visible = "".join(c for c in text[: 4 * MAX_TEXT] if c.isprintable() or c.isspace())
    line = " ".join(visible.split())
    short = line if len(line) <= MAX_TEXT else f"{line[: MAX_TEXT - 1]}…"
    return _FIRST.sub(r"\\\1", _SPECIAL.sub(r"\\\1", short)).replace("://", r"\://")


def _line(line: PostmortemLine, *, filed: bool) -> str:
    numbers = ", ".join(map(str, line.sources))
    links = " ".join(f"[{number}](#evidence-{number})" for number in line.sources)
    reference = f"(evidence {numbers})" if numbers else ""
    return f"- {escaped(line.text)} {reference if filed else links}".rstrip()


def _source(source: Source) -> str:
    address = f"\n\n<{source.url}>" if _ADDRESS.fullmatch(source.url) else ""
    quoted = f"\n\n> {escaped(source.quote)}" if source.quote.strip() else ""
    return f"{escaped(source.label)}{quoted}{address}"


@dataclass(slots=True)
class _Draft:
    incident: Incident
    sources: list[Source] = field(default_factory=list[Source])

    def summary(self) -> tuple[PostmortemLine, ...]:
        incident = self.incident
        service = f" of {incident.service}" if incident.service else ""
        return (
            self._recorded(f"{incident.severity.capitalize()} incident{service}: {incident.title}."),
            self._owner(),
        )

    def timeline(self) -> tuple[PostmortemLine, ...]:
        """Return the observed events, and those of the incident itself."""
        incident = self.incident
        explained = incident.findings.explanation.timeline if incident.findings.explanation else ()
        entries = [
            (entry.at, PostmortemLine(f"{_clock(entry.at)} {entry.text}", (self._of(entry),))) for entry in explained
        ]
        if not explained:
            alerted = PostmortemLine(f"{_clock(incident.started_at)} Alert: {incident.title}", self._alerts())
            entries.append((incident.started_at, alerted))
        entries.append((incident.opened_at, self._recorded(f"{_clock(incident.opened_at)} The alert arrived.")))
        for note in incident.notes:
            remark = PostmortemLine(
                f"{_clock(note.at)} {note.person or 'Somebody'} in the thread: {note.text}", (self._record(),)
            )
            entries.append((note.at, remark))
        if incident.resolved_at is not None:
            end = f"{incident.end.text}." if incident.is_uncured else "The last alert was resolved."
            entries.append((incident.resolved_at, self._recorded(f"{_clock(incident.resolved_at)} {end}")))
        return tuple(line for _, line in sorted(entries, key=lambda entry: entry[0]))

    def impact(self) -> tuple[PostmortemLine, ...]:
        incident = self.incident
        services = dict.fromkeys(alert.service for alert in incident.alerts if alert.service)
        lasted = format_duration(incident.resolved_at - incident.started_at) if incident.resolved_at else NOT_KNOWN
        named = f" in {', '.join(services)}" if services else ""
        return (
            PostmortemLine(f"Alerts: {incident.alert_count}{named}. They fired for: {lasted}.", self._alerts()),
            PostmortemLine(f"People and business affected: {NOT_KNOWN}."),
        )

    def cause(self) -> Iterator[PostmortemLine]:
        """Yield the cause that a person noted, then the first hypothesis, with its probability if known."""
        noted = self.incident.resolution
        if noted is not None and noted.root_cause:
            yield PostmortemLine(f"As noted by a person: {noted.root_cause}", (self._note(),))
        hypothesis = self._explanation.cause
        if hypothesis is not None:
            share = self._explanation.badge.probability if self._explanation.badge else None
            sure = f" ({share:.0%})" if share is not None else ""
            numbers = tuple(self._evidence(evidence) for evidence in hypothesis.evidence) or (self._record(),)
            yield PostmortemLine(f"Most probable{sure}: {hypothesis.cause}", numbers)
            if hypothesis.contradicting:
                against = tuple(self._evidence(evidence) for evidence in hypothesis.contradicting)
                yield PostmortemLine(f"Evidence against it: {len(against)} observed lines.", against)
            if hypothesis.responsibility is not None:
                yield PostmortemLine(f"Where to fix it: {hypothesis.responsibility}.", numbers)

    def detection(self) -> Iterator[PostmortemLine]:
        incident = self.incident
        first = min((entry for entry in self._explanation.timeline), key=lambda entry: entry.at, default=None)
        yield PostmortemLine(f"{incident.source} alerted at {_clock(incident.started_at)}.", self._alerts())
        if first is not None and first.at < incident.started_at:
            early = format_duration(incident.started_at - first.at)
            yield PostmortemLine(f"The first entry of the timeline is {early} before the alert.", (self._of(first),))
        else:
            yield PostmortemLine(f"How long it went unnoticed: {NOT_KNOWN}.")

    def went_well(self) -> Iterator[PostmortemLine]:
        incident, noted = self.incident, self.incident.resolution
        if incident.taken_by:
            yield self._recorded(f"{incident.taken_by} took it.")
        if incident.resolved_at is not None and incident.is_cured:
            lasted = format_duration(incident.resolved_at - incident.started_at)
            yield self._recorded(f"It was resolved {lasted} after it began.")
        if noted is not None and noted.fix:
            yield PostmortemLine(f"What helped, as noted by a person: {noted.fix}", (self._note(),))
        yield PostmortemLine(f"What the team thinks went well: {NOT_KNOWN}.")

    def actions(self) -> Iterator[PostmortemLine]:
        """Yield proposals from the cause and the runbook of this incident, without a person to do them."""
        step, runbook = next_step(self.incident), self.incident.findings.runbook
        if step:
            yield self._recorded(f"{step} Who: {NOT_KNOWN}.")
        if runbook is not None and runbook.citation is not None:
            source = Source(
                f"{runbook.citation.title}, {runbook.citation.heading}", runbook.citation.quote, runbook.url
            )
            command = f" Command: {runbook.command}" if runbook.command else ""
            action = f"From the runbook: {runbook.next_action}{command} Who: {NOT_KNOWN}."
            yield PostmortemLine(action, (self._cite(source),))

    def ruled_out(self) -> tuple[PostmortemLine, ...]:
        return tuple(map(self._recorded, (*self._explanation.ruled_out, *self._explanation.unchecked)))

    @property
    def _explanation(self) -> Explanation:
        return self.incident.findings.explanation or Explanation((), (), (), ())

    def _owner(self) -> PostmortemLine:
        owner = self.incident.findings.likely_owner
        noted = self.incident.resolution
        if noted is not None and noted.owner:
            return PostmortemLine(f"Owner, as noted by a person: {noted.owner}.", (self._note(),))
        return (
            self._recorded(f"Proposed owner: {owner.team_name}.") if owner else PostmortemLine(f"Owner: {NOT_KNOWN}.")
        )

    def _of(self, entry: TimelineEntry) -> int:
        """Return the source of an entry: its evidence, otherwise the alert, otherwise what the investigation read."""
        words = frozenset(terms(entry.text))
        for hypothesis in self._explanation.hypotheses:
            for evidence in hypothesis.evidence:
                if evidence.at == entry.at and not words.isdisjoint(terms(evidence.quote)):
                    return self._evidence(evidence)
        is_alert = entry.at == self.incident.started_at and self.incident.title in entry.text
        return (
            self._alerts()[0] if is_alert else self._cite(Source("What was read during the investigation", entry.text))
        )

    def _evidence(self, evidence: Evidence) -> int:
        at = f", {_clock(evidence.at)}" if evidence.at else ""
        return self._cite(Source(f"{evidence.kind.capitalize()}: {evidence.source}{at}", evidence.quote, evidence.url))

    def _alerts(self) -> tuple[int, ...]:
        numbers = [
            self._cite(Source(f"Alert {alert.name}, {_clock(alert.starts_at)}", alert.summary, alert.url))
            for alert in self.incident.alerts[:MAX_ALERTS]
        ]
        return tuple(numbers) or (self._record(),)

    def _note(self) -> int:
        noted = self.incident.resolution
        texts: Sequence[str] = (noted.root_cause, noted.fix, noted.owner) if noted else ()
        return self._cite(
            Source("The note with which the incident was closed", "; ".join(each for each in texts if each))
        )

    def _recorded(self, text: str) -> PostmortemLine:
        return PostmortemLine(text, (self._record(),))

    def _record(self) -> int:
        return self._cite(Source(f"The record of incident {self.incident.id}"))

    def _cite(self, source: Source) -> int:
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source) + 1


_SECTIONS: dict[str, Callable[[_Draft], Iterable[PostmortemLine]]] = {
    "Summary": _Draft.summary,
    "Timeline": _Draft.timeline,
    "Impact": _Draft.impact,
    "Cause": _Draft.cause,
    "Detection": _Draft.detection,
    "What went well": _Draft.went_well,
    "Actions": _Draft.actions,
    "Appendix: ruled out": _Draft.ruled_out,
}
_UNKNOWN = {
    "Cause": (PostmortemLine(f"Cause: {NOT_KNOWN}."),),
    "Actions": (PostmortemLine(f"Actions: {NOT_KNOWN}."),),
}
"""The lines of sections that are never left out, if nothing is known for them."""


def _clock(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


KINDS = {ButtonAction.CREATE_ISSUE: FilingKind.ISSUE, ButtonAction.PUBLISH_POSTMORTEM: FilingKind.POSTMORTEM}
ISSUE_SECTIONS = frozenset({"Summary", "Impact", "Cause", "Actions"})
MAX_DRAFT = 12_000  # characters; Slack takes them in six fields
MAX_TITLE = 200  # characters; Jira accepts 255
CUT = "…\n\nThe rest did not fit: see the postmortem on Plumbline’s own page."

# In other systems, these notify people, link issues or stop checks. Addresses written as links are left alone.
_REFERENCE = re.compile(
    r"(?P<kept><https?://[^\s<>]*+>)"
    r"|^[ \t]{0,3}/(?=[a-z_]{2,40}(?:\s|\Z))"  # a command to GitLab, Prow and others
    r"|[@#!](?=\w)|[&%$~](?=\d)|&(?=(?:num|commat|excl|sol);)|(?<![^\W_])(?-i:[A-Z][A-Z0-9_]{0,80}+|[Gg][Hh])-(?=\d)"
    r"|\b(?:clos|fix|resolv|implement)(?=(?:e|es|ed|ing)?\b:?\s+<?\S{0,30}:)"  # "Closes" before an address
    r"|\[(?=[^\]\n\u2060]{0,40}(?<![^\W_])(?:skip|no[ _-]?ci)(?![^\W_])[^\]\n]{0,40}\])"  # “[skip ci]”
    r"|\*\*\*(?=no_ci)|\bskip(?=-checks:)"
    r"|https?\\?:(?=//\S{1,300}?/(?:issues|pulls?|merge_requests|work_items|epics|commits?|browse|discussions)/)",
    re.IGNORECASE | re.MULTILINE,
)
_WORD_JOINER = "\u2060"  # invisible
_NO_FILE_NAME = re.compile(r"[^a-z0-9]+")


def allowed_targets(
    incident: Incident,
    kind: FilingKind,
    audience: Audience,
    targets: Sequence[FilingTarget],
    channels: Sequence[Channel],
) -> list[FilingTarget]:
    """Return the targets of a kind for an incident, in a channel with this audience.

    A target that more people can read than the incident is refused.
    """
    readers = incident.placement.audience(channels).disclosed_to
    return [
        target
        for target in targets
        if target.kind is kind and target.is_allowed_in(audience) and target.is_no_wider_than(readers)
    ]


def offered_actions(
    incident: Incident, targets: Sequence[FilingTarget], channels: Sequence[Channel]
) -> tuple[ButtonAction, ...]:
    """Return the buttons that an incident's message shows: one for each kind with an allowed target."""
    audience = incident.placement.audience(channels)
    # A message in several channels offers what is allowed in any of them; a press is checked again.
    names = frozenset(f"channel:{name}" for target in targets for name in target.channels)
    everywhere = replace(audience, readers=audience.readers | (names & audience.disclosed_to))
    return tuple(
        action
        for action, kind in KINDS.items()
        if (kind is FilingKind.ISSUE or offers_postmortem(incident))
        and allowed_targets(incident, kind, everywhere, targets, channels)
    )


def draft_report(incident: Incident, kind: FilingKind, redact: Callable[[str], str]) -> tuple[str, str]:
    """Return the title and the Markdown of a draft. Quoted text in it is neither markup nor a mention.

    `redact` is applied to each text before it is cut or escaped, because a secret would not be recognised afterwards.
    """
    is_issue = kind is FilingKind.ISSUE
    draft = draft_postmortem(incident, ISSUE_SECTIONS if is_issue else ())
    draft = _redacted(replace(draft, title=incident.title) if is_issue else draft, redact)
    title = without_links(" ".join(draft.title.split()))[:MAX_TITLE]
    return title, _without_references(as_markdown(draft, filed=True))


def without_links(title: str) -> str:
    """Return a title without references and addresses: as a commit message, "Fixes ADDRESS" would close an issue."""
    return _without_references(title).replace("://", f":{_WORD_JOINER}//")


def _without_references(text: str) -> str:
    return _REFERENCE.sub(lambda match: match[0] if match["kept"] else f"{match[0]}{_WORD_JOINER}", text)


def _redacted(draft: Postmortem, redact: Callable[[str], str]) -> Postmortem:
    sections = tuple(
        replace(section, lines=tuple(replace(line, text=redact(line.text)) for line in section.lines))
        for section in draft.sections
    )
    sources = tuple(
        Source(redact(each.label), redact(each.quote), each.url if redact(each.url) == each.url else "")
        for each in draft.sources
    )
    return Postmortem(redact(draft.title), sections, sources)


def cut_draft(text: str, limit: int) -> str:
    """Return the paragraphs that fit into `limit` characters, with a notice at the end if any are missing."""
    if len(text) <= limit:
        return text
    kept = text[: limit - len(CUT)]
    return f"{kept[: kept.rfind(chr(10) * 2)]}\n\n{CUT}" if "\n\n" in kept else f"{kept}{CUT}"


def file_stem(incident: Incident, redact: Callable[[str], str]) -> str:
    """Return a file name for an incident's postmortem, without its suffix. It is the same at every attempt."""
    words = _NO_FILE_NAME.sub("-", redact(incident.title).casefold()).strip("-")[:60].strip("-")
    own = _NO_FILE_NAME.sub("-", incident.id.casefold()).strip("-")
    return "-".join(filter(None, (f"{incident.started_at:%Y-%m-%d}", words, own)))


def markdown_file(report: Report) -> str:
    """Return the content of a file that begins with the title, which is plain text as in other systems."""
    return f"# {escaped(report.title)}\n\n{report.body}"
