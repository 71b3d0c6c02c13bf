"""What can go wrong, by who can fix it; each class carries the exit code of the command line."""


class OutbidError(Exception):
    """Base of the errors that Outbid raises on purpose; the message says what to do next."""

    exit_code = 1


class SettingsError(OutbidError, ValueError):
    """A setting, option or configuration file makes no sense."""

    exit_code = 2


class InputError(OutbidError, ValueError):
    """The data cannot be used as they are; the message names the file, the row or frame, and the remedy."""

    exit_code = 3


class ResourceError(OutbidError, RuntimeError):
    """The machine lacks something: memory, disk space, a GPU or an optional package."""

    exit_code = 4


class SolverError(OutbidError, RuntimeError):
    """A solver ended without a usable assignment."""

    exit_code = 5
