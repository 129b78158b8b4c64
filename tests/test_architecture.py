"""The tree is what docs/architecture.md says."""

import ast
import dataclasses
import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import drol
import drol.algorithms
import drol.tasks
from drol.results.result_files import read_results

ROOT = Path(__file__).parents[1]
MADE = ("commands/", "reference/", "notebooks/")  # pages that the site makes; its build in strict mode looks for them


def test_imports_go_one_way():
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stdout + answer.stderr


def test_every_public_name_is_there_and_explained():
    for name in drol.__all__:
        value = getattr(drol, name)
        assert isinstance(value, dict) or value.__doc__, name
    tree = ast.parse((ROOT / "src" / "drol" / "__init__.py").read_text())
    typed = {alias.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert typed - {"TYPE_CHECKING", "Any"} == set(drol.__all__)  # type checkers see what Python sees


def public_functions():
    """Every public function, and every public method of a public class that is not inherited."""
    for name in drol.__all__:
        value = getattr(drol, name)
        if inspect.isfunction(value):
            yield name, value
        elif inspect.isclass(value):
            for inner, method in vars(value).items():
                if inspect.isfunction(method) and not inner.startswith("_"):
                    yield f"{name}.{inner}", method


def test_public_functions_explain_their_arguments():
    """Those with more than one argument; of a class that users derive from, the contract says it in one line."""
    contracts = ("Algorithm", "TaskSource", "BC", "DROL", "FAWAC", "FBRAC", "FQL", "IFQL", "IQL", "SORL", "DeFlow")
    contracts += ("DROLEquation", "ReBRAC", "RunConfig")
    for name, function in public_functions():
        if name.split(".")[0] in contracts:
            continue
        arguments = [each for each in inspect.signature(function).parameters if each not in ("self", "cls")]
        text = function.__doc__ or ""
        for argument in arguments if len(arguments) > 1 and "." not in name else ():
            assert f"    {argument}: " in text, (name, argument)
        for argument in arguments:
            annotation = inspect.signature(function).parameters[argument].annotation
            assert annotation is not inspect.Parameter.empty or name == "register_algorithm", (name, argument)


@pytest.mark.parametrize("name", drol.__all__)
def test_the_examples_of_public_names_run(name, monkeypatch):
    monkeypatch.setattr(drol.algorithms, "REGISTERED", {})  # what an example registers is forgotten
    monkeypatch.setattr(drol.tasks, "REGISTRY", drol.tasks.Registry())
    value = getattr(drol, name)
    finder, runner = doctest.DocTestFinder(recurse=True), doctest.DocTestRunner(verbose=False)
    for test in finder.find(value, name, module=False, globs={}) if hasattr(value, "__doc__") else ():
        assert runner.run(test).failed == 0, test.name


def test_every_source_module_says_what_it_is():
    for source in (ROOT / "src", ROOT / "reproduction" / "src"):
        for path in source.rglob("*.py"):
            if path.stat().st_size:
                name = ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__")
                assert importlib.import_module(name).__doc__, name


def test_to_import_drol_changes_no_style_of_matplotlib():
    code = (
        "import matplotlib; before = dict(matplotlib.rcParams); "
        "import drol.reports.run_pages, drol.reports.task_data_figures; "
        "import drol_reproduction.propositions.proposition_figures, drol_reproduction.propositions.bandit; "
        "import sys; sys.exit(dict(matplotlib.rcParams) != before)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("path", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda path: path.name)
def test_links_and_paths_in_the_documents_exist(path):
    text = path.read_text()
    for target in re.findall(r"\]\(([^)#]+)\)", text):
        if "://" not in target and not target.startswith(MADE):
            assert (path.parent / target).exists(), target


@pytest.mark.parametrize("kind", [drol.Spec, drol.Transition])
def test_values_name_their_fields_in_the_reference(kind):
    for field in dataclasses.fields(kind):
        assert f"\n        {field.name}: " in kind.__doc__, field.name


def test_the_scores_of_an_example_are_those_that_were_measured():
    final = {row.seed: row.score for row in read_results(ROOT / "results" / "demo.csv") if is_final(row)}
    assert str([final[seed] for seed in (0, 1, 2)]) in drol.train.__doc__


def is_final(row):
    cloning = "q_weight" in row.settings
    return (row.step, row.evaluation, row.best_of) == (row.steps, "training", 1) and not cloning
