"""YAML of unknown origin, which may nest so deep that composing it ends the process."""

from __future__ import annotations

from typing import Any

import yaml

DEEPEST = 100  # levels; a manifest of Kubernetes has about a dozen

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def refuse_deep_yaml(text: str) -> None:
    """Raise yaml.YAMLError if a text is not YAML, or nests deeper than DEEPEST.

    Parsing yields one event after another, but composing calls itself on each level: libyaml's function then exhausts the
    stack of the process, and PyYAML's takes seconds for some thousand brackets.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            raise yaml.YAMLError(f"It nests deeper than {DEEPEST} levels.")
