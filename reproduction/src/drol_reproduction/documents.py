"""Update generated text in documents: a command writes it between two marks, and a test checks that it is current.

    <!-- made by: drol paper propositions (coverage) -->
    | K | counted | ...
    <!-- end -->

The first mark names the command and, in brackets, one of its texts. All other text is written by hand.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from drol.errors import InputError, unknown_name
from drol.storage import write_whole

START = re.compile(r"^<!-- made by: (?P<command>[^()\n]+) \((?P<name>[^()\n]+)\) -->$", re.MULTILINE)
END = "<!-- end -->"


def fill_blocks(text: str, command: str, blocks: Mapping[str, str]) -> str:
    """Replace the text between the marks of a command in a Markdown text.

    Args:
        text: The text, with marks; blocks of other commands stay unchanged.
        command: The command as the marks name it, such as "drol paper propositions".
        blocks: The new text of each block, by the name in brackets.
    """
    parts, rest = [], text
    while mark := START.search(rest):
        inside, end, after = rest[mark.end() :].partition(f"\n{END}")
        if not end or START.search(inside):
            raise InputError(f"the mark `{mark[0]}` has no `{END}` below it; put one on a separate line")
        if mark["command"] == command:
            if mark["name"] not in blocks:
                raise unknown_name(f"text of `{command}`", mark["name"], blocks, "Fix the mark in the document")
            inside = "\n" + blocks[mark["name"]].strip("\n")
        parts.append(rest[: mark.end()] + inside + end)
        rest = after
    return "".join(parts) + rest


def fill_document(path: Path, command: str, blocks: Mapping[str, str]) -> None:
    """Replace the text between the marks of a command in a Markdown file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise InputError(f"cannot read the document {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"the document {path} is not text in UTF-8") from error
    if command not in {mark["command"] for mark in START.finditer(text)}:
        names = ", ".join(blocks)
        raise InputError(f"{path} has no mark `<!-- made by: {command} (NAME) -->`; NAME is one of {names}")
    write_whole(path, fill_blocks(text, command, blocks))
