"""`drol export`."""

from pathlib import Path

from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.export.export import LARGEST_DIFFERENCE, export_policy

EPILOG = """examples:
  drol export runs/demo --out bundle                        weights, description and test; NumPy is enough to run it
  drol export runs/demo --out bundle --best-of 16           the critic chooses among 16 draws
  drol export runs/demo --out bundle --onnx --stablehlo     policy.onnx and policy.stablehlo as well

On the robot: pip install ./runtime, then drol_runtime.load("bundle").act(observation); see docs/deploy.md.
The command runs every file on observations of the data before it writes the folder."""


def run(arguments: list[str]) -> int:
    parser = Parser("export", "Write a trained policy as files that run without jax.", EPILOG)
    parser.add_argument("run", type=Path, help="a run folder")
    parser.add_argument("--out", type=Path, required=True, metavar="FOLDER", help="the folder to write")
    parser.add_argument(
        "--step", type=whole_number, metavar="N", help="the policy saved after this update (default: the last)"
    )
    parser.add_argument("--seed", type=whole_number, metavar="N", help="the seed of the policy (default: the first)")
    parser.add_argument(
        "--best-of", type=whole_number, metavar="N", help="actions drawn per step, from which the critic chooses"
    )
    parser.add_argument("--onnx", action="store_true", help="also write policy.onnx")
    parser.add_argument("--stablehlo", action="store_true", help="also write policy.stablehlo")
    parser.add_argument("--replace", action="store_true", help="replace an existing bundle")
    parsed = parser.parse(arguments)
    keep_compiled_programs()
    exported = export_policy(
        parsed.run,
        parsed.out,
        parsed.step,
        parsed.seed,
        parsed.best_of,
        parsed.onnx,
        parsed.stablehlo,
        parsed.replace,
    )
    for name, difference in exported.differences.items():
        print(f"{name:10s} difference from the trained policy: {difference:.1e} (allowed: {LARGEST_DIFFERENCE:.0e})")
    print(f"wrote {parsed.out}")
    if exported.warning:
        print(f"warning: {exported.warning}")
    return 0
