"""What is deployed is at least well-formed and of one mind; no container engine is needed to see that."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.settings import Settings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "plumbline"
VARIABLES = {str(field.validation_alias) for field in Settings.model_fields.values()}


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return load(DEPLOY / "compose.yaml")


def test_the_bot_of_the_compose_file_runs_without_a_profile_and_the_models_only_with_theirs(
    compose: dict[str, Any],
) -> None:
    profiles = {name: service.get("profiles") for name, service in compose["services"].items()}
    assert profiles == {
        "plumbline": None,
        "llm": ["llm"],
        "llm-cpu": ["llm-cpu"],
        "postgres": ["replicas"],
        "qdrant": ["replicas"],
    }


def test_both_model_services_answer_to_one_name_with_parallel_slots_metrics_and_a_health_probe(
    compose: dict[str, Any],
) -> None:
    for name in ("llm", "llm-cpu"):
        service = compose["services"][name]
        assert service["networks"]["default"]["aliases"] == ["llm"]
        assert service["environment"]["LLAMA_ARG_CONT_BATCHING"] == "1"
        assert service["environment"]["LLAMA_ARG_ENDPOINT_METRICS"] == "1"
        assert int(service["environment"]["LLAMA_ARG_N_PARALLEL"]) > 1
        assert service["healthcheck"]["test"][-1].endswith("/health")
    gpu = compose["services"]["llm"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert (gpu["driver"], gpu["capabilities"]) == ("nvidia", ["gpu"])


def test_no_container_runs_as_root_or_writes_outside_its_volumes(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    assert re.search(r"^USER 10001:10001$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_image_is_built_from_files_that_are_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for word in line.split()]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert [name for name in copied if not any(Path(name).match(pattern) for pattern in kept)] == []


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "helm/plumbline/templates/bot.yaml"])
def test_every_variable_of_the_bot_that_is_set_is_one_that_it_reads(file: str) -> None:
    text = (DEPLOY / file).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    # These choose what compose mounts.
    of_compose = {"PLUMBLINE_MODELS", "PLUMBLINE_MODEL_FILE", "PLUMBLINE_CONFIG_FOLDER"}
    named = set(re.findall(r"\bPLUMBLINE_[A-Z_]+\b", code))
    assert named - VARIABLES - of_compose == set()


def test_the_chart_names_itself_and_its_version() -> None:
    chart = load(CHART / "Chart.yaml")
    assert (chart["apiVersion"], chart["name"]) == ("v2", "plumbline")
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    assert project is not None
    assert chart["appVersion"] == project[1]


def test_every_value_that_a_template_takes_has_a_default() -> None:
    values = load(CHART / "values.yaml")
    taken: set[str] = set()
    for template in (CHART / "templates").iterdir():
        taken |= set(re.findall(r"\.Values\.([A-Za-z.]+)", template.read_text(encoding="utf-8")))
    assert taken
    for path in taken:
        value: Any = values
        for key in path.split("."):
            assert key in value, f".Values.{path} has no default"
            value = value[key]


def test_the_actions_of_every_template_are_closed() -> None:
    for template in (CHART / "templates").iterdir():
        text = template.read_text(encoding="utf-8")
        opened = len(re.findall(r"\{\{-? *(?:if|range|with|define)\b", text))
        assert opened == len(re.findall(r"\{\{-? *end\b", text)), template.name
        assert text.count("{{") == text.count("}}"), template.name


def test_replicas_come_with_a_shared_database_and_index_a_disruption_budget_and_a_rolling_update() -> None:
    text = (CHART / "templates" / "bot.yaml").read_text(encoding="utf-8")
    shared = re.findall(r"\{\{- if \.Values\.postgresql \}\}(.+?)\{\{- (?:else|end) \}\}", text, re.DOTALL)
    for part in ("RollingUpdate", "PLUMBLINE_DATABASE_URL", "PLUMBLINE_QDRANT_URL", "PodDisruptionBudget", "emptyDir"):
        assert any(part in each for each in shared), part
    assert "kind: NetworkPolicy" in text
    assert "type: Recreate" in text
