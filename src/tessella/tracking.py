"""The number of regions while a network is trained.

A `Tracker` reads the model as it is at the end of an epoch, on a copy in evaluation mode, and estimates.  It draws random numbers of its own, so training goes on as if it had
not been there.
"""

import csv
import math
import os
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

import numpy.typing as npt

from tessella.answer import Noted
from tessella.door import DomainLike, enter
from tessella.errors import FileError, MissingPackage, OptionError, TessellaError
from tessella.estimating.estimate import estimate
from tessella.files import unwritable
from tessella.importers import load
from tessella.kernel import meter
from tessella.methods import Method
from tessella.nearby.following import SCALARS, Near, look_near
from tessella.network import Network
from tessella.options import check_whole
from tessella.packages import needed
from tessella.result import Counted, Shown, format_count, maps
from tessella.stability import stability_to_go_on_with


@dataclass(frozen=True, slots=True)
class Record(Noted):
    """What was found at the end of one epoch.

    Parameters
    ----------
    epoch
        Which.
    maps
        Log2 of the estimate.
    relative_error
        The standard error as a part of it: 0 if it is exact.
    lower
        The number of regions is at least this, with the confidence.
    confidence
        That confidence; 1 if the number is exact.
    exact
        The number of regions, if it was counted.
    active, inactive, unstable
        How many ReLUs are stably active, stably inactive, and neither.
    seconds
        Wall time spent on this record.
    counted
        What is counted.
    """

    epoch: int
    maps: float
    relative_error: float
    lower: int
    confidence: float
    exact: int | None
    active: int
    inactive: int
    unstable: int
    seconds: float
    counted: Counted = Counted.REGIONS

    @property
    def mean(self) -> float | int:
        """The estimate; the count if it is exact."""
        if self.exact is not None:
            return self.exact
        return 2.0**self.maps if self.maps < 1000.0 else 1 << round(self.maps)

    @property
    def scalars(self) -> dict[str, float]:
        """What is drawn over epochs."""
        drawn = {"regions_log2": self.maps, "regions_lower_log2": maps(self.lower), "regions_relative_error": self.relative_error}
        units = {"stably_active": self.active, "stably_inactive": self.inactive, "unstable": self.unstable}
        return {name: float(value) for name, value in {**drawn, **units}.items() if math.isfinite(value)}

    def __repr__(self) -> str:
        """One line a person can read."""
        number = f"exactly {format_count(self.exact)}" if self.exact is not None else f"about 2^{self.maps:.2f}"
        return f"Record(epoch {self.epoch}: {number} regions, {self.unstable} units unstable, {self.seconds:.2f} s)"

    def _title(self) -> str:
        return f"Regions after epoch {self.epoch}"


@runtime_checkable
class Writer(Protocol):
    """What TensorBoard's ``SummaryWriter`` does, and others do as well."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
        """Note one number."""
        ...


class Tracker(Shown):
    """Follows one model; see `track`.

    Parameters
    ----------
    look
        Makes the record of an epoch.
    every
        Epochs from one record to the next.
    path, writer
        Where records go, beside the list.
    data
        Whether records have columns for what is around examples.
    """

    def __init__(
        self, look: Callable[[int], Record], every: int, path: Path | None, writer: Writer | None, *, data: bool = False
    ) -> None:
        """Nothing is recorded yet."""
        self._look, self._every, self._path, self._writer = look, every, path, writer
        self._epoch, self._local = 0, SCALARS if data else ()
        self.near = list[Near]()
        self.records, self.networks = list[Record](), list[Network]()
        header = [*(field.name for field in fields(Record)), *self._local]
        if path is not None and not _goes_on(path, header):
            self._write(header)

    def step(self, epoch: int | None = None) -> Record | None:
        """Call it at the end of every epoch.

        Parameters
        ----------
        epoch
            Its number; by default they are counted from 0.

        Returns
        -------
        The record, or None if it was not this epoch's turn.  After the first record an error does not end training: it is a warning, and there is no record.
        """
        number = self._epoch if epoch is None else int(epoch)
        self._epoch = number + 1
        if number % self._every:
            return None
        try:
            record = self._look(number)
        except TessellaError as error:
            if not self.records:
                raise
            warnings.warn(f"epoch {number} has no record: {error}", RuntimeWarning, stacklevel=2)
            return None
        self.records.append(record)
        around = self.near[-1].scalars if self.near and self.near[-1].epoch == number else {}
        if self._path is not None:
            row = [*astuple(record), *(around.get(name) for name in self._local)]
            self._write(["" if value is None else value for value in row])
        if self._writer is not None:
            for name, value in {**record.scalars, **around}.items():
                self._writer.add_scalar(f"tessella/{name}", value, number)
        return record

    def lightning(self) -> Any:
        """A callback for a Lightning ``Trainer``: a record at the end of every training epoch, on the first process only."""
        tracker, parent = self, _lightning()

        class Regions(parent):
            """Follows the number of regions."""

            def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:  # noqa: ARG002  Lightning's own names
                if getattr(trainer, "is_global_zero", True):
                    tracker.step(int(trainer.current_epoch))

        return Regions()

    def keras(self) -> Any:
        """A callback for Keras' ``fit``: a record at the end of every epoch, in the history too."""
        tracker, parent = self, needed("keras.callbacks", "a callback for Keras needs it: pip install keras").Callback

        class Regions(parent):
            """Follows the number of regions."""

            def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
                record = tracker.step(epoch)
                if record is not None and logs is not None:
                    logs.update(record.scalars)

        return Regions()

    def __repr__(self) -> str:
        """One line a person can read."""
        last = f", last {self.records[-1]!r}" if self.records else ""
        return f"Tracker({len(self.records)} record{'' if len(self.records) == 1 else 's'}{last})"

    def rows(self) -> list[dict[str, Any]]:
        """One row per record."""
        around = {one.epoch: one.scalars for one in self.near}
        return [{**row, **around.get(record.epoch, {})} for record in self.records for row in record.rows()]

    def _title(self) -> str:
        return "Regions while the network is trained"

    def _write(self, row: list[Any]) -> None:
        path = cast("Path", self._path)
        try:
            with path.open("a", newline="", encoding="utf-8") as file:
                csv.writer(file).writerow(row)
        except OSError as error:
            raise unwritable(path, error) from error


def _goes_on(path: Path, header: list[str]) -> bool:
    """Whether a file holds records already, so that others follow; raises if it holds anything else."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            first = next(csv.reader(file), None)
    except FileNotFoundError:
        return False
    except (OSError, UnicodeDecodeError, csv.Error):
        first = []
    if first is not None and first != header:
        msg = f"{path}: is there already and holds no records of regions; nothing was changed"
        raise FileError(msg)
    return first is not None


def track(  # noqa: PLR0913  one keyword per option
    model: object,
    domain: DomainLike,
    *,
    every: int = 1,
    seconds: float = 1.0,
    probes: int | None = None,
    confidence: float = 0.95,
    rng: int = 0,
    workers: int | None = None,
    path: str | os.PathLike[str] | None = None,
    tensorboard: str | os.PathLike[str] | Writer | None = None,
    relu_output: bool = False,
    input_shape: tuple[int, ...] | None = None,
    keep: bool = False,
    data: npt.ArrayLike | None = None,
    radius: float | None = None,
) -> Tracker:
    """Follow the number of regions of a model while it is trained.

    Call ``step()`` at the end of every epoch of a loop of your own, or give ``lightning()`` or ``keras()`` to a trainer.

    Parameters
    ----------
    model
        What `tessella.load` reads: a PyTorch module, a Keras model.  It is read anew each time, and left as it is.
    domain
        Where regions are counted: a domain, an interval such as ``(0, 1)``, or two arrays ``(lower, upper)``.
    every
        Epochs from one record to the next.
    seconds, probes, confidence, rng, workers
        Those of `tessella.estimate`, for each record.  With ``probes`` the same training gives the same records.
    path
        A CSV file, one line per record; if it is there already, records are added at its end.
    tensorboard
        A folder for TensorBoard, or anything with ``add_scalar``.
    relu_output, input_shape
        Those of `tessella.load`.
    keep
        Whether to keep the network of each record, in ``tracker.networks``: what `tessella.plot.animation` draws.
    data, radius
        Examples, one row each: with every record ``tracker.near`` gets what `tessella.local` says of the balls of this radius around them, and what `tessella.along` says of the
        lines from each to the next.  Each takes ``seconds`` at most.  `rows` and TensorBoard have medians of them.

    Examples
    --------
    >>> import tessella
    >>> tracker = tessella.track([([[1.0], [-1.0]], [0.5, 0.5])], tessella.Box(-2, 2, dim=1), relu_output=True)
    >>> tracker.step().exact, tracker.step().epoch
    (3, 1)
    """
    check_whole(every, "every", "a tracker", of="epochs")
    options: dict[str, Any] = {"seconds": seconds, "probes": probes, "confidence": confidence, "rng": rng, "workers": workers}

    def look(epoch: int) -> Record:
        start = meter.clock()
        network, where = enter(load(model, relu_output=relu_output, input_shape=input_shape), domain)
        known = stability_to_go_on_with(network, where, method=Method.LINEAR)
        found, total = estimate(network, where, stability=known, **options), known.totals()
        part = (found.maps, found.relative_error, found.lower, found.confidence, found.exact)
        units = (total["active"], total["inactive"], total["unstable"])
        if keep:
            made.networks.append(network)
        if data is not None:
            made.near.append(look_near(epoch, network, where, data, radius, seconds=seconds, workers=workers))
        return Record(epoch, *part, *units, seconds=meter.clock() - start, counted=network.counted)

    made = Tracker(look, int(every), None if path is None else Path(path), _writer(tensorboard), data=data is not None)
    return made


def _writer(given: object) -> Writer | None:
    if given is None or isinstance(given, Writer):
        return given
    if not isinstance(given, (str, os.PathLike)):
        msg = f"tensorboard is a {type(given).__name__}; it takes a folder, or an object with add_scalar"
        raise OptionError(msg)
    try:
        from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415  only where it is asked for
    except ImportError as error:
        msg = "writing for TensorBoard needs torch and tensorboard: pip install torch tensorboard"
        raise MissingPackage(msg) from error
    return cast("Writer", SummaryWriter(os.fspath(given)))


def _lightning() -> Any:
    """Lightning's own class: its trainer refuses what is not derived from it."""
    from importlib import import_module  # noqa: PLC0415

    for name in ("lightning.pytorch.callbacks", "pytorch_lightning.callbacks"):
        try:
            return import_module(name).Callback
        except ImportError:
            continue
    msg = "a callback for Lightning needs it: pip install lightning"
    raise MissingPackage(msg)
