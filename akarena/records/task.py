"""``task.toml``: what a task asks for, on which inputs, and what counts as right."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from akarena.records.base import Identifier, Part, PositiveFloat, PositiveInt, Record, RelativePath, Slug, TaskId

Expression = Annotated[str, StringConstraints(min_length=1, max_length=300)]
"""Arithmetic over the axes of a task, see ``akarena.expressions``."""

Value = int | float | str
"""The value of an axis in one configuration: a size, a scalar or the name of a dtype."""


class Category(StrEnum):
    """What is given to the agent and what it has to hand back."""

    HIP_TO_HIP = "hip2hip"
    TRITON_TO_TRITON = "triton2triton"
    PYTORCH_TO_HIP = "pytorch2hip"


class TargetName(StrEnum):
    """Hardware and tool chain."""

    CPU = "cpu"
    CUDA = "cuda"
    ROCM = "rocm"


class DType(StrEnum):
    """Element types. ``fp8`` is the target's own e4m3: FNUZ on gfx942, OCP elsewhere."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    INT64 = "int64"
    INT32 = "int32"
    INT8 = "int8"
    UINT8 = "uint8"


class Special(StrEnum):
    """What the third correctness round puts into an input."""

    ZEROS = "zeros"
    """About half of the elements are zero."""
    DENORMALS = "denormals"
    """About half of the elements are below the smallest normal number of the dtype."""
    TIES = "ties"
    """Values on a coarse grid, so that many are equal."""
    CONSTANT = "constant"
    """All elements of a row (last axis) are equal."""
    ORDINARY = "ordinary"
    """As in the first round."""


class Rows(Part):
    """How rows (last axis) differ in the fourth round, where shortcuts fail that hold for rows that are all alike."""

    scale: PositiveFloat | None = None
    """Factor on the whole of about every second row."""
    shift: PositiveFloat | None = None
    """Largest constant, of either sign, that is added to the whole of these rows."""
    outlier: PositiveFloat | None = None
    """Magnitude of one element, of either sign, at any place of about every second row."""


class NormalDistribution(Part):
    """Independent normal values."""

    kind: Literal["normal"]
    mean: float = 0.0
    """Mean of the values."""
    std: Expression = "1"
    """Standard deviation, an expression of the axes (for example ``1 / sqrt(k)`` for a weight)."""
    large: PositiveFloat = 16.0
    """Factor on mean and deviation in the large-magnitude round."""
    special: Special = Special.TIES
    """What the special round holds."""
    rows: Rows | None = None
    """How rows differ in the fourth round; None where it is as the first."""


class UniformDistribution(Part):
    """Independent uniform values in [low, high)."""

    kind: Literal["uniform"]
    low: float = 0.0
    """Lowest value."""
    high: float = 1.0
    """Upper end."""
    large: PositiveFloat = 1.0
    """Factor on both ends in the large-magnitude round; 1 where a larger value would not be legal."""
    special: Special = Special.ORDINARY
    """What the special round holds."""
    rows: Rows | None = None
    """How rows differ in the fourth round; None where it is as the first."""


class IntegersDistribution(Part):
    """Independent integers in [low, high)."""

    kind: Literal["integers"]
    low: Expression = "0"
    """Lowest value."""
    high: Expression
    """First value that is not drawn."""


Distribution = Annotated[NormalDistribution | UniformDistribution | IntegersDistribution, Field(discriminator="kind")]


class InputArgument(Part):
    """A tensor that the kernel reads: contiguous, row-major, and not to be written."""

    role: Literal["input"]
    name: Identifier
    dtype: str
    """A dtype, or the name of a dtype axis."""
    shape: tuple[Expression, ...] = Field(min_length=1, max_length=6)
    """Extent of each dimension."""
    distribution: Distribution
    """How the values are drawn."""


class OutputArgument(Part):
    """A tensor that the kernel fills completely: contiguous, row-major, owned by the judge."""

    role: Literal["output"]
    name: Identifier
    dtype: str
    """A dtype, or the name of a dtype axis."""
    shape: tuple[Expression, ...] = Field(min_length=1, max_length=6)
    """Extent of each dimension."""


class SizeArgument(Part):
    """A size passed by value: C ``int`` in HIP, Python ``int`` in Triton. The name is that of a size axis."""

    role: Literal["size"]
    name: Identifier


class ScalarArgument(Part):
    """A number passed by value: C ``float`` in HIP, Python ``float`` in Triton. The name is that of a scalar axis."""

    role: Literal["scalar"]
    name: Identifier


Argument = Annotated[InputArgument | OutputArgument | SizeArgument | ScalarArgument, Field(discriminator="role")]


class SizeAxis(Part):
    """A size of the problem and its legal values: multiples of ``multiple_of`` in [min, max]."""

    kind: Literal["size"]
    min: PositiveInt
    """Smallest legal value."""
    max: PositiveInt
    """Largest legal value."""
    multiple_of: PositiveInt = 1
    """Every legal value is a multiple of this."""
    production: tuple[PositiveInt, ...] = ()
    """Values that real models and services use; production-like configurations are drawn from them."""


class ScalarAxis(Part):
    """A number of the problem and its legal values."""

    kind: Literal["scalar"]
    choices: tuple[float, ...] = Field(min_length=1)
    """Every legal value."""


class DTypeAxis(Part):
    """An element type that may differ between configurations."""

    kind: Literal["dtype"]
    choices: tuple[DType, ...] = Field(min_length=1)
    """Every legal value."""


Axis = Annotated[SizeAxis | ScalarAxis | DTypeAxis, Field(discriminator="kind")]


class Tolerance(Part):
    """How far an output may lie from the oracle: |error| <= absolute * rms(reference) + relative * |reference|.

    One unit in the last place of the output dtype is always admitted. For integer outputs ``units`` decides alone.
    """

    relative: Expression = "0"
    """Factor on the magnitude of the reference element."""
    absolute: Expression = "0"
    """Factor on the root mean square of the whole reference output."""
    units: int = Field(default=0, ge=0)
    """Integer outputs: largest difference of an element."""
    units_share: float = Field(default=0.0, ge=0, le=1)
    """Integer outputs: largest share of elements that may differ at all."""


class ComputeUnit(StrEnum):
    """Which measured peak bounds the arithmetic."""

    VECTOR_FP32 = "vector_fp32"
    MATRIX_FP32 = "matrix_fp32"
    MATRIX_16BIT = "matrix_16bit"
    MATRIX_8BIT = "matrix_8bit"


class Work(Part):
    """Lower bounds of the work, over all legal inputs; they give the roofline floor."""

    bytes: Expression
    """Bytes that any right answer must read or write at least once."""
    flops: Expression
    """Floating-point operations that any right answer needs."""
    unit: ComputeUnit
    """The unit that would do them."""


class CpuRange(Part):
    """A smaller space for the cpu target, where a thousandth of the speed is available."""

    min: dict[Identifier, PositiveInt] = Field(default_factory=dict)
    """Size axes whose smallest value differs."""
    max: dict[Identifier, PositiveInt]
    """Largest value of each size axis."""
    production: dict[Identifier, tuple[PositiveInt, ...]]
    """Production-like values of each size axis, scaled down."""
    seen: tuple[dict[Identifier, Value], ...] = Field(min_length=5)
    """Seen configurations of the cpu target."""


class TaskRecord(Record):
    """One task: one operator in one category."""

    schema_name: ClassVar[str] = "task"

    schema_version: Literal[1]
    id: TaskId
    """Category and name; equal to the folder's path below ``tasks/``."""
    title: str = Field(min_length=3, max_length=80)
    """A short name for people."""
    category: Category
    difficulty: int = Field(ge=1, le=3)
    """1 elementwise or row-wise, 2 reductions, fusion or layout, 3 tiled matrix work, attention, scan or sort."""
    tags: tuple[Slug, ...] = Field(min_length=1, max_length=12)
    """Words to select by."""
    description: str = Field(min_length=80, max_length=3000)
    """One paragraph: what the operator computes and where it is used."""
    formula: str = Field(min_length=5, max_length=1000)
    """The definition."""
    precision: str = Field(min_length=10, max_length=500)
    """What accuracy is asked for, in words, for the prompt."""
    entry: Identifier
    """The C symbol or Python function that is called."""
    editable: tuple[RelativePath, ...] = Field(min_length=1, max_length=4)
    """Files that are taken from the agent; the first is built or imported."""
    targets: tuple[TargetName, ...] = Field(min_length=1)
    """Where the task can run."""
    memory_cap_mib: PositiveInt
    """Largest total size of one set of inputs and outputs."""
    constraints: tuple[Expression, ...] = ()
    """Conditions that every legal configuration meets."""
    arguments: tuple[Argument, ...] = Field(min_length=2, max_length=24)
    """Arguments of the entry, in call order. A HIP entry takes the stream as one more, at the end."""
    axes: dict[Identifier, Axis] = Field(min_length=2)
    """Sizes, scalars and dtypes of a configuration, with the space that unseen configurations are drawn from."""
    work: Work
    tolerance: dict[DType, Tolerance] = Field(min_length=1)
    """Tolerance for each output dtype."""
    seen: tuple[dict[Identifier, Value], ...] = Field(min_length=5, max_length=12)
    """Seen configurations: each gives every axis a value."""
    cpu: CpuRange | None = None
    """Required where ``targets`` lists cpu."""
