"""`drol serve`."""

from drol_runtime import InputError as RuntimeInputError
from drol_runtime.serve import PORT, TOKEN_VARIABLE, serve

from drol.cli.flags import Parser, whole_number
from drol.errors import InputError

EPILOG = f"""examples:
  drol serve bundle
  curl -d '{{"observation": [0.0, 0.0]}}' http://127.0.0.1:8765/act
  {TOKEN_VARIABLE}=... drol serve bundle --host 0.0.0.0      other machines must send Authorization: Bearer ...

On a machine without jax: python -m drol_runtime.serve bundle."""


def run(arguments: list[str]) -> int:
    parser = Parser("serve", "Answer HTTP requests with the actions of an exported policy.", EPILOG)
    parser.add_argument("bundle", help="the folder that `drol export` wrote")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    parser.add_argument("--port", type=whole_number, default=PORT, help=f"0 for any free port (default: {PORT})")
    parser.add_argument("--clamp", action="store_true", help="clip observations to the range of the data")
    parsed = parser.parse(arguments)
    try:
        serve(parsed.bundle, parsed.host, parsed.port, parsed.clamp)
    except RuntimeInputError as error:
        raise InputError(str(error)) from error
    return 0
