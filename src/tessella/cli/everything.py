"""The program with all its commands."""

from tessella.cli import analyzing, checking, commands, compressing, milp, nearby, pictures, structure, warm
from tessella.cli.app import app

__all__ = ["analyzing", "app", "checking", "commands", "compressing", "milp", "nearby", "pictures", "structure", "warm"]
