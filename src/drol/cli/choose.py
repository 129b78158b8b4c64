"""`drol choose`."""

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path

from drol.bounds import check_at_least
from drol.cli.flags import Parser, whole_number
from drol.cli.jax_cache import keep_compiled_programs
from drol.errors import InputError
from drol.results.choose import TRUST, Tried, choose, policies_to_try
from drol.results.trials import Tally, Trials, append_result, plan_trials, read_result, read_results_file

EPILOG = """examples:
  drol choose runs/a runs/b                  rank every saved policy of both runs
  drol choose runs/mine --last 3             only the last three checkpoints
  drol choose runs/* --trials 24             plan 24 real trials of the newest policies of all seeds
  drol choose runs/* --trials 24 --result runs/a=1/1 --result runs/b=0/1      use the results so far
  drol choose runs/* --trials 24 --ask --results trials.csv                   ask for results and save them

Policies are ranked by their episodes in a simulator, otherwise by offline values, which are computed if missing.
With --trials, this ranking only orders the first round; the real trials decide."""


def run(arguments: list[str]) -> int:
    parser = Parser(
        "choose", "Rank the checkpoints, seeds and runs of a task, and state how reliable the ranking is.", EPILOG
    )
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="runs of one task, or folders with runs")
    parser.add_argument("--last", type=whole_number, metavar="N", help="only the last N saved steps of each run")
    parser.add_argument("--show", type=whole_number, default=10, metavar="N", help="lines to print (default: 10)")
    trials = parser.add_argument_group("with real trials")
    trials.add_argument(
        "--trials", type=whole_number, metavar="N", help="plan a total of N trials by sequential halving"
    )
    trials.add_argument(
        "--result",
        action="append",
        default=[],
        metavar="POLICY=S/T",
        help="result of a policy: S successes in T trials",
    )
    trials.add_argument(
        "--results", type=Path, metavar="FILE", help="CSV file with the columns policy, successes, trials"
    )
    trials.add_argument("--ask", action="store_true", help="ask for each result and add it to the file of --results")
    parsed = parser.parse(arguments)
    check_at_least("--show", parsed.show, 1)
    if parsed.trials is not None:
        return try_policies(parsed)
    for name in ("result", "results", "ask"):
        if getattr(parsed, name):
            raise InputError(f"--{name} needs --trials; see `drol choose --help`")
    return rank_policies(parsed)


def rank_policies(parsed: argparse.Namespace) -> int:
    """Print the policies in the order of their scores or offline values."""
    keep_compiled_programs()
    choice = choose(parsed.runs, parsed.last, lambda words: print(f"drol: note: {words}", file=sys.stderr, flush=True))
    print(f"  {choice.evidence:>13s}  95% interval    episodes  outside data  policy")
    for each in choice.candidates[: parsed.show]:
        interval = "-" if each.interval is None else f"{each.interval[0]:.1f} to {each.interval[1]:.1f}"
        share = "-" if each.outside_support is None else f"{each.outside_support:.0%}"
        drawn = f", best of {each.best_of}" if (each.best_of or 1) > 1 else ""
        mark = "*" if each in choice.tied else " "
        where = f"{each.run} step {each.step:,} seed {each.seed}{drawn}"
        print(f"{mark} {each.value:13.1f}  {interval:14s}  {each.episodes or '-':>8}  {share:>12s}  {where}")
    if len(choice.candidates) > parsed.show:
        print(f"  and {len(choice.candidates) - parsed.show} more")
    print(f"ranked by {choice.evidence}: {TRUST[choice.evidence]}")
    for words in choice.warnings[: parsed.show]:
        print(f"warning: {words}")
    print(f"verdict: {choice.verdict}")
    best = choice.best
    drawn = f" --best-of {best.best_of}" if (best.best_of or 1) > 1 else ""
    print(f"to export the first: drol export {best.run} --step {best.step} --seed {best.seed}{drawn} --out bundle")
    return 0


def try_policies(parsed: argparse.Namespace) -> int:
    """Print the plan of trials, the results so far and the next step."""
    policies = {each.name: each for each in policies_to_try(parsed.runs, parsed.last or 1)}
    results = list(map(read_result, parsed.result))
    if parsed.results is not None and (parsed.results.exists() or not parsed.ask):
        results += read_results_file(parsed.results)
    state = plan_trials(list(policies), parsed.trials, results)
    print_plan(state, parsed.trials)
    while parsed.ask and not state.finished:
        name, count = next(iter(state.due.items()))
        answer = ask(f"round {state.round + 1} of {len(state.rounds)}, {name}: successes in {count} trials? ", count)
        if answer is None:
            break
        results.append((name, Tally(answer, count)))
        if parsed.results is not None:
            append_result(parsed.results, *results[-1])
        state = plan_trials(list(policies), parsed.trials, results)
    print_state(state, policies)
    return 0


def ask(question: str, most: int) -> int | None:
    """Return the whole number from 0 to `most` that the user types; None at the end of the input."""
    while True:
        try:
            text = input(question).strip()
        except EOFError:
            print()
            return None
        if text.isdecimal() and int(text) <= most:
            return int(text)
        print(f"expected a whole number from 0 to {most}, got {text!r}")


def print_plan(state: Trials, trials: int) -> None:
    rounds = ", then the better ".join(f"{each.candidates} x {each.trials}" for each in state.rounds)
    print(f"{trials} trials among {len(state.tallies)} policies: {rounds}")
    if state.left_out:
        print(f"not tried, because {trials} trials are too few for all policies: {' '.join(state.left_out)}")


def print_state(state: Trials, policies: Mapping[str, Tried]) -> None:
    """Print the results so far, then the next trials or the policy to export."""
    tried = [name for name in state.tallies if state.tallies[name].trials]
    if tried:
        print("  successes  95% interval  policy")
    for name in sorted(tried, key=lambda name: (name not in state.left, -state.tallies[name].rate)):
        tally = state.tallies[name]
        interval = f"{100 * tally.interval.low:.0f} to {100 * tally.interval.high:.0f}%"
        mark = " " if name in state.left else "-"
        print(f"{mark} {f'{tally.successes} of {tally.trials}':>9s}  {interval:>12s}  {name}")
    for name in state.left if not state.finished else (state.best,):
        if policies[name].warning:
            print(f"warning: {policies[name].warning}")
    if not state.finished:
        print(f"round {state.round + 1} of {len(state.rounds)}: run these trials, in random order if you can:")
        for name, count in state.due.items():
            print(f"  {count} x {name}")
        example = next(iter(state.due))
        print(f"then repeat this command with the results: --result {example}=SUCCESSES/{state.due[example]} ...")
        return
    print(f"verdict: {state.verdict}")
    print("the best of several policies looks better than it is; estimate its success from further trials of it alone")
    best = policies[state.best]
    print(f"to export it: drol export {best.run} --step {best.step} --seed {best.seed} --out bundle")
