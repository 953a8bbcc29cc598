"""Small worlds for the contract of knowledge sources: in each, documents come, change and go as people make them."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import aiohttp

from adapters.microsoft_graph.credentials import GraphCredentials
from adapters.rest import Rest, Token
from adapters.sources.chat_threads import ChatThreadSource
from adapters.sources.confluence import ConfluenceSource
from adapters.sources.confluence_pages import Access
from adapters.sources.folder import FolderSource
from adapters.sources.git_repository import GitRepositorySource, Repository
from adapters.sources.past_incidents import PastIncidentSource
from adapters.sources.slack_channels import SlackChannelsSource
from adapters.sources.slack_export import SlackExportSource
from adapters.sources.teams_channels import TeamsChannelsSource
from adapters.sources.teams_export import TeamsExportSource
from core.conversation import PUBLIC
from core.ports import ChangingSource, KnowledgeSource
from tests.fakes import confluence_server, graph_server, slack_history_server
from tests.fakes.clock import FakeClock
from tests.fakes.confluence_server import FakeConfluence, Page
from tests.fakes.graph_server import FakeGraph
from tests.fakes.refusals import Refusals
from tests.fakes.slack_history_server import FakeSlackHistory

CHANNEL = "C0CICD"
TEAM, TEAMS_CHANNEL, HIDDEN_CHANNEL = "team-1", "19:cicd@thread.tacv2", "19:hidden@thread.tacv2"


class World(Protocol):
    """A source, and the hands that change what it reads. A document is known by a `key` of one digit."""

    @property
    def source(self) -> KnowledgeSource | ChangingSource: ...

    def write(self, key: str, text: str) -> None:
        """Make a document, or change it, so that it holds this text."""
        ...

    def remove(self, key: str) -> None: ...

    def hide(self, key: str) -> None:
        """Let not everybody read it any more."""
        ...


class RemoteWorld(World, Protocol):
    """One behind a server that may refuse. `pauses` are those that were made, in seconds."""

    @property
    def refusals(self) -> Refusals: ...
    @property
    def pauses(self) -> list[float]: ...

    def expire_token(self) -> None: ...


class FolderWorld:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "pages"
        self.folder.mkdir()
        self.source = FolderSource("docs", self.folder)

    def write(self, key: str, text: str) -> None:
        (self.folder / f"{key}.md").write_text(f"# Page {key}\n\n{text}", encoding="utf-8")

    def remove(self, key: str) -> None:
        (self.folder / f"{key}.md").unlink()

    def hide(self, key: str) -> None:
        path = self.folder / f"{key}.md"
        path.write_text(f"---\nreaders: [channel:vault]\n---\n{path.read_text()}", encoding="utf-8")


class LinesWorld:
    """A file of JSON lines, written anew at every change."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, Any]] = {}
        self._save()

    def remove(self, key: str) -> None:
        del self.rows[key]
        self._save()

    def _save(self) -> None:
        self.path.write_text("\n".join(json.dumps(row) for row in self.rows.values()), encoding="utf-8")


class ThreadsWorld(LinesWorld):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "threads.jsonl")
        self.source = ChatThreadSource("docs", self.path)

    def write(self, key: str, text: str) -> None:
        head = {
            "id": key,
            "channel": "ci-cd",
            "readers": [PUBLIC],
            "author": "Asha Brandt",
            "at": "2026-02-01T08:00:00Z",
        }
        self.rows[key] = head | {"text": text}
        self._save()

    def hide(self, key: str) -> None:
        self.rows[key]["readers"] = ["channel:vault"]
        self._save()


class IncidentsWorld(LinesWorld):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "incidents.jsonl")
        self.source = PastIncidentSource("docs", self.path)

    def write(self, key: str, text: str) -> None:
        times = {"started_at": "2025-05-01T08:00:00Z", "resolved_at": "2025-05-01T09:00:00Z"}
        what = {"id": key, "title": f"Incident {key}", "description": text, "service": "search"}
        self.rows[key] = what | times | {"severity": "warning", "owner": "storefront"}
        self._save()

    def hide(self, key: str) -> None:
        self.remove(key)


class SlackExportWorld:
    """An archive that is exported anew at every change."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "export.zip"
        self.days: dict[str, dict[str, str]] = {"ci-cd": {}, "vault": {}}
        self.source = SlackExportSource("docs", self.path, "https://marigold.slack.example")
        self._save()

    def write(self, key: str, text: str) -> None:
        self.days["ci-cd"][key] = text
        self._save()

    def remove(self, key: str) -> None:
        del self.days["ci-cd"][key]
        self._save()

    def hide(self, key: str) -> None:
        self.days["vault"][key] = self.days["ci-cd"].pop(key)
        self._save()

    def _save(self) -> None:
        with zipfile.ZipFile(self.path, "w") as archive:
            members = {"members": ["U1"], "is_archived": False}
            archive.writestr("channels.json", json.dumps([{"id": CHANNEL, "name": "ci-cd"} | members]))
            archive.writestr("groups.json", json.dumps([{"id": "C0VAULT", "name": "vault"} | members]))
            archive.writestr("users.json", json.dumps([{"id": "U1", "name": "asha", "real_name": "Asha Brandt"}]))
            for channel, messages in self.days.items():
                rows = [
                    {"type": "message", "user": "U1", "ts": f"17699{key}0000.000100", "text": text}
                    for key, text in messages.items()
                ]
                archive.writestr(f"{channel}/2026-02-01.json", json.dumps(rows))


class TeamsExportWorld:
    def __init__(self, folder: Path) -> None:
        self.folder = folder / "export"
        self.messages: dict[str, tuple[str, str]] = {}
        self.source = TeamsExportSource("docs", self.folder)
        self._save()

    def write(self, key: str, text: str) -> None:
        self.messages[key] = (TEAMS_CHANNEL, text)
        self._save()

    def remove(self, key: str) -> None:
        del self.messages[key]
        self._save()

    def hide(self, key: str) -> None:
        self.messages[key] = (HIDDEN_CHANNEL, self.messages[key][1])
        self._save()

    def _save(self) -> None:
        channels = [
            {"Id": TEAMS_CHANNEL, "DisplayName": "ci-cd", "MembershipType": "standard"},
            {"Id": HIDDEN_CHANNEL, "DisplayName": "hidden", "MembershipType": "private"},
        ]
        rows = [
            {
                "Id": f"17699{key}0000000",
                "Body": {"ContentType": "html", "Content": f"<p>{text}</p>"},
                "CreatedDateTime": "2026-02-01T13:03:39.181+00:00",
                "DeletedDateTime": None,
                "ReplyToId": None,
                "MessageType": "message",
                "From": {"Application": None, "User": {"Id": "u-1", "DisplayName": "Asha Brandt"}},
                "ChannelIdentity": {"ChannelId": channel, "TeamId": TEAM},
            }
            for key, (channel, text) in self.messages.items()
        ]
        files = {
            "teams/teamsSettings.json": [{"Id": TEAM, "DisplayName": "CI", "Visibility": "public"}],
            f"teams/{TEAM}/channels_{TEAM}.json": channels,
            f"teams/{TEAM}/teamMembers_{TEAM}.json": [{"UserId": "u-1"}],
            f"teams/{TEAM}/messages_{TEAM}.json": rows,
            "users/usersList.json": [{"Id": "u-1", "DisplayName": "Asha Brandt", "Mail": "asha@marigold.example"}],
        }
        for name, content in files.items():
            path = self.folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content), encoding="utf-8")


def git(folder: Path, *arguments: str, at: str = "2026-02-01T10:00:00Z") -> str:
    """Run git as somebody who has no settings."""
    who = {"GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@b.example", "GIT_COMMITTER_NAME": "A"}
    dates = {"GIT_COMMITTER_EMAIL": "a@b.example", "GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
    nobody = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, env=who | dates | nobody).stdout.strip()


class GitWorld:
    """A repository with a commit for every change; with `fetched`, the source has a copy of its own."""

    def __init__(self, folder: Path, *, fetched: bool) -> None:
        self.folder = folder / "repository"
        self.folder.mkdir()
        git(self.folder, "init", "--quiet", "--initial-branch=main")
        (self.folder / "LICENSE").write_text("none", encoding="utf-8")
        self._commit()
        url = self.folder.as_uri() if fetched else ""
        clone = folder / "copies" / "docs.git" if fetched else self.folder
        links = "https://git.example/docs/blob/{commit}/{path}"
        self.source = GitRepositorySource("docs", Repository(clone, url, links=links))

    def write(self, key: str, text: str) -> None:
        (self.folder / f"{key}.md").write_text(f"# Page {key}\n\n{text}", encoding="utf-8")
        self._commit()

    def remove(self, key: str) -> None:
        (self.folder / f"{key}.md").unlink()
        self._commit()

    def hide(self, key: str) -> None:
        path = self.folder / f"{key}.md"
        path.write_text(f"---\nreaders: [channel:vault]\n---\n{path.read_text()}", encoding="utf-8")
        self._commit()

    def _commit(self) -> None:
        git(self.folder, "add", "--all")
        git(self.folder, "commit", "--quiet", "--message=change")


class ConfluenceWorld:
    def __init__(self, server: FakeConfluence, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self._changes = 0
        self.source = self.source_with(session, Access(frozenset({PUBLIC})))

    def source_with(self, session: aiohttp.ClientSession, access: Access) -> ConfluenceSource:
        token = Token(f"Bearer {confluence_server.TOKEN}")
        rest = Rest("Confluence", self.server.url, token, session, _recorded(self.pauses))
        return ConfluenceSource("docs", rest, self.server.url, ["OPS"], access)

    def write(self, key: str, text: str) -> None:
        self._changes += 1
        when = f"2026-02-01T10:{self._changes:02}:00.000+02:00"
        self.server.pages[f"10{key}"] = Page(f"10{key}", f"Page {key}", f"<p>{text}</p>", when)

    def remove(self, key: str) -> None:
        del self.server.pages[f"10{key}"]

    def hide(self, key: str) -> None:
        self.server.pages[f"10{key}"].groups = ("vault-keepers",)

    def expire_token(self) -> None:
        self.server.token = "another"


class SlackWorld:
    def __init__(self, server: FakeSlackHistory, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock()
        server.user("U1", "Asha Brandt", "asha.brandt", "asha@marigold.example")
        server.user("U2", "Mateo Silvestri", "msilvestri")
        server.channel(CHANNEL, "ci-cd", members=("U1", "U2"))
        rest = Rest("Slack", server.url, Token(f"Bearer {slack_history_server.TOKEN}"), session, _recorded(self.pauses))
        self.source = SlackChannelsSource("docs", rest, [CHANNEL], self.clock)

    def write(self, key: str, text: str) -> None:
        ts = self.ts(key)
        if ts in self.server.messages[CHANNEL]:
            self.server.edit(CHANNEL, ts, text, f"{self.clock.now().timestamp():.6f}")
        else:
            self.server.post(CHANNEL, ts, text)

    def remove(self, key: str) -> None:
        self.server.delete(CHANNEL, self.ts(key))

    def hide(self, key: str) -> None:
        self.server.channels[CHANNEL]["is_private"] = True

    def expire_token(self) -> None:
        self.server.token = "another"

    @staticmethod
    def ts(key: str) -> str:
        return f"17699{key}0000.000100"


class TeamsWorld:
    def __init__(self, server: FakeGraph, session: aiohttp.ClientSession) -> None:
        self.server = server
        self.refusals = server.refusals
        self.pauses: list[float] = []
        self.clock = FakeClock()
        server.team(TEAM)
        server.channel(TEAM, TEAMS_CHANNEL, "ci-cd")
        server.member(TEAMS_CHANNEL, "u-1", "Asha Brandt", "asha@marigold.example")
        secrets = (graph_server.TENANT, graph_server.CLIENT_ID, graph_server.CLIENT_SECRET)
        credentials = GraphCredentials(*secrets, session, server.login_url)
        rest = Rest("Graph", server.url, credentials, session, _recorded(self.pauses))
        self.source = TeamsChannelsSource("docs", rest, {TEAM: ()}, self.clock)

    def write(self, key: str, text: str) -> None:
        if self.id(key) in self.server.messages[TEAMS_CHANNEL]:
            self.server.edit(TEAMS_CHANNEL, self.id(key), f"<p>{text}</p>")
        else:
            self.server.post(TEAMS_CHANNEL, self.id(key), f"<p>{text}</p>")

    def remove(self, key: str) -> None:
        self.server.delete(TEAMS_CHANNEL, self.id(key))

    def hide(self, key: str) -> None:
        self.server.channels[TEAM][TEAMS_CHANNEL]["membershipType"] = "private"

    def expire_token(self) -> None:
        self.server.secret = "another"
        self.server.expire_tokens()

    @staticmethod
    def id(key: str) -> str:
        return f"17699{key}0000000"


def _recorded(pauses: list[float]):
    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    return pause


@asynccontextmanager
async def _confluence(*, cloud: bool) -> AsyncIterator[ConfluenceWorld]:
    async with FakeConfluence(cloud=cloud) as server, aiohttp.ClientSession() as session:
        yield ConfluenceWorld(server, session)


@asynccontextmanager
async def _slack() -> AsyncIterator[SlackWorld]:
    async with FakeSlackHistory() as server, aiohttp.ClientSession() as session:
        yield SlackWorld(server, session)


@asynccontextmanager
async def _teams() -> AsyncIterator[TeamsWorld]:
    async with FakeGraph() as server, aiohttp.ClientSession() as session:
        yield TeamsWorld(server, session)


@asynccontextmanager
async def _at_once(world: World) -> AsyncIterator[World]:
    yield world


LOCAL: dict[str, Callable[[Path], World]] = {
    "folder": FolderWorld,
    "threads": ThreadsWorld,
    "incidents": IncidentsWorld,
    "slack export": SlackExportWorld,
    "teams export": TeamsExportWorld,
    "git clone": lambda folder: GitWorld(folder, fetched=False),
    "git url": lambda folder: GitWorld(folder, fetched=True),
}
REMOTE: dict[str, Callable[[], AbstractAsyncContextManager[RemoteWorld]]] = {
    "confluence cloud": lambda: _confluence(cloud=True),
    "confluence data center": lambda: _confluence(cloud=False),
    "slack": _slack,
    "teams": _teams,
}


def world(kind: str, folder: Path) -> AbstractAsyncContextManager[World]:
    return REMOTE[kind]() if kind in REMOTE else _at_once(LOCAL[kind](folder))
