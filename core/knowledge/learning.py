"""All that is learned of a corpus at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.knowledge.document import Passage
from core.knowledge.encoder import Encoder
from core.knowledge.family_fit import fitted_family_model


def learned_encoder(passages: Sequence[Passage], embedder: str = "") -> Encoder:
    """The encoder of a corpus (see `Encoder.fitted`), with the family model of what everybody may read."""
    return replace(Encoder.fitted(passages, embedder), family_model=fitted_family_model(passages))
