"""Optional packages: imported when they are used, and named where they are missing."""

import importlib.util
import json
import logging
import os
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from tessella.errors import MissingPackage

_VARIABLE, _BACKENDS = "KERAS_BACKEND", ("torch", "jax", "tensorflow")


def needed(module: str, otherwise: str) -> Any:
    """A module of an optional package; where it is not installed, an error says ``otherwise``."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingPackage(otherwise) from error


def torch_package(why: str) -> Any:
    """PyTorch itself, or what to install; `why` is what needs it, such as ``"reading PyTorch models"``."""
    return needed("torch", f"{why} needs the package torch: pip install torch")


def keras_package(why: str = "reading .keras files and Keras models") -> Any:
    """Keras itself, or what to install; `why` is what needs it."""
    if importlib.util.find_spec("keras") is None:
        msg = f"keras is not installed, which is needed for {why}: pip install keras"
        raise MissingPackage(msg)
    try:
        with keras_quiet(), _installed_backend():
            import keras  # noqa: PLC0415  heavy, and optional
    except Exception as error:
        msg = (
            f"keras is installed but its backend is not ({error}); set the environment variable KERAS_BACKEND to an installed one "
            "(torch, jax or tensorflow) before Python starts, or pip install torch and set it to torch"
        )
        raise MissingPackage(msg) from error
    if not hasattr(keras, "saving") or not hasattr(keras, "Function"):
        msg = f"keras {getattr(keras, '__version__', '')} is too old, version 3 is needed: pip install --upgrade keras"
        raise MissingPackage(msg)
    return keras


@contextmanager
def _installed_backend() -> Generator[None]:
    """Let Keras take a backend that is installed, if it would take one that is not and nobody chose it."""
    settings = Path(os.environ.get("KERAS_HOME", "~/.keras")).expanduser() / "keras.json"
    try:
        wanted = str(json.loads(settings.read_text())["backend"])  # Keras itself writes this file, with what it began with
    except (OSError, ValueError, KeyError, TypeError):
        wanted = "tensorflow"
    found = next((name for name in (wanted, *_BACKENDS) if name in _BACKENDS and importlib.util.find_spec(name)), None)
    if _VARIABLE in os.environ or "keras" in sys.modules or found in {None, wanted}:
        yield
        return
    os.environ[_VARIABLE] = str(found)
    try:
        yield
    finally:
        del os.environ[_VARIABLE]


@contextmanager
def keras_quiet() -> Generator[None]:
    """Keep warnings of Keras and its backend, and of numbers that overflow, to ourselves; errors say what matters."""
    import numpy as np  # noqa: PLC0415  not for --help

    logger = logging.getLogger("absl")
    level = logger.level
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            logger.setLevel(level)
