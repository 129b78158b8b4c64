import json
import re

from made_results import made_group, made_result

from drol.reports.comparison_page import write_page
from drol.results.compare import compare
from drol.results.result_files import write_results


def page_of(folder, *results, **options):
    write_results(results, folder / "results.csv")
    write_page(compare(folder / "results.csv", **options), folder / "page.html")
    return (folder / "page.html").read_text()


def test_the_page_has_tables_curves_and_profiles_and_needs_no_other_file(tmp_path):
    page = page_of(tmp_path, *made_group("fql", [10, 20]), *made_group("drol", [45, 50]), at="best")
    assert re.findall("<h2>(.*?)</h2>", page) == ["Scores", "Learning", "All tasks", "Performance profiles"]
    assert page.count("<svg") == 2
    data = json.loads(re.search(r'id="data">(.*?)</script>', page)[1])
    assert data["groups"] == [{"label": "fql"}, {"label": "drol"}]
    means = [line for line in data["charts"][0]["series"] if not line.get("thin")]
    assert [(line["label"], line["y"][-1]) for line in means] == [("fql", 30.0), ("drol", 95.0)]
    assert "<td>baseline</td>" in page
    assert "biased upwards" in page
    assert "src=" not in page


def test_scores_of_different_kinds_are_not_summed_up(tmp_path):
    page = page_of(tmp_path, made_result(), made_result(task="hand", score_name="normalised score"))
    assert re.findall("<h2>(.*?)</h2>", page) == ["Scores", "Learning"]


def test_one_group_is_shown_without_a_comparison(tmp_path):
    page = page_of(tmp_path, made_result(task="<b>"))
    assert page.count("<svg") == 1
    assert "&lt;b&gt;: success" in page
