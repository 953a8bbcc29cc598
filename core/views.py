"""The views of all messages: their texts and controls, the same for every chat.

A renderer needs nothing else of a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.answering.answer_view import answer_view
from core.incidents.incident_details import details_view
from core.incidents.incident_view import claimed_owner, format_on_call, format_owner, incident_view
from core.incidents.postmortem import MAX_DRAFT, MAX_TITLE
from core.model import messages
from core.model.badge import BadgeExplanation
from core.model.document import MAX_TEXT, CuratedAnswer, display_name
from core.model.findings import AskedTeam
from core.model.incident import FilingKind, Incident
from core.model.message_view import (
    Control,
    Line,
    Link,
    Listing,
    MessageView,
    Mood,
    Part,
    Picker,
    ReliabilityTable,
    TeamMention,
    TextField,
    button,
    verbatim,
)
from core.model.messages import (
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    HandoverRequest,
    Home,
    JoinRequest,
    KnownSource,
    NoticeKind,
    Request,
)
from core.model.text import counted, in_utc

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
            table = ReliabilityTable(message.title, message.shown, message.correct)
            return MessageView("alarm", message.text, (verbatim(message.text, mood=Mood.ATTENTION), table))
        case messages.Notice():
            return _notice(message)
        case _:
            return request_view(message)


def _notice(notice: messages.Notice) -> MessageView:
    stop = tuple(button(*each) for each in ((ButtonAction.STOP, notice.stop_id), *notice.choices) if each[1])
    if notice.kind is NoticeKind.PROGRESS:
        return MessageView("notice", notice.text, (), progress=notice.text, steps=notice.steps, buttons=stop)
    mood, small = MOODS.get(notice.kind), notice.kind is NoticeKind.THANKS
    lines = [
        Line(verbatim=(text.rstrip(),), links=(Link(OPEN_LINK, url),) if url else (), mood=None if number else mood)
        for number, (text, url) in enumerate(notice.lines)
    ]
    reference = (Line(label=REFERENCE, code=notice.reference, is_small=True),) if notice.reference else ()
    listing = Listing("", tuple(lines), "lines", is_bulleted=False, is_small=small)
    return MessageView(f"notice {notice.kind}", notice.text, (listing, *reference), buttons=stop, times=notice.times)


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


ASK_WHAT_IS_RIGHT = (
    "What is the right answer? Type it below, or reply in this thread with “correct:” and the right answer. "
    "Once somebody confirms it, I answer with it."
)
WHOSE_IS_IT = "Who should own this incident? Pick the team. If you don’t know, say only why it isn’t yours, and I’ll keep looking."
PICK_TEAM = "Team"
WHICH_INCIDENT = "Which incident should this one be merged into? That incident’s message will list this one."
PICK_INCIDENT = "Incident"
FILE_IT = {
    FilingKind.ISSUE: "Edit the draft, then file it as an issue. Nothing is written until you press “File it”.",
    FilingKind.POSTMORTEM: "Edit the draft, then publish it. Nothing is written until you press “File it”.",
    FilingKind.UPDATE: "Edit the draft and choose the channel. Nothing is sent until you press “Send”.",
}
FILING = {
    FilingKind.ISSUE: "Create issue",
    FilingKind.POSTMORTEM: "Publish postmortem",
    FilingKind.UPDATE: "Stakeholder update",
}
FILED_WITH = "A line is added below, which says that it was filed with Plumbline."
SENT_BY = "A line is added below, which says that you sent it."
SEND = "Send"
WHAT_WAS_IT = "What was the cause? I keep it with your judgement and learn from both."
AS_IT_STANDS = "What would you like to know? Leave it empty to ask the question that the message contains."

CHOICE, TITLE, TEXT = "choice", "title", "text"  # the names of the inputs


def request_view(request: Request) -> MessageView:
    """Return the text and the inputs of a request."""
    match request:
        case CorrectionRequest(subject):
            send = Control(SEND, ButtonAction.CORRECTION, subject)
            return _view(
                "What is right?", ASK_WHAT_IS_RIGHT, TextField(TEXT, "The right answer", MAX_TEXT), buttons=(send,)
            )
        case CauseRequest(subject):
            send = Control(SEND, ButtonAction.CAUSE_WRONG, subject)
            return _view("Wrong cause", WHAT_WAS_IT, TextField(TEXT, "The cause", MAX_TEXT), buttons=(send,))
        case HandoverRequest(owner=owner, teams=teams):
            return _view(
                "Reassign",
                WHOSE_IS_IT,
                *([verbatim(f"Current owner: {owner}.", is_small=True)] if owner else []),
                Picker(PICK_TEAM, teams),
                TextField(TEXT, "Why (I learn from it)", MAX_TEXT, is_optional=True),
                buttons=tuple(button(each, request.subject) for each in (ButtonAction.REASSIGN, ButtonAction.NOT_OURS)),
            )
        case JoinRequest(subject, incidents):
            join = button(ButtonAction.JOIN, subject)
            return _view("Merge", WHICH_INCIDENT, Picker(PICK_INCIDENT, incidents), buttons=(join,))
        case FilingRequest():
            is_update = request.kind is FilingKind.UPDATE
            targets = tuple((name, f"#{name}" if is_update else name) for name in request.targets)
            return _view(
                FILING[request.kind],
                FILE_IT[request.kind],
                Picker("Where", targets, is_picked=True),
                TextField(TITLE, "Title", MAX_TITLE, request.title, is_multiline=False),
                TextField(TEXT, "Text" if is_update else "Text (Markdown)", MAX_DRAFT, request.text),
                Line(SENT_BY if is_update else FILED_WITH, is_small=True),
                buttons=(button(ButtonAction.SEND_UPDATE if is_update else ButtonAction.FILE, request.incident_id),),
            )


def question_view(quoted: str = "") -> MessageView:
    """Return the form for a question about a message, which it may quote."""
    return _view(
        "Ask about this",
        AS_IT_STANDS,
        *([verbatim(quoted, is_small=True)] if quoted else []),
        TextField(TEXT, "Your question", MAX_TEXT, is_optional=True),
    )


def _view(title: str, question: str, *fields: Part, buttons: tuple[Control, ...] = ()) -> MessageView:
    return MessageView("request", question, (Line(question), *fields), title=title, buttons=buttons)


MAX_INCIDENTS = 10  # per list
MAX_SOURCES = 40
MAX_SETTINGS = 20
MINUTE = "%Y-%m-%d %H:%M"  # a form of times

MINE = "Your open incidents"
OTHERS = "Other open incidents"
KNOWN = "What I know"
SETTINGS = "Settings"
NOT_YOURS = "Only members of this workspace can see my sources and settings."


def home_view(home: Home, urls: Mapping[str, str]) -> MessageView:
    """Return the page. `urls` has the address of the message of each incident by its id."""
    return MessageView("home", "", tuple(_parts(home, urls)))


def _parts(home: Home, urls: Mapping[str, str]) -> Iterator[Part]:
    yield (
        _incidents(MINE, home.mine, urls)
        if home.mine
        else _chapter(MINE, (Line("You and your team have no open incidents."),), is_bulleted=False)
    )
    if home.others:
        yield _incidents(OTHERS, home.others, urls)
    if home.sources or home.passages:
        indexed = Line(f"{counted(home.passages, 'passage')} indexed.")
        left_out = max(0, len(home.sources) - MAX_SOURCES)
        yield _chapter(KNOWN, (indexed, *map(_source, home.sources[:MAX_SOURCES])), "sources", left_out)
    elif not home.settings:
        yield Line(NOT_YOURS, is_small=True)
    if home.settings:
        lines = tuple(verbatim(f"{name}: {value}") for name, value in home.settings[:MAX_SETTINGS])
        yield _chapter(SETTINGS, lines, "settings")
    if home.can:
        yield _chapter("What you can say to me", tuple(map(Line, home.can)), "lines")


def _chapter(
    title: str, lines: tuple[Line, ...], noun: str = "lines", left_out: int = 0, *, is_bulleted: bool = True
) -> Listing:
    return Listing(title, lines, noun, left_out=left_out, is_chapter=True, is_bulleted=is_bulleted)


def _incidents(title: str, incidents: tuple[Incident, ...], urls: Mapping[str, str]) -> Listing:
    lines = tuple(_incident(each, urls.get(each.id, "")) for each in incidents[:MAX_INCIDENTS])
    return _chapter(title, lines, "incidents", max(0, len(incidents) - MAX_INCIDENTS))


def _incident(incident: Incident, url: str) -> Line:
    owner = f"owner {format_owner(incident)}" if incident.findings.owner is not None else ""
    taken = f"taken by {incident.taken_by}" if incident.taken_by else ""
    facts = (str(incident.severity).capitalize(), taken or owner, in_utc(incident.started_at, MINUTE))
    badge = (
        incident.findings.owner.badge
        if incident.findings.owner is not None and claimed_owner(incident) is not None and not taken
        else None
    )
    return Line(
        verbatim=(" · ".join(filter(None, facts)),),
        badge=badge,
        source=Link(incident.title, url, incident.id),
        mood=Mood(incident.severity),
    )


def _source(source: KnownSource) -> Line:
    read = f"read {in_utc(source.read_at, MINUTE)}" if source.read_at is not None else "first import in progress"
    failed = "" if source.is_read else "⚠️ could not be read since"
    facts = (counted(source.documents, "document"), read, failed)
    return Line(" · ".join(filter(None, facts)), label=source.name)
