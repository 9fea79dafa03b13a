"""Keras models with random weights, and the comparison with what is read of them."""

import numpy as np

from tessella.importers.keras import from_model
from tessella.network import Network


def randomized(model, seed=0):
    """The model with weights that show every mistake: no zeros, no ones, positive variances."""
    rng = np.random.default_rng(seed)
    for variable in model.weights:
        if "seed" in variable.path or not str(variable.dtype).startswith("float"):
            continue
        values = rng.standard_normal(variable.shape) * 0.7
        variable.assign(np.abs(values) + 0.3 if "variance" in variable.name else values)
    return model


def outputs(model, points):
    shape = model.inputs[0].shape[1:]
    import keras

    values = model(points.reshape(-1, *[1 if size is None else size for size in shape]), training=False)
    return keras.ops.convert_to_numpy(values).reshape(len(points), -1)


def points_for(network, seed=1, count=12):
    return np.random.default_rng(seed).standard_normal((count, network.input_dim)) * 1.5


def agreeing(model):
    """Import, and compare at other points than the importer does."""
    network = from_model(model)
    assert isinstance(network, Network)
    points = points_for(network)
    np.testing.assert_allclose(network(points), outputs(model, points.astype("float32")), rtol=2e-4, atol=2e-4)
    assert network.source is not None
    assert network.source.kind == "keras"
    assert network.source.name == model.name
    assert network.source.points > 0
    return network


def stack(shape, *layers):
    import keras

    return randomized(keras.Sequential([keras.Input(shape), *layers]))
