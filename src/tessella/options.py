"""What callers may ask for: one check per option, the same for everybody who takes it.

Each check is told who takes the option ("a count", "an estimate"), and raises an `OptionError` of one line.
"""

from tessella.errors import OptionError


def check_executor(executor: object, who: str) -> None:
    """Raise unless this is an executor, or None."""
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        found = f"the class {executor.__name__}" if isinstance(executor, type) else f"a {type(executor).__name__}"
        msg = f"executor is {found}; {who} takes a concurrent.futures.Executor, or None to work in this process"
        raise OptionError(msg)
