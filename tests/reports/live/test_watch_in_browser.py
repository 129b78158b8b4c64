"""The page of `drol watch` in a real browser: it follows runs, and names of runs are never more than text."""

import contextlib
import shutil

import pytest
from browser import until, visit
from running_servers import running
from watched_runs import write_many, write_rows, write_settings

from drol.reports.live.server import make_server
from drol.runs.directory import LOCK
from drol.storage import exclusive

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def serve():
    """Start servers that end with the test."""
    with contextlib.ExitStack() as stack:
        yield lambda path, **changes: stack.enter_context(running(make_server(path, **changes))).address


def test_the_list_follows_runs_that_begin_go_on_and_vanish(tmp_path, serve):
    with visit(serve(tmp_path)) as seen:
        tab = seen.page
        tab.get_by_text("No run is here yet").wait_for()
        directory = write_settings(tmp_path / f"{HOSTILE} a")
        row = tab.locator("#runs li")
        row.wait_for()
        assert HOSTILE in row.inner_text()
        with exclusive(directory.path / LOCK, "busy"):
            tab.get_by_text("running", exact=True).wait_for()
            write_rows(directory, [100, 300])
            tab.get_by_text("300 of 1,000").wait_for()
            assert row.locator(".score").inner_text().startswith("30")
            assert row.locator("svg polyline").count() == 1
            with (directory.path / "metrics.jsonl").open("a") as file:
                file.write('{"step": 400, "se')
            write_settings(tmp_path / "b")
            tab.locator("#runs li").nth(1).wait_for()
            assert "300 of 1,000" in tab.locator("#runs").inner_text()
        tab.locator("#find").fill("no such")
        assert tab.locator("#runs li:visible").count() == 0
        tab.locator("#find").fill("")
        shutil.rmtree(tmp_path / "b")
        until(tab, lambda: tab.locator("#runs li").count() == 1)
        assert seen.errors == []
        assert tab.locator("img").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(380, "light"), (1400, "dark")])
def test_the_page_of_runs_grows_as_rows_arrive(tmp_path, serve, width, scheme):
    one, two = write_settings(tmp_path / "one"), write_settings(tmp_path / ("two" + "o" * 180))
    write_rows(one, [100, 200])
    write_rows(two, [100])
    address = serve(tmp_path)
    with visit(address, width, scheme=scheme) as seen:
        tab = seen.page
        tab.locator("#runs li").nth(1).wait_for()
        assert tab.locator("#compare").is_disabled()
        for box in tab.locator("#runs input").all():
            box.check()
        tab.get_by_text("compare 2 runs").click()
        tab.locator("#details .chart").nth(2).wait_for()
        assert tab.locator(".legend button").count() == 2
        learning = tab.locator("#details .chart").first
        before = learning.locator("circle").count()
        write_rows(one, [300])
        until(tab, lambda: learning.locator("circle").count() > before)
        tab.locator(".legend button").first.click()
        hidden = learning.locator("circle").count()
        write_rows(one, [400])
        write_rows(two, [400])
        until(tab, lambda: learning.locator("circle").count() == hidden + 1)  # hidden methods stay hidden
        assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
        shutil.rmtree(one.path)
        shutil.rmtree(two.path)
        tab.get_by_text("This run is not here any more.").wait_for()
        tab.get_by_text("all runs").click()
        tab.get_by_text("No run is here yet").wait_for()
        assert seen.errors == []
        assert all(each.startswith((address, "data:")) for each in seen.requests)


def test_the_report_of_a_run_is_on_its_page_and_follows_when_it_is_made_again(tmp_path, serve):
    run = write_settings(tmp_path / "one")
    write_rows(run, [100])
    with visit(serve(tmp_path)) as seen:
        tab = seen.page
        tab.locator("#runs li a").click()
        tab.get_by_text("No report yet").wait_for()
        for words in ("first", "second"):
            run.report.write_text(f"<!doctype html><p>the {words}</p><script>document.title = origin</script>")
            tab.frame_locator("iframe").get_by_text(f"the {words}").wait_for()
        assert tab.frames[-1].title() == "null"  # an opaque origin: the frame cannot read this page
        assert seen.errors == []


def test_two_hundred_runs_are_listed_sorted_and_found(tmp_path, serve):
    write_many(tmp_path, 200)
    with visit(serve(tmp_path)) as seen:
        tab = seen.page
        tab.locator("#runs li").nth(199).wait_for(state="attached")
        tab.locator("#order").select_option("name")
        assert tab.locator("#runs li .name a").nth(10).inner_text() == "run-10"
        tab.locator("#find").fill("run-19")
        assert tab.locator("#runs li:visible").count() == 11
        tab.locator("#runs li:visible a").first.click()
        tab.get_by_text("critic_loss").wait_for()
        assert seen.errors == []
