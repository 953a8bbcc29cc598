"""Serialization of the model that judges whether an incident needs a person."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from adapters.array_file import ArrayFormat, Arrays
from core.triage.paging import VERSION, PageModel


def _pack(model: PageModel) -> Arrays:
    return {each.name: np.asarray(getattr(model, each.name)) for each in fields(PageModel)} | {"format": VERSION}


def _unpack(arrays: Arrays) -> PageModel | None:
    if str(arrays["format"]) != VERSION:
        return None
    values: dict[str, Any] = {each.name: arrays[each.name] for each in fields(PageModel)}
    values["bias"] = float(arrays["bias"])
    return PageModel(**values)


PAGE_MODEL = ArrayFormat(_pack, _unpack, "page model")
