"""Past incidents, searched by their text, and the known incident that a new one may duplicate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from core.knowledge.terms import terms
from core.model.conversation import Audience, Channel, current_readers
from core.model.explanation import Neighbour, PastIncident
from core.triage.owner_model import Postings

KEPT_VIEWS = 8  # histories kept for audiences that may not read everything; each takes as much memory as the whole


class IncidentHistory:
    """Past incidents as TF-IDF vectors (Triangle, Algorithm 1, step 1), kept as one posting list per term.

    Built once: about 1 ms per 10 incidents. A search reads only the posting lists of its own terms.
    """

    def __init__(self, incidents: Sequence[PastIncident]) -> None:
        self.incidents = tuple(incidents)
        self._readers = frozenset(r for each in self.incidents for r in (each.readers, *sum(each.veiled.values(), ())))
        self.reader_names = frozenset(reader for readers in self._readers for reader in readers)
        self._readable: dict[frozenset[frozenset[str]], IncidentHistory] = {}
        self.owners = frozenset(incident.owner for incident in self.incidents)
        # By the text known at its opening, because the later cause and fix would blur the similarity.
        texts = (f"{each.title}\n{each.description}\n{each.service}" for each in self.incidents)
        self._postings = Postings.of(Counter(terms(text)) for text in texts)

    def readable_by(self, audience: Audience, channels: Sequence[Channel] = ()) -> IncidentHistory:
        """Return the history without the incidents and fields that this audience may not read; cached by access.

        `channels` are the channels as they are now.
        """
        hidden = frozenset(each for each in self._readers if not audience.may_read(current_readers(each, channels)))
        if not hidden:
            return self
        if hidden not in self._readable:
            kept = [incident.without(hidden) for incident in self.incidents if incident.readers not in hidden]
            self._readable = {hidden: IncidentHistory(kept), **dict(list(self._readable.items())[: KEPT_VIEWS - 1])}
        return self._readable[hidden]

    def similar(self, text: str, limit: int, without: frozenset[str] = frozenset()) -> list[Neighbour]:
        """Return the `limit` incidents most similar to `text`, best first, except those with an id in `without`."""
        scores = self._postings.similarities(Counter(terms(text)))
        wanted = min(limit + len(without), len(scores))
        if not wanted:
            return []
        best = np.argpartition(-scores, wanted - 1)[:wanted]
        ranked: list[int] = best[np.lexsort((best, -scores[best]))].tolist()
        neighbours = [Neighbour(self.incidents[row], float(scores[row])) for row in ranked if scores[row] > 0]
        return [neighbour for neighbour in neighbours if neighbour.incident.id not in without][:limit]
