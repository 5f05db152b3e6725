"""Run notebooks and write them with their outputs, without what differs from run to run: `python notebooks/renew.py [NAME …]`."""

import sys
from pathlib import Path

import nbformat
from conftest import METADATA
from nbclient import NotebookClient

HERE = Path(__file__).resolve().parent


def renew(path):
    """Run one notebook. A cell that raises ends it, and nothing is written."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(HERE)}},
                   record_timing=False, coalesce_streams=True).execute()
    notebook.metadata = nbformat.from_dict(METADATA)
    for number, cell in enumerate(notebook.cells, 1):
        cell.id, cell.metadata = f"cell-{number}", nbformat.from_dict({})
    nbformat.write(notebook, path)


if __name__ == "__main__":
    for name in sys.argv[1:] or sorted(HERE.glob("*.ipynb")):
        print(f"{Path(name).name}: running …", flush=True)
        renew(Path(name))
