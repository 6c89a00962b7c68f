"""The notebook runs, and the outputs in the file are those of its cells, useful, and of no particular machine."""

from __future__ import annotations

import ast
import base64
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"
NOTEBOOK = DOCS / "first-steps.ipynb"


def code_cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


@pytest.fixture(scope="module")
def stored() -> dict[str, Any]:
    return json.loads(NOTEBOOK.read_text(encoding="utf-8"))


def test_it_runs_and_says_what_the_file_says(stored):
    spec = importlib.util.spec_from_file_location("run_notebook", DOCS / "run_notebook.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.run(stored)
    for cell, again in zip(code_cells(stored), code_cells(made), strict=True):
        for one, other in zip(cell["outputs"], again["outputs"], strict=True):
            assert one.get("text") == other.get("text")
            assert one.get("data", {}).keys() == other.get("data", {}).keys()
            assert one.get("data", {}).get("text/plain") == other.get("data", {}).get("text/plain")


def test_it_is_a_notebook_with_a_table_and_a_picture(stored):
    assert (stored["nbformat"], stored["nbformat_minor"]) == (4, 5)
    ids = [cell["id"] for cell in stored["cells"]]
    assert len(set(ids)) == len(ids) and all(re.fullmatch(r"[\w-]{1,64}", one) for one in ids)
    cells = code_cells(stored)
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for cell in cells:
        ast.parse("".join(cell["source"]))
        assert cell["outputs"], "every cell shows something"
    data = [output.get("data", {}) for cell in cells for output in cell["outputs"]]
    assert any("<table>" in "".join(one.get("text/html", [])) for one in data)
    pictures = [base64.b64decode(one["image/png"]) for one in data if "image/png" in one]
    assert pictures and all(picture.startswith(b"\x89PNG") and len(picture) > 10_000 for picture in pictures)


def test_it_knows_no_machine(stored):
    text = re.sub(r'"image/png": "[^"]*"', "", NOTEBOOK.read_text(encoding="utf-8"))
    absolute = r"(?<![\w:/.<+])/[a-z]+/\w|[A-Z]:\\\\"
    assert re.search(absolute, 'File "/some/place/of.py"')
    assert not re.search(absolute + "|site-packages|Traceback", text)
    assert len(NOTEBOOK.read_bytes()) < 200_000
