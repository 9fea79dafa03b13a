"""Train all networks of one seed at once.

Networks of one seed read the same images in the same order, so that their first layers are one product of matrices: columns of
all networks side by side.  The layers behind are small, and are padded to one width and multiplied as a batch.  A padding unit
has zero weights and so a zero gradient, and stays zero.  Adam works number by number, so no network feels the others.

A network is determined by (n1, n2, seed): its first weights are drawn from all three, its order of images from the seed alone.
Which others are trained beside it changes nothing but the rounding of sums.
"""

import platform
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from time import perf_counter
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch.nn import functional

import tessella
from experiments.paper.data import CLASSES, Digits
from experiments.paper.index import Arrays, Folder, Key

SCHEMA: Final = "tessella.experiments.paper.network/1"
_EVALUATION_BATCH: Final = 4096  # images


@dataclass(frozen=True, slots=True)
class Recipe:
    """How to train.

    Parameters
    ----------
    epochs
        How often every training image is seen.
    batch_size
        Images per step.
    learning_rate
        Adam's step size; its other constants are the usual ones.
    threads
        Threads that torch computes with.  A step takes one or two milliseconds, so a second thread gains little; and where other
        programs keep the cores busy, threads that wait for each other cost many times what they gain.
    """

    epochs: int = 20
    batch_size: int = 64
    learning_rate: float = 1e-3
    threads: int = 1

    def record(self) -> dict[str, Any]:
        """What the index says of it."""
        optimiser = {"name": "Adam", "learning_rate": self.learning_rate, "batch_size": self.batch_size}
        return {"epochs": self.epochs, "optimiser": optimiser}


class Epoch(NamedTuple):
    """How far the training of one seed is.

    Parameters
    ----------
    seed
        Which one.
    networks
        How many are trained together.
    number
        Epochs done.
    cross_entropy
        Median over the networks of the mean over this epoch's images.
    seconds
        Since this seed was begun.
    """

    seed: int
    networks: int
    number: int
    cross_entropy: float
    seconds: float


class Stack:
    """Classifiers with two hidden layers, computed together.

    Parameters
    ----------
    keys
        Which networks; the numbers they start with are drawn from their widths and seeds.
    inputs
        Pixels of an image.
    """

    def __init__(self, keys: Sequence[Key], inputs: int) -> None:
        self.keys = tuple(keys)
        widest1, widest2 = max(key.n1 for key in keys), max(key.n2 for key in keys)
        columns = sum(key.n1 for key in keys)
        w1, b1 = torch.zeros(inputs, columns), torch.zeros(columns)
        w2, b2 = torch.zeros(len(keys), widest1, widest2), torch.zeros(len(keys), 1, widest2)
        w3, b3 = torch.zeros(len(keys), widest2, CLASSES), torch.zeros(len(keys), 1, CLASSES)
        places = torch.full((len(keys), widest1), columns)  # where a unit's column is; padding units take one of zeros
        start = 0
        for number, key in enumerate(keys):
            (a1, c1), (a2, c2), (a3, c3) = _first_numbers(key, inputs)
            places[number, : key.n1] = torch.arange(start, start + key.n1)
            w1[:, start : start + key.n1], b1[start : start + key.n1] = a1.T, c1
            w2[number, : key.n1, : key.n2], b2[number, 0, : key.n2] = a2.T, c2
            w3[number, : key.n2], b3[number, 0] = a3.T, c3
            start += key.n1
        self.places = places
        self.parameters = [tensor.requires_grad_() for tensor in (w1, b1, w2, b2, w3, b3)]

    def layers(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """Both hidden layers after their ReLUs, and the outputs, each of shape (networks, images, units)."""
        w1, b1, w2, b2, w3, b3 = self.parameters
        side_by_side = functional.pad(torch.relu(torch.addmm(b1, images, w1)), (0, 1))
        hidden1 = side_by_side.index_select(1, self.places.flatten()).view(len(images), *self.places.shape).transpose(0, 1)
        hidden2 = torch.relu(torch.baddbmm(b2, hidden1, w2))
        return hidden1, hidden2, torch.baddbmm(b3, hidden2, w3)

    def arrays(self) -> dict[Key, Arrays]:
        """Weights (units, inputs) and biases of each network's layers, in float64."""
        w1, b1, w2, b2, w3, b3 = (tensor.detach().double().numpy() for tensor in self.parameters)
        result: dict[Key, Arrays] = {}
        start = 0
        for number, key in enumerate(self.keys):
            columns = slice(start, start + key.n1)
            result[key] = [
                (np.ascontiguousarray(w1[:, columns].T), b1[columns].copy()),
                (np.ascontiguousarray(w2[number, : key.n1, : key.n2].T), b2[number, 0, : key.n2].copy()),
                (np.ascontiguousarray(w3[number, : key.n2].T), b3[number, 0].copy()),
            ]
            start += key.n1
        return result


def train(
    folder: Folder, keys: Sequence[Key], digits: Digits, recipe: Recipe, progress: Callable[[Epoch], None]
) -> Iterator[dict[Key, dict[str, Any]]]:
    """Train networks seed by seed, and save each seed's when they are done.

    Parameters
    ----------
    folder
        Where to save them.
    keys
        Which networks.
    digits
        What to train on.
    recipe
        How to train.
    progress
        Called after every epoch.

    Returns
    -------
    The new records of the index, once per seed.
    """
    common = {**digits.record(), **recipe.record()}
    for seed, group in groupby(sorted(keys, key=lambda key: (key.seed, key)), key=lambda key: key.seed):
        begin = perf_counter()
        with _threads(recipe.threads):
            stack = Stack(list(group), digits.inputs)
            fit(stack, seed, digits, recipe, progress)
            networks = stack.arrays()
            measured = evaluate(stack, digits)
        seconds = perf_counter() - begin
        records = {key: _record(key, networks[key], measured[key], common, seconds, len(networks)) for key in networks}
        folder.save(networks, records)
        yield records


def fit(stack: Stack, seed: int, digits: Digits, recipe: Recipe, progress: Callable[[Epoch], None]) -> None:
    """Minimise every network's cross-entropy by Adam; the order of images is drawn from the seed.

    Parameters
    ----------
    stack
        The networks; they are changed in place.
    seed
        Of the order.
    digits
        What to train on.
    recipe
        How to train.
    progress
        Called after every epoch.
    """
    images, labels = torch.from_numpy(digits.x_train), torch.from_numpy(digits.y_train)
    rng, begin, networks = np.random.default_rng(seed), perf_counter(), len(stack.keys)
    optimiser = torch.optim.Adam(stack.parameters, lr=recipe.learning_rate, fused=True)
    for number in range(1, recipe.epochs + 1):
        total = torch.zeros(networks)
        for batch in torch.from_numpy(rng.permutation(len(labels))).split(recipe.batch_size):
            losses = _cross_entropies(stack.layers(images.index_select(0, batch))[2], labels[batch])
            optimiser.zero_grad()
            (losses.sum() / len(batch)).backward()
            optimiser.step()
            total += losses.detach()
        progress(Epoch(seed, networks, number, float(total.median()) / len(labels), perf_counter() - begin))
    if not all(bool(tensor.isfinite().all()) for tensor in stack.parameters):
        msg = f"seed {seed}: training diverged to numbers that are not finite; lower --learning-rate {recipe.learning_rate}"
        raise tessella.OptionError(msg)


@torch.no_grad()
def evaluate(stack: Stack, digits: Digits) -> dict[Key, dict[str, Any]]:
    """Measure trained networks on all images.

    A unit is dead if it is 0 on every training image; a network is, if all units of a layer are: it gives every image the same
    answer.  On 10 classes such a network errs in about 90 % of the cases.

    Parameters
    ----------
    stack
        The networks.
    digits
        What they were trained on.
    """
    networks = len(stack.keys)
    entropy, wrong, train_wrong = (torch.zeros(networks, dtype=torch.float64) for _ in range(3))
    alive = [torch.zeros(networks, width, dtype=torch.bool) for width in stack.parameters[2].shape[1:]]
    for images, labels in _batches(digits.x_train, digits.y_train):
        *hidden, outputs = stack.layers(images)
        entropy += _cross_entropies(outputs, labels)
        train_wrong += (outputs.argmax(dim=2) != labels).sum(dim=1)
        alive = [before | (layer > 0).any(dim=1) for before, layer in zip(alive, hidden, strict=True)]
    for images, labels in _batches(digits.x_test, digits.y_test):
        wrong += (stack.layers(images)[2].argmax(dim=2) != labels).sum(dim=1)
    result: dict[Key, dict[str, Any]] = {}
    for number, key in enumerate(stack.keys):
        living = [int(layer[number].sum()) for layer in alive]
        result[key] = {
            "training_cross_entropy": float(entropy[number]) / len(digits.y_train),
            "training_error": float(train_wrong[number]) / len(digits.y_train),
            "test_error": float(wrong[number]) / len(digits.y_test),
            "dead_units": [key.n1 - living[0], key.n2 - living[1]],
            "dead": 0 in living,
        }
    return result


@contextmanager
def _threads(number: int) -> Generator[None]:
    """Compute with so many threads, and leave torch as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _first_numbers(key: Key, inputs: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Weights and biases uniform in +-1/sqrt(inputs of the layer), as torch's linear layers have them."""
    rng = np.random.default_rng([key.seed, key.n1, key.n2])
    layers: list[tuple[torch.Tensor, torch.Tensor]] = []
    for before, units in ((inputs, key.n1), (key.n1, key.n2), (key.n2, CLASSES)):
        numbers = rng.uniform(-1.0, 1.0, size=(units, before + 1)) / np.sqrt(before)
        tensor = torch.from_numpy(numbers.astype(np.float32))
        layers.append((tensor[:, :-1], tensor[:, -1]))
    return layers


def _cross_entropies(outputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Each network's cross-entropy, summed over images."""
    networks, images, classes = outputs.shape
    losses = functional.cross_entropy(outputs.reshape(-1, classes), labels.repeat(networks), reduction="none")
    return losses.view(networks, images).sum(dim=1)


def _batches(images: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    pairs = (torch.from_numpy(images).split(_EVALUATION_BATCH), torch.from_numpy(labels).split(_EVALUATION_BATCH))
    yield from zip(*pairs, strict=True)


def _record(  # noqa: PLR0913, PLR0917  one parameter per part of the line
    key: Key, layers: Arrays, measured: Mapping[str, Any], common: Mapping[str, Any], seconds: float, together: int
) -> dict[str, Any]:
    """One line of the index."""
    network = tessella.Network.from_arrays(layers)
    versions = {"tessella": tessella.__version__, "torch": torch.__version__, "numpy": np.__version__}
    return {
        "schema": SCHEMA,
        **key._asdict(),
        "file": key.file,
        "shape": network.shape,
        "fingerprint": network.fingerprint,
        **measured,
        **common,
        "initialisation": "uniform, +-1/sqrt(inputs of the layer)",
        "stack_seconds": round(seconds, 3),
        "stack_networks": together,
        "versions": {**versions, "python": platform.python_version()},
    }
