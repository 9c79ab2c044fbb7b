"""The rewriter of kernel launches: what it changes, what it leaves alone, and what it refuses."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from akarena.targets.chevrons import main, rewrite

LAUNCHES = {
    "k<<<g, b>>>(x, n);": "hipLaunchKernelGGL((k), dim3(g), dim3( b), 0, 0, x, n);",
    "k<<<g,b,s>>>(x);": "hipLaunchKernelGGL((k), dim3(g), dim3(b), (s), 0, x);",
    "k<<<g,b,s,t>>>(x);": "hipLaunchKernelGGL((k), dim3(g), dim3(b), (s), (t), x);",
    "k<<<1,1>>>();": "hipLaunchKernelGGL((k), dim3(1), dim3(1), 0, 0);",
    "k<T, 4><<<g,b>>>(x);": "hipLaunchKernelGGL((k<T, 4>), dim3(g), dim3(b), 0, 0, x);",
    "k<V<int>><<<g,b>>>(x);": "hipLaunchKernelGGL((k<V<int>>), dim3(g), dim3(b), 0, 0, x);",
    "k<(a > b), 4><<<g,b>>>(x);": "hipLaunchKernelGGL((k<(a > b), 4>), dim3(g), dim3(b), 0, 0, x);",
    "n::m::k<<<g,b>>>(x);": "hipLaunchKernelGGL((n::m::k), dim3(g), dim3(b), 0, 0, x);",
    "return ::k<<<g,b>>>(x);": "return hipLaunchKernelGGL((::k), dim3(g), dim3(b), 0, 0, x);",
    "A<T>::template k<4><<<g,b>>>(x);": "hipLaunchKernelGGL((A<T>::template k<4>), dim3(g), dim3(b), 0, 0, x);",
    "if (c) (k)<<<g,b>>>(x);": "if (c) hipLaunchKernelGGL(((k)), dim3(g), dim3(b), 0, 0, x);",
    "table[i]<<<g,b>>>(x);": "hipLaunchKernelGGL((table[i]), dim3(g), dim3(b), 0, 0, x);",
    "o->k<<<g,b>>>(x);": "hipLaunchKernelGGL((o->k), dim3(g), dim3(b), 0, 0, x);",
    "k<<<(n >> 8) + f(a, b), {32, 4}>>>(x << 2, g<a, b>(c));": (
        "hipLaunchKernelGGL((k), dim3((n >> 8) + f(a, b)), dim3( {32, 4}), 0, 0, x << 2, g<a, b>(c));"
    ),
    "k<<<cdiv<int, 4>(n), n >> 2>>>(x);": "hipLaunchKernelGGL((k), dim3(cdiv<int, 4>(n)), dim3( n >> 2), 0, 0, x);",
    "k<<<n < 4 ? 1 : 2, b>>>(x);": "hipLaunchKernelGGL((k), dim3(n < 4 ? 1 : 2), dim3( b), 0, 0, x);",
    "k <<< g, b >>> (x);": "hipLaunchKernelGGL((k ), dim3( g), dim3( b ), 0, 0 , x);",
    "#define RUN(K, ...) K<<<g, b>>>(__VA_ARGS__)": (
        "#define RUN(K, ...) hipLaunchKernelGGL((K), dim3(g), dim3( b), 0, 0, __VA_ARGS__)"
    ),
    "k<<<g, /* , >>> */ b>>>(x);": "hipLaunchKernelGGL((k), dim3(g), dim3( /* , >>> */ b), 0, 0, x);",
    "k<<<g, b>>>(\">>>\", ')');": "hipLaunchKernelGGL((k), dim3(g), dim3( b), 0, 0, \">>>\", ')');",
}

UNTOUCHED = [
    "",
    "int a = b << 3 >> 1; std::cout << x << y;",
    "// k<<<g, b>>>(x);\n/* k<<<g, b>>>(x); */",
    'const char* s = "k<<<g, b>>>(x)";',
    'auto s = R"sql(k<<<g, b>>>("x"))sql";',
    "// a comment \\\n k<<<g, b>>>(x)\nint y;",
    "A<B<C<int>>> deep;",
    "out.operator<<<char>(x);",
    "<<<<<<< HEAD\nx\n=======\n>>>>>>> other",
    "a\n<<<<<<< HEAD\n",
    "int n = 1'000'000; char c = '<';",
    "#error it's broken\nint x;",
    "__shared__ float tile[16][17];",
    "extern __shared__ float sized[4];",
    "__attribute__((__noinline__)) void f();",
]

DYNAMIC = {
    "void k() { extern __shared__ float s[]; }": "void k() {   float *s = HIP_ON_CPU_DYNAMIC_SHARED; }",
    "void k() { extern __shared__ __align__(16) unsigned char s[]; }": (
        "void k() {    unsigned char *s = HIP_ON_CPU_DYNAMIC_SHARED; }"
    ),
    "void k() { extern __shared__ float s[] __attribute__((aligned(16))); }": (
        "void k() {   float *s = HIP_ON_CPU_DYNAMIC_SHARED ; }"
    ),
    "namespace a { struct S { void k() { extern alignas(8) __shared__ T<int, 2> s[]; } }; }": (
        "namespace a { struct S { void k() {    T<int, 2> *s = HIP_ON_CPU_DYNAMIC_SHARED; } }; }"
    ),
    '#include <x>\nextern __shared__ float s[];\nextern "C" {}': (
        '#include <x>\n  static hip_on_cpu::DynamicShared<float > s;\nextern "C" {}'
    ),
    "namespace a {\nextern __shared__ unsigned int s[];\n}": (
        "namespace a {\n  static hip_on_cpu::DynamicShared<unsigned int > s;\n}"
    ),
    "void k() { __shared__ alignas(16) float s[4]; }": "void k() { __shared__ __align__(16) float s[4]; }",
    "__noinline__ float f();": "__attribute__((__noinline__)) float f();",
}


@pytest.mark.parametrize(("source", "expected"), LAUNCHES.items())
def test_launch_becomes_a_macro_call(source: str, expected: str) -> None:
    assert rewrite(source) == expected


@pytest.mark.parametrize("source", UNTOUCHED)
def test_everything_else_is_left_alone(source: str) -> None:
    assert rewrite(source) == source


@pytest.mark.parametrize(("source", "expected"), DYNAMIC.items())
def test_dynamic_shared_memory(source: str, expected: str) -> None:
    assert rewrite(source) == expected


def test_two_launches_and_line_numbers() -> None:
    source = "f();\nk<T,\n  4><<<\n  dim3(a,\n b),\n  c,\n\n  0>>>(\n  x, // first\n  y);\nm<<<1, 2>>>(z);\n"
    result = rewrite(source)
    assert result.count("hipLaunchKernelGGL((") == 2
    assert result.count("\n") == source.count("\n")
    assert result.splitlines()[8] == "  x, // first"


def test_line_breaks_inside_a_removed_attribute_stay() -> None:
    source = "void k() {\nextern __shared__ __align__(\n16) float s[];\nk2<<<1, 2>>>();\n}"
    assert rewrite(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("\n\nk<<<g, b(x);\n", "line 3: the <<< of a kernel launch is not closed"),
        ("k<<<g, b", "line 1: the <<< of a kernel launch is not closed"),
        ("\nk<<<g, b>>>(x, (y);", "line 2: the ( of a kernel launch is not closed"),
        ("k<<<g, b>>>;", r"line 1: expected \( with the kernel's arguments"),
        ("k<<<g>>>(x);", "line 1: a launch takes 2 to 4 settings"),
        ("k<<<a, b, c, d, e>>>(x);", "found 5"),
        ("\n; ><<<g, b>>>(x);", "line 2: cannot find the kernel"),
    ],
)
def test_broken_launches_are_refused(source: str, message: str) -> None:
    with pytest.raises(ValueError, match=message.replace("( of", r"\( of")):
        rewrite(source)


PIECES = st.lists(
    st.sampled_from(
        ["<", ">", ">>", "<<", "k", "(", ")", "{", "}", ";", ",", '"', "'", "\\", "\n", "//", "/*", "*/", 'R"(']
    )
    | st.text(max_size=4)
).map("".join)


@given(PIECES.filter(lambda s: "<<<" not in s and "__shared__" not in s and "__noinline__" not in s))
def test_text_without_launches_is_unchanged(source: str) -> None:
    assert rewrite(source) == source


@given(PIECES)
def test_any_text_keeps_its_lines_or_is_refused(source: str) -> None:
    text = "void f() {\n" + source
    try:
        result = rewrite(text)
    except ValueError as error:
        result = str(error) + "\n" * text.count("\n")
        assert result.startswith("line ")
    assert result.count("\n") == text.count("\n")


def test_main_names_the_source_in_compiler_messages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, result = tmp_path / "kernel.hip", tmp_path / "kernel.cpp"
    source.write_text("k<<<1, 2>>>(x);\n")
    assert main([str(source), str(result)]) == 0
    assert result.read_text() == '#line 1 "kernel.hip"\nhipLaunchKernelGGL((k), dim3(1), dim3( 2), 0, 0, x);\n'
    source.write_text("\nk<<<1, 2")
    assert main([str(source), str(result)]) == 1
    assert "kernel.hip: line 2: " in capsys.readouterr().err
    assert main([]) == 2
