"""The view of every message, by its type. A renderer needs nothing else of a message."""

from __future__ import annotations

from core.answering.answer_view import answer_view
from core.incidents.incident_details import details_view
from core.incidents.incident_view import format_on_call, incident_view
from core.model import messages
from core.model.badge import BadgeExplanation
from core.model.curated import CuratedAnswer, display_name
from core.model.findings import AskedTeam
from core.model.message_view import Diagram, Line, Link, Listing, MessageView, Mood, TeamMention, button, verbatim
from core.model.messages import ButtonAction, NoticeKind
from core.views.request_view import request_view

JUDGED_BY = "Judged by:"
MEASURES = "The measures behind it"
PROPOSED = "Proposed as the answer to:"
PING = "this is very probably yours."
ON_CALL = "On call"
I_AM_UNSURE = "I’m not sure who owns it. Press “Take” or “Reassign…” above to settle it."
OPEN_LINK = "Open"  # the label of the link of a line
REFERENCE = "Reference"  # of an error, in the log
MOODS = {NoticeKind.THANKS: Mood.THANKS, NoticeKind.ERROR: Mood.ATTENTION}


def message_view(message: messages.Message | messages.Form) -> MessageView:
    """Return what a message says and offers."""
    match message:
        case messages.AnswerMessage(answer):
            return answer_view(answer)
        case messages.IncidentMessage():
            return incident_view(message)
        case messages.IncidentDetails(incident):
            return details_view(incident)
        case messages.ProposalMessage(answer):
            return _proposal(answer)
        case messages.BadgeMessage(explanation):
            return _badge_explanation(explanation)
        case messages.OwnerPing(team_name=name):
            on_call = f" {ON_CALL}: {', '.join(message.on_call)}" if message.on_call else ""
            text = (TeamMention(name, message.mention), f": {PING}{on_call}")
            return MessageView("notice", f"{name}: {PING}", (Line(verbatim=text, badge=message.badge),))
        case messages.OwnerQuestion(teams):
            return _question(teams)
        case messages.DriftAlarm():
            diagram = Diagram(message.title, message.shown, message.correct)
            return MessageView("alarm", message.text, (verbatim(message.text, mood=Mood.ATTENTION), diagram))
        case messages.Notice():
            return _notice(message)
        case _:
            return request_view(message)


def _notice(notice: messages.Notice) -> MessageView:
    stop = (button(ButtonAction.STOP, notice.stop_id),) if notice.stop_id else ()
    if notice.kind is NoticeKind.PROGRESS:
        return MessageView("notice", notice.text, (), progress=notice.text, steps=notice.steps, buttons=stop)
    mood, small = MOODS.get(notice.kind), notice.kind is NoticeKind.THANKS
    lines = [
        Line(verbatim=(text.rstrip(),), links=(Link(OPEN_LINK, url),) if url else (), mood=None if number else mood)
        for number, (text, url) in enumerate(notice.lines)
    ]
    reference = (Line(label=REFERENCE, code=notice.reference, is_small=True),) if notice.reference else ()
    listing = Listing("", tuple(lines), "lines", is_bulleted=False, is_small=small)
    return MessageView(f"notice {notice.kind}", notice.text, (listing, *reference), buttons=stop)


def _badge_explanation(explanation: BadgeExplanation) -> MessageView:
    references = [Line(links=(Link(each.title, each.url),)) for each in explanation.references]
    references += [Line(explanation.withheld)] if explanation.withheld else []
    return MessageView(
        "badge-explained",
        " · ".join((messages.WHY, *explanation.sentences)),
        (
            Listing(messages.WHY, tuple(map(verbatim, explanation.sentences)), badge=explanation.badge),
            *([Listing(JUDGED_BY, tuple(references), "references", is_small=True)] if references else []),
            *(
                [Line(label=MEASURES, verbatim=(explanation.for_experts,), is_small=True)]
                if explanation.for_experts
                else []
            ),
        ),
    )


def _proposal(answer: CuratedAnswer) -> MessageView:
    lines = tuple(Line(text) for text in answer.text.splitlines() if text.strip())
    said_by = answer.attestation or f"Said by {display_name(answer.author)}"
    return MessageView(
        "proposal",
        answer.text,
        (
            Line(f"{PROPOSED} {answer.question}", is_small=True),
            Listing("", lines, "lines", is_bulleted=False),
            verbatim(said_by, is_small=True),
        ),
        buttons=() if answer.is_confirmed else (button(ButtonAction.CONFIRM, answer.id),),
    )


def _question(teams: tuple[tuple[AskedTeam, str], ...]) -> MessageView:
    """Return the question to teams, each with its mention, or without one by name only."""
    before, after = messages.IS_IT_YOURS.split("{team}")
    text: list[str | TeamMention] = [before]
    for number, (team, mention) in enumerate(teams):
        on_call = format_on_call(team)
        text += [messages.OR] if number else []
        text += [TeamMention(team.team_name, mention), f" ({on_call})" if on_call else ""]
    names = messages.OR.join(team.team_name for team, _ in teams)
    text += [f"{after} {I_AM_UNSURE}"]
    return MessageView("notice", messages.IS_IT_YOURS.format(team=names), (Line(verbatim=tuple(text)),))
