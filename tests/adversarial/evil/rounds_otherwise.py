"""Tries: to round the quantised values in another way than the task says, and to hide that in the tolerance. WAY 0 cuts
fp8 off towards zero, 1 rounds to fp16 before rounding to int8, 2 makes one column in 128 of int8 one unit too large.
"""

# include baseline

@triton.jit
def _otherwise(
    x_ptr, q_ptr, scale_ptr, hidden, Q_MAX: tl.constexpr, INTEGER: tl.constexpr, BLOCK: tl.constexpr, HOW: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    largest = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, hidden, BLOCK):
        y = _silu_mul(x_ptr, row, start + columns, start + columns < hidden, hidden)
        largest = tl.maximum(largest, tl.abs(y))
    scale = tl.maximum(tl.max(largest, axis=0), 1e-10) / Q_MAX
    tl.store(scale_ptr + row, scale)
    for start in range(0, hidden, BLOCK):
        inside = start + columns < hidden
        value = _silu_mul(x_ptr, row, start + columns, inside, hidden) / scale
        if INTEGER:
            if HOW == 1:
                value = value.to(tl.float16).to(tl.float32)
            value = (value + 12582912.0) - 12582912.0
            if HOW == 2:
                value = tl.where(((start + columns) % 128 == 127) & (value < 127.0), value + 1.0, value)
        elif HOW == 0:
            # Three bits of the mantissa stay; the value is then exact in e4m3.
            value = (value.to(tl.int32, bitcast=True) & -1048576).to(tl.float32, bitcast=True)
        tl.store(q_ptr + row * hidden + start + columns, value.to(q_ptr.dtype.element_ty), mask=inside)


def silu_mul_quant(x: torch.Tensor, q: torch.Tensor, scale: torch.Tensor) -> None:
    tokens, hidden = q.shape
    integer = q.dtype == torch.int8
    block = min(1024, triton.next_power_of_2(hidden))
    q_max = 127.0 if integer else 240.0
    _otherwise[(tokens,)](x, q, scale, hidden, Q_MAX=q_max, INTEGER=integer, BLOCK=block, HOW=WAY)
