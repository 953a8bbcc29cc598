"""`plumbline demo`: run the whole bot on a temporary workspace with the sample company, and replay an incident."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from rich.console import Console

from adapters.console.console import RESOLVE
from adapters.http import client_session
from adapters.known_vectors import KnownVectors
from bot.commands.commands import ingest_with_progress
from bot.config.settings import Settings
from bot.config.workspace import load_workspace
from bot.server import running
from bot.wiring.application import open_core
from core.model.errors import PlumblineError
from core.model.text import counted

SAMPLE_COMPANY = Path(__file__).parents[1] / "sample_company"
VECTORS = SAMPLE_COMPANY / "vectors.bin"  # of its texts, by `make docs`
FIRST_INCIDENT = "connection-pool"
INCIDENT_DELAY = 8.0  # seconds from start to the first incident, so that the page can be opened
ALERT_AGE = timedelta(minutes=4)  # time between an alert's start and its delivery

EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 -- only compared
_TIME = re.compile(rb"\b(\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2})(\.\d+)?Z")


async def run_demo(settings: Settings, port: int, out: Console) -> None:
    """Serve until interrupted, then delete everything."""
    with tempfile.TemporaryDirectory(prefix="plumbline-demo-") as folder:
        root = Path(folder)
        workspace_folder = root / "workspace"
        shutil.copytree(SAMPLE_COMPANY, workspace_folder, ignore=shutil.ignore_patterns("live", "__pycache__"))
        (workspace_folder / "live").mkdir()
        private = settings.model_copy(
            update={
                "data_dir": root / "data",
                "database_url": "",
                "qdrant_url": "",
                "config": workspace_folder / "plumbline.yaml",
                "port": free_port(port),
            }
        )
        await _serve_demo(private, out)


async def _serve_demo(settings: Settings, out: Console) -> None:
    workspace = load_workspace(settings.config)
    async with open_core(settings, workspace) as core:
        out.print(f"Indexing the sample company, {workspace.name} …", highlight=False)
        embedder = core.knowledge.embedder and KnownVectors(core.knowledge.embedder, VECTORS)
        report = await ingest_with_progress(replace(core, knowledge=replace(core.knowledge, embedder=embedder)), out)
        address = address_of(settings.host, settings.port)
        token = settings.webhook_secret.get_secret_value() if settings.webhook_secret else ""
        live = (settings.config or Path()).parent / "live"
        recordings = [Recording(name, live / name, address, token) for name in scenarios()]
        replays = {each.name: each.replay for each in recordings}
        async with running(core, replays | {f"{each.name}{RESOLVE}": each.resolve for each in recordings}):
            out.print(f"{counted(report.added, 'document')} indexed. Open [bold]{address}[/bold]", highlight=False)
            out.print("An incident arrives in #incidents in a few seconds. Press Ctrl+C to stop.")
            await asyncio.sleep(INCIDENT_DELAY)
            await replays[FIRST_INCIDENT]()
            await asyncio.Event().wait()


def address_of(host: str, port: int) -> str:
    """Return the address of the local page on this machine. In a container, it listens on all of its addresses."""
    return f"http://{'127.0.0.1' if host in EVERYWHERE else host}:{port}/"


def scenarios() -> list[str]:
    """Return the names of the recorded incidents."""
    return sorted(path.name for path in (SAMPLE_COMPANY / "live").iterdir() if path.is_dir())


class Recording:
    """A recorded incident, moved to the present and sent to the bot's own webhook."""

    def __init__(self, name: str, staged: Path, address: str, webhook_secret: str) -> None:
        self.name = name
        self._recorded = SAMPLE_COMPANY / "live" / name
        self._staged = staged
        self._webhook = f"{address}webhooks/alertmanager"
        self._headers = {"Content-Type": "application/json"}
        self._headers |= {"Authorization": f"Bearer {webhook_secret}"} if webhook_secret else {}
        self._replayed_at: datetime | None = None

    async def replay(self) -> None:
        """Deliver the alert. Raises PlumblineError if the bot refuses it."""
        self._replayed_at = datetime.now(UTC)
        await self._deliver(await asyncio.to_thread(stage, self._recorded, self._staged, self._replayed_at))

    async def resolve(self) -> None:
        """Report that the alert is resolved now, if it was replayed. Raises PlumblineError if the bot refuses it."""
        if self._replayed_at is not None:
            await self._deliver(await asyncio.to_thread(ended, self._recorded, self._replayed_at, datetime.now(UTC)))

    async def _deliver(self, body: bytes) -> None:
        async with (
            client_session() as session,
            session.post(self._webhook, data=body, headers=self._headers) as response,
        ):
            if response.status >= 400:
                raise PlumblineError(f"The alert of {self.name} was refused: {await response.text()}")


def ended(recording: Path, replayed_at: datetime, now: datetime) -> bytes:
    """Return the webhook body that resolves, at `now`, the alert staged at `replayed_at`."""
    webhook = json.loads(shifted((recording / "resolved.json").read_bytes(), _shift(recording, replayed_at)))
    webhook["alerts"] = [alert | {"endsAt": f"{now:%Y-%m-%dT%H:%M:%SZ}"} for alert in webhook["alerts"]]
    return json.dumps(webhook).encode()


def _shift(recording: Path, now: datetime) -> timedelta:
    """Return the offset that moves a recording so that its alert began ALERT_AGE before `now`."""
    began = json.loads((recording / "alert.json").read_bytes())["alerts"][0]["startsAt"]
    return now - ALERT_AGE - datetime.fromisoformat(began)


def stage(recording: Path, target: Path, now: datetime) -> bytes:
    """Copy a recording with all times moved so that the alert began ALERT_AGE ago. Returns the webhook body."""
    shift = _shift(recording, now)
    shutil.rmtree(target, ignore_errors=True)
    for source in sorted(path for path in recording.rglob("*") if path.is_file()):
        copy = target / source.relative_to(recording)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(shifted(source.read_bytes(), shift))
    return shifted((recording / "alert.json").read_bytes(), shift)


def shifted(text: bytes, shift: timedelta) -> bytes:
    """Return the text with every ISO 8601 UTC time moved, except the zero time, which means “not yet”."""

    def move(match: re.Match[bytes]) -> bytes:
        if match[1].startswith(b"0001"):
            return match[0]
        moved = datetime.fromisoformat(f"{match[1].decode()}+00:00") + shift
        return moved.strftime("%Y-%m-%dT%H:%M:%S").encode() + (match[2] or b"") + b"Z"

    return _TIME.sub(move, text)


def free_port(wanted: int) -> int:
    """Return the wanted port, or a free one if it is taken."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return probe.getsockname()[1]
    raise PlumblineError("No port is free on this machine.")
