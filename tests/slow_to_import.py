"""A job that imports this lasts until it is stopped."""

import time

time.sleep(600)
