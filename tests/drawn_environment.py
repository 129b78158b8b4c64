"""An environment that draws itself. No jax here, because the process of the environment imports this."""

import numpy as np
from fake_environments import Walk


class Drawn(Walk):
    """A walk whose picture is brighter with each step; a blind one returns nothing."""

    def __init__(self, blind: bool = False):
        super().__init__()
        self.blind = blind
        self.unwrapped, self.render_mode = self, None

    def render(self):
        assert self.render_mode == "rgb_array"
        return None if self.blind else np.full((4, 4, 3), 20 * self.steps, np.uint8)
