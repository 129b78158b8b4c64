import pytest

from drol.errors import InputError
from drol.jobs import make_executor
from drol.jobs.job import TIMINGS, Finished, Timing, append_timing, last_lines, read_timings


def test_timings_of_runs_are_kept(tmp_path):
    timing = Timing("smoke", "maze", "drol", 1, 1, 60, 1800.0, "smoke/maze/drol-k1/seed-0", 2)
    append_timing(tmp_path, timing)
    assert read_timings(tmp_path) == [timing]
    assert timing.core_hours == 1.0
    (tmp_path / TIMINGS).write_text("broken\n")
    with pytest.raises(InputError, match=r"line 1: not JSON .*remove that line"):
        read_timings(tmp_path)


def test_the_last_lines_of_a_log_say_why_on_one_line(tmp_path):
    log = tmp_path / "a.log"
    assert last_lines(log) == "it has no log"
    log.write_text("x" * 5000 + "\nfirst\n\n\x1b[31msecond\nthird\nfourth\n")
    assert last_lines(log) == "\\x1b[31msecond | third | fourth"
    assert Finished("a", 3, 1.0, log, attempts=2).reason == f"exit code 3 after 2 attempts: {last_lines(log)}"
    assert "after 1 attempt:" in Finished("a", 3, 1.0, log).reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("slum",), "unknown executor 'slum'; did you mean slurm"),
        (("local", 1, 1, 2), "cores is for the executor ray or slurm; the executor is local"),
        (("slurm", 1, 1, 0), "cores is 0; it must be a whole number of at least 1"),
        (("ray", 1, 1, 1, 1.5), "gpus is 1.5; it must be a share of one, such as 0.25, or a whole number"),
        (("slurm", None, 1, None, 1.0), "gpus is for the executor ray; the executor is slurm"),
        (("local", None, 1, None, None, "auto"), "address is for the executor ray; the executor is local"),
        (("ray", None, 1, None, None, None, "--time=1"), "sbatch is for the executor slurm; the executor is ray"),
        (("local", 0), "processes is 0; it must be a whole number of at least 1"),
        (("local", 1, -1), "retries is -1; it must be a whole number of at least 0"),
    ],
)
def test_a_mistake_is_one_line(arguments, message):
    with pytest.raises(InputError, match=message):
        make_executor(*arguments)
