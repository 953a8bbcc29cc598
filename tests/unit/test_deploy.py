"""What is deployed is at least well-formed and of one mind; no container engine is needed to see that."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from bot.config.settings import Settings
from core import VERSION
from tests.cases import every_case

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
CHART = DEPLOY / "helm" / "plumbline"
VARIABLES = {str(field.validation_alias) for field in Settings.model_fields.values()}


def load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    return load(DEPLOY / "compose.yaml")


def test_the_approval_page_names_every_package_that_another_distribution_could_overwrite() -> None:
    found = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]["packages"][
        "find"
    ]
    page = (ROOT / "docs/approval.md").read_text(encoding="utf-8")
    named = re.search(r"plain\s+names \(([^)]+)\), which another distribution", page)
    assert named is not None
    assert set(re.findall(r"`(\w+)`", named[1])) == {name for name in found["include"] if not name.endswith(".*")}


def test_the_bot_of_the_compose_file_runs_without_a_profile_and_the_models_only_with_theirs(
    compose: dict[str, Any],
) -> None:
    profiles = {name: service.get("profiles") for name, service in compose["services"].items()}
    assert profiles == {
        "plumbline": None,
        "model": ["llm", "llm-cpu"],
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
        assert service["healthcheck"]["start_period"]
    gpu = compose["services"]["llm"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert (gpu["driver"], gpu["capabilities"]) == ("nvidia", ["gpu"])


def test_the_server_fetches_the_model_that_the_documentation_and_the_chart_name_into_a_volume_that_it_may_write(
    compose: dict[str, Any],
) -> None:
    model = load(CHART / "values.yaml")["llm"]["model"]
    assert f"llama-server -hf {model} " in (ROOT / "docs" / "language-models.md").read_text(encoding="utf-8")
    for name in ("llm", "llm-cpu"):
        service = compose["services"][name]
        assert service["environment"]["LLAMA_ARG_HF_REPO"] == f"${{PLUMBLINE_MODEL-{model}}}"
        for cache in ("LLAMA_CACHE", "HF_HOME"):
            assert service["volumes"] == [f"${{PLUMBLINE_MODELS:-models}}:{service['environment'][cache]}"]
        assert service["depends_on"] == {"model": {"condition": "service_completed_successfully"}}
        assert service["volumes"] == compose["services"]["model"]["volumes"]
    assert "--owner=10001 --group=10001 /models" in (DEPLOY / "Dockerfile").read_text(encoding="utf-8")


def test_the_bot_of_the_chart_asks_the_service_of_all_replicas() -> None:
    assert 'printf "http://%s-llm:%d" .Release.Name' in template("bot.yaml")
    assert "{name: PLUMBLINE_LLM_PARALLEL, value: {{ mul .Values.llm.replicas .Values.llm.slots" in template("bot.yaml")
    service = template("llm.yaml").split("---")[0]
    assert "kind: Service" in service
    assert "clusterIP: None" not in service, "a headless Service spreads nothing"


def test_no_container_runs_as_root_or_writes_outside_its_volumes(compose: dict[str, Any]) -> None:
    for service in compose["services"].values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
    assert re.search(r"^USER 10001:10001$", (DEPLOY / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)


def test_no_container_sends_statistics_to_its_makers(compose: dict[str, Any]) -> None:
    assert compose["services"]["qdrant"]["environment"]["QDRANT__TELEMETRY_DISABLED"] == "true"


def test_the_image_is_built_from_files_that_are_there() -> None:
    text = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    copied = [word for line in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.MULTILINE) for word in line.split()]
    assert copied
    assert [name for name in copied if not (ROOT / name).exists()] == []
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text(encoding="utf-8").splitlines()
    kept = [line[1:] for line in ignored if line.startswith("!")]
    assert [name for name in copied if not any(Path(name).match(pattern) for pattern in kept)] == []


@every_case(
    "file", ["Dockerfile", "compose.yaml", "../compose.yaml", "env.example", "helm/plumbline/templates/bot.yaml"]
)
def test_every_variable_of_the_bot_that_is_set_is_one_that_it_reads(file: str) -> None:
    text = (DEPLOY / file).read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    # These choose what compose mounts.
    of_compose = {"PLUMBLINE_MODEL", "PLUMBLINE_MODELS", "PLUMBLINE_CONFIG_FOLDER"}
    named = set(re.findall(r"\bPLUMBLINE_[A-Z_]+\b", code))
    assert named - VARIABLES - of_compose == set()


def test_the_demonstration_in_a_container_needs_nothing_and_is_reached_from_this_machine_alone() -> None:
    text = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    (demo,) = load(ROOT / "compose.yaml")["services"].values()
    assert demo["command"] == ["demo"]
    assert all(port.startswith("127.0.0.1:") for port in demo["ports"])
    assert demo["environment"].keys() >= {"PLUMBLINE_CONSOLE_TOKEN", "PLUMBLINE_WEBHOOK_SECRET"}
    assert re.findall(r"\$\{[A-Z_]+(?!:-|[A-Z_])", text) == [], "each variable has a default"
    assert (ROOT / demo["build"]["context"] / demo["build"]["dockerfile"]).is_file()
    assert (demo["read_only"], demo["cap_drop"]) == (True, ["ALL"])


@pytest.mark.parametrize("file", [".github/workflows/release.yaml", ".ci/release.gitlab-ci.yml"])
def test_a_release_makes_what_the_makefile_makes_and_only_for_a_tag(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert isinstance(load(ROOT / file), dict)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"test", "dist", "image"} <= set(re.findall(r"\bmake ([a-z]+)", text)) <= targets
    assert 'tags: ["v*"]' in text or "$CI_COMMIT_TAG =~ /^v/" in text


def test_a_release_is_signed_and_lists_its_contents() -> None:
    jobs = load(ROOT / ".github" / "workflows" / "release.yaml")["jobs"]
    steps = "\n".join(str(step) for step in jobs["sign"]["steps"])
    assert jobs["sign"]["permissions"] == {"contents": "write", "id-token": "write"}
    for each in ("*.whl", "*.tar.gz", "*.tgz", "*.cdx.json", "image-digest.txt"):
        assert f"dist/{each}" in steps
    assert "'attestations': True" in str(jobs["publish"]["steps"])
    assert [name for name, job in jobs.items() if "write" in job["permissions"].get("contents", "")] == ["sign"]


@pytest.mark.external  # a process starts
def test_the_list_of_contents_names_everything_that_is_locked_with_its_hashes_and_debian_s_packages(
    tmp_path: Path,
) -> None:
    command = [sys.executable, ROOT / ".ci" / "sbom.py"]
    listed = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert listed[0] == listed[1]
    contents = json.loads(listed[0])
    assert contents["metadata"]["component"]["version"] == VERSION
    locked = set(re.findall(r"^([\w.-]+==[^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    assert {f"{each['name']}=={each['version']}" for each in contents["components"]} == locked
    assert all(each["externalReferences"] for each in contents["components"])
    frozen, debian = tmp_path / "frozen.txt", tmp_path / "debian.txt"
    frozen.write_text("aiohttp==3.14.5\n")
    debian.write_text("git\t1:2.39.5-0+deb12u2\n")
    image = subprocess.run([*command, frozen, debian], capture_output=True, text=True, check=True).stdout
    assert {each["name"] for each in json.loads(image)["components"]} == {"git", "aiohttp"}
    assert "pkg:deb/debian/git@" in image


def test_a_release_runs_no_action_or_program_that_somebody_could_replace() -> None:
    used = re.findall(r"uses: (.+)", (ROOT / ".github/workflows/release.yaml").read_text(encoding="utf-8"))
    assert used
    assert [each for each in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", each)] == []
    for file in (".github/workflows/release.yaml", ".ci/release.gitlab-ci.yml"):
        installed = re.findall(r"pip install (.+)", (ROOT / file).read_text(encoding="utf-8"))
        assert installed
        assert all("--require-hashes" in each and each.endswith("-r requirements-release.lock") for each in installed)


def test_the_chart_names_itself_and_its_version() -> None:
    chart = load(CHART / "Chart.yaml")
    assert (chart["apiVersion"], chart["name"]) == ("v2", "plumbline")
    assert chart["appVersion"] == VERSION


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


def pinned_by_the_script(folder: Path, digest: str) -> subprocess.CompletedProcess[str]:
    """Run deploy/pin.sh with a docker that answers this digest for every image."""
    docker = folder / "docker"
    docker.write_text(f"#!/bin/sh\necho '{digest}'\n", encoding="utf-8")
    docker.chmod(0o755)
    return subprocess.run(
        ["/bin/sh", str(DEPLOY / "pin.sh")],
        env={"PATH": f"{folder}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def test_no_image_is_run_or_built_upon_by_its_tag_alone(compose: dict[str, Any], tmp_path: Path) -> None:
    images = {service["image"] for service in compose["services"].values() if "build" not in service}
    base = compose["services"]["plumbline"]["build"]["args"]["PYTHON_IMAGE"]
    asked = {re.fullmatch(r"\$\{([A-Z_]+):\?run deploy/pin\.sh\}", image) for image in {*images, base}}
    assert None not in asked, "what is not set is refused, and there is no default that goes by a tag"
    assert compose["services"]["plumbline"]["pull_policy"] == "build", "no registry is asked for an image of this name"
    dockerfile = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    assert set(re.findall(r"^FROM (\S+)", dockerfile, re.MULTILINE)) == {"${PYTHON_IMAGE}"}
    assert re.findall(r"^ARG (.+)$", dockerfile, re.MULTILINE) == ["PYTHON_IMAGE"]

    digest = f"sha256:{'a' * 64}"
    pins = dict(line.split("=") for line in pinned_by_the_script(tmp_path, digest).stdout.splitlines())
    assert pins.keys() == {match[1] for match in asked if match}
    assert all(re.fullmatch(rf"[\w./-]+:[\w.-]+@{digest}", image) for image in pins.values())
    failed = pinned_by_the_script(tmp_path, "no such image")
    assert (failed.returncode, failed.stdout) == (1, ""), "no half of it is written"

    values, bot, llm = load(CHART / "values.yaml"), template("bot.yaml"), template("llm.yaml")
    assert values["requireDigests"] is True
    assert re.findall(r"^ +image: \{\{ include \"([\w.]+)\"", bot + llm, re.MULTILINE) == [
        "plumbline.image",
        "plumbline.pinned",
    ]
    assert (bot + llm).count(" image: ") == 2


def template(name: str) -> str:
    return (CHART / "templates" / name).read_text(encoding="utf-8")


def test_nobody_reaches_a_pod_whom_the_values_do_not_name_and_no_pod_reaches_everything() -> None:
    network = load(CHART / "values.yaml")["network"]
    for who in ("callers", "scrapers", "dns"):
        assert network[who]
        for peer in network[who]:
            assert peer["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"], who
    assert all(
        "169.254.0.0/16" in peer["ipBlock"]["except"] for peer in network["https"] if "." in peer["ipBlock"]["cidr"]
    )
    assert network["postgresql"]["peers"] == network["qdrant"]["peers"] == [], "to be named with postgresql"
    for name in ("bot.yaml", "llm.yaml"):
        policy = template(name).split("kind: NetworkPolicy")[1].split("\n---")[0]
        assert "policyTypes: [Ingress, Egress]" in policy
        assert '{{- include "plumbline.egress" . | nindent 4 }}' in policy
        # An empty list of peers, or a peer without a selector, would stand for everybody: the helper refuses both.
        given = re.findall(r"\.Values\.network\.[\w.]+\)? \|", policy)
        assert len(given) == policy.count('include "plumbline.peers"')
        assert [line for line in policy.splitlines() if re.match(r" +(?:- )?(?:from|to): *(?:\[\]|\{\})", line)] == []
    helper = template("_helpers.tpl").split('define "plumbline.peers"')[1].split("define")[0]
    assert helper.count("fail") == 2
