"""How a model without grammars is asked again for JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core.model_calls.prompts.template import template


def ask_for_yaml() -> str:
    """To write what it just said as YAML."""
    return template("json_regen_yaml").substitute()


def ask_for_json(schema: Mapping[str, Any]) -> str:
    """To write the YAML that it just gave as JSON under `schema`."""
    return template("json_regen_json").substitute(schema=json.dumps(schema, ensure_ascii=False))
