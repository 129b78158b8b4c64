"""`drol data check`."""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from drol.cli.data.import_files import Progress, add_reading_flags, parse_reading
from drol.cli.flags import Parser
from drol.data.actions import ActionBox
from drol.data.files.episodes import Assembler
from drol.data.files.options import Counts, Reading
from drol.data.store.audit import Statistics, count_rows, notes, summary
from drol.data.store.importing import Scaling, find_box, in_bytes, open_sources, read_rows
from drol.data.store.writer import SPLITS, StoredDataset
from drol.errors import InputError

EPILOG = """examples:
  drol data check flights                 a dataset that was imported
  drol data check log.csv --end done      files, before they are imported: what would be refused, and why

The exit code is 1 if files would be refused."""

ENDS = {
    "flags": "as marked",
    "terminal": "every end that is marked is a true end, as was asked for",
    "timeout": "every end is a cut, as was asked for",
}


def run(arguments: list[str]) -> int:
    parser = Parser("data check", "Say what a dataset holds, how it was understood and what looks wrong.", EPILOG)
    parser.add_argument("what", nargs="+", metavar="NAME|FILE", help="a dataset by its name, or files and folders")
    add_reading_flags(parser)
    parsed = parser.parse(arguments)
    if len(parsed.what) == 1 and not Path(parsed.what[0]).suffix and not looks_like_path(parsed.what[0]):
        return check_stored(parsed.what[0].removeprefix("files/"))
    return check_files([Path(each) for each in parsed.what], *parse_reading(parsed))


def looks_like_path(text: str) -> bool:
    return Path(text).exists() or ("/" in text and not text.startswith("files/"))


def check_stored(name: str) -> int:
    """A dataset that was imported; every byte is compared with its checksum."""
    stored = StoredDataset.open(name)
    statistics, manifest = Statistics(), stored.manifest
    for split in SPLITS:
        if stored.has(split):
            stored.verify(split)
            count_rows(stored.arrays(split), statistics)
    counts = Counts(**manifest["counts"])
    size = sum(stored.nbytes(split) for split in SPLITS if stored.has(split))
    sources = ", ".join(source["name"] for source in manifest["sources"][:4]) or "Python"
    sources += f" and {len(manifest['sources']) - 4} more" if len(manifest["sources"]) > 4 else ""
    print(f"{name}: {in_bytes(size)} in {stored.folder}, every checksum right")
    print(f"  {'read from':14s}{sources}; {counts.steps:,} steps")
    box = stored.box if manifest["actions_scaled"] else None
    describe(manifest["fields"], statistics, counts, manifest["ends"], box)
    held_out = manifest["splits"]["validation"] or {"episodes": 0, "transitions": 0}
    train = manifest["splits"]["train"]
    print(
        f"  {'split':14s}{train['episodes']:,} episodes ({train['transitions']:,} transitions) to train on, "
        f"{held_out['episodes']:,} ({held_out['transitions']:,}) held out"
    )
    conclude(statistics, counts, {}, held_out["episodes"])
    return 0


def check_files(paths: list[Path], mapping: Mapping[str, list[str]], reading: Reading, scaling: Scaling) -> int:
    """Files as they are; what an import would refuse is listed, not raised."""
    problems: dict[str, str] = {}
    sources = open_sources(paths, mapping)
    report = Progress()
    reading = dataclasses.replace(reading, box=find_box(sources, scaling, report))
    names = sources[0].names
    if "reward" not in names and reading.fill_reward is None:
        problems["reward"] = refusal(names, reading)
        reading = dataclasses.replace(reading, fill_reward="zero")
    try:
        assembler = Assembler(names, reading, problems)
    except InputError as error:
        problems["ends"] = str(error)
        nothing = not {"terminal", "timeout", "end", "episode"} & names.keys()
        assembler = Assembler(names, dataclasses.replace(reading, ends="timeout", file_is_episode=nothing), problems)
    statistics = Statistics()
    for rows in read_rows(sources, assembler, report):
        statistics.add(rows)
    counts = assembler.counts
    print(f"{', '.join(str(path) for path in paths[:4])}: {counts.steps:,} steps, not imported")
    describe(assembler.names, statistics, counts, "?" if "ends" in problems else assembler.ends, reading.box)
    conclude(statistics, counts, problems, None)
    return 1 if problems else 0


def refusal(names: Mapping[str, str], reading: Reading) -> str:
    try:
        Assembler(names, reading)
    except InputError as error:
        return str(error)
    raise AssertionError


def describe(
    names: Mapping[str, str], statistics: Statistics, counts: Counts, ends: str, box: ActionBox | None
) -> None:
    shape = statistics.image_shape
    seen = f"images {' x '.join(map(str, shape))}" if shape else numbers(len(statistics.observation.low))
    scaled = f"scaled from {range_of(box.low)} to {range_of(box.high)}" if box else "not scaled"
    print(f"  {'observation':14s}{names['observation']}: {seen}")
    print(f"  {'action':14s}{names['action']}: {numbers(len(statistics.action.low))}, {scaled}")
    print(f"  {'reward':14s}{names.get('reward', 'none, so it was filled in')}")
    marks = ", ".join(names[name] for name in ("terminal", "timeout", "end", "episode") if name in names)
    print(f"  {'ends':14s}{ENDS.get(ends, 'not clear, here taken as cuts')} (by {marks or 'the end of each file'}):")
    print(f"  {'':14s}{counts.terminals:,} true ends, beyond which nothing is bootstrapped")
    print(f"  {'':14s}{counts.cuts:,} cuts (time limit, gap or end of a file), beyond which the value is bootstrapped")
    if counts.without_next:
        print(f"  {'':14s}{counts.without_next:,} final steps have no next observation; only their observation is used")
    if counts.converted:
        print(f"  {'to float32':14s}{', '.join(f'{name} from {kind}' for name, kind in counts.converted.items())}")
    bad = ", ".join(f"{name} {count:,}" for name, count in counts.not_finite.items())
    print(f"  {'NaN, infinite':14s}{bad or 'none'}")
    print(f"  {'episodes':14s}{statistics.episodes:,} with {statistics.transitions:,} transitions")


def conclude(statistics: Statistics, counts: Counts, problems: Mapping[str, str], held_out: int | None) -> None:
    print("\n".join(summary(statistics)))
    found = notes(statistics, counts, held_out)
    print("\nto know:" if found else "\nnothing looks wrong")
    for note in found:
        print(f"  - {note}")
    if held_out is None:
        print("\nwould be refused:" if problems else "\nnothing would be refused")
    for problem in problems.values():
        print(f"  - {problem}")


def numbers(count: int) -> str:
    return "1 number" if count == 1 else f"{count} numbers"


def range_of(values: tuple[float, ...]) -> str:
    return f"{values[0]:g}" if len(set(values)) == 1 else "(" + " ".join(f"{value:g}" for value in values[:8]) + ")"
