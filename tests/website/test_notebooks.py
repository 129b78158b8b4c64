"""Both notebooks run from top to bottom, at a small size, and hold no outputs."""

from pathlib import Path

import nbclient
import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))
SMALL = {"steps": 20, "episodes": 1, "trials": 30}


def is_parameters(cell):
    return "parameters" in cell.metadata.get("tags", ())


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    monkeypatch.setenv("PYDEVD_DISABLE_FILE_VALIDATION", "1")
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert not any(cell.get("outputs") for cell in notebook.cells)
    (parameters,) = filter(is_parameters, notebook.cells)
    names = [line.split(" = ")[0] for line in parameters.source.splitlines()]
    parameters.source = "\n".join(f"{name} = {SMALL[name]}" for name in names)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    printed = "".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ()))
    if path.stem == "own_data":
        assert " V\n" in printed
        assert "'single_sample_error': " in printed
        assert (tmp_path / "bundle" / "bundle.json").is_file()
    else:
        assert "best of 16: " in printed
        assert (tmp_path / "runs" / "notebook" / "report.html").is_file()
        shown = (output for cell in notebook.cells for output in cell.get("outputs", ()))
        pictures = [output for output in shown if "image/png" in output.get("data", {})]
        assert len(pictures) == 2


def test_there_are_two():
    assert [path.stem for path in NOTEBOOKS] == ["own_data", "train_and_look"]
