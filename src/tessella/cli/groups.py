"""Options that belong together: a command takes a group of them as one value, and a person types them one by one."""

import re
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Executor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, cast

from typer.core import TyperGroup

import tessella
from tessella.cli import options
from tessella.cli.later import drawing
from tessella.cli.meanings import check_least, read_examples, read_network, read_slice
from tessella.errors import OptionError
from tessella.executors import hired, is_address
from tessella.methods import Method, Units
from tessella.processes import Processes

if TYPE_CHECKING:
    from tessella.domain import Domain
    from tessella.network import Network
    from tessella.slicing import Slice
    from tessella.stability import Stability


@contextmanager
def _in_one_line() -> Generator[None]:
    """What was typed wrong is told like every other error; the parser would draw a box around it, several lines high.

    Its errors are known by what they can do: their class lives in another package from one version of typer to the next.
    """
    try:
        yield
    except Exception as error:
        message = getattr(error, "format_message", None)
        if message is None or type(error).__name__ == "NoArgsIsHelpError":
            raise
        text = " ".join(str(message()).split()).rstrip(".").replace("Value error, ", "").replace(". Did you", ": did you")
        text = re.sub(r" \(Possible options: (.*)\)$", r": did you mean \1?", text)
        command = getattr(getattr(error, "ctx", None), "command_path", "tessella")
        msg = f"{text[:1].lower()}{text[1:]}{'' if text.endswith('?') else ';'} '{command} --help' shows what can be typed"
        raise OptionError(msg) from error


class Commands(TyperGroup):
    """All commands, what most people want first."""

    _ORDER = (
        "analyze",
        "count",
        "estimate",
        "mipbound",
        "upper",
        "stability",
        "compress",
        "summarise",
        "graph",
        "local",
        "along",
        "report",
        "plot",
        "show",
        "export",
        "verify",
        "demo",
        "warm",
    )

    def make_context(self, *given: Any, **others: Any) -> Any:
        """Read what stands before the command."""
        with _in_one_line():
            return super().make_context(*given, **others)

    def invoke(self, ctx: Any) -> Any:
        """Read what the command takes, and do it."""
        with _in_one_line():
            return super().invoke(ctx)

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names in that order, new ones last."""
        return sorted(
            super().list_commands(ctx), key=lambda name: self._ORDER.index(name) if name in self._ORDER else len(self._ORDER)
        )

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """A command, with help that does not say of a flag that it is a bool."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            _without_types([*command.params, command.get_help_option(ctx)])
        return command

    def get_params(self, ctx: Any) -> Any:
        """The options of all commands together, the same way."""
        return _without_types(super().get_params(ctx))


def _without_types(options: Iterable[Any]) -> Iterable[Any]:
    for option in options:
        if getattr(option, "is_flag", False):
            option.metavar = ""
    return options


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, with the options of its groups as parameters of its own, as Typer needs them; machines are let go at its end."""
    groups, own = dict[str, type[Any]](), list[Parameter]()
    for name, parameter in signature(command).parameters.items():
        if is_dataclass(parameter.annotation):
            groups[name] = cast("type[Any]", parameter.annotation)
            own += map(_parameter, fields(groups[name]))
        else:
            own.append(parameter)

    @wraps(command)
    def run(**given: Any) -> None:
        made = {
            name: group(**{option.name: given.pop(option.name) for option in fields(group)}) for name, group in groups.items()
        }
        try:
            command(**given, **made)
        finally:
            for group in made.values():
                if isinstance(group, Machines):
                    group.let_go()

    changed: Any = run
    changed.__signature__ = Signature(own)
    changed.__annotations__ = {parameter.name: parameter.annotation for parameter in own}
    return run


def _parameter(option: Any) -> Parameter:
    default = Parameter.empty if option.default is MISSING else option.default
    return Parameter(option.name, Parameter.KEYWORD_ONLY, default=default, annotation=option.type)


@dataclass(frozen=True, slots=True)
class Reading:
    """How a model's file is read."""

    input_shape: options.Shape = None
    output_name: options.OutputName = None
    relu_output: options.ReluOutput = False
    fixed_inputs: options.FixedInputs = None

    def given(self) -> dict[str, object]:
        """The options by name."""
        return {
            "input_shape": self.input_shape,
            "output_name": self.output_name,
            "relu_output": self.relu_output,
            "input": self.fixed_inputs,
        }

    def network(self, model: str) -> "Network":
        """The network in a file."""
        return read_network(model, self.input_shape, self.output_name, relu_output=self.relu_output, inputs=self.fixed_inputs)


@dataclass(frozen=True, slots=True)
class Cut:
    """Along which slice."""

    axes: options.Slice = None
    at: options.At = None
    through: options.Through = None

    def slice(self, network: "Network", domain: "Domain") -> "Slice | None":
        """The slice that is described; None if none is."""
        return read_slice(network, domain, self.axes, self.at, self.through)


@dataclass(frozen=True, slots=True)
class Examples:
    """Which examples are shown."""

    data: options.Data = None
    labels: options.Labels = None

    def given(self) -> dict[str, Any]:
        """The examples and their classes, by the names that pictures take."""
        return read_examples(self.data, self.labels)


@dataclass(frozen=True, slots=True)
class Ranges:
    """How units are bounded."""

    method: options.MethodOption = Method.MILP
    seconds_per_unit: options.SecondsPerUnit = 10.0

    def stability(  # noqa: PLR0913  one parameter per option
        self,
        network: "Network",
        domain: "Domain",
        machines: "Machines",
        *,
        shown: bool,
        units: Units = Units.UNSTABLE,
        seconds: float | None = None,
    ) -> "Stability":
        """Which units are stable, shown while it is found; Ctrl-C ends with what is proved so far."""
        with machines.pool() as pool, drawing.progress_bar("bounding units", shown=shown) as tick:
            found = tessella.stability(
                network,
                domain,
                method=self.method,
                seconds_per_unit=self.seconds_per_unit,
                executor=pool,
                progress=tick,
                seconds=seconds,
                units=units,
            )
        drawing.print_note(found)
        return found

    def to_go_on_with(self, network: "Network", domain: "Domain", machines: "Machines", *, shown: bool) -> "Stability":
        """The same, as a first step of something longer: Ctrl-C ends all of it."""
        found = self.stability(network, domain, machines, shown=shown)
        if found.bounds.interrupted:
            raise KeyboardInterrupt
        return found


@dataclass(frozen=True, slots=True)
class Sureness:
    """How sure a probable bound shall be, and its random numbers."""

    confidence: options.Confidence = 0.95
    seed: options.Seed = 0

    def given(self) -> dict[str, Any]:
        """The options of a verb."""
        check_least(seed=self.seed)
        return {"confidence": self.confidence, "rng": self.seed}


@dataclass
class Machines:
    """Who works: threads, processes, or a cluster."""

    workers: options.Workers = 0
    processes: options.Processes = None
    cluster: options.Cluster = None

    def __post_init__(self) -> None:
        """Refuse what does not go together; nobody is asked to work yet."""
        self._stack, self._executor = ExitStack(), cast("Executor | None", None)
        check_least(workers=self.workers)
        if self.processes is not None:
            check_least(1, processes=self.processes)
        if self.processes is not None and self.cluster is not None:
            msg = "give either --processes, of this machine, or --cluster, not both"
            raise OptionError(msg)
        if self.workers and (self.processes is not None or self.cluster is not None):
            msg = f"--workers is the number of threads, without --{'cluster' if self.processes is None else 'processes'}; leave one of them out"
            raise OptionError(msg)
        if self.cluster is not None and not is_address(self.cluster):
            msg = f"--cluster takes the address of a Dask scheduler, such as tcp://host:8786; got {self.cluster!r:.60}"
            raise OptionError(msg)

    @property
    def elsewhere(self) -> bool:
        """Whether others than threads work."""
        return self.processes is not None or self.cluster is not None

    def given(self) -> dict[str, Any]:
        """The options of a verb; those who work are there from the first call on."""
        if self._executor is None and self.processes is not None:
            self._executor = self._stack.enter_context(Processes(self.processes))
        elif self._executor is None and self.cluster is not None:
            self._executor = self._stack.enter_context(hired(self.cluster))
        return {"executor": self._executor, "workers": self.workers or None}

    def pool(self) -> AbstractContextManager["Executor | None"]:
        """Where the units of a layer are bounded side by side."""
        return nullcontext(self.given()["executor"]) if self.elsewhere else drawing.pool(self.workers)

    def let_go(self) -> None:
        """Nobody is needed any more."""
        self._stack.close()


@dataclass(frozen=True, slots=True)
class Printing:
    """What is printed."""

    as_json: options.AsJson = False
    quiet: options.Quiet = False
    _debug: options.Debug = False  # `tessella.cli.main` looks for it

    @property
    def shown(self) -> bool:
        """Whether a person watches."""
        return not (self.as_json or self.quiet)
