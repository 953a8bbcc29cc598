"""Drafts of the issues and postmortems that people may file from an incident, and the targets allowed for them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from core.incidents.postmortem import Postmortem, Source, as_markdown, draft_postmortem, escaped, offers_postmortem
from core.model.conversation import Audience, Channel
from core.model.filing import FilingKind, FilingTarget, Report
from core.model.incident import Incident, incident_audience
from core.model.messages import ButtonAction

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
    readers = incident_audience(incident, channels).disclosed_to
    return [
        target
        for target in targets
        if target.kind is kind and target.is_allowed_in(audience) and target.is_no_wider_than(readers)
    ]


def offered_actions(
    incident: Incident, targets: Sequence[FilingTarget], channels: Sequence[Channel]
) -> tuple[ButtonAction, ...]:
    """Return the buttons that an incident's message shows: one for each kind with an allowed target."""
    audience = incident_audience(incident, channels)
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
