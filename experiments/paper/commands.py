"""The commands of ``python -m experiments.paper``."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

import tessella
from experiments.paper.data import read_mnist, scikit_learn_digits
from experiments.paper.index import Folder, Key, chosen, configurations, missing
from experiments.paper.options import amount, ending_gently, natural, positive, rate, seeds_of, share
from experiments.paper.tasks import TASKS, Settings

if TYPE_CHECKING:
    from experiments.paper.train import Epoch

_TRAIN_EXAMPLES: Final = """\
examples:
  python -m experiments.paper train --data mnist.npz --out nets/
      all 210 networks: 21 configurations, 10 seeds each, 20 epochs
  python -m experiments.paper train --data mnist/ --only 11-11 4-18 --seeds 3
      two configurations, seeds 0 to 2, from a folder with MNIST's four idx files (plain or .gz)
  python -m experiments.paper train --digits --out nets-digits/ --seeds 1
      the same with scikit-learn's 8 x 8 digits: no file needed, seconds

Networks that are in the folder already are skipped, so that a stopped run goes on when it is repeated.
The networks of a seed are computed together, and sums are rounded differently in other company: a part of the configurations gives
networks that differ a little from those of a full run.
index.jsonl lists the networks with their errors; "dead" marks those with a hidden layer that is always 0.
"""

_RUN_EXAMPLES: Final = """\
examples:
  python -m experiments.paper run --nets nets/ --out results/
      everything, for all networks of the folder
  python -m experiments.paper run --seeds 0-2 --tasks stability upper xor-2 xor-3 xor-4 xor-5 estimate
      all but exact counts, for three seeds
  python -m experiments.paper run --tasks count --exact-seconds 600 --only 1-21 2-20 3-19
      counts (and what they need) of at most ten minutes each
  python -m experiments.paper run --executor tcp://host:8786 --workers 40
      on a dask cluster, whose workers have one thread each and can import experiments.paper

Each result is a line of results.jsonl as soon as it is there.  Ctrl-C loses nothing but the tasks under way (a count goes on from its
checkpoint), and the same command goes on.  A count that was stopped by its limit, or skipped, is done again with a larger --exact-seconds.
"""

_REPORT_EXAMPLES: Final = """\
examples:
  python -m experiments.paper report --results results/ -o report.html
      one page with everything in it
  python -m experiments.paper report --results results/ -o report.html --figures figures/ --formats pdf
      and each figure for a paper
"""


_CERTIFY_EXAMPLES: Final = """\
examples:
  python -m experiments.paper certify --nets nets/ --results results/
      networks with at most 100,000 regions in whole, 1,000 random subtrees of each other network whose count is in results/results.jsonl
  python -m experiments.paper certify --only 6-16 --seeds 0 --parts 2000 --keep certificates/
      2,000 subtrees of one network; the certificates stay

Each network is a line of certificates.jsonl beside the results as soon as it is done.  The same command goes on where it was stopped.
Whoever does not trust us takes another --seed.
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
        epilog=_TRAIN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    source = train.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", type=Path, metavar="PATH", help="MNIST: an .npz file, or a folder with its four idx files")
    source.add_argument("--digits", action="store_true", help="scikit-learn's small digits instead (64 inputs)")
    train.add_argument("--out", type=Path, default=Path("nets"), metavar="FOLDER", help="where networks are saved (nets)")
    train.add_argument("--seeds", type=positive, default=10, metavar="N", help="networks per configuration (10)")
    train.add_argument("--first-seed", type=natural, default=0, metavar="N", help="the first of these seeds (0)")
    train.add_argument("--epochs", type=positive, default=20, metavar="N", help="passes over the training images (20)")
    train.add_argument("--batch-size", type=positive, default=64, metavar="N", help="images per step (64)")
    train.add_argument("--learning-rate", type=rate, default=1e-3, metavar="X", help="Adam's step size (0.001)")
    train.add_argument("--threads", type=positive, default=1, metavar="N", help="threads of torch (1; 2 on an idle machine)")
    train.add_argument("--only", nargs="+", default=[], metavar="N1-N2", help="these configurations only, such as 11-11")
    train.add_argument("--force", action="store_true", help="train again what is in the folder already")
    train.set_defaults(run=_train)
    _add_run(commands)
    _add_certify(commands)
    _add_report(commands)
    smoke = commands.add_parser("smoke", help="all steps on scikit-learn's digits, in a few minutes")
    smoke.add_argument("--out", type=Path, default=Path("smoke"), metavar="FOLDER", help="where everything goes (smoke)")
    smoke.set_defaults(run=_smoke)
    return parser


def _add_run(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="measure the networks",
        description="Stability, upper bounds, XOR-2 to XOR-5, estimate and exact count of trained networks.",
        epilog=_RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    run.add_argument("--nets", type=Path, default=Path("nets"), metavar="FOLDER", help="where the networks are (nets)")
    run.add_argument("--out", type=Path, default=Path("results"), metavar="FOLDER", help="where results.jsonl is (results)")
    run.add_argument("--only", nargs="+", default=[], metavar="N1-N2", help="these configurations only, such as 11-11")
    run.add_argument("--seeds", nargs="+", default=[], metavar="N", help="these seeds only, such as 0 or 0-2 (all)")
    run.add_argument("--tasks", nargs="+", default=list(TASKS), metavar="TASK", help=f"of {', '.join(TASKS)} (all)")
    run.add_argument("--confidence", type=share, default=0.95, metavar="P", help="of the probable bounds (0.95)")
    run.add_argument("--seed", type=natural, default=0, metavar="N", help="of all random choices (0)")
    run.add_argument(
        "--estimate-seconds",
        type=rate,
        default=20.0,
        metavar="S",
        help="CPU time of one core for an estimate (20: two cores, 10 s)",
    )
    run.add_argument("--exact-seconds", type=rate, default=3600.0, metavar="S", help="time limit of a count (3600)")
    run.add_argument("--workers", type=positive, default=1, metavar="N", help="tasks at a time, one thread each (1)")
    run.add_argument(
        "--executor", default="processes", metavar="WHERE", help="processes of this machine, or a dask scheduler's address"
    )
    run.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    from experiments.paper.run import Measuring, executor_of, measure  # noqa: PLC0415  slow to load
    from experiments.paper.watch import watching  # noqa: PLC0415

    settings = Settings(options.confidence, options.seed, options.estimate_seconds, options.exact_seconds)
    asked, seeds = configurations(options.only), seeds_of(options.seeds)
    keys = chosen(Folder(options.nets), asked if options.only else [], seeds)
    plan = Measuring.of(options.nets, options.out, keys, options.tasks, settings)
    plan.checkpoints = options.executor == "processes"
    try:
        with (
            ending_gently(),
            plan.results.writing(),
            executor_of(options.executor, options.workers) as executor,
            watching(plan, options.workers) as watch,
        ):
            for news in measure(plan, executor, options.workers):
                watch(news)
    except KeyboardInterrupt:
        _say(f"stopped; all results so far are in {plan.results.path}, and the same command goes on from there")
        return 130
    failed = f"; {amount(len(plan.failed), 'task')} failed, and the same command tries again" if plan.failed else ""
    _say(f"{amount(len(plan.results.records), 'result')} in {plan.results.path}{failed}")
    return 1 if plan.failed else 0


def _add_certify(commands: Any) -> None:
    certify = commands.add_parser(
        "certify",
        help="certificates of the counts, written and checked",
        description="Certify counts, and check each certificate with verify.py: whole networks, or random subtrees.",
        epilog=_CERTIFY_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    certify.add_argument("--nets", type=Path, default=Path("nets"), metavar="FOLDER", help="where the networks are (nets)")
    certify.add_argument("--results", type=Path, default=Path("results"), metavar="FOLDER", help="where the counts are (results)")
    certify.add_argument("--only", nargs="+", default=[], metavar="N1-N2", help="these configurations only, such as 11-11")
    certify.add_argument(
        "--seeds", nargs="+", default=[], metavar="N", help="networks of these seeds only, such as 0 or 0-2 (all)"
    )
    certify.add_argument("--whole", type=natural, default=100_000, metavar="N", help="in whole up to so many regions (100000)")
    certify.add_argument("--parts", type=positive, default=1000, metavar="N", help="subtrees of each other network (1000)")
    certify.add_argument("--open", type=positive, default=3, metavar="N", help="outputs with any state in a subtree (3)")
    certify.add_argument("--seed", type=natural, default=1, metavar="N", help="of the choice of subtrees (1)")
    certify.add_argument("--keep", type=Path, metavar="FOLDER", help="where certificates stay (they are thrown away)")
    certify.set_defaults(run=_certify)


def _certify(options: argparse.Namespace) -> int:
    from experiments.paper.certify import Plan, certify  # noqa: PLC0415  slow to load

    plan = Plan(options.whole, options.parts, options.open, options.seed)
    asked, made = configurations(options.only), 0
    keys = chosen(Folder(options.nets), asked if options.only else [], seeds_of(options.seeds))
    if options.keep is not None:
        Folder(options.keep).prepare()
    try:
        with ending_gently():
            for key, record in certify(options.nets, options.results, keys, plan, options.keep):
                value, made = record["value"], made + 1
                part = "" if value["kind"] == "whole" else f" in {value['parts']:,} of its subtrees"
                _say(f"{key.n1}-{key.n2}, seed {key.seed}: {value['regions']:,} regions{part} certified and checked")
    except KeyboardInterrupt:
        _say(f"stopped; {amount(made, 'network')} certified, and the same command goes on from there")
        return 130
    rest = f"; {len(keys) - made} were done before, or their count is not known" if made < len(keys) else ""
    _say(f"{amount(made, 'network')} certified{rest}")
    return 0


def _add_report(commands: Any) -> None:
    report = commands.add_parser(
        "report",
        help="tables, figures and a page",
        description="Table 1, Figures 2 and 3 beside the paper's values, and the estimate against the count.",
        epilog=_REPORT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    report.add_argument(
        "--results", type=Path, default=Path("results"), metavar="FOLDER", help="where results.jsonl is (results)"
    )
    report.add_argument("-o", "--out", type=Path, default=Path("report.html"), metavar="FILE", help="the page (report.html)")
    report.add_argument("--figures", type=Path, metavar="FOLDER", help="also write each figure as a file of its own here")
    report.add_argument("--formats", nargs="+", choices=("svg", "png", "pdf"), help="of these figures (all)")
    report.add_argument("--markdown", type=Path, metavar="FILE", help="also put the tables into this Markdown page")
    report.set_defaults(run=_report)


def _report(options: argparse.Namespace) -> int:
    from experiments.paper.report import report  # noqa: PLC0415  slow to load

    if options.formats is not None and options.figures is None:
        msg = "--formats says what --figures writes; give --figures FOLDER as well"
        raise tessella.OptionError(msg)
    formats = options.formats or ["svg", "png", "pdf"]
    for path in report(options.results, options.out, options.figures, formats, options.markdown):
        sys.stdout.write(f"{path}\n")
    return 0


def _smoke(options: argparse.Namespace) -> int:
    from experiments.paper.smoke import smoke  # noqa: PLC0415  slow to load

    found = smoke(options.out, main)
    for line in found or [f"all steps went well; the page is {options.out / 'report.html'}"]:
        _say(line)
    return 1 if found else 0


def _train(options: argparse.Namespace) -> int:
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    keys = [Key(n1, n2, seed) for seed in seeds for n1, n2 in configurations(options.only)]
    digits = scikit_learn_digits() if options.digits else read_mnist(options.data)
    try:
        from experiments.paper.train import Recipe, train  # noqa: PLC0415  torch is optional, and slow to load
    except ImportError as error:
        msg = "training needs torch, which is not installed: pip install torch"
        raise tessella.MissingPackage(msg) from error
    recipe = Recipe(options.epochs, options.batch_size, options.learning_rate, options.threads)
    folder = Folder(options.out)
    folder.prepare()
    settings = {**recipe.record(), "data_sha256": digits.record()["data_sha256"]}
    todo = missing(folder, keys, settings, force=options.force)
    if len(todo) < len(keys):
        _say(f"{len(keys) - len(todo)} of {len(keys)} networks are in {folder.path} already")
    begin, saved = perf_counter(), 0
    try:
        with ending_gently():
            for records in train(folder, todo, digits, recipe, lambda epoch: _show(epoch, recipe.epochs)):
                saved += len(records)
                _say(_sentence(records))
    except KeyboardInterrupt:
        _say(f"stopped; {amount(saved, 'new network')} in {folder.path}, and the same command goes on from there")
        return 130
    _say(f"{amount(saved, 'network')} trained in {perf_counter() - begin:.0f} s")
    every = folder.records()
    sys.stdout.write(_table({key: every[key] for key in keys}))
    return 0


def _show(epoch: "Epoch", epochs: int) -> None:
    """One line per epoch, each over the one before where that is possible."""
    left = epoch.seconds / epoch.number * (epochs - epoch.number)
    line = (
        f"seed {epoch.seed}, {amount(epoch.networks, 'network')}: epoch {epoch.number}/{epochs}, "
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
        f"seed {first['seed']}: {amount(len(records), 'network')} saved, test error {100 * error:.2f} % (median), {dead} dead, "
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
