"""The command line: what a person types.

Nothing is imported here before `main` begins: what it loads takes a second, and Ctrl-C is to end that in one line, too.
"""


def main() -> None:
    """Run the command line; errors, and Ctrl-C, end in one line on stderr."""
    import sys  # noqa: PLC0415

    try:
        from tessella.cli.running import run  # noqa: PLC0415

        code = run()
    except KeyboardInterrupt:  # before anybody listened
        sys.stderr.write("tessella: stopped by Ctrl-C\n")
        code = 130
    sys.exit(code)
