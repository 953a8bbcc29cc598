"""A secret in every restricted place of a small company, planted where the real sources and stores find it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from adapters.http import PATIENT, Token, source_server
from adapters.microsoft import graph_credentials
from adapters.slack.client import slack_client
from adapters.sources.confluence import Access, ConfluenceSource
from adapters.sources.notion import HEADERS, NotionSource
from adapters.sources.sharepoint import SharePointSource
from adapters.sources.slack_history import SlackChannelsSource
from adapters.sources.teams_history import TeamsChannelsSource
from bot.wiring.application import Core
from core.model.conversation import PUBLIC, MessageReference, Person, Place, Platform
from core.model.document import CuratedAnswer
from core.model.incident import Incident
from tests.fakes import (
    confluence_server,
    graph_server,
    notion_server,
    sharepoint_server,
    slack_api,
    slack_history_server,
    teams_connector,
)
from tests.fakes.confluence_server import FakeConfluence, Page
from tests.fakes.graph_server import FakeGraph
from tests.fakes.notion_server import FakeNotion, block, page_id
from tests.fakes.notion_server import StoredPage as NotionPage
from tests.fakes.sharepoint_server import FakeSharePoint, granted
from tests.fakes.slack_api import FakeSlack
from tests.fakes.slack_history_server import FakeSlackHistory
from tests.fakes.text_everywhere import everywhere

HELP, PAYMENTS, KEEPERS = "C0ASK", "C0PAYPRIV", "C0KEEP"
TEAMS_PRIVATE = "19:payments@thread.tacv2"
PRIVATE_THREAD = "1700000000.000100"  # in the private Slack channel
INES, MATEO, GUEST = "U0INES", "U0MATEO", "U0GUEST"
ASHA = "5c1f-asha"

YAML = f"""\
name: Lanternfish
channels:
  - {{name: help, slack: {HELP}, teams: "{teams_connector.CHANNEL}", console: help}}
  - {{name: payments, private: true, slack: {PAYMENTS}}}
  - {{name: keepers, private: true, slack: {KEEPERS}, console: vault}}
  - {{name: partners, slack: {slack_api.SHARED_CHANNEL}}}
sources:
  - {{kind: folder, name: handbook, path: documents}}
  - {{kind: past_incidents, name: incidents, path: incidents.jsonl}}
teams:
  - {{id: payments, name: Payments, services: [till], on_call: [Ada Quist]}}
  - {{id: catalogue, name: Catalogue, services: [shelf], on_call: [Bo Lindgren]}}
"""

PUBLIC_DOCUMENTS = {
    "canary.md": "# Rolling back a canary\nRun `slip rollback SERVICE` to roll back a canary within 90 seconds.",
    "vault.md": "# Keys\nThe payment vault holds the keys of the till. Its door is opened by the keepers.",
    "shipyard.md": "# Suppliers\nThe shipyard is a supplier. A merger would be announced by the board.",
    "calendar.md": "# Calendar\nSalary reviews take place every April, for the harbour team as well.",
}


@dataclass(frozen=True, slots=True)
class Canary:
    """A secret: what it is about, the word that nobody else may read, and the places that may."""

    topic: str
    word: str
    places: frozenset[str]


CANARIES = {
    "slack thread": Canary("the pass phrase of the payment vault", "zqkestrel", frozenset({PAYMENTS, "D0INES"})),
    "confluence page": Canary("the merger with the shipyard", "zqosprey", frozenset({KEEPERS, "vault"})),
    "teams channel": Canary("the refund limit of the tugboat till", "zqplover", frozenset({TEAMS_PRIVATE, "a:asha"})),
    "sharepoint file": Canary("the lease of the northern pier", "zqdotterel", frozenset({"a:asha"})),
    "notion page": Canary("the closing of the harbour kiosk", "zqavocet", frozenset({KEEPERS, "vault"})),
    "person": Canary("the salary review of the harbour team", "zqcurlew", frozenset({"D0MATEO"})),
    "past incident": Canary("the breach of the ticket database", "zqgodwit", frozenset({PAYMENTS})),
    "curated answer": Canary("the escrow account of the ferry line", "zqdunlin", frozenset({PAYMENTS})),
    "conversation": Canary("the lawsuit of the lighthouse keeper", "zqpetrel", frozenset({PAYMENTS})),
    "incident": Canary("the fraud alarm of the booking desk", "zqshrike", frozenset({PAYMENTS})),
}


def _word(name: str) -> str:
    return CANARIES[name].word


def _said(name: str) -> str:
    return f"{CANARIES[name].topic.capitalize()}: it is {_word(name)} and nobody else may know."


def people(chat: FakeSlack) -> None:
    chat.people |= {user: {"id": user} for user in (INES, MATEO)} | {GUEST: {"id": GUEST, "is_restricted": True}}
    for channel in (KEEPERS, "C0GUESTS", "G0GROUP", "C0OTHERTEAM"):
        chat.channels[channel] = {"id": channel, "is_channel": True, "is_member": True}
        chat.members[channel] = [INES, MATEO]
    chat.members["C0GUESTS"].append(GUEST)
    for channel, user in (("D0INES", INES), ("D0MATEO", MATEO), ("D0GUEST", GUEST)):
        chat.channels[channel] = {"id": channel, "is_im": True, "user": user}
    chat.messages.append({"channel": PAYMENTS, "ts": PRIVATE_THREAD, "user": INES, "text": _said("conversation")})


def workspace(folder: Path) -> Path:
    documents = folder / "company" / "documents"
    documents.mkdir(parents=True)
    for name, text in PUBLIC_DOCUMENTS.items():
        (documents / name).write_text(text, encoding="utf-8")
    head = f'---\nreaders: ["person:slack:{MATEO}"]\n---\n'
    (documents / "person.md").write_text(f"{head}# Salary {_word('person')}\n{_said('person')}", encoding="utf-8")
    rows = [_past("OLD-1", "The till is slow", "Its pool was too small."), _restricted_past()]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "company" / "incidents.jsonl").write_text(lines, encoding="utf-8")
    path = folder / "company" / "plumbline.yaml"
    path.write_text(YAML, encoding="utf-8")
    return path


def _past(incident_id: str, title: str, cause: str, **fields: object) -> dict[str, object]:
    times = {"started_at": "2026-01-01T09:00:00Z", "resolved_at": "2026-01-01T10:00:00Z"}
    known = {"id": incident_id, "title": title, "description": f"{title}. {cause}", "root_cause": cause, "fix": cause}
    return known | times | {"service": "till", "severity": "critical", "owner": "payments"} | fields


def _restricted_past() -> dict[str, object]:
    secret, text = _word("past incident"), _said("past incident")
    return _past(f"OLD-{secret}", text, text, readers=["channel:payments"], url=f"https://old.example/{secret}")


@asynccontextmanager
async def slack(core: Core) -> AsyncIterator[SlackChannelsSource]:
    async with FakeSlackHistory() as server:
        server.user(INES, "Ines Okafor", "ines")
        server.channel(PAYMENTS, f"payments-{_word('slack thread')}", private=True, members=(INES,))
        server.post(PAYMENTS, "1770000000.000100", f"Please write down {CANARIES['slack thread'].topic}.", INES)
        server.post(PAYMENTS, "1770000000.000200", _said("slack thread"), INES, thread="1770000000.000100")
        client = slack_client(slack_history_server.TOKEN, server.url, core.session, PATIENT, only_reads=True)
        yield SlackChannelsSource("slack", client, [PAYMENTS], core.clock)


@asynccontextmanager
async def confluence(core: Core) -> AsyncIterator[ConfluenceSource]:
    async with FakeConfluence(cloud=True) as server:
        title, text = f"Merger {_word('confluence page')}", f"<p>{_said('confluence page')}</p>"
        server.pages["101"] = Page("101", title, text, groups=("keepers",))
        # A page below a restricted one is as restricted, whatever it says itself.
        server.pages["102"] = Page("102", f"Annex {title}", text, ancestors=("101",))
        wiki = source_server("Confluence", server.url, core.session, Token(f"Bearer {confluence_server.TOKEN}"))
        access = Access(frozenset({PUBLIC}), {"group:keepers": frozenset({"channel:keepers"})})
        yield ConfluenceSource("wiki", wiki, server.url, ["OPS"], access)


@asynccontextmanager
async def teams(core: Core) -> AsyncIterator[TeamsChannelsSource]:
    async with FakeGraph() as server:
        server.team("team-1")
        server.channel("team-1", TEAMS_PRIVATE, f"tugboat-{_word('teams channel')}", "private")
        server.member(TEAMS_PRIVATE, ASHA, "Asha Brandt")
        server.post(TEAMS_PRIVATE, "1", f"<p>What is {CANARIES['teams channel'].topic}?</p>")
        server.post(TEAMS_PRIVATE, "2", f"<p>{_said('teams channel')}</p>", reply_to="1")
        secrets = (graph_server.TENANT, graph_server.CLIENT_ID, graph_server.CLIENT_SECRET)
        credentials = graph_credentials(*secrets, core.session, server.login_url)
        yield TeamsChannelsSource(
            "teams", source_server("Graph", server.url, core.session, credentials), {"team-1": ()}, core.clock
        )


@asynccontextmanager
async def sharepoint(core: Core) -> AsyncIterator[SharePointSource]:
    async with FakeSharePoint() as server:
        file = server.put("01LEASE", f"Pier {_word('sharepoint file')}.md", _said("sharepoint file"))
        file.permissions = [granted({"group": {"id": "board", "displayName": "Board"}})]
        server.groups["board"] = [{"@odata.type": "#microsoft.graph.user", "id": ASHA, "displayName": "Asha Brandt"}]
        secrets = (graph_server.TENANT, graph_server.CLIENT_ID, graph_server.CLIENT_SECRET)
        graph = source_server(
            "Graph", server.url, core.session, graph_credentials(*secrets, core.session, server.login_url)
        )
        graph = replace(graph, elsewhere=frozenset({server.download_host}))
        yield SharePointSource("intranet", graph, [sharepoint_server.ADDRESS], core.clock, identities={})


@asynccontextmanager
async def notion(core: Core) -> AsyncIterator[NotionSource]:
    async with FakeNotion() as server:
        title, text = f"Kiosk {_word('notion page')}", [block("paragraph", _said("notion page"))]
        server.pages[page_id("1")] = NotionPage(title, text)
        notes = source_server("Notion", server.url, core.session, Token(f"Bearer {notion_server.TOKEN}"))
        yield NotionSource("notes", replace(notes, headers=HEADERS), frozenset({"channel:keepers"}), core.clock)


async def remember(core: Core) -> None:
    """What the bot itself knows: a confirmed answer and an open incident of the private channel."""
    now = datetime.now(UTC)
    keeper = Person(Platform.SLACK, INES, f"Ines {_word('curated answer')}")
    answer = CuratedAnswer(
        id="curated-1",
        question=f"Where is {CANARIES['curated answer'].topic}?",
        text=_said("curated answer"),
        author=keeper,
        readers=frozenset({"channel:payments", f"channel:slack:{PAYMENTS}"}),
        proposed_at=now,
        confirmed_by=keeper,
        confirmed_at=now,
        expires_at=now + timedelta(days=9),
    )
    async with core.store.transaction() as transaction:
        await transaction.curated.save(answer)
        await transaction.curated.save(replace(answer, id="curated-2", confirmed_by=None, expires_at=None))
        await transaction.incidents.save(_incident(now))


def _incident(now: datetime) -> Incident:
    place = Place(Platform.SLACK, PAYMENTS)
    text = _said("incident")
    struck = everywhere(text)["details"].incident  # pyright: ignore[reportAttributeAccessIssue]
    message = MessageReference(place, PRIVATE_THREAD)
    return replace(
        struck.with_placement(place=place, message=message), id="I1", started_at=now, opened_at=now, revision=1
    )
