"""`drol paper <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

COMMANDS: Commands = {
    "plan": ("drol.cli.paper.plan", "the runs of a table or figure: what is done, what is missing, what it costs"),
    "status": ("drol.cli.paper.status", "each table and figure: its command, its cost, what is done"),
    "run": ("drol.cli.paper.run_plan", "do what is missing, on this machine; the same command again goes on"),
    "table": ("drol.cli.paper.table", "a table from whatever runs exist, beside the published one, with a verdict"),
    "summary": ("drol.cli.paper.summary", "what runs of our own say: scores, order, K, the mechanism"),
    "mechanism": ("drol.cli.paper.mechanism", "continue runs and follow which latents own which data actions"),
    "gate": ("drol.cli.paper.gate", "whether our baselines learn as fast as public runs of them"),
    "figure": ("drol.cli.paper.figure", "make a figure of the paper, computed"),
    "propositions": ("drol.cli.paper.propositions", "compute the paper's propositions; draw them"),
}

USAGE = f"""usage: drol paper <command> [options]

commands:
{list_commands(COMMANDS)}

`drol paper <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol paper", USAGE)
