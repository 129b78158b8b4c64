import pytest

from drol.errors import InputError
from drol_reproduction.collecting import find_collector


def test_the_benchmark_of_a_dataset_collects_it():
    assert find_collector("cube-single-play-v0").suffix == ".npz"
    assert find_collector("pen-expert-v1").suffix == ".hdf5"
    with pytest.raises(InputError, match="pen-human-v1 cannot be collected; get it by download or --dataset"):
        find_collector("pen-human-v1")
    with pytest.raises(InputError, match=r"unknown dataset 'pen-expart-v1'; did you mean pen-expert-v1\?"):
        find_collector("pen-expart-v1")
