"""An incident that surely needs nobody is posted only once its time is over, and always then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.wiring.ports import all_ports
from core.model.alert import Severity
from core.model.badge import Holding
from core.model.conversation import Place, Platform
from core.model.incident import Incident, IncidentState
from core.triage.paging import Episode, PageHistory, fit_paging
from handlers.common.stored_incident import update_incident
from handlers.incidents.present_incident import update_chats
from handlers.incidents.suggestions import learn_pages
from tests.benchmarks import pages
from tests.fakes.clock import FakeClock
from tests.fakes.messenger import RecordingMessenger
from tests.samples import incident
from tests.scenario.company import open_company

NOW = datetime.now(UTC)
PLACE = Place(Platform.CONSOLE, "incidents")
NEW = replace(
    incident().with_placement(place=PLACE, message=None),
    severity=Severity.WARNING,
    opened_at=NOW,
    started_at=NOW,
    updated_at=NOW,
    revision=1,
)


@pytest.mark.parametrize(
    ("minutes", "change", "posted"),
    [
        (9, {}, False),
        (10, {}, True),
        (1, {"severity": Severity.CRITICAL}, True),
        (20, {"state": IncidentState.RESOLVED, "resolved_at": NOW + timedelta(minutes=5)}, False),
        (20, {"state": IncidentState.RESOLVED, "resolved_at": NOW + timedelta(minutes=15)}, True),
    ],
)
async def test_it_is_posted_when_its_time_is_over_or_it_becomes_critical_but_not_if_it_ended_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, minutes: int, change: dict[str, object], posted: bool
) -> None:
    clock, chat = FakeClock(NOW), RecordingMessenger()
    begins = [NOW - timedelta(days=day) for day in range(1, 41)]
    alert = NEW.alerts[0].name
    past = [
        Episode(f"{at}", alert, NEW.service, Severity.WARNING, at, at + timedelta(minutes=5), False) for at in begins
    ]
    async with open_company(tmp_path) as opened:
        holding = Holding(0.2, timedelta(minutes=10), frozenset({"incidents"}))
        workspace = opened.workspace.model_copy(update={"holding": holding})
        core = replace(opened, workspace=workspace, clock=clock)
        monkeypatch.setattr(core.history, "pages", lambda: PageHistory(past))
        ports = all_ports(core, {Platform.CONSOLE: chat})

        async def fitted(_: object):
            return fit_paging(pages.generate(1200, seed=5))

        await learn_pages(
            pages.generate(400, seed=5), models=core.page_models, fit_model=fitted, store=core.store, clock=clock
        )
        async with core.store.transaction() as transaction:
            await transaction.incidents.save(NEW)
        await update_chats(NEW.id, ports)
        assert chat.posted == [], "it is held back"

        def changed(latest: Incident) -> Incident:
            return replace(latest, **change)

        await update_incident(NEW.id, changed, core.store)
        clock.advance(60 * minutes)
        await update_chats(NEW.id, ports)
        assert bool(chat.posted) is posted
