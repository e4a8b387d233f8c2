"""Every notebook runs from a clean kernel, and is stored without outputs."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tests.meta.pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
PATIENCE = 300  # seconds of one cell


def test_there_are_six() -> None:
    assert len(NOTEBOOKS) == 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_from_a_clean_kernel(path: Path, tmp_path: Path) -> None:
    book = nbformat.read(path, as_version=4)
    nbformat.validate(book)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code), "Clear the outputs before you commit."
    client = NotebookClient(book, timeout=PATIENCE, kernel_name="python3", resources={"metadata": {"path": tmp_path}})
    client.execute()
    assert all(cell.execution_count for cell in code)
    assert not [out for cell in code for out in cell.outputs if out.get("name") == "stderr"]


def test_a_cell_that_fails_would_be_seen(tmp_path: Path) -> None:
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("raise ValueError")])
    with pytest.raises(Exception, match="ValueError"):
        NotebookClient(book, resources={"metadata": {"path": tmp_path}}).execute()
