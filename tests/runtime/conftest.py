import pytest
from toys import saved_run, tiny_config, tiny_task

import drol
from drol.export.export import export_policy


@pytest.fixture(scope="package")
def served_bundle(tmp_path_factory):
    """A bundle that draws two actions and takes the better one."""
    path = tmp_path_factory.mktemp("serve")
    saved_run(path / "run", tiny_config(), (12,))
    return export_policy(drol.open_run(path / "run", task=tiny_task()), path / "bundle", best_of=2).path
