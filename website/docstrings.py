"""An extension of griffe: our docstrings have a section `Example`, which it knows as `Examples`."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Shows examples as what one types and what is printed."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
