"""Run a notebook and write its outputs into it, without Jupyter.

    python docs/run_notebook.py docs/first-steps.ipynb

What a cell prints is a stream; its last expression shows itself as a picture, a table or text, as in Jupyter.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any


def run_cell(source: str, space: dict[str, Any]) -> list[dict[str, Any]]:
    """The outputs of one cell, which runs in `space`."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), space)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), space)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        outputs.append(
            {"data": _shown(value), "metadata": {}, "output_type": "execute_result", "execution_count": None}
        )
    return outputs


def _shown(value: Any) -> dict[str, Any]:
    """A value by the kinds in which a notebook can show it."""
    if hasattr(value, "savefig"):
        picture = io.BytesIO()
        value.savefig(picture, format="png", dpi=90, metadata={"Software": None})
        return {"image/png": base64.b64encode(picture.getvalue()).decode(), "text/plain": ["a picture"]}
    data: dict[str, Any] = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_html_"):
        data["text/html"] = _lines(value._repr_html_())
    return data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def run(notebook: dict[str, Any]) -> dict[str, Any]:
    """The notebook with the outputs of all its cells."""
    space: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            outputs = run_cell("".join(cell["source"]), space)
            for output in outputs:
                if "execution_count" in output:
                    output["execution_count"] = count
            cell = {**cell, "execution_count": count, "outputs": outputs}
        cells.append(cell)
    return {**notebook, "cells": cells}


if __name__ == "__main__":
    for name in sys.argv[1:]:
        path = Path(name)
        made = run(json.loads(path.read_text("utf-8")))
        path.write_text(json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n", "utf-8")
