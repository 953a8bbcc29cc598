"""Prompts for the language model: one text file per prompt, with one typed render function."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from string import Template


@cache
def template(name: str) -> Template:
    """Return the template in `core/model_calls/prompts/NAME.txt`.

    Placeholders are written `$word`, a dollar sign `$$`.
    """
    return Template(files("core.model_calls.prompts").joinpath(f"{name}.txt").read_text("utf-8"))
