"""Write the pages of notebooks: text, code and a link to download the notebook."""

import json
from pathlib import Path


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown."""
    cells = json.loads(path.read_text())["cells"]
    texts = [
        "".join(each["source"]) if each["cell_type"] == "markdown" else f"```python\n{''.join(each['source'])}\n```"
        for each in cells
    ]
    note = f"*This page is a notebook that the tests run from top to bottom: [download it]({path.name}).*"
    title, *rest = texts
    return "\n\n".join([title, note, *rest])
