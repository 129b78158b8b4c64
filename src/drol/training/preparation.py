"""The data of a run as its updates see it: observations standardised where the run asks for it."""

from typing import Any

from drol.data.on_disk import MappedDataset
from drol.policy import Standardisation
from drol.runs.config import RunConfig


def standardise(config: RunConfig, train: Any) -> Standardisation:
    """The shift and scale that the training data asks for."""
    if not config.standardise_observations:
        return Standardisation.identity(train.spec)
    if isinstance(train, MappedDataset):
        return Standardisation.from_moments(*train.moments(), config.observation_scale)
    return Standardisation.of(train.observation, config.observation_scale)


def prepare(config: RunConfig, dataset: Any, standardisation: Standardisation) -> Any:
    """A dataset with its observations shifted and scaled."""
    if not config.standardise_observations:
        return dataset
    return dataset.standardised(standardisation.mean, standardisation.deviation)
