"""``python -m tessella``."""

from tessella.cli import main

main()
