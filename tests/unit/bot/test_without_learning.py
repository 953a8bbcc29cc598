"""An installation without scipy and scikit-learn answers and explains, and says what it lacks."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from adapters.fitting import LEARNING

# One process runs all commands, because importing what they need takes longer than they do.
WITHOUT = """
import json, sys
sys.modules |= {"scipy": None, "sklearn": None}
from bot.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["plumbline", *arguments]
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code
    print("\\0", code or 0, flush=True)
"""


def outputs(folder: Path, *commands: list[str]) -> list[tuple[int, str]]:
    """Return the exit status of each command, and all that it wrote."""
    environment = {"PLUMBLINE_CONFIG": "plumbline.yaml", "PLUMBLINE_DATA_DIR": "data", "PYTHONPATH": ":".join(sys.path)}
    program = [sys.executable, "-c", WITHOUT, json.dumps(commands)]
    out = subprocess.PIPE
    done = subprocess.run(
        program, cwd=folder, env=environment, stdout=out, stderr=subprocess.STDOUT, text=True, check=False
    )
    texts, codes = done.stdout.split("\0")[:-1], done.stdout.split("\0")[1:]
    return [(int(code.split()[0]), " ".join(text.split())) for code, text in zip(codes, texts, strict=True)]


def test_documents_are_read_and_answer_and_what_is_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "rollback.md").write_text("# Rollback\n\nTo roll back, run `deployctl rollback`.\n")
    (tmp_path / "plumbline.yaml").write_text("sources:\n  - {kind: folder, name: documents, path: documents}\n")
    tickets = [{"title": f"pump {number} leaks", "body": "", "owner": f"team-{number % 2}"} for number in range(500)]
    (tmp_path / "tickets.jsonl").write_text("\n".join(map(json.dumps, tickets)))
    ingested, answered, checked, measured = outputs(
        tmp_path,
        ["ingest"],
        ["ask", "how do I roll back?"],
        ["doctor"],
        ["eval", "triage", "--train", "tickets.jsonl"],
    )
    assert [ingested[0], answered[0], measured[0]] == [0, 0, 1]
    assert "deployctl rollback" in answered[1]
    assert f"learning: is off {LEARNING}" in checked[1]
    assert LEARNING in measured[1]
