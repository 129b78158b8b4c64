"""Format the numbers of the propositions as the tables and sentences of docs/propositions.md."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from drol_reproduction.propositions.proposition_numbers import Numbers

COMMAND = "drol paper propositions"


def proposition_tables(numbers: Numbers) -> dict[str, str]:
    """Return the texts between the marks of the document, by their names."""
    return {
        "neighbourhoods": neighbourhood_table(numbers["neighbourhoods"]),
        "tether": tether_table(numbers["tether"]),
        "strengths": strength_table(numbers["strengths"]),
        "equal gap": equal_gap_table(numbers["equal_gap"]),
        "bias": bias_table(numbers["bias"]),
        "bounded bias": bounded_table(numbers["bounded_bias"]),
        "coverage": coverage_table(numbers["coverage"]),
        "actors": actor_table(numbers["actors"]),
        "ball": ball_table(numbers["ball"]),
    }


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def between(values: Sequence[float], digits: int) -> str:
    """Return "low to high", or one number if both are equal in the printed digits."""
    low, high = (f"{value:.{digits}f}" for value in values)
    return low if low == high else f"{low} to {high}"


def small(value: float) -> str:
    """Return a rounding error with one digit and its power of ten."""
    return f"{value:.0e}".replace("e-0", "e-") if value else "0"


def neighbourhood_table(numbers: Numbers) -> str:
    rows = [
        (
            row["intervals"],
            " or ".join(map(str, row["prototypes_inside"])),
            small(row["farthest_from_centre"]),
            between(row["cost"], 4),
            between(row["one_fewer"], 1),
        )
        for row in numbers["rows"]
    ]
    touching = " or ".join(map(str, numbers["inside_when_nearly_touching"]))
    head = ["M", "prototypes in each interval", "farthest from a centre", "J / (r²/3)"]
    parts = 100 * numbers["parts_of_one_interval"]
    return f"""{markdown([*head, "J with one prototype fewer, / (r²/3)"], rows)}

- With centres just above 2r apart, so that the intervals nearly touch: {touching} in each.
- q prototypes on one interval cost `r²/(3q²)`: for q = 1, 2, 3, 6 to {parts:.2f}% of it.
- Lloyd's iteration from a collapsed start, as in the figure, stops at {numbers["collapsed"]:.1f} r²/3.
- An interval served by two prototypes just outside its ends costs {numbers["served_from_outside"]:.4f} r²/3."""


def tether_table(numbers: Numbers) -> str:
    def row(title: str, show: Callable[[Any], str], *names: str) -> list[str]:
        return [title, *(", ".join(show(column[name]) for name in names) for column in numbers.values())]

    def first(found: list[int]) -> str:
        return " and ".join(map(str, found))

    head = ["", *(name.replace("equation", "as printed").replace("released", "as released") for name in numbers)]
    rows = [
        row("winner: largest difference from the formula", small, "winner_error"),
        row("largest gradient of another candidate", small, "largest_loser_gradient"),
        row("pulled before, after the move", first, "pulled_before", "pulled_after"),
        row("of which the runner-up was", str, "runner_up"),
        row("tether: largest difference from the formula", small, "tether_error"),
        row("gradient of a component outside the box", "{:.1f}".format, "gradient_outside_the_box"),
    ]
    return markdown(head, rows)


def strength_table(rows: list[Numbers]) -> str:
    kinds = ("tethered", "frozen", "routed")
    head = ["alpha m"]
    for name in kinds:
        head += [f"{name}: to the optimum", "from data to nearest"]
    cells = [
        (f"{row['strength']:g}", *(f"{row[f'{name}_{what}']:.2f}" for name in kinds for what in ("distance", "gap")))
        for row in rows
    ]
    return markdown(head, cells)


def equal_gap_table(rows: list[Numbers]) -> str:
    head = ["from data to nearest", "tethered to random draws", "tethered to centres (frozen)", "routed"]
    cells = [
        (
            f"{row['gap']:.2f}",
            *(f"{row[name]:.2f} ({row[f'{name}_starts']} of 10 starts)" for name in ("tethered", "frozen", "routed")),
        )
        for row in rows
    ]
    last = {name: round(100 * rows[-1][name]) for name in ("tethered", "frozen", "routed")}
    placed, dynamic = last["tethered"] - last["frozen"], last["frozen"] - last["routed"]
    return f"""{markdown(head, cells)}

Of the {placed + dynamic} hundredths between the tether to random draws and routing at {rows[-1]["gap"]:.2f}, {placed} \
come from the better places of the teachers and {dynamic} from owners that change."""


def bias_table(rows: list[Numbers]) -> str:
    head = ["alpha", "bound", "isotropic quadratic", "anisotropic quadratic", "not quadratic"]
    cells = [
        (f"{row['alpha']:g}", f"{row['bound']:.3f}", *(between(share, 3) for share in row["shares"].values()))
        for row in rows
    ]
    least = min(row["least_slope_at_optimum"] for row in rows)
    slope = f"The gradient at x_Q is {least:.2f} or more where a is elsewhere, and 0 where `a = x_Q`."
    return f"{markdown(head, cells)}\n\n{slope}"


def bounded_table(rows: list[Numbers]) -> str:
    head = ["alpha", "on the edge", "largest gradient there", "least rise towards x_Q from there", "share of the bound"]
    cells = [
        (
            f"{row['alpha']:g}",
            f"{row['on_the_edge']} of {row['cases']}",
            f"{row['largest_slope_at_minimum']:.2f}",
            small(row["least_rise_to_optimum"]),
            f"{row['largest_share_of_bound']:.3f}",
        )
        for row in rows
    ]
    return markdown(head, cells)


def coverage_cells(row: Numbers) -> list[str]:
    """Return K, counted, exact and the two bounds of a row."""
    bounds = [f"{row[name]:.3f}" if row[name] >= 0 else "below 0" for name in ("union_bound", "exponential_bound")]
    exact = f"{max(row['exact'], 0.0):.3f}"  # rounding errors may make it slightly negative
    error = f" ± {row['standard_error']:.3f}" if row["standard_error"] >= 0.0005 else ""
    return [str(row["draws"]), f"{row['counted']:.3f}{error}", exact, *bounds]


def coverage_table(rows: list[Numbers]) -> str:
    head = ["neighbourhoods", "K", "counted", "exact", "first bound", "second bound"]
    return markdown(head, [[row["case"], *coverage_cells(row)] for row in rows])


def actor_table(actors: dict[str, Numbers]) -> str:
    head = ["actor", "least and greatest p", "in two or more", "in none", "K", "counted", "exact", "first bound"]
    rows = []
    for name, found in actors.items():
        p = found["probabilities"]
        shares = [f"{min(p):.3f}, {max(p):.3f}", f"{found['in_more_than_one']:.2f}", f"{found['in_none']:.2f}"]
        rows += [[name, *shares, *coverage_cells(row)[:-1]] for row in found["rows"]]
    return markdown(head, rows)


def ball_table(rows: list[Numbers]) -> str:
    head = ["d", "mean of \\|z\\|²", "expected", "longest / R - 1", "Kolmogorov-Smirnov", "mean direction"]
    cells = [
        (
            row["dimension"],
            f"{row['mean_square']:.4f}",
            f"{row['expected']:.4f}",
            small(row["largest"] - 1),
            f"{row['kolmogorov_smirnov']:.4f}",
            f"{row['mean_direction']:.4f}",
        )
        for row in rows
    ]
    return markdown(head, cells)
