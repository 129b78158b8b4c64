"""`--import cluster_toys` registers a tiny task that has only data, for runs in separate processes."""

from toys import tiny_task

import drol


class Toys(drol.TaskSource):
    name = "toys"

    def task_names(self):
        return ["toy"]

    def load(self, name, dataset_path=None):
        return tiny_task(None)


drol.register_task_source(Toys())
