"""What could come in at each door: what the senders really send, changed in places; and nonsense of every kind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any
from urllib.parse import quote, urlencode

from hypothesis import strategies as st

from tests.fakes import slack_api
from tests.fakes.monitoring_systems import SYSTEMS, MonitoringSystem
from tests.fakes.teams_connector import BOT, CHANNEL, MENTION, PERSONAL_CHAT, TENANT
from tests.scenario import webhooks

Payload = dict[str, Any]

LARGE = 2_000  # characters of what is not made larger still

MOMENTS = [
    "9999-12-31T23:59:59Z",
    "0001-01-01T00:00:00Z",
    "1969-12-31T23:59:59.999Z",
    "2026-03-14T09:30:00+23:59",
    "-0001-01-01T00:00:00Z",
    "999999999999.999999999",
    "0.0",
    "-1.5",
    "1e308",
    "NaN",
    "inf",
    "2026-02-30T00:00:00Z",
]
TEXTS = [
    "",
    "\x00",
    "\ud800",
    "💩" * 50,
    "a" * 5_000,
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "<!channel> <@U1> <https://evil.example|x>",
    "${jndi:ldap://x}",
    "' OR 1=1 --",
    "\u202eabc",
    "{{ 7 * 7 }}",
    "correct: x",
    "root cause: x",
    "help",
    "silence till for 99999999999999d",
    "٣٤٥",
]
NUMBERS = [0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, 1e308, -0.0, 0.1]

plain = st.text(max_size=30)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True)
    | plain
    | st.sampled_from([*MOMENTS, *TEXTS, *NUMBERS])
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain, inner, max_size=4), max_leaves=8
)


def _paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where something stands in a payload."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(each for key, child in inner for each in _paths(child, (*path, key)))]


def _at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


@st.composite
def changed(draw: st.DrawFn, payloads: st.SearchStrategy[Any]) -> Any:
    """A payload with up to three things in it replaced, removed, repeated, renamed or nested."""
    payload = deepcopy(draw(payloads))
    for _ in range(draw(st.integers(0, 3))):
        *path, last = draw(st.sampled_from([each for each in _paths(payload) if each] or [(None,)]))
        if last is None:
            return payload
        holder = _at(payload, tuple(path))
        match draw(st.sampled_from(["replace", "remove", "nest", "repeat", "rename"])):
            case "replace":
                holder[last] = draw(values)
            case "remove":
                del holder[last]
            case "nest":
                holder[last] = [holder[last]]
            case "repeat" if isinstance(holder, list) and len(_json(holder)) < LARGE:
                holder.extend([holder[last]] * draw(st.integers(1, 200)))
            case "repeat" if isinstance(holder[last], str) and len(holder[last]) < LARGE:
                holder[last] *= draw(st.integers(1, 100))
            case _ if isinstance(holder, dict):
                holder[draw(plain)] = holder.pop(last)
            case _:
                holder[last] = draw(values)
    return payload


@st.composite
def spoilt(draw: st.DrawFn, bodies: st.SearchStrategy[bytes]) -> bytes:
    """Mostly the body itself; else cut, with bytes put in, or something else altogether."""
    body = draw(bodies)
    match draw(st.sampled_from(["", "", "", "", "", "cut", "insert", "double", "nonsense"])):
        case "cut":
            return body[: draw(st.integers(0, len(body)))]
        case "insert":
            at = draw(st.integers(0, len(body)))
            return body[:at] + draw(st.binary(min_size=1, max_size=8)) + body[at:]
        case "double":
            return body + body
        case "nonsense":
            return draw(st.binary(max_size=200) | values.map(_json))
        case _:
            return body


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()  # half characters are escaped, NaN is written as such


def _encoded(payloads: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return spoilt(changed(payloads).map(_json))


# --- webhooks --------------------------------------------------------------------------------------------------------


def _story(system: type[MonitoringSystem]) -> st.SearchStrategy[Any]:
    """Everything that a system may tell of one of a few incidents."""
    steps: list[Callable[[MonitoringSystem], Payload]] = [
        system.fire,
        system.fire,
        system.update,
        system.acknowledge,
        system.resolve,
        system.test,
    ]
    known = [step for step in steps if _can(system, step)]
    return st.builds(lambda number, step: step(system(f"INC{number}")), st.integers(1, 20), st.sampled_from(known))


def _can(system: type[MonitoringSystem], step: Callable[[MonitoringSystem], Payload]) -> bool:
    try:
        step(system())
    except NotImplementedError:
        return False
    return True


def _alertmanager() -> st.SearchStrategy[Any]:
    alerts = st.builds(
        lambda number, resolved: webhooks.alert(f"a{number}", resolved=resolved), st.integers(0, 9), st.booleans()
    )
    groups = st.integers(0, 20).map("group {}".format)
    return st.builds(lambda group, several: webhooks.delivery(group, *several), groups, st.lists(alerts, max_size=4))


WEBHOOKS: dict[str, tuple[str, st.SearchStrategy[bytes]]] = {
    "Alertmanager": ("alertmanager", _encoded(_alertmanager())),
    **{system.__name__: (system.source, _encoded(_story(system))) for system in SYSTEMS},
}
"""Name → the source, and what it may send."""


# --- Slack -----------------------------------------------------------------------------------------------------------

FORM = "application/x-www-form-urlencoded"
_posted = {"channel": slack_api.CHANNEL, "ts": "1773480600.000200", "text": "x", "type": "message"}


def _button(action: str, value: str) -> Payload:
    return slack_api.button_press({"type": "button", "action_id": action, "value": value}, _posted)


SLACK_EVENTS = [
    slack_api.event_callback(slack_api.mention()),
    slack_api.event_callback(slack_api.message("what is open?", channel=slack_api.DIRECT, channel_type="im")),
    slack_api.event_callback(
        {
            "type": "message",
            "subtype": "message_deleted",
            "channel": slack_api.CHANNEL,
            "deleted_ts": "1773480600.000100",
            "ts": "1773480601.000100",
            "previous_message": slack_api.mention(),
        }
    ),
    slack_api.event_callback(
        {
            "type": "message",
            "subtype": "message_changed",
            "channel": slack_api.CHANNEL,
            "ts": "1773480601.000100",
            "message": slack_api.mention() | {"edited": {"user": slack_api.PERSON, "ts": "1773480601.000000"}},
            "previous_message": slack_api.mention(),
        }
    ),
    slack_api.event_callback(
        {
            "type": "reaction_added",
            "user": slack_api.PERSON,
            "reaction": "+1",
            "item": {"type": "message", "channel": slack_api.CHANNEL, "ts": "1773480600.000200"},
            "item_user": slack_api.BOT_USER,
            "event_ts": "1773480601.000100",
        }
    ),
    slack_api.event_callback({"type": "app_home_opened", "user": slack_api.PERSON, "channel": "D1", "tab": "home"}),
    slack_api.event_callback({"type": "assistant_thread_started", "assistant_thread": {"user_id": slack_api.PERSON}}),
    {"type": "url_verification", "token": "x", "challenge": "y"},
]
SLACK_FORMS: list[Mapping[str, Any]] = [
    slack_api.slash_command("how do I roll back a canary?"),
    slack_api.slash_command("status"),
    {"payload": _button("plumbline:helpful", "answer-1")},
    {"payload": _button("plumbline:reassign", "incident-1")},
    {
        "payload": {
            "type": "view_submission",
            "user": {"id": slack_api.PERSON},
            "view": {"id": "V1", "state": {"values": {}}},
        }
    },
    {"payload": {"type": "message_action", "callback_id": "ask", "user": {"id": slack_api.PERSON}, "message": _posted}},
    {"payload": {"type": "shortcut", "callback_id": "ask", "user": {"id": slack_api.PERSON}}},
]


def _form(fields: Any) -> bytes:
    if not isinstance(fields, dict):
        return _json(fields)
    flat = {str(name): value if isinstance(value, str) else json.dumps(value) for name, value in fields.items()}
    return urlencode(flat, errors="surrogatepass").encode()


@st.composite
def slack_requests(draw: st.DrawFn) -> tuple[bytes, dict[str, str]]:
    """A body and the headers with which Slack would sign it."""
    if draw(st.booleans()):
        body, kind = draw(_encoded(st.sampled_from(SLACK_EVENTS))), "application/json"
    else:
        body, kind = draw(spoilt(changed(st.sampled_from(SLACK_FORMS)).map(_form))), FORM
    signed = slack_api.signed(body.decode("utf-8", "replace"), time.time())
    return body, {"Content-Type": kind} | signed


# --- Teams -----------------------------------------------------------------------------------------------------------

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
teams_bodies = _encoded(st.sampled_from(TEAMS_ACTIVITIES))


# --- the local page --------------------------------------------------------------------------------------------------

FORMS: dict[str, list[Payload]] = {
    "/console/messages": [
        {"channel": "help", "text": "how do I roll back a canary?"},
        {"channel": "help", "thread": "1"},
    ],
    "/console/feedback": [
        {"verdict": "helpful", "message": "1", "page": "/"},
        {"verdict": "reassign", "message": "1", "choice": "payments", "text": "x"},
        {"verdict": "take-it", "incident": "none"},
    ],
    "/console/dead-letters": [{"intent": "incident:none"}],
    "/console/replays": [{"name": "none", "page": "/"}],
    "/console/login": [{"token": "one-token-for-every-door", "page": "/sources"}, {"page": "//evil.example"}],
}
forms = st.sampled_from(list(FORMS)).flatmap(
    lambda path: st.tuples(st.just(path), spoilt(changed(st.sampled_from(FORMS[path])).map(_form)))
)

PAGES = [
    "/",
    "/incidents",
    "/incidents/{}",
    "/incidents/{}/postmortem",
    "/incidents/{}/postmortem.md",
    "/sources",
    "/documents/{}",
    "/predictions",
    "/audit",
    "/gallery",
    "/dead-letters",
    "/console/messages.json",
    "/console/static/{}",
    "/healthz",
    "/{}",
    "/webhooks/{}",
]
QUERY = ["channel", "before", "after", "kind", "outcome", "quote", "act", "incidents", ""]
words = plain | st.sampled_from([*TEXTS, "help", "vault", "handbook/release/canary.md", "1", "9" * 30])


@st.composite
def addresses(draw: st.DrawFn) -> str:
    path = draw(st.sampled_from(PAGES)).format(_quoted(draw(words)))
    query = draw(st.dictionaries(st.sampled_from(QUERY) | plain, words, max_size=3))
    pairs = "&".join(f"{_quoted(name)}={_quoted(value)}" for name, value in query.items())
    return f"{path}?{pairs}" if pairs else path


def _quoted(word: str) -> str:
    return quote(word[:500], safe="", errors="surrogatepass")


# --- headers ---------------------------------------------------------------------------------------------------------

_header_texts = st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f"), max_size=60)
headers = st.dictionaries(
    st.sampled_from(
        [
            "Authorization",
            "Content-Type",
            "Content-Encoding",
            "Origin",
            "Sec-Fetch-Site",
            "Cookie",
            "X-Slack-Signature",
            "X-Slack-Request-Timestamp",
            "X-PagerDuty-Signature",
            "Sentry-Hook-Signature",
            "X-Grafana-Alerting-Signature",
            "X-Forwarded-Proto",
            "Last-Event-ID",
            "Accept-Encoding",
            "Range",
        ]
    ),
    _header_texts
    | st.sampled_from(
        ["gzip", "deflate", "br", "identity", "application/json", FORM, "Bearer ", "Basic Og==", "v1=00"]
    ),
    max_size=5,
)
