"""An installation without scipy and scikit-learn answers and explains, and says what it lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from adapters.fitting import LEARNING

WITHOUT = 'import sys; sys.modules |= {"scipy": None, "sklearn": None}; from bot.__main__ import main; main()'


def plumbline(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {"PLUMBLINE_CONFIG": "plumbline.yaml", "PLUMBLINE_DATA_DIR": "data", "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def test_documents_are_read_and_answer_and_doctor_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "rollback.md").write_text("# Rollback\n\nTo roll back, run `deployctl rollback`.\n")
    (tmp_path / "plumbline.yaml").write_text("sources:\n  - {kind: folder, name: documents, path: documents}\n")
    assert plumbline(tmp_path, "ingest")[0] == 0
    code, answer = plumbline(tmp_path, "ask", "how do I roll back?")
    assert code == 0
    assert "deployctl rollback" in answer
    assert f"learning: is off {LEARNING}" in plumbline(tmp_path, "doctor")[1]


def test_a_measure_that_needs_them_names_the_extra(tmp_path: Path) -> None:
    tickets = [{"title": f"pump {number} leaks", "body": "", "owner": f"team-{number % 2}"} for number in range(500)]
    (tmp_path / "tickets.jsonl").write_text("\n".join(map(json.dumps, tickets)))
    (tmp_path / "plumbline.yaml").write_text("{}")
    code, output = plumbline(tmp_path, "eval", "triage", "--train", "tickets.jsonl")
    assert code == 1
    assert LEARNING in output
