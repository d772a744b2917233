"""An installed etch can be used by others: its headers stand alone, pkg-config and CMake find the library,
the example program runs.

    check_install.py CMAKE VERSION flags=FLAGS      FLAGS of the compiler built the library
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

CONSUMER = """
#include <etch/etch.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    etch_session_options options = {
        .struct_size = sizeof options, .spec = argc > 1 ? argv[1] : "", .config = "gpt2"};
    etch_session *session;
    const etch_answer *answer;
    etch_status status = etch_session_open(&options, &session);
    if (status == ETCH_OK)
        status = etch_session_query(session, "params(model)", NULL, &answer);
    if (status == ETCH_OK)
        printf("%s %s\\n", ETCH_VERSION, answer->amount.text);
    etch_session_close(session);
    return (int)status;
}
"""

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES C)
find_package(etch 0.1 REQUIRED)
add_executable(consumer consumer.c)
target_link_libraries(consumer PRIVATE etch::etch)
"""


def run(*command, **options):
    result = subprocess.run(command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            **options)
    if result.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}\n{result.stdout}")
    return result.stdout


def check_headers(compiler, prefix):
    headers = sorted((prefix / "include" / "etch").glob("*.h"))
    assert headers, "no public headers"
    for header in headers:
        text = f"#include <etch/{header.name}>\nextern int unused;\n"
        pathlib.Path("header.c").write_text(text, encoding="utf-8")
        run(compiler, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only",
            "-I", prefix / "include", "header.c")


def installed_spec(prefix):
    return prefix / "share" / "etch" / "models" / "gpt.etch"


def check_pkg_config(compiler, flags, prefix, expected):
    folder = next(prefix.rglob("etch.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(folder))
    options = run("pkg-config", "--cflags", "--libs", "--static", "etch", env=environment).split()
    run(compiler, *flags, "consumer.c", "-o", "with-pkg-config", *options)
    assert run("./with-pkg-config", installed_spec(prefix)) == expected


def check_cmake(cmake, compiler, flags, prefix, expected):
    run(cmake, "-G", "Ninja", "-S", ".", "-B", "with-cmake", f"-DCMAKE_PREFIX_PATH={prefix}",
        f"-DCMAKE_C_COMPILER={compiler}", f"-DCMAKE_C_FLAGS={shlex.join(flags)}")
    run(cmake, "--build", "with-cmake")
    assert run("with-cmake/consumer", installed_spec(prefix)) == expected


def expected_of_example():
    """What examples/expr.c prints, computed here."""
    def flop(seq):
        batch, hidden, layers, tp = 1024, 8192, 80, 8
        return layers * (24 * batch * seq * hidden * (hidden // tp) + 4 * batch * seq**2 * hidden // tp)

    values = [flop(8 * (i + 1)) for i in range(1000000)]
    leading = "4*batch*seq^2*hidden*layers/tp"
    latex = [f"\\mathrm{{{name}}}" for name in ("batch", "seq", "hidden", "layers", "tp")]
    terms = [r"4\,{0}\,{1}^{{2}}\,{2}\,{3}", r"24\,{0}\,{1}\,{2}^{{2}}\,{3}"]
    return "".join(line + "\n" for line in [
        f"FLOP         {leading} + 24*batch*seq*hidden^2*layers/tp",
        "factored     4*batch*seq*hidden*layers*(seq + 6*hidden)/tp",
        "LaTeX        " + " + ".join(rf"\frac{{{term.format(*latex)}}}{{{latex[4]}}}" for term in terms),
        "by seq       8*batch*seq*hidden*layers/tp + 24*batch*hidden^2*layers/tp",
        f"seq large    {leading}",
        "hidden >= tp: yes",
        "seq >= tp: no",
        f"first        {values[0]}",
        f"last         {values[-1]}",
        f"above 2^63   {sum(value >= 2**63 for value in values)} of 1000000",
    ])


def run_example(compiler, flags, prefix, name):
    source = prefix / "share" / "doc" / "etch" / "examples" / f"{name}.c"
    folder = next(prefix.rglob("etch.pc")).parent
    environment = dict(os.environ, PKG_CONFIG_PATH=str(folder))
    options = run("pkg-config", "--cflags", "--libs", "--static", "etch", env=environment).split()
    run(compiler, *flags, "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", source, "-o", name,
        *options)
    return run(f"./{name}")


def check_formulas(compiler, flags, prefix):
    found, expected = run_example(compiler, flags, prefix, "expr"), expected_of_example()
    values = re.search(r", as for (.*)", found)
    found = found.replace(values[0], "")
    value = {name: int(text) for name, text in re.findall(r"(\w+) = (\d+)", values[1])}
    assert value["seq"] < value["tp"] and value["hidden"] % value["tp"] == 0, values[1]
    assert found == expected, f"{found}\nshould be\n{expected}"


def check_network(compiler, flags, prefix):
    """Two layers: products of batch, width, hidden, classes; the first needs no gradient of its input;
    gradients of four bytes are reduced."""
    found = run_example(compiler, flags, prefix, "network")
    values = dict(line.split(maxsplit=1) for line in found.splitlines() if not line.startswith("remark"))
    point = {"batch": 12, "width": 7, "hidden": 5, "classes": 3}
    weights = 7 * 5 + 5 * 3 + 5 + 3
    expected = {"params(model)": weights, "matmul_flops(forward)": 2 * 12 * (7 * 5 + 5 * 3),
                "matmul_flops(backward)": 2 * 12 * (7 * 5 + 2 * 5 * 3), "comm(step)": 4 * weights}
    assert {name: eval(text, dict(point)) for name,
            text in values.items() if name in expected} == expected, found


def check_program(prefix):
    """Models are found by their names from anywhere, after those that stand here and in ETCH_PATH; shells
    complete commands and options; whoever has built the program can install it."""
    etch = prefix / "bin" / "etch"
    here, other = pathlib.Path("here").resolve(), pathlib.Path("other").resolve()
    environment = {name: value for name, value in os.environ.items() if name != "ETCH_PATH"}
    for folder in (here, other):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()

    def ask(*options, **more):
        return run(etch, "query", "gpt.etch", "params(model)", *options, cwd=here,
                   env=dict(environment, **more)).strip()

    small = "etch 1\ndim A = %d\nmodel m(x[A]) -> y[A] {\n  weight w[A]\n  y = x * w\n}\n"
    assert ask("--config", "gpt2") == "124439808"
    (other / "gpt.etch").write_text(small % 5, encoding="utf-8")
    assert ask(ETCH_PATH=f"nowhere::{other}") == "5"
    (here / "gpt.etch").write_text(small % 7, encoding="utf-8")
    assert ask(ETCH_PATH=str(other)) == "7"
    missing = subprocess.run([etch, "query", "no-such.etch", "1"], cwd=here, env=environment, text=True,
                             stderr=subprocess.PIPE, stdout=subprocess.PIPE, check=False)
    assert missing.returncode == 3 and "no-such.etch" in missing.stderr, missing
    share = prefix / "share"
    completed = run("bash", "-c", f". {shlex.quote(str(share / 'bash-completion/completions/etch'))}\n"
                    "COMP_WORDS=(etch lower --astr) COMP_CWORD=2; _etch; echo ${COMPREPLY[@]}\n"
                    "COMP_WORDS=(etch ver) COMP_CWORD=1; _etch; echo ${COMPREPLY[@]}")
    assert completed == "--astra-sim\nverify\n", completed
    assert (share / "zsh/site-functions/_etch").read_text(encoding="utf-8").startswith("#compdef etch\n")
    assert "-l astra-sim" in (share / "fish/vendor_completions.d/etch.fish").read_text(encoding="utf-8")
    made = run("ninja", "-C", os.environ["ETCH_BINARY_DIR"], "-t", "query", "etch.1")
    assert "EXECUTABLE" in made, made


def check_machines(prefix):
    """Machines are installed and found by their names, with and without the end of the file; the rows that
    they were fitted to are not installed."""
    folder = prefix / "share" / "etch" / "machines"
    names = {path.name for path in (pathlib.Path(os.environ["ETCH_SOURCE_DIR"]) / "machines").glob("*.etch")}
    assert {path.name for path in folder.iterdir()} == names, folder
    table = pathlib.Path("rows.csv").resolve()
    table.write_text("m,n,k,us\n4096,4096,4096,200\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "ETCH_PATH"}
    for name in ("h100_sxm", "h100_sxm.etch"):
        command = [prefix / "bin" / "etch", "fit", table, "--machine", name, "--check"]
        said = run(*command, cwd="/", env=environment)
        assert said.startswith("fit products overhead = 3.28 us"), said


def main():
    cmake, version, flags = sys.argv[1], sys.argv[2], shlex.split(sys.argv[3].removeprefix("flags="))
    compiler = os.environ["CC"]
    prefix = pathlib.Path("prefix").resolve()
    for folder in ("prefix", "with-cmake"):
        shutil.rmtree(folder, ignore_errors=True)
    pathlib.Path("consumer.c").write_text(CONSUMER, encoding="utf-8")
    pathlib.Path("CMakeLists.txt").write_text(PROJECT, encoding="utf-8")

    run(cmake, "--install", os.environ["ETCH_BINARY_DIR"], "--prefix", prefix)
    check_headers(compiler, prefix)
    expected = f"{version} 124439808\n"  # the parameters of GPT-2 small
    check_pkg_config(compiler, flags, prefix, expected)
    check_cmake(cmake, compiler, flags, prefix, expected)
    check_formulas(compiler, flags, prefix)
    check_network(compiler, flags, prefix)
    check_program(prefix)
    check_machines(prefix)


main()
