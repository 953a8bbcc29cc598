"""Investigate an incident again with remarks from its thread: those that arrive meanwhile share the next round."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from core.model.conversation import Question
from handlers.common.ports import Ports
from handlers.incidents.investigate_incident import reinvestigate, take_note

MAX_ROUNDS = 2  # concurrent investigations because of remarks; new alerts and questions have the rest of the processor


@dataclass(slots=True, weakref_slot=True)
class _Remarks:
    """The remarks about an incident that wait, and the investigations that read them, one at a time."""

    noted: int = 0
    read: int = 0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)


class Rechecks:
    """The investigations because of remarks in this process: one at a time for each incident and each person."""

    def __init__(self) -> None:
        self._remarks = WeakValueDictionary[str, _Remarks]()
        self._people = WeakValueDictionary[str, asyncio.Lock]()
        self._rounds = asyncio.Semaphore(MAX_ROUNDS)

    async def recheck(self, incident_id: str, remark: Question, ports: Ports) -> None:
        """Record a remark, and investigate, unless an investigation that began later has read it."""
        await take_note(incident_id, remark, ports)
        remarks = self._remarks.setdefault(incident_id, _Remarks())
        own = remarks.noted = remarks.noted + 1
        # The person first: who waits for a turn of their own holds up nobody else's remark about the incident.
        async with self._people.setdefault(remark.asker.id, asyncio.Lock()), remarks.turn:
            if remarks.read >= own:
                return
            async with self._rounds:
                noted = remarks.noted
                await reinvestigate(incident_id, ports)
                remarks.read = noted
