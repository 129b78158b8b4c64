"""`drol sweep watch`."""

import time
from pathlib import Path

from rich.console import Console
from rich.live import Live
from rich.text import Text

from drol.cli.flags import Parser, number
from drol.errors import InputError
from drol.sweeps.status import sweep_status, text_status
from drol.sweeps.sweep_file import read_sweep


def run(arguments: list[str]) -> int:
    parser = Parser("sweep watch", "Show how far a sweep is, again and again until nobody works on it.")
    parser.add_argument("file", type=Path, metavar="FILE", help="the sweep")
    parser.add_argument("--every", type=number, default=5.0, metavar="SECONDS", help="between two looks (default: 5)")
    parsed = parser.parse(arguments)
    if not parsed.every > 0:
        raise InputError(f"--every is {parsed.every}; it must be above 0")
    sweep = read_sweep(parsed.file)
    status = sweep_status(sweep)
    with Live(Text(text_status(status)), console=Console(), auto_refresh=False) as live:
        while status.running:
            time.sleep(parsed.every)
            status = sweep_status(sweep)
            live.update(Text(text_status(status)), refresh=True)
    return 1 if status.those("failed") else 0
