"""The report in a real browser: nothing goes wrong, nothing is loaded, controls do what they say."""

import numpy as np
import pytest
from browser import until, visit
from PIL import Image
from toys import TINY, saved_run, tiny_config, tiny_task

from drol.algorithms.fql import FQL
from drol.reports.report import report
from drol.runs.records import EvaluationRow, MetricsRow
from drol.runs.run import Run
from drol.tasks.base import Episode

HOSTILE = "<img src=x onerror=alert(1)></script><script>document.title='taken'</script>"
METRICS = ("critic_loss", "diagnostics/routed_bc_loss", "diagnostics/candidate_distance")
METRICS += ("diagnostics/candidate_divergence", HOSTILE, "m" * 3000)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Two groups in a maze, one with routing; their names contain HTML."""
    folder, runs = tmp_path_factory.mktemp("pages"), []
    task = tiny_task(name="toy", score_name=f"success (%) {HOSTILE}")
    for name, algorithm in (("drol", TINY), ("fql", FQL(hidden_sizes=(8, 8), batch_size=8))):
        config = tiny_config(algorithm=algorithm, seeds=(0, 1), steps=6, task=f"toy {HOSTILE} {'t' * 300}")
        run = Run(saved_run(folder / f"{name}<b>", config, (0, 6)), config, task)
        for step in (0, 6):
            for seed in (0, 1):
                played = (Episode(0, 1.0, 9, step > 0), Episode(1, -1.0, 12, False))
                run.directory.log_evaluation(EvaluationRow(step, seed, 50.0 * (step > 0), played))
                metrics = METRICS if name == "drol" else METRICS[:1]
                run.directory.log_metrics(MetricsRow(step, seed, dict.fromkeys(metrics, 1.0 + seed + step)))
            run.directory.save_trajectories(step, 0, [np.zeros((10, 2)), np.ones((13, 2))])
        runs.append(run)
    video = runs[0].directory.video(6, 0, 0)
    video.parent.mkdir()
    pictures = [Image.new("RGB", (40, 30), (80 * number, 0, 0)) for number in range(3)]
    pictures[0].save(video, save_all=True, append_images=pictures[1:])
    path = report(runs, out=folder / "all.html")
    assert path.stat().st_size < 3_000_000
    return path


@pytest.mark.parametrize(("width", "scheme"), [(380, "dark"), (1400, "light")])
def test_a_report_loads_without_errors_network_or_scrolling_sideways(page, width, scheme):
    with visit(page.as_uri(), width, scheme=scheme) as seen:
        tab = seen.page
        assert tab.locator(".chart svg").count() > 5
        assert seen.errors == []
        assert [each for each in seen.requests if not each.startswith("data:")] == [page.as_uri()]
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert tab.title() != "taken"
        assert tab.locator("main img").count() == 0  # which the names tried to add
        dark = tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(14, 18, 23)"
        assert dark == (scheme == "dark")


def test_the_controls_of_a_report_do_what_they_say(page):
    with visit(page.as_uri()) as seen:
        tab = seen.page
        learning, buttons = tab.locator("#learning .chart").first, tab.locator("#legend button")
        assert buttons.count() == 2
        lines = learning.locator("path.line").count()
        buttons.nth(0).click()
        assert buttons.nth(0).get_attribute("aria-pressed") == "false"
        assert learning.locator("path.line").count() == lines / 2
        assert tab.locator("#in-the-maze figure:visible").count() == 1  # its panel went as well
        buttons.nth(0).click()
        buttons.nth(1).click(modifiers=["Shift"])
        assert [buttons.nth(i).get_attribute("aria-pressed") for i in (0, 1)] == ["false", "true"]
        buttons.nth(1).click(modifiers=["Shift"])
        assert learning.locator("path.line").count() == lines

        learning.focus()
        tab.keyboard.press("ArrowRight")
        assert "0 updates" in learning.locator(".tip").inner_text()
        tab.keyboard.press("ArrowRight")
        assert "6 updates" in learning.locator(".tip").inner_text()
        tab.keyboard.press("Escape")
        assert learning.locator(".tip").is_hidden()
        learning.hover()
        assert "updates" in learning.locator(".tip").inner_text()

        maze = tab.locator("#in-the-maze")
        assert "6 updates: 1 of 2 arrive" in maze.locator("figcaption").first.inner_text()
        maze.locator("input").focus()
        tab.keyboard.press("ArrowLeft")
        assert "0 updates: 0 of 2 arrive" in maze.locator("figcaption").first.inner_text()

        actions = tab.locator("#candidates-and-their-cells")
        drol = actions.locator("figure").nth(1)  # after the map
        assert drol.locator("polygon").count() == 16
        assert actions.locator("figure").nth(2).locator("polygon").count() == 0  # the other one does not route
        before = drol.inner_html()
        actions.locator("input").nth(1).focus()
        tab.keyboard.press("ArrowRight")
        assert "2 of 6" in actions.locator("output").nth(1).inner_text()
        assert drol.inner_html() != before
        actions.locator("figure").nth(0).get_by_text("5", exact=True).click()
        assert "5 of 6" in actions.locator("output").nth(1).inner_text()

        film = tab.locator("#films")
        film.locator("input").focus()
        tab.keyboard.press("End")
        assert film.locator("image").get_attribute("x") == "-400"
        film.get_by_role("button").click()
        until(tab, lambda: film.locator("output").inner_text() == "picture 2 of 3")
        film.get_by_role("button").click()

        tab.locator("#metric-filter").fill("routed")
        assert tab.locator("#metrics .charts > div:visible").count() == 1
        tab.locator("#metric-filter").fill("")
        assert tab.locator("#metrics .charts > div:visible").count() == len(METRICS)
        assert seen.errors == []


def test_a_report_prints_in_light_with_its_charts(page):
    with visit(page.as_uri(), scheme="dark") as seen:
        seen.page.emulate_media(media="print", color_scheme="dark")
        assert seen.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert not seen.page.locator("nav").is_visible()
        assert seen.page.locator("#learning .chart path.line").first.is_visible()
        assert seen.page.pdf().startswith(b"%PDF")
