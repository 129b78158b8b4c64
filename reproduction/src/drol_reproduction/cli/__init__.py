"""`drol paper <command>`: each command is a module, imported when it is used."""

from drol.cli.main import Commands, dispatch, list_commands

MODULES = {
    "plan": ("plan", "list the runs of a table or figure: finished, missing, cost"),
    "status": ("status", "list each table and figure: command, cost, progress"),
    "run": ("run_plan", "execute the missing runs on this machine; the same command resumes"),
    "table": ("table", "print a table from the existing runs beside the published one, with verdicts"),
    "summary": ("summary", "summarise our runs: scores, order of methods, K, the mechanism"),
    "mechanism": ("mechanism", "continue runs and follow which latents own which data actions"),
    "gate": ("gate", "check whether our baselines learn as fast as public runs"),
    "hypotheses": ("hypotheses", "the planned runs, and what they say about the plan's hypotheses"),
    "figure": ("figure", "compute and draw a figure of the paper"),
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
