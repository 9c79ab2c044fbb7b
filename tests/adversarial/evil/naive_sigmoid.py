"""Tries: to get the sigmoid as exp(v) / (1 + exp(v)), which is NaN for gates above 88."""

# include baseline

@triton.jit
def _silu_mul(x_ptr, row, columns, inside, hidden):
    # In the place of the baseline's function of this name, which its kernel calls.
    gate = tl.load(x_ptr + row * 2 * hidden + columns, mask=inside, other=0.0).to(tl.float32)
    up = tl.load(x_ptr + row * 2 * hidden + hidden + columns, mask=inside, other=0.0).to(tl.float32)
    grown = tl.exp(gate)
    return gate * (grown / (1.0 + grown)) * up


def silu_mul_quant(x, q, scale):
    honest_silu_mul_quant(x, q, scale)
