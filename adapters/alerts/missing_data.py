"""Wording of alerts in the form of Alertmanager's, of which some fire because the data of their rule is missing.

https://grafana.com/docs/grafana/latest/alerting/fundamentals/alert-rule-evaluation/stale-alert-instances/
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

from adapters.alerts import fields

NO_DATA = "No data for rule"
NOT_EVALUATED = "Cannot evaluate rule"
STATES = {"DatasourceNoData": NO_DATA, "NoData": NO_DATA, "DatasourceError": NOT_EVALUATED, "Error": NOT_EVALUATED}
"""What an alert says by its name, or by the annotation `grafana_state_reason`, if its rule reads nothing."""

_ABSENCE = re.compile(r"\A[\s(]*+absent(?:_over_time)?+\s*+\(")
_OR = re.compile(r"\bor\b")


@dataclass(frozen=True, slots=True)
class Wording:
    name: str
    summary: str
    description: str


def wording(labels: Mapping[str, str], annotations: Mapping[str, str], generator: str) -> Wording:
    """Return the texts of an alert. If its rule reads nothing, what the rule would say is not stated as a fact."""
    name = labels.get("alertname", "alert without a name")
    rule = labels.get("rulename") or (labels.get("datasource_uid", "") if name in STATES else "") or name
    summary = fields.first(annotations, ("summary", "title", "message"))
    description = fields.first(annotations, ("description", "message"))
    if state := STATES.get(name) or STATES.get(annotations.get("grafana_state_reason", "")):
        facts = {"Error": annotations.get("Error", ""), "Data source": labels.get("datasource_uid", "")}
        facts["If its condition held, the rule would say"] = ". ".join(filter(None, (summary, description)))
        lines = (f"{fact}: {value}" for fact, value in facts.items() if value)
        return Wording(rule, f"{state} “{rule}”", "\n".join(("Whether its condition holds is unknown.", *lines)))
    if _fires_on_absence(generator):
        return Wording(name, f"{NO_DATA} “{name}”{f': {summary}' if summary else ''}", description)
    return Wording(name, summary, description)


def _fires_on_absence(generator: str) -> bool:
    """Return whether the address of an expression in Prometheus holds one that is true only if series are missing."""
    try:
        expressions = parse_qs(urlsplit(fields.web_address(generator)).query).get("g0.expr", [])
    except ValueError:
        return False
    return bool(expressions) and all(map(_ABSENCE.match, _OR.split(expressions[0])))
