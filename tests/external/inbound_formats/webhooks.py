"""What could come in as a webhook."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from tests.external.inbound_formats.changes import Payload, encoded
from tests.fakes.monitoring_systems.system import MonitoringSystem
from tests.fakes.monitoring_systems.systems import SYSTEMS
from tests.scenario import webhooks


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
    "Alertmanager": ("alertmanager", encoded(_alertmanager())),
    **{system.__name__: (system.source, encoded(_story(system))) for system in SYSTEMS},
}
"""Name → the source, and what it may send."""
