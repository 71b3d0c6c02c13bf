"""The example notebooks: every cell runs, and every value that is shown can be shown."""

import ast
import json
from pathlib import Path

import pytest
from checkout import REPOSITORY

NOTEBOOKS = sorted((REPOSITORY / "docs" / "notebooks").glob("*.ipynb"))


def run_cell(source: str, names: dict[str, object]) -> object:
    """Run a cell; the value of its last line if that is an expression, as a notebook shows it."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_there_are_three_without_stored_outputs() -> None:
    assert len(NOTEBOOKS) >= 3
    for path in NOTEBOOKS:
        cells = json.loads(path.read_text("utf-8"))["cells"]
        assert all(not cell.get("outputs") for cell in cells)
        assert cells[0]["cell_type"] == "markdown"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed: pip install pandas")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed").use("Agg")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    shown = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            value = run_cell("".join(cell["source"]), names)
            if value is not None:
                shown.append(value)
                assert len(str(value)) < 3000
    assert any("<svg" in one._repr_html_() for one in shown if type(one).__module__.startswith("outbid."))
