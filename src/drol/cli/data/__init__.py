"""`drol data <command>`: each command is a module, imported when it is used."""

from drol.cli.main import COMPANION, Commands, dispatch, list_commands

COMMANDS: Commands = {
    "list": ("drol.cli.data.list", "every dataset: its size, whether it is here, how to get it"),
    "show": (
        "drol.cli.data.show",
        "show the data of a task as a page: episodes, marginals, what moves what",
    ),
    "download": ("drol.cli.data.download", "fetch the published files of a dataset"),
    "collect": (f"{COMPANION}.cli.collect", "make a dataset here, with the oracles of a benchmark or an expert policy"),
    "expert": (f"{COMPANION}.cli.expert", "make a policy folder from a file of weights, for collect --expert"),
    "train-expert": (f"{COMPANION}.cli.train_expert", "train an ant that walks, as OGBench trains its own"),
    "import": (
        "drol.cli.data.import_files",
        "make a dataset from your own files: npz, HDF5, Parquet, CSV, ...",
    ),
    "check": ("drol.cli.data.check", "say what a dataset or a file holds, how it is understood and what looks wrong"),
}

USAGE = f"""usage: drol data <command> [options]

commands:
{list_commands(COMMANDS)}

`drol data <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol data", USAGE)
