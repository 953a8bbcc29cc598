"""Serialization of the models of triage: who owns an incident, and whether it needs a person."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from adapters.array_formats import ArrayFormat, Arrays
from core.triage.owner_model import FORMAT, EmbeddingSignals, OwnerModel, TeamScores
from core.triage.paging import VERSION, PageModel
from core.triage.text_similarity import Postings, TextSimilarity

Part = TypeVar("Part", TeamScores, Postings)

_WORDS, _MEANING = "", "embedding-"  # prefixes of the names of the arrays


def _pack_owner_model(model: OwnerModel) -> Arrays:
    embedding = model.embedding
    meta = {"format": FORMAT, "teams": model.teams, "embedder": embedding.embedder if embedding else ""}
    arrays: dict[str, Any] = {"meta": np.frombuffer(json.dumps(meta).encode(), np.uint8), "owners": model.owners}
    arrays |= _columns(_WORDS, model.scores)
    for index in fields(TextSimilarity):
        arrays |= _columns(f"{index.name}-", getattr(model.similarity, index.name))
    if embedding is not None:
        digests = np.frombuffer(b"".join(embedding.digests), np.uint8).reshape(len(embedding.digests), -1)
        arrays |= {"digests": digests, "vectors": embedding.vectors, **_columns(_MEANING, embedding.scores)}
    return arrays


def _unpack_owner_model(arrays: Arrays) -> OwnerModel | None:
    meta: dict[str, Any] = json.loads(arrays["meta"].tobytes())
    if meta["format"] != FORMAT:
        return None
    embedding = None
    if meta["embedder"]:
        digests: list[bytes] = [digest.tobytes() for digest in arrays["digests"]]
        scores = _read(TeamScores, _MEANING, arrays)
        embedding = EmbeddingSignals(meta["embedder"], tuple(digests), arrays["vectors"], scores)
    return OwnerModel(
        tuple(meta["teams"]),
        arrays["owners"],
        TextSimilarity(*(_read(Postings, f"{index.name}-", arrays) for index in fields(TextSimilarity))),
        _read(TeamScores, _WORDS, arrays),
        (),
        embedding,
    )


def _columns(prefix: str, part: TeamScores | Postings) -> dict[str, Any]:
    return {f"{prefix}{field.name}": getattr(part, field.name) for field in fields(part)}


def _read(kind: type[Part], prefix: str, arrays: Arrays) -> Part:
    return kind(*(arrays[f"{prefix}{field.name}"] for field in fields(kind)))


OWNER_MODEL = ArrayFormat(_pack_owner_model, _unpack_owner_model, "owner model")
"""`held_out` is not saved, because it is needed only to label a newly fitted model."""


def _pack_page_model(model: PageModel) -> Arrays:
    return {each.name: np.asarray(getattr(model, each.name)) for each in fields(PageModel)} | {"format": VERSION}


def _unpack_page_model(arrays: Arrays) -> PageModel | None:
    if str(arrays["format"]) != VERSION:
        return None
    values: dict[str, Any] = {each.name: arrays[each.name] for each in fields(PageModel)}
    values["bias"] = float(arrays["bias"])
    return PageModel(**values)


PAGE_MODEL = ArrayFormat(_pack_page_model, _unpack_page_model, "page model")
