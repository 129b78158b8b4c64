"""The one error that is the user's to mend."""


class InputError(ValueError):
    """What was given cannot be used; the message is one line that names what was given and what is allowed."""
