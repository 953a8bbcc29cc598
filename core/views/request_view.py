"""The view of a request to a person, as a message with fields or as a form."""

from __future__ import annotations

from core.incidents.filing import MAX_DRAFT, MAX_TITLE
from core.model.curated import MAX_TEXT
from core.model.filing import FilingKind
from core.model.message_view import Control, Line, MessageView, Part, Picker, TextField, button, verbatim
from core.model.messages import (
    ButtonAction,
    CauseRequest,
    CorrectionRequest,
    FilingRequest,
    HandoverRequest,
    JoinRequest,
    Request,
)

ASK_WHAT_IS_RIGHT = (
    "What is the right answer? Type it below, or reply in this thread with “correct:” and the right answer. "
    "Once somebody confirms it, I answer with it."
)
WHOSE_IS_IT = "Who should own this incident? Pick the team. If you don’t know, say only why it isn’t yours, and I’ll keep looking."
CURRENT_OWNER = "Current owner: {owner}."
PICK_TEAM = "Team"
WHY_NOT_OURS = "Why (I learn from it)"
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
PICK_TARGET = "Where"
FILING_TITLE = "Title"
FILING_TEXT = "Text (Markdown)"
UPDATE_TEXT = "Text"
FILED_WITH = "A line is added below, which says that it was filed with Plumbline."
SENT_BY = "A line is added below, which says that you sent it."
RIGHT_ANSWER = "The right answer"
RIGHT_CAUSE = "The cause"
SEND = "Send"
WHAT_WAS_IT = "What was the cause? I keep it with your judgement and learn from both."
YOUR_QUESTION = "Your question"
AS_IT_STANDS = "What would you like to know? Leave it empty to ask the question that the message contains."

CHOICE, TITLE, TEXT = "choice", "title", "text"  # the names of the inputs


def request_view(request: Request) -> MessageView:
    """Return the text and the inputs of a request."""
    match request:
        case CorrectionRequest(subject):
            send = Control(SEND, ButtonAction.CORRECTION, subject)
            return _view("What is right?", ASK_WHAT_IS_RIGHT, TextField(TEXT, RIGHT_ANSWER, MAX_TEXT), buttons=(send,))
        case CauseRequest(subject):
            send = Control(SEND, ButtonAction.CAUSE_WRONG, subject)
            return _view("Wrong cause", WHAT_WAS_IT, TextField(TEXT, RIGHT_CAUSE, MAX_TEXT), buttons=(send,))
        case HandoverRequest(owner=owner, teams=teams):
            return _view(
                "Reassign",
                WHOSE_IS_IT,
                *([verbatim(CURRENT_OWNER.format(owner=owner), is_small=True)] if owner else []),
                Picker(PICK_TEAM, teams),
                TextField(TEXT, WHY_NOT_OURS, MAX_TEXT, is_optional=True),
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
                Picker(PICK_TARGET, targets, is_picked=True),
                TextField(TITLE, FILING_TITLE, MAX_TITLE, request.title, is_multiline=False),
                TextField(TEXT, UPDATE_TEXT if is_update else FILING_TEXT, MAX_DRAFT, request.text),
                Line(SENT_BY if is_update else FILED_WITH, is_small=True),
                buttons=(button(ButtonAction.SEND_UPDATE if is_update else ButtonAction.FILE, request.incident_id),),
            )


def question_view(quoted: str = "") -> MessageView:
    """Return the form for a question about a message, which it may quote."""
    return _view(
        "Ask about this",
        AS_IT_STANDS,
        *([verbatim(quoted, is_small=True)] if quoted else []),
        TextField(TEXT, YOUR_QUESTION, MAX_TEXT, is_optional=True),
    )


def _view(title: str, question: str, *fields: Part, buttons: tuple[Control, ...] = ()) -> MessageView:
    return MessageView("request", question, (Line(question), *fields), title=title, buttons=buttons)
