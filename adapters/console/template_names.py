"""Names for the templates: the wording of the product, and tests for each kind of content."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from adapters.console import static
from adapters.console.document import document_url
from adapters.console.forms import MAX_TEXT, RESOLVE
from adapters.console.payload import PersonMessage
from core.answering.answer_view import ALSO, ASK, CONFLICTING, answer_view
from core.confidence.calibrator import MIN_OUTCOMES
from core.incidents.filing import MAX_DRAFT
from core.incidents.incident_details import incident_details
from core.incidents.incident_layout import MORE, RIGHT_OR_WRONG
from core.incidents.incident_view import format_on_call, format_owner, incident_view, is_claimed
from core.model.curated import MAX_TEXT as MAX_CORRECTION
from core.model.curated import display_name
from core.model.incident import Stage
from core.model.messages import (
    ADDED_BELOW,
    ASK_WHAT_IS_RIGHT,
    BUTTON_LABELS,
    CORRECT,
    FILE_IT,
    FILING_TEXT,
    FILING_TITLE,
    I_AM_UNSURE,
    IS_IT_YOURS,
    JUDGED_BY,
    ON_CALL,
    OR,
    PICK_INCIDENT,
    PICK_TARGET,
    PICK_TEAM,
    PING,
    PROPOSED,
    WHICH_INCIDENT,
    WHOSE_IS_IT,
    WHY,
    WHY_NOT_OURS,
    AnswerMessage,
    BadgeMessage,
    ButtonAction,
    CorrectionRequest,
    DriftAlarm,
    FilingRequest,
    HandoverRequest,
    IncidentDetails,
    IncidentMessage,
    JoinRequest,
    Notice,
    OwnerPing,
    OwnerQuestion,
    ProposalMessage,
)

MAX_ITEMS = 20  # items shown of a list from outside

THANKS = {
    ButtonAction.HELPFUL: "Thanks, noted as helpful.",
    ButtonAction.WRONG: "Thanks, noted as wrong.",
    ButtonAction.ASK_A_PERSON: "A person is asked in the thread.",
    ButtonAction.OWNER_RIGHT: "Thanks, noted as the right owner.",
    ButtonAction.OWNER_WRONG: "Thanks, noted as the wrong owner.",
    ButtonAction.CAUSE_RIGHT: "Thanks, noted as the right cause.",
    ButtonAction.CAUSE_WRONG: "Thanks, noted as the wrong cause.",
    ButtonAction.SEVERITY_RIGHT: "Thanks, noted as the right severity.",
    ButtonAction.SEVERITY_WRONG: "Thanks, noted as the wrong severity.",
    ButtonAction.DUPLICATE_RIGHT: "Thanks, noted as a duplicate.",
    ButtonAction.DUPLICATE_WRONG: "Thanks, noted as no duplicate.",
    ButtonAction.TAKE_IT: "It’s yours, unless somebody was faster.",
    ButtonAction.TAKE_OVER: "It’s yours.",
    ButtonAction.HAND_OVER: "Asked in the thread.",
    ButtonAction.SEPARATE: "It is a separate incident again.",
    ButtonAction.BELONGS: "Asked in the thread.",
    ButtonAction.JOIN: "Merged.",
    ButtonAction.JOIN_SUGGESTED: "Merged.",
    ButtonAction.REASSIGN: "Thanks, reassigned.",
    ButtonAction.NOT_OURS: "Thanks, I’ll keep looking.",
    ButtonAction.DETAILS: "Shown in the thread.",
    ButtonAction.CREATE_ISSUE: "The draft is in the thread.",
    ButtonAction.PUBLISH_POSTMORTEM: "The draft is in the thread.",
    ButtonAction.FILE: "It is being filed; the thread says where.",
    ButtonAction.CORRECTION: "Thanks, proposed in the thread.",
    ButtonAction.CONFIRM: "Thanks, confirmed.",
    ButtonAction.WHY_ANSWER: "Explained in the thread.",
    ButtonAction.WHY_OWNER: "Explained in the thread.",
    ButtonAction.WHY_CAUSE: "Explained in the thread.",
}


def _is(kind: type, content: object) -> bool:
    return isinstance(content, kind)


TESTS: dict[str, Callable[[object], bool]] = {
    "person": partial(_is, PersonMessage),
    "answer": partial(_is, AnswerMessage),
    "incident": partial(_is, IncidentMessage),
    "details": partial(_is, IncidentDetails),
    "correction_request": partial(_is, CorrectionRequest),
    "handover_request": partial(_is, HandoverRequest),
    "join_request": partial(_is, JoinRequest),
    "filing_request": partial(_is, FilingRequest),
    "proposal": partial(_is, ProposalMessage),
    "badge_explanation": partial(_is, BadgeMessage),
    "owner_ping": partial(_is, OwnerPing),
    "owner_question": partial(_is, OwnerQuestion),
    "drift_alarm": partial(_is, DriftAlarm),
    "notice": partial(_is, Notice),
}

GLOBALS: dict[str, object] = {
    "static": static.url,
    "document_url": document_url,
    "verdict_labels": BUTTON_LABELS,
    "correct": CORRECT,
    "thanks": THANKS,
    "Verdict": ButtonAction,
    "Stage": Stage,
    "MIN_OUTCOMES": MIN_OUTCOMES,
    "ASK_WHAT_IS_RIGHT": ASK_WHAT_IS_RIGHT,
    "WHOSE_IS_IT": WHOSE_IS_IT,
    "PICK_TEAM": PICK_TEAM,
    "WHY_NOT_OURS": WHY_NOT_OURS,
    "WHICH_INCIDENT": WHICH_INCIDENT,
    "PICK_INCIDENT": PICK_INCIDENT,
    "FILE_IT": FILE_IT,
    "PICK_TARGET": PICK_TARGET,
    "FILING_TITLE": FILING_TITLE,
    "FILING_TEXT": FILING_TEXT,
    "ADDED_BELOW": ADDED_BELOW,
    "MAX_DRAFT": MAX_DRAFT,
    "incident_view": incident_view,
    "incident_details": incident_details,
    "view_of": lambda incident: incident_view(IncidentMessage(incident)),
    "format_owner": format_owner,
    "is_claimed": is_claimed,
    "format_on_call": format_on_call,
    "RESOLVE": RESOLVE,
    "RIGHT_OR_WRONG": RIGHT_OR_WRONG,
    "MORE": MORE,
    "PROPOSED": PROPOSED,
    "CONFLICTING": CONFLICTING,
    "ALSO": ALSO,
    "answer_view": answer_view,
    "ASK": ASK,
    "WHY": WHY,
    "JUDGED_BY": JUDGED_BY,
    "PING": PING,
    "ON_CALL": ON_CALL,
    "IS_IT_YOURS": IS_IT_YOURS,
    "OR": OR,
    "I_AM_UNSURE": I_AM_UNSURE,
    "display_name": display_name,
    "MAX_CORRECTION": MAX_CORRECTION,
    "MAX_TEXT": MAX_TEXT,
    "MAX_ITEMS": MAX_ITEMS,
}
