"""Investigate an incident again with remarks from its thread: those that arrive meanwhile share the next round."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from weakref import WeakValueDictionary

from core.model.incident import ThreadNote
from handlers.incidents.investigate_incident import reinvestigate, take_note
from handlers.ports import IncidentPorts

MAX_ROUNDS = 2  # concurrent investigations because of remarks; new alerts and questions have the rest of the processor


class Rechecks:
    """The investigations because of remarks in this process: one at a time for each incident."""

    def __init__(self) -> None:
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._rounds = asyncio.Semaphore(MAX_ROUNDS)
        self._noted = defaultdict[str, int](int)  # remarks by incident
        self._read = defaultdict[str, int](int)  # those that an investigation has read

    async def recheck(self, incident_id: str, note: ThreadNote, ports: IncidentPorts) -> None:
        """Record a remark, and investigate, unless an investigation that began later has read it."""
        await take_note(incident_id, note, ports)
        self._noted[incident_id] += 1
        own = self._noted[incident_id]
        turn = self._turns.setdefault(incident_id, asyncio.Lock())
        async with turn, self._rounds:
            if self._read[incident_id] >= own:
                return
            noted = self._noted[incident_id]
            await reinvestigate(incident_id, ports)
            self._read[incident_id] = noted
