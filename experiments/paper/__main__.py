"""The command line of the paper's experiment: ``python -m experiments.paper``."""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import tessella
from experiments.paper.data import read_mnist, scikit_learn_digits
from experiments.paper.index import Folder, Key, configurations, missing

if TYPE_CHECKING:
    from experiments.paper.train import Epoch

_EXAMPLES: Final = """\
examples:
  python -m experiments.paper train --data mnist.npz --out nets/
      all 210 networks: 21 configurations, 10 seeds each, 20 epochs
  python -m experiments.paper train --data mnist/ --only 11-11 4-18 --seeds 3
      two configurations, seeds 0 to 2, from a folder with MNIST's four idx files (plain or .gz)
  python -m experiments.paper train --digits --out nets-digits/ --seeds 1
      the same with scikit-learn's 8 x 8 digits: no file needed, seconds

Networks that are in the folder already are skipped, so that a stopped run goes on when it is repeated.
index.jsonl lists the networks with their errors; "dead" marks those with a hidden layer that is always 0.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; errors end in one line on stderr and exit code 2.

    Parameters
    ----------
    arguments
        What was typed behind the program's name.
    """
    options = _parser().parse_args(arguments)
    try:
        return options.run(options)
    except tessella.TessellaError as error:
        sys.stderr.write(f"experiments.paper: error: {error}\n")
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description="The paper's experiment, step by step.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    train = commands.add_parser(
        "train",
        help="train the networks",
        description="Train 784-n1-n2-10 ReLU classifiers of digits, n1 + n2 = 22, all of one seed at once.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = train.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="PATH", help="MNIST: an .npz file, or a folder with its four idx files")
    source.add_argument("--digits", action="store_true", help="scikit-learn's small digits instead (64 inputs)")
    train.add_argument("--out", type=Path, default=Path("nets"), metavar="FOLDER", help="where networks are saved (nets)")
    train.add_argument("--seeds", type=_positive, default=10, metavar="N", help="networks per configuration (10)")
    train.add_argument("--first-seed", type=_natural, default=0, metavar="N", help="the first of these seeds (0)")
    train.add_argument("--epochs", type=_positive, default=20, metavar="N", help="passes over the training images (20)")
    train.add_argument("--batch-size", type=_positive, default=64, metavar="N", help="images per step (64)")
    train.add_argument("--learning-rate", type=_rate, default=1e-3, metavar="X", help="Adam's step size (0.001)")
    train.add_argument("--threads", type=_positive, default=1, metavar="N", help="threads of torch (1; 2 on an idle machine)")
    train.add_argument("--only", nargs="+", default=[], metavar="N1-N2", help="these configurations only, such as 11-11")
    train.add_argument("--force", action="store_true", help="train again what is in the folder already")
    train.set_defaults(run=_train)
    gap = commands.add_parser(
        "gap",
        help="how much of the gap the Empirical UB closes",
        description="Bounds of trained networks, counted where that ends in time: one JSON line per network.",
        epilog="example:\n  python -m experiments.paper gap --nets nets/ --only 1-21 2-20 3-19",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    gap.add_argument("--nets", type=Path, default=Path("nets"), metavar="FOLDER", help="where the networks are (nets)")
    gap.add_argument("--only", nargs="+", default=[], metavar="N1-N2", help="these configurations only, such as 1-21")
    gap.add_argument("--seconds", type=_rate, default=60.0, metavar="S", help="time for counting one network (60)")
    gap.set_defaults(run=_gap)
    return parser


def _gap(options: argparse.Namespace) -> int:
    from experiments.paper.gap import gaps  # noqa: PLC0415  loads the compiler

    for record in gaps(options.nets, options.only, options.seconds):
        sys.stdout.write(json.dumps(record) + "\n")
        sys.stdout.flush()
    return 0


def _train(options: argparse.Namespace) -> int:
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    keys = [Key(n1, n2, seed) for seed in seeds for n1, n2 in configurations(options.only)]
    digits = scikit_learn_digits() if options.digits else read_mnist(options.data)
    try:
        from experiments.paper.train import Recipe, train  # noqa: PLC0415  torch is optional, and slow to load
    except ImportError as error:
        msg = "training needs torch, which is not installed; install it with: pip install 'tessella[torch]'"
        raise tessella.MissingPackage(msg) from error
    recipe = Recipe(options.epochs, options.batch_size, options.learning_rate, options.threads)
    folder = Folder(options.out)
    folder.prepare()
    settings = {**recipe.record(), "data_sha256": digits.record()["data_sha256"]}
    todo = keys if options.force else missing(folder, keys, settings)
    if len(todo) < len(keys):
        _say(f"{len(keys) - len(todo)} of {len(keys)} networks are in {folder.path} already")
    begin, saved = perf_counter(), 0
    try:
        for records in train(folder, todo, digits, recipe, lambda epoch: _show(epoch, recipe.epochs)):
            saved += len(records)
            _say(_sentence(records))
    except KeyboardInterrupt:
        _say(f"stopped; {saved} new networks are in {folder.path}, and the same command goes on from there")
        return 130
    _say(f"{saved} networks trained in {perf_counter() - begin:.0f} s")
    every = folder.records()
    sys.stdout.write(_table({key: every[key] for key in keys}))
    return 0


def _show(epoch: "Epoch", epochs: int) -> None:
    """One line per epoch, each over the one before where that is possible."""
    left = epoch.seconds / epoch.number * (epochs - epoch.number)
    line = (
        f"seed {epoch.seed}, {epoch.networks} networks: epoch {epoch.number}/{epochs}, "
        f"cross-entropy {epoch.cross_entropy:.4f} (median), {epoch.seconds:.0f} s, {left:.0f} s left"
    )
    sys.stderr.write(f"\r\x1b[2K{line}" if sys.stderr.isatty() else f"{line}\n")
    sys.stderr.flush()


def _say(line: str) -> None:
    sys.stderr.write(f"\r\x1b[2K{line}\n" if sys.stderr.isatty() else f"{line}\n")


def _sentence(records: Mapping[Key, Mapping[str, Any]]) -> str:
    """What came out for one seed."""
    first = next(iter(records.values()))
    dead = sum(bool(record["dead"]) for record in records.values())
    error = median(record["test_error"] for record in records.values())
    return (
        f"seed {first['seed']}: {len(records)} networks saved, test error {100 * error:.2f} % (median), {dead} dead, "
        f"{first['stack_seconds']:.1f} s"
    )


def _table(records: Mapping[Key, Mapping[str, Any]]) -> str:
    """Test errors per configuration."""
    lines = [f"{'n1-n2':>5}  {'networks':>8}  {'dead':>4}  test error in %: {'best':>6}  {'median':>6}  {'worst':>6}"]
    for n1, n2 in sorted({key[:2] for key in records}):
        here = [record for key, record in records.items() if key[:2] == (n1, n2)]
        errors = [100 * record["test_error"] for record in here]
        dead = sum(bool(record["dead"]) for record in here)
        spread = f"{min(errors):>6.2f}  {median(errors):>6.2f}  {max(errors):>6.2f}"
        lines.append(f"{f'{n1}-{n2}':>5}  {len(here):>8}  {dead:>4}  {'':>17}{spread}")
    return "\n".join(lines) + "\n"


def _whole(text: str, least: int) -> int:
    try:
        number = int(text)
    except ValueError:
        number = least - 1
    if number < least:
        msg = f"{text!r} is no whole number of at least {least}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _positive(text: str) -> int:
    return _whole(text, 1)


def _natural(text: str) -> int:
    return _whole(text, 0)


def _rate(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        msg = f"{text!r} is no positive number"
        raise argparse.ArgumentTypeError(msg)
    return number


if __name__ == "__main__":
    sys.exit(main())
