import pytest

from drol_reproduction.collecting.ogbench import collect as collecting
from drol_reproduction.collecting.ogbench.collecting_process import Collector


class TeamOfOne:
    """Stands for a team where the processes are not the point: it collects in the process of the test."""

    def __init__(self, size: int, arguments: tuple):
        self.collector = Collector(*arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def collect(self, numbers):
        return map(self.collector.collect, numbers)


@pytest.fixture(scope="session")
def collect_here():
    """Run `collect` in this process."""

    def collect(*arguments, **settings):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(collecting, "Team", TeamOfOne)
            return collecting.collect(*arguments, **settings)

    return collect
