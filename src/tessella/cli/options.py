"""All options: what they are called, what they take, and what help says of them."""

from typing import Annotated, Any

import typer

from tessella.methods import CountMethod, Method, Units


def option(name: str, metavar: str, words: str, *short: str) -> Any:
    """An option that may be left out: its help says what that means, and shows no default."""
    return typer.Option(name, *short, metavar=metavar, help=words, show_default=False)


Model = Annotated[
    str, typer.Argument(metavar="MODEL", help="A .onnx, .onnx.gz, .npz, .pt2, .keras or .safetensors file.", show_default=False)
]
Shape = Annotated[
    str | None,
    option("--input-shape", "SIZES", "One input's shape, such as 3,32,32, if the file does not tell."),
]
OutputName = Annotated[
    str | None,
    option(
        "--output-name",
        "NAME",
        "The output of an ONNX model to keep, or a tensor inside at which to end; all outputs by default.",
    ),
]
FixedInputs = Annotated[
    list[str] | None,
    option(
        "--input",
        "NAME=FILE",
        "Fix an input of an ONNX model with several to the array in a .npy file. May be given several times.",
    ),
]
Slice = Annotated[
    str | None,
    option("--slice", "AXES", "The inputs that vary, one or two of them, such as 0,1."),
]
At = Annotated[
    str | None,
    option(
        "--at",
        "POINT",
        "What the other inputs are, with --slice: one number, one per input, or a file of points (the first counts). By default the centre of the domain.",
    ),
]
Through = Annotated[
    str | None,
    option("--through", "FILE", "A .csv, .npy or .npz file of points: two for the line through them, three for the plane."),
]
Data = Annotated[
    str | None,
    option(
        "--data",
        "FILE",
        "A .csv, .npy or .npz file of examples to show. Without another slice the plane goes through three of them.",
    ),
]
Labels = Annotated[
    str | None,
    option("--labels", "FILE", "Their classes: a .csv, .npy or .npz file, one number each."),
]
MethodOption = Annotated[
    Method, typer.Option("--method", metavar="NAME", help="How units are bounded: interval, linear, lp or milp (the tightest).")
]
UnitsOption = Annotated[
    Units,
    typer.Option(
        "--units",
        metavar="WHICH",
        help="Which units lp and milp tighten: unstable (ReLUs whose state is open), or all (linear and output units, too).",
    ),
]
BoundsOut = Annotated[
    str | None,
    option("--bounds-out", "FILE", "Write the bounds of every unit to a .csv or .json file, for optimisers."),
]
SecondsPerUnit = Annotated[
    float, typer.Option("--seconds-per-unit", metavar="S", help="After this time a unit keeps what is proved so far.")
]
Seconds = Annotated[
    float | None,
    option("--seconds", "S", "Stop after this time, with the bounds proved so far."),
]
EstimateSeconds = Annotated[
    float | None,
    option("--seconds", "S", "How long to estimate: 2 if nothing is said, no limit with --probes."),
]
Probes = Annotated[
    int | None,
    option(
        "--probes", "N", "Make so many probes: the same seed gives the same answer.  With --seconds, too: whatever comes first."
    ),
]
Checkpoint = Annotated[
    str | None,
    option("--checkpoint", "FILE", "Keep what is finished in this file, and go on from it if it is there."),
]
Certificate = Annotated[
    str | None,
    option(
        "--certificate",
        "FILE",
        "Write a proof that 'tessella verify', or verify.py alone, can check; packed if the name ends in .gz.",
    ),
]
CountMethodOption = Annotated[
    CountMethod,
    typer.Option("--method", metavar="NAME", help="How regions are counted: walk, or milp (slow, an independent check)."),
]
ParitySizes = Annotated[
    str, typer.Option("--parity-size", metavar="SIZES", help="How many variables a parity constraint has, such as 3 or 2,3,4,5.")
]
Confidence = Annotated[
    float, typer.Option("--confidence", metavar="P", help="The probability with which the bound shall hold, such as 0.95.")
]
Repetitions = Annotated[
    int | None,
    option(
        "--repetitions",
        "N",
        "How many; by default 28 (more if the confidence needs them); with --seconds as there is time for, at most 1,000.",
    ),
]
Solver = Annotated[
    str | None,
    option("--solver", "NAME", "scip, highs or gurobi instead of the built-in search."),
]
Variables = Annotated[
    str | None,
    option("--variables", "NAMES", "Binary variables of a .mps or .lp file to count on; all of them by default."),
]
Seed = Annotated[int, typer.Option("--seed", metavar="N", help="The same seed gives the same answer.")]
Workers = Annotated[int, typer.Option("--workers", metavar="N", help="Threads to use; 0 for all cores.")]
Processes = Annotated[
    int | None,
    option("--processes", "N", "Use so many processes of this machine, and no threads."),
]
Cluster = Annotated[
    str | None,
    option("--cluster", "ADDRESS", "Use the Dask cluster whose scheduler listens there: tcp://host:8786."),
]
ReluOutput = Annotated[bool, typer.Option("--relu-output", help="Count a ReLU on every output, as the paper does.")]
Float32 = Annotated[bool, typer.Option("--float32", help="Write weights in single precision, rounded to 24 bits.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print the bare answer only.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# where inputs lie
Box = Annotated[
    list[str] | None,
    option(
        "--box",
        "LOW,HIGH",
        "The interval of every input, such as 0,1, or -inf,inf for all of space; one interval per input, such as 0,1,-2,2; or a .csv, .npy or .npz file with the lower and the "
        "upper corner as rows or columns, or with data, of which the smallest box is taken.",
    ),
]
Around = Annotated[
    str | None,
    option(
        "--around",
        "POINT",
        "The centre of the box: a .csv, .npy or .npz file with one input, or its numbers.  Goes with --radius; --box then cuts off what lies outside.",
    ),
]
Radius = Annotated[
    str | None,
    option("--radius", "R", "How far from --around, in every input; or one radius per input."),
]
Mean = Annotated[
    str | None,
    option(
        "--mean",
        "M",
        "What is subtracted from images before the network reads them: one number, or one per channel.  --box and --around are then those of the images.",
    ),
]
Std = Annotated[
    str | None,
    option("--std", "S", "What they are divided by after that: one number, or one per channel."),
]
Property = Annotated[
    str | None,
    option("--property", "FILE", "A .vnnlib file whose inputs to consider."),
]
PropertyBox = Annotated[
    int | None,
    option("--property-box", "N", "Which one, from 1 on, where the property has several boxes."),
]

# of one command each
LocalData = Annotated[
    str | None,
    option("--data", "FILE", "A .csv, .npy or .npz file of points, one row each."),
]
LocalNorm = Annotated[str, typer.Option("--norm", metavar="NAME", help="In which norm the balls are: linf, l1 or l2.")]
LocalSubspace = Annotated[
    int | None,
    option("--subspace", "K", "Take balls in K random orthonormal directions."),
]
LocalFirst = Annotated[int | None, option("--first", "N", "Only the first N points.")]
AlongBegin = Annotated[
    str | None,
    option("--from", "POINT", "Where the path begins: a .csv, .npy or .npz file with one input, or its numbers."),
]
AlongStop = Annotated[
    str | None,
    option("--to", "POINT", "Where it ends: a file or numbers, as for --from."),
]
AlongPath = Annotated[
    str | None,
    option("--path", "FILE", "Instead of --from and --to: a .csv, .npy or .npz file with the corners of a path, one row each."),
]
AlongOutput = Annotated[
    str | None,
    option("--output", "FILE", "Draw the outputs along the path, too: .svg, .png or .pdf.", "-o"),
]
AlongOfOutput = Annotated[int | None, option("--of-output", "N", "The output that is drawn; all by default.")]
AlongSeconds = Annotated[
    float | None,
    option("--seconds", "S", "Stop after this time, with what is known by then."),
]
PlotOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Where to: .svg, .png or .pdf; .html for a network with three inputs, as solids to turn around.",
    ),
]
PlotColour = Annotated[
    str,
    typer.Option(
        "--colour",
        "--color",
        metavar="WHAT",
        help="What colours say: region, layer (that cut), slope, or a statistic such as active, radius or decision.",
    ),
]
PlotLayers = Annotated[
    str | None,
    option("--layers", "NUMBERS", "Draw the walls of these layers over the colours, such as 1,2."),
]
PlotOfOutput = Annotated[
    int | None,
    option("--of-output", "N", "The output whose slope or graph is drawn; all by default."),
]
PlotLimit = Annotated[int, typer.Option("--limit", metavar="N", help="Draw no more regions than this.")]
ReportOutput = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where to: .html.")]
ReportSeconds = Annotated[float, typer.Option("--seconds", metavar="S", help="How long to analyse, for all models together.")]
ReportLimit = Annotated[int, typer.Option("--limit", metavar="N", help="Show no more regions than this.")]
GraphOutput = Annotated[
    str | None,
    option("--output", "FILE", "Where to: .graphml.", "-o"),
]
GraphSeconds = Annotated[
    float | None,
    option("--seconds", "S", "Stop after this time, with the regions and walls found so far."),
]
SummariseStatistics = Annotated[
    str | None,
    option(
        "--statistics",
        "NAMES",
        "Such as active,spectral,volume; by default all that there are: active, rank, spectral, frobenius, maximum, walls, radius, volume (or share), decision.",
    ),
]
SummariseSeconds = Annotated[float, typer.Option("--seconds", metavar="S", help="How long.")]
SummariseSamples = Annotated[
    int | None,
    option("--samples", "N", "Draw so many regions if they cannot be listed in time."),
]
GraphLimit = Annotated[int | None, option("--limit", "N", "List no more regions than this.")]
UpperModel = Annotated[
    str | None, typer.Argument(metavar="MODEL", help="A .onnx, .onnx.gz, .npz, .pt2, .keras or .safetensors file.")
]
UpperWidths = Annotated[
    str | None, typer.Option("--widths", metavar="SIZES", help="Inputs and ReLUs per layer instead of a model.")
]
UpperMethod = Annotated[
    Method | None,
    typer.Option("--method", metavar="NAME", help="How units are bounded: interval, linear, lp or milp (default)."),
]
UpperSeconds = Annotated[
    float | None,
    option("--seconds", "S", "List cells of the first layer for so long at most, for the cellwise bound."),
]
UpperCount = Annotated[
    int | None, typer.Option("--count", metavar="N", help="The exact count, if known: shows how much of the gap is closed.")
]
UpperVerbose = Annotated[
    bool,
    typer.Option("--verbose", help="Show what the empirical bound knows of each layer, and the subsets inspected for it."),
]
MipboundSeconds = Annotated[float | None, option("--seconds", "S", "Stop each size after this time.")]
NetworkOrProblem = Annotated[
    str, typer.Argument(metavar="MODEL", help="A network's file; or a problem's: .mps, .lp, .cip.", show_default=False)
]
ExportOutput = Annotated[
    str,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="A .mps or .lp file (or .gz) to write; a .onnx, .npz, .pt2 or .keras file for the network itself.",
    ),
]
ExportOutputs = Annotated[bool, typer.Option("--outputs", help="Model the linear outputs too; the objective is left empty.")]
ExportNoCuts = Annotated[bool, typer.Option("--no-cuts", help="Leave out the paper's valid inequalities.")]
AnalyzeSeconds = Annotated[float, typer.Option("--seconds", metavar="S", help="How long, for all models together.")]
AnalyzeMipbound = Annotated[
    bool | None,
    typer.Option(
        "--mipbound/--no-mipbound",
        help="Run MIPBound, or not; by default where it can add something.",
        show_default=False,
    ),
]
DemoOutput = Annotated[str, typer.Option("--output", "-o", metavar="FILE", help="Where the report goes: .html.")]
VerifyCertificate = Annotated[
    str | None, typer.Argument(metavar="CERTIFICATE", help="A file that --certificate wrote.", show_default=False)
]
VerifyModel = Annotated[
    str | None,
    typer.Argument(metavar="MODEL", help="The model that it must be about; with a domain, on that domain.", show_default=False),
]
VerifyProcesses = Annotated[int, typer.Option("--processes", metavar="N", help="Check with so many processes.")]
VerifyChecker = Annotated[
    str | None,
    option("--checker", "FILE", "Write the checker, one file of Python, to this place."),
]
CompressOutput = Annotated[
    str | None,
    option("--output", "FILE", "Where to: .onnx, .npz, .pt2 or .keras. Without it nothing is written.", "-o"),
]
DenseOutput = Annotated[
    bool, typer.Option("--dense", help="Write convolutions as dense layers, without single units that are not needed (.onnx).")
]
Models = Annotated[
    list[str],
    typer.Argument(metavar="MODEL", help=".onnx, .onnx.gz, .npz, .pt2, .keras or .safetensors files.", show_default=False),
]
