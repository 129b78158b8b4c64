"""Extend griffe: rename the docstring section `Example` to `Examples`, which griffe knows."""

import re
from typing import Any

import griffe


class Examples(griffe.Extension):
    """Rename the section, so that griffe shows input and output of examples."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = re.sub(r"^Example:$", "Examples:", obj.docstring.value, flags=re.MULTILINE)
