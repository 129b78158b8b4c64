"""`drol paper <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

MODULES = {
    "plan": ("plan", "the runs of a table or figure: what is done, what is missing, what it costs"),
    "status": ("status", "each table and figure: its command, its cost, what is done"),
    "run": ("run_plan", "do what is missing, on this machine; the same command again goes on"),
    "table": ("table", "a table from whatever runs exist, beside the published one, with a verdict"),
    "summary": ("summary", "what runs of our own say: scores, order, K, the mechanism"),
    "mechanism": ("mechanism", "continue runs and follow which latents own which data actions"),
    "gate": ("gate", "whether our baselines learn as fast as public runs of them"),
    "hypotheses": ("hypotheses", "the planned runs, and what they say about the plan's hypotheses"),
    "figure": ("figure", "make a figure of the paper, computed"),
    "propositions": ("propositions", "compute the paper's propositions; draw them"),
}
COMMANDS: Commands = {name: (f"{__name__}.{module}", text) for name, (module, text) in MODULES.items()}

USAGE = f"""usage: drol paper <command> [options]

commands:
{list_commands(COMMANDS)}

`drol paper <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol paper", USAGE)
