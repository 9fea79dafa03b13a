"""``python -m experiments.paper``.  Little is imported here, so that Ctrl-C ends quietly while the rest is being loaded."""

import signal
import sys


def main() -> int:
    """Run a command; Ctrl-C that nobody else heard ends in one line."""
    try:
        from experiments.paper.commands import main as command  # noqa: PLC0415  loads the compiler

        return command()
    except KeyboardInterrupt:
        exec("")  # noqa: S102  else Python remembers a Ctrl-C within code made by a library, and its exit code is another
        sys.stderr.write("\nexperiments.paper: stopped by Ctrl-C\n")
        return 130
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, signal.SIG_IGN)  # it is ending already


if __name__ == "__main__":
    sys.exit(main())
