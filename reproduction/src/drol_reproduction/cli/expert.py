"""`drol data expert`."""

from pathlib import Path

from drol.cli.flags import Parser, number
from drol_reproduction.experts.expert import ACTIVATIONS, INPUTS, OUTPUTS, expert_of_weights, save_expert

EPILOG = f"""inputs:
{chr(10).join(f"  {name:18s} {text}" for name, text in INPUTS.items())}

examples: D4RL's ant walker, data of ants that it controls; a hand that turns a pen
  drol data expert d4rl_ant_walker.npz --direction-scale 10 --out walker
  drol data collect antmaze-large-navigate-v0 --expert walker
  drol data expert dapg_pen.npz --activation tanh --output none --input observation --out pen
  drol data collect pen-expert-v1 --expert pen"""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "data expert", "Convert a file of weights to a policy folder for `drol data collect --expert`.", EPILOG
    )
    parser.add_argument(
        "file", type=Path, help=".npz file with <layer>/kernel [in, out] and <layer>/bias, layers in order"
    )
    parser.add_argument("--out", type=Path, required=True, help="the folder for policy.npz and policy.json")
    parser.add_argument(
        "--activation", choices=ACTIVATIONS, default="relu", help="function between the layers (default: relu)"
    )
    parser.add_argument(
        "--output", choices=OUTPUTS, default="tanh", help="function after the last layer (default: tanh)"
    )
    parser.add_argument(
        "--input", choices=INPUTS, default="ogbench-direction", help="input of the network (default: ogbench-direction)"
    )
    parser.add_argument(
        "--direction-scale", type=number, default=1.0, metavar="X", help="length of the direction (default: 1)"
    )
    parsed = parser.parse(arguments)
    expert = expert_of_weights(
        parsed.file,
        activation=parsed.activation,
        output=parsed.output,
        input=parsed.input,
        direction_scale=parsed.direction_scale,
    )
    save_expert(expert, parsed.out)
    sizes = (expert.input_size, *(kernel.shape[1] for kernel in expert.kernels))
    print(f"wrote {parsed.out}: {' - '.join(map(str, sizes))}, {expert.activation}, input: {INPUTS[expert.input]}")
    return 0
