"""What could come in from Teams."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.external.inbound_formats.changes import encoded
from tests.fakes.teams_connector import BOT, CHANNEL, MENTION, PERSONAL_CHAT, TENANT

_teams = {
    "type": "message",
    "id": "1700000000002",
    "channelId": "msteams",
    "serviceUrl": "http://127.0.0.1:56150/_connector",
    "from": {"id": "29:asha", "name": "Asha Brandt", "aadObjectId": "5c1f-asha"},
    "recipient": {"id": BOT, "name": "Plumbline"},
    "conversation": {"id": f"{CHANNEL};messageid=1700000000001", "conversationType": "channel", "tenantId": TENANT},
    "text": f"{MENTION} how do I roll back a canary?\n",
    "textFormat": "plain",
    "entities": [{"type": "mention", "mentioned": {"id": BOT, "name": "Plumbline"}, "text": MENTION}],
    "attachments": [
        {
            "contentType": "text/html",
            "content": '<blockquote itemtype="http://schema.skype.com/Reply"><p itemprop="preview">x</p></blockquote>',
        }
    ],
    "channelData": {"tenant": {"id": TENANT}, "channel": {"id": CHANNEL}},
}
_press = {"verdict": "helpful", "subject": "answer-1", "text": "", "choice": ""}
_personal = {"conversation": {"id": PERSONAL_CHAT, "conversationType": "personal", "tenantId": TENANT}}
TEAMS_ACTIVITIES = [
    _teams,
    _teams | _personal | {"text": "what is open?", "textFormat": "xml"},
    _teams | {"type": "message", "text": "", "value": _press},
    _teams | {"type": "invoke", "name": "adaptiveCard/action", "value": {"action": {"verb": "x", "data": _press}}},
    _teams | {"type": "invoke", "name": "task/fetch", "value": {"data": _press}},
    _teams | {"type": "messageDelete"},
    _teams | {"type": "messageUpdate", "channelData": {"eventType": "editMessage"}},
    _teams | {"type": "messageReaction", "reactionsAdded": [{"type": "like"}], "replyToId": "1700000000009"},
    _teams | {"type": "conversationUpdate", "membersAdded": [{"id": BOT}]},
    _teams | {"type": "installationUpdate", "action": "add"},
]
teams_bodies = encoded(st.sampled_from(TEAMS_ACTIVITIES))
