"""The routing lab computes what the library computes, and its controls do what they say."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from browser import visit

from drol.algorithms.drol import DROL
from drol.algorithms.fql import FQL
from drol.algorithms.parts import uniform_in_ball
from drol.algorithms.routing import candidate_diagnostics
from drol_reproduction.propositions.propositions import Table, batch_of

LAB = Path(__file__).parents[2] / "docs" / "lab"
HILLS = [{"at": [0.6, 0.3], "height": 1.0, "width": 0.5}, {"at": [-0.4, -0.2], "height": 0.4, "width": 0.3}]


def q_of(hills, action):
    parts = [
        each["height"] * jnp.exp(-jnp.square(action - jnp.asarray(each["at"])).sum(-1) / (2 * each["width"] ** 2))
        for each in hills
    ]
    return jnp.stack(parts).sum(0)


def critic(observation, action):
    return jnp.stack([q_of(HILLS, action)] * 2)  # two critics that agree


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """A visit to the page of the lab alone, without the site around it."""
    path = tmp_path_factory.mktemp("lab") / "lab.html"
    parts = {name: (LAB / name).read_text() for name in ("lab.css", "routing.js", "lab.js")}
    path.write_text(
        f"<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'><style>{parts['lab.css']}"
        f"</style><div id=lab></div><script>{parts['routing.js']}</script><script>{parts['lab.js']}</script>"
    )
    with visit(path.as_uri()) as seen:
        yield seen


@pytest.fixture
def page(seen):
    return seen.page


def problem(seed, outside=0.0):
    generator = np.random.default_rng(seed)
    points, data = generator.uniform(-0.9, 0.9, (7, 2)), generator.uniform(-0.8, 0.8, (12, 2))
    if outside:  # a point beyond the box, and data beside it
        points[3, 0], data[5] = 1 + outside, [0.95, points[3, 1]]
    return points, data, generator


@pytest.mark.parametrize(("seed", "outside", "drawn_of_each"), [(0, 0.0, 7), (1, 0.0, 3), (2, 0.5, 7)])
def test_winners_losses_and_gradients_of_routing_are_those_of_drol(page, seed, outside, drawn_of_each):
    points, data, generator = problem(seed, outside)
    drawn = np.stack([generator.permutation(7)[:drawn_of_each] for _ in data])
    algorithm = DROL(bc_weight=0.7, q_weight=0.4)
    actor, batch = Table(jnp.asarray(points, jnp.float32)), batch_of(data)
    winner = algorithm.route(actor, batch, jnp.eye(7)[drawn])  # one-hot latents: the latents drawn for each row
    (loss, _), gradient = jax.value_and_grad(algorithm.actor_loss, has_aux=True)(actor, critic, batch, winner)
    ours = page.evaluate(
        """([points, data, drawn, hills]) => {
            const winners = Routing.route(points, data, drawn);
            return {winners, ...Routing.routedLoss(points, data, winners, hills, {cloning: 0.7, q: 0.4})};
        }""",
        [points.tolist(), data.tolist(), drawn.tolist(), HILLS],
    )
    assert ours["winners"] == np.asarray(winner).argmax(-1).tolist()
    assert ours["loss"] == pytest.approx(float(loss), abs=1e-6)
    np.testing.assert_allclose(ours["gradient"], gradient.points, atol=1e-6)
    assert np.abs(gradient.points).max() > 0.01
    if outside:  # beyond the box the clip has no slope
        assert 3 in ours["winners"]
        assert ours["gradient"][3][0] == 0


@pytest.mark.parametrize(("seed", "outside"), [(0, 0.0), (2, 0.5)])
def test_loss_and_gradient_of_tied_points_are_those_of_fql(page, seed, outside):
    points, data, _ = problem(seed, outside)
    teachers = data[:7]
    actor = Table(jnp.asarray(points, jnp.float32))
    arguments = critic, batch_of(teachers), jnp.eye(7), jnp.asarray(teachers, jnp.float32)
    q_weight = 0.4  # FQL has the weight 1 on Q
    algorithm = FQL(alpha=0.7 / q_weight, normalise_q=True)
    (loss, _), gradient = jax.value_and_grad(algorithm.actor_loss, has_aux=True)(actor, *arguments)
    ours = page.evaluate(
        "([points, teachers, hills]) => Routing.tiedLoss(points, teachers, hills, {cloning: 0.7, q: 0.4})",
        [points.tolist(), teachers.tolist(), HILLS],
    )
    assert ours["loss"] == pytest.approx(q_weight * float(loss), abs=1e-6)
    np.testing.assert_allclose(ours["gradient"], q_weight * gradient.points, atol=1e-6)


def test_steps_of_the_lab_follow_the_gradients_of_the_library(page):
    """Fifty steps of the whole lab against the same descent with gradients of the library."""
    start = page.evaluate("() => { routingLab.load('modes'); return routingLab.world }")
    tied = routed = np.asarray(start["routed"]["points"])
    data, hills, weights = np.asarray(start["data"]), start["hills"], start["settings"]
    teachers = data[start["tied"]["teachers"]]

    def hilly(observation, action):
        return q_of(hills, action)[None]

    drol = DROL(bc_weight=weights["cloning"], q_weight=weights["q"])
    fql = FQL(alpha=weights["cloning"] / weights["q"], normalise_q=True)
    count, batch = len(tied), batch_of(data)

    @jax.jit
    def gradients(tied, routed):
        latent = jnp.tile(jnp.eye(count), (len(data), 1, 1))
        winner = drol.route(Table(routed), batch, latent)
        of_routed = jax.grad(lambda actor: drol.actor_loss(actor, hilly, batch, winner)[0])(Table(routed)).points
        arguments = hilly, batch_of(teachers), jnp.eye(count), jnp.asarray(teachers)
        of_tied = jax.grad(lambda actor: fql.actor_loss(actor, *arguments)[0])(Table(tied)).points
        return weights["q"] * of_tied, of_routed, winner.argmax(-1)

    with jax.enable_x64():
        for _ in range(50):
            of_tied, of_routed, winners = map(np.asarray, gradients(jnp.asarray(tied), jnp.asarray(routed)))
            curvature = weights["cloning"] + weights["q"]
            tied = tied - 0.05 * count / curvature * of_tied
            routed = routed - 0.05 * len(data) / np.bincount(winners).max() / curvature * of_routed
    ours = page.evaluate("() => { for (let i = 0; i < 50; i++) routingLab.takeStep(); return routingLab.world }")
    assert ours["step"] == 50
    np.testing.assert_allclose(ours["tied"]["points"], tied, atol=1e-5)
    np.testing.assert_allclose(ours["routed"]["points"], routed, atol=1e-5)
    assert np.abs(np.asarray(start["routed"]["points"]) - routed).max() > 0.03


def test_diagnostics_and_prior_are_those_of_the_library(page):
    points, data, _ = problem(3, 0.3)
    ours = page.evaluate("([points, data]) => Routing.diagnostics(points, data)", [points.tolist(), data.tolist()])
    candidates = jnp.clip(jnp.tile(jnp.asarray(points), (len(data), 1, 1)), -1, 1)
    theirs = candidate_diagnostics(candidates, jnp.asarray(data))
    for name, value in ours.items():
        assert value == pytest.approx(float(theirs[name]), abs=1e-6), name
    key = jax.random.key(0)
    normal = np.asarray(jax.random.normal(key, (5, 4)))
    drawn = page.evaluate("(normal) => normal.map((each) => Routing.inBall(each, Math.SQRT2))", normal.tolist())
    np.testing.assert_allclose(drawn, uniform_in_ball(key, (5, 2), 2**0.5), atol=1e-6)


def test_cells_hold_what_is_nearest(page):
    points, _, _ = problem(4)
    polygons = page.evaluate("(points) => Routing.cells(points, 1)", points.tolist())
    areas = [0.5 * abs(sum(x * v - u * y for (x, y), (u, v) in zip(each, each[1:] + each[:1], strict=True)))
             for each in polygons]  # fmt: skip
    assert sum(areas) == pytest.approx(4.0)
    for index, corners in enumerate(polygons):
        for corner in corners:  # a corner is as near to its own point as to any other
            distances = np.square(points - corner).sum(1)
            assert distances[index] <= distances.min() + 1e-9


@pytest.mark.parametrize("width", [380, 1400])
def test_controls_do_what_they_say(seen, page, width):
    page.set_viewport_size({"width": width, "height": 900})
    seen.requests.clear()
    page.reload()

    def state():
        return page.evaluate("() => ({...routingLab.world, cold: routingLab.coldLatents()})")

    sentence = page.locator(".lab-sentence")
    page.click("[data-action=step]")
    assert "After 1 step:" in sentence.inner_text()
    page.click("[data-action=play]")
    page.wait_for_function("routingLab.world.step > 5")
    page.click("[data-action=play]")
    stopped = state()["step"]
    page.wait_for_timeout(200)
    assert state()["step"] == stopped
    page.click("[data-action=reset]")
    assert state()["step"] == 0

    def slide(name, value):
        page.locator(f"#lab-{name}").fill(str(value))

    slide("candidates", 5)
    assert len(state()["routed"]["points"]) == len(state()["tied"]["points"]) == 5
    assert page.locator(".lab-routed .lab-cells polygon").count() == 5
    slide("cloning", 0)
    slide("q", 0.5)
    assert state()["settings"]["cloning"] == 1
    assert state()["settings"]["q"] == 0.25
    page.select_option("#lab-start", "untrained")
    slide("radius", 0.1)
    assert np.linalg.norm(state()["routed"]["points"], axis=1).max() <= 0.06
    page.select_option("#lab-prior", "normal")
    assert state()["settings"]["prior"] == "normal"
    page.check("#lab-fresh")
    assert len(state()["routed"]["points"]) == 64
    assert {len(each) for each in state()["drawn"]} == {5}

    page.click("[data-situation=cold]")
    page.evaluate("() => { for (let i = 0; i < 30; i++) routingLab.takeStep(); routingLab.show() }")
    cold = sum(state()["cold"])
    assert cold > 12
    assert f"{cold} of 24 latents are cold" in sentence.inner_text()
    assert page.locator(".lab-routed .lab-cold").count() == cold

    # A hill by mouse, a data action by keyboard, both in either panel; then one more of each, and one less.
    page.click("[data-situation=handoff]")
    handle = page.locator(".lab-tied [data-kind=hills]")
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2 + 40, box["y"] + box["height"] / 2 + 20)
    page.mouse.up()
    at = state()["hills"][0]["at"]
    assert at[0] > 0.1
    assert at[1] < 0.8
    before = state()["data"][7]
    page.locator(".lab-routed [data-kind=data][data-index='7']").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Shift+ArrowUp")
    np.testing.assert_allclose(state()["data"][7], [before[0] + 0.02, before[1] + 0.1])
    count = len(state()["data"])
    page.click("[data-action=data]")
    assert len(state()["data"]) == count + 1
    page.keyboard.press("Tab")
    page.click("[data-action=remove]")
    assert len(state()["data"]) == count
    page.click("[data-action=hill]")
    assert len(state()["hills"]) == 2
    page.click("[data-action=remove]")
    assert page.locator("[data-action=remove]").is_disabled()  # the last hill stays

    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert not seen.errors
    assert len(seen.requests) == 1


def test_situations_show_what_their_sentences_say(page):
    """After enough steps: what each text claims, in numbers."""

    def after(name, steps, **settings):
        return page.evaluate(
            """([name, steps, settings]) => {
                const { world, load, takeStep, figures, coldLatents, restart } = routingLab;
                load(name);
                Object.assign(world.settings, settings);
                if (Object.keys(settings).length) restart();
                for (let step = 0; step < steps; step++) takeStep();
                return {tied: figures(world.tied), routed: figures(world.routed), points: world.routed.points,
                        cold: coldLatents().filter(Boolean).length, look: world.routed.handovers[world.selected.index]};
            }""",
            [name, steps, settings],
        )

    modes = after("modes", 300)
    assert modes["routed"]["q"] > modes["tied"]["q"] + 0.04
    assert modes["routed"]["kept"] >= modes["tied"]["kept"]
    assert {x > 0 for x, _ in modes["points"]} == {False, True}
    strong = after("modes", 300, q=0.3)
    assert strong["routed"]["gap"] > strong["tied"]["gap"] > modes["tied"]["gap"]
    assert after("handoff", 150)["look"] >= 1
    average = after("averaging", 300)
    assert np.abs(np.asarray(average["points"])[:, 0]).max() < 0.4
    assert average["routed"]["kept"] == 0
    parted = after("averaging", 300, candidates=4)
    assert (np.abs(np.asarray(parted["points"])[:, 0]) > 0.4).mean() > 0.5
    few, enough = after("few", 300), after("few", 300, candidates=12)
    assert few["routed"]["kept"] <= 8 < enough["routed"]["kept"]
    assert after("cold", 200)["cold"] > 12
    assert after("cold", 200, fresh=True, candidates=4)["cold"] == 0
    outside = after("outside", 300)
    assert outside["routed"]["gap"] > outside["tied"]["gap"] > 0.1
    assert after("outside", 300, q=0.03)["routed"]["kept"] > 20


def test_the_page_of_the_site_uses_these_files():
    text = (LAB.parent / "routing-lab.md").read_text()
    for name in ("lab.css", "routing.js", "lab.js"):
        assert f"../lab/{name}" in text
    assert '<div id="lab">' in text
