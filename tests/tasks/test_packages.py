"""A simulator that is not installed is one line, not a traceback."""

import sys
from types import SimpleNamespace

import pytest

from drol.errors import InputError
from drol.tasks import DEFAULT_TASK, load_task, packages
from drol.tasks.ogbench import SOURCE


def pretend(monkeypatch, version, package):
    monkeypatch.setattr(packages, "sys", SimpleNamespace(version_info=version))
    monkeypatch.setitem(sys.modules, package, None)


@pytest.mark.parametrize("package", ["gymnasium", "ogbench"])
def test_the_extra_to_install_is_named(monkeypatch, package):
    pretend(monkeypatch, (3, 12, 3), package)
    with pytest.raises(InputError) as caught:
        load_task(DEFAULT_TASK)
    assert str(caught.value) == (
        f"OGBench's environments need the package {package}; install them with: pip install 'drol[ogbench]'"
    )


def test_where_pip_cannot_install_it_at_once_the_second_command_is_named(monkeypatch):
    pretend(monkeypatch, (3, 13, 0), "gymnasium")
    with pytest.raises(InputError) as caught:
        load_task(DEFAULT_TASK)
    message = str(caught.value)
    assert message.startswith("OGBench's environments need the package gymnasium; ")
    assert "install them on Python 3.13 with: pip install 'drol[ogbench]' && pip install --no-deps ogbench" in message
    assert message.endswith("or use ./run of a checkout")
    assert "\n" not in message


def test_addresses_need_the_package_too(monkeypatch):
    pretend(monkeypatch, (3, 11, 0), "ogbench.utils")
    with pytest.raises(InputError, match=r"need the package ogbench; install them with: pip install"):
        SOURCE.file_addresses("x.npz")
