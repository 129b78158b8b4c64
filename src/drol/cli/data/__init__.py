"""`drol data <command>`: each command is a module, imported when it is used."""

from drol.cli.main import COMPANION, Commands, dispatch, list_commands

COMMANDS: Commands = {
    "list": ("drol.cli.data.list", "list the datasets: size, whether it is on this machine, how to get it"),
    "show": (
        "drol.cli.data.show",
        "write a page about the data of a task: episodes, distributions, effects of actions",
    ),
    "download": ("drol.cli.data.download", "fetch the published files of a dataset"),
    "collect": (f"{COMPANION}.cli.collect", "make a dataset here, with the oracles of a benchmark or an expert policy"),
    "expert": (f"{COMPANION}.cli.expert", "convert a file of weights to an expert policy for collect --expert"),
    "train-expert": (f"{COMPANION}.cli.train_expert", "train a walking ant as an expert, with OGBench's recipe"),
    "import": (
        "drol.cli.data.import_files",
        "import your own files: npz, HDF5, Parquet, CSV, ...",
    ),
    "check": ("drol.cli.data.check", "describe a dataset or files: content, interpretation, possible faults"),
}

USAGE = f"""usage: drol data <command> [options]

commands:
{list_commands(COMMANDS)}

`drol data <command> --help` explains one.
"""


def run(arguments: list[str]) -> int:
    return dispatch(COMMANDS, arguments, "drol data", USAGE)
