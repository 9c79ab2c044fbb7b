"""The command line. Every nox session forwards its arguments to it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from akarena import __version__, flags
from akarena.errors import AkarenaError, ClaimError, ExitCode, UserError, unknown_name

Handler = Callable[[argparse.Namespace], int]


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, with the nearest names where a name is unknown."""

    def error(self, message: str) -> NoReturn:
        """Exit with the code of a user error."""
        raise UserError(f"{message} (see {self.prog} --help)")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    try:
        arguments = _parser().parse_args(argv)
        handler: Handler = arguments.handler
        return handler(arguments)
    except AkarenaError as error:
        print(f"akarena: {error}", file=sys.stderr)
        return int(error.exit_code)
    except KeyboardInterrupt:
        print("akarena: interrupted; `akarena resume` goes on where this stopped", file=sys.stderr)
        return int(ExitCode.INTERRUPTED)
    except BrokenPipeError:
        return int(ExitCode.OK)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="akarena", description="Measures AI coding agents on GPU-kernel optimisation.")
    parser.add_argument("--version", action="version", version=f"akarena {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_tasks(commands)
    _add_names(commands, "agents", "list the agents", _agents_list)
    _add_names(commands, "targets", "list the targets and what each lacks here", _targets_list)
    _add_preflight(commands)
    _add_evaluate(commands)
    _add_run_commands(commands)
    _add_build(commands)
    schemas = commands.add_parser("schemas", help="write the JSON schemas, or check that the committed ones are fresh")
    schemas.add_argument("--check", action="store_true", help="fail where a schema is stale, and write nothing")
    schemas.set_defaults(handler=_schemas)
    return parser


def _add_tasks(commands: Any) -> None:
    tasks = commands.add_parser("tasks", help="list, show or lint tasks")
    verbs = tasks.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help="list tasks")
    listing.add_argument("tasks", nargs="*", help="id, glob, category, tag:NAME or difficulty:N")
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(handler=_tasks_list)
    show = verbs.add_parser("show", help="show the prompt of a task")
    show.add_argument("task", help="id or name")
    show.add_argument("--target", default="cpu", help="cpu, cuda or rocm")
    show.set_defaults(handler=_tasks_show)
    lint = verbs.add_parser("lint", help="say what is wrong with tasks")
    lint.add_argument("tasks", nargs="*", help="id, glob, category, tag:NAME or difficulty:N")
    lint.add_argument("--deep", action="store_true", help="also run the oracle and the negative controls (torch, CPU)")
    lint.set_defaults(handler=_tasks_lint)


def _add_names(commands: Any, name: str, summary: str, handler: Handler) -> None:
    parser = commands.add_parser(name, help=summary)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    listing = verbs.add_parser("list", help=summary)
    listing.add_argument("--json", action="store_true", help="print JSON")
    listing.set_defaults(handler=handler)


def _add_machine(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--target", default="auto", help="cpu, cuda, rocm or auto (the first usable)")
    parser.add_argument("--sandbox", default="auto", help="a registered sandbox, or auto")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_preflight(commands: Any) -> None:
    parser = commands.add_parser("preflight", help="check from inside that the sandbox isolates and the target works")
    _add_machine(parser)
    flags.add_agents(parser)
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where run folders will lie (runs/)")
    parser.set_defaults(handler=_preflight)


def _add_evaluate(commands: Any) -> None:
    parser = commands.add_parser("evaluate", help="let agents work on tasks, judge what they leave, write the report")
    flags.add_agents(parser)
    parser.add_argument("--tasks", nargs="+", default=[], help="id, glob, category, tag:NAME or difficulty:N")
    _add_machine(parser)
    parser.add_argument("--attempts", type=flags.count, default=1, help="attempts of each configuration on each task")
    seed = parser.add_mutually_exclusive_group()
    seed.add_argument("--seed", type=int, help="choose the seed of the unseen configurations; the report says so")
    seed.add_argument("--seed-of", help="use the revealed seed of a sealed run again")
    parser.add_argument("--run-id", help="name of the run folder")
    parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where run folders lie (runs/)")
    parser.add_argument("--agent-seconds", type=flags.seconds, default=3600.0, help="wall time of an agent (3600)")
    parser.add_argument("--check-calls", type=flags.calls, default=20, help="calls of `check` an agent has (20)")
    parser.add_argument(
        "--suggest-iterations", type=flags.count, help="rounds that the prompt speaks of (published: 3)"
    )
    parser.add_argument(
        "--no-contract", action="store_true", help="leave the legal sizes out of the prompt, as published"
    )
    parser.add_argument("--no-inspection", action="store_true", help="do not also compile for gfx942 and gfx950")
    parser.set_defaults(handler=_evaluate)


def _add_run_commands(commands: Any) -> None:
    for name, summary, handler in (
        ("resume", "run what is missing of an interrupted run", _resume),
        ("report", "render the report of a run", _report),
        ("verify", "check a run: schemas, sums, references, and that the report comes out the same", _verify),
    ):
        parser = commands.add_parser(name, help=summary)
        parser.add_argument("run", nargs=None if name == "resume" else "?", help="name, unique prefix or folder")
        parser.add_argument("--runs-dir", type=Path, default=Path("runs"), help="where run folders lie (runs/)")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        if name == "resume":
            parser.add_argument("--no-inspection", action="store_true", help="as in `evaluate`")
        if name == "verify":
            parser.add_argument("--rejudge", action="store_true", help="also judge every candidate again")
        parser.set_defaults(handler=handler)


def _add_build(commands: Any) -> None:
    parser = commands.add_parser("build", help="build the container images of a target and write their image lock")
    parser.add_argument("--target", default="auto", help="cpu, cuda, rocm or auto (the device of this machine)")
    parser.add_argument("--base", help="image to build on, best by digest (each of rocm and cpu has its own)")
    parser.add_argument("--role", action="append", default=[], help="judge, worker or agent; repeatable (all three)")
    agents = "claude, codex, cursor or openai-compatible, put into agent images"
    parser.add_argument("--agent", action="append", default=[], help=agents)
    parser.add_argument("--cursor-archive", type=Path, help="archive of the Cursor CLI (tar.gz)")
    parser.add_argument("--cursor-version", help="its version")
    parser.add_argument("--cursor-sha256", help="its digest")
    parser.add_argument("--no-cache", action="store_true", help="run every step again")
    parser.add_argument("--json", action="store_true", help="print the image lock as JSON")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--compare", action="store_true", help="build twice without cache, name every difference")
    what.add_argument("--download-only", action="store_true", help="fill the build context, build no role")
    parser.set_defaults(handler=_build)


def _all_tasks() -> Any:
    from akarena import paths, tasks

    return tasks.load_all(paths.root() / "tasks")


def _tasks_list(arguments: argparse.Namespace) -> int:
    from tabulate import tabulate

    from akarena import tasks

    chosen = tasks.select(_all_tasks(), arguments.tasks)
    rows: list[dict[str, Any]] = [
        {
            "id": task.id,
            "difficulty": task.record.difficulty,
            "title": task.record.title,
            "targets": [target.value for target in task.record.targets],
            "tags": list(task.record.tags),
        }
        for task in chosen
    ]
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        shown = [(row["id"], row["difficulty"], row["title"], ", ".join(row["tags"])) for row in rows]
        print(tabulate(shown, headers=("task", "difficulty", "title", "tags")))
    return ExitCode.OK


def _tasks_show(arguments: argparse.Namespace) -> int:
    from akarena import prompt, tasks
    from akarena.records.task import TargetName

    if arguments.target not in set(TargetName):
        raise unknown_name("--target: target", arguments.target, [target.value for target in TargetName])
    target = TargetName(arguments.target)
    for task in tasks.select(_all_tasks(), [arguments.task]):
        print(prompt.render(task.record, target, target.value, contract=True, check_calls=20, seconds=3600))
    return ExitCode.OK


def _tasks_lint(arguments: argparse.Namespace) -> int:
    from akarena import lint, paths, tasks

    if arguments.tasks:
        folders = [task.folder for task in tasks.select(_all_tasks(), arguments.tasks)]
        problems = [problem for folder in folders for problem in lint.lint(folder, deep=arguments.deep)]
    else:
        folders = list(tasks.discover(paths.root() / "tasks").values())
        problems = lint.lint_all(paths.root(), arguments.deep)
    for problem in problems:
        print(problem)
    if problems:
        raise ClaimError(f"{len(problems)} problems in {len(folders)} tasks")
    left_out = "" if arguments.deep else " (without --deep: oracles and negative controls not run)"
    print(f"{len(folders)} tasks, no problem{left_out}")
    return ExitCode.OK


def _agents_list(arguments: argparse.Namespace) -> int:
    from tabulate import tabulate

    from akarena import agents

    rows = [{"name": name, "summary": agents.get(name).summary} for name in agents.names()]
    print(json.dumps(rows, indent=2) if arguments.json else tabulate([row.values() for row in rows], tablefmt="plain"))
    return ExitCode.OK


def _targets_list(arguments: argparse.Namespace) -> int:
    from tabulate import tabulate

    from akarena import targets

    rows: list[dict[str, Any]] = []
    for name in targets.names():
        missing = targets.create(name).missing()
        rows.append({"name": name, "usable": not missing, "missing": missing})
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        shown = [(row["name"], "usable" if row["usable"] else "; ".join(row["missing"])) for row in rows]
        print(tabulate(shown, tablefmt="plain"))
    return ExitCode.OK


def _preflight(arguments: argparse.Namespace) -> int:
    from tabulate import tabulate

    from akarena import readiness

    chosen = flags.choose_agents(arguments) if arguments.agent or arguments.agents_file else ()
    found = readiness.look(arguments.sandbox, arguments.target, chosen, arguments.runs_dir)
    failed = [check for check in found.checks if not check.ok]
    if arguments.json:
        place = found.place
        target, box = (place.target.name.value, place.sandbox.name) if place else (None, None)
        rows = [check.model_dump() for check in found.checks]
        print(json.dumps({"target": target, "sandbox": box, "checks": rows}, indent=2))
    else:
        good = [check for check in found.checks if check.ok]
        shown = [("ok", check.check, check.detail) for check in good if not chosen or check in found.others]
        if chosen:
            # One screen for what the user can do something about.
            passed = f"{sum(check.ok for check in found.isolation)} checks from inside passed"
            told = f"{passed} (`akarena preflight` lists them)" if found.isolation else "no check was run"
            shown.append(("ok" if found.isolation else "not run", "isolation", told))
        # What is missing comes last, where it is seen.
        shown += [("FAILED", check.check, check.detail) for check in failed]
        print(tabulate(shown, tablefmt="plain"))
        print(f"{len(failed)} of {len(found.checks)} checks failed" if failed else "nothing is missing")
    return ExitCode.INFRASTRUCTURE if failed else ExitCode.OK


def _evaluate(arguments: argparse.Namespace) -> int:
    from akarena import configure

    # First, so that a missing key is told at once.
    configurations = flags.choose_agents(arguments)
    configure.require_ready(configurations)
    from akarena import runner
    from akarena.display import Display

    request = runner.Request(
        runs_dir=arguments.runs_dir,
        agents=configurations,
        tasks=tuple(arguments.tasks),
        target=arguments.target,
        sandbox=arguments.sandbox,
        attempts=arguments.attempts,
        seed=arguments.seed,
        seed_of=arguments.seed_of,
        run_id=arguments.run_id,
        agent_seconds=arguments.agent_seconds,
        check_calls=arguments.check_calls,
        suggested_iterations=arguments.suggest_iterations,
        contract_in_prompt=not arguments.no_contract,
        inspect=not arguments.no_inspection,
    )
    with Display() as display:
        run = runner.start(request, display)
    return _finished(run, arguments.json)


def _resume(arguments: argparse.Namespace) -> int:
    from akarena import runner, store
    from akarena.display import Display

    with Display() as display:
        run = runner.resume(
            store.find_run(arguments.runs_dir, arguments.run), display, inspect=not arguments.no_inspection
        )
    return _finished(run, arguments.json)


def _finished(run: Any, as_json: bool) -> int:
    """Render the report, print its summary and where it lies."""
    from akarena.summary import print_summary

    return print_summary(run, as_json)


def _find(arguments: argparse.Namespace) -> Any:
    """Return the run that was named, or the newest one."""
    from akarena import store

    if arguments.run is not None:
        return store.find_run(arguments.runs_dir, arguments.run)
    known = [folder for folder in arguments.runs_dir.glob("*") if (folder / "SHA256SUMS").is_file()]
    if not known:
        raise UserError(f"--runs-dir {arguments.runs_dir}: holds no sealed run; name one, or run `akarena evaluate`")
    return store.RunFolder(max(known, key=lambda folder: (folder / "SHA256SUMS").stat().st_mtime))


def _report(arguments: argparse.Namespace) -> int:
    return _finished(_find(arguments), arguments.json)


def _verify(arguments: argparse.Namespace) -> int:
    from akarena import verify

    run = _find(arguments)
    findings = verify.verify(run.root)
    if arguments.json:
        print(json.dumps([{"file": finding.file, "problem": finding.problem} for finding in findings], indent=2))
    else:
        for finding in findings:
            print(f"{finding.file}: {finding.problem}")
    if findings:
        raise ClaimError(f"{run.root}: {len(findings)} findings")
    print(f"{run.root}: verified", file=sys.stderr if arguments.json else sys.stdout)
    return _rejudge(run, arguments) if arguments.rejudge else ExitCode.OK


def _rejudge(run: Any, arguments: argparse.Namespace) -> int:
    from akarena import runner
    from akarena.display import Display
    from akarena.rejudged import differences

    with Display() as display:
        again = runner.rejudge(run, arguments.runs_dir, display)
    rows, failed = differences(run, again)
    for row in rows:
        print(row)
    if failed:
        raise ClaimError(f"{run.root}: {failed} trials did not come out as recorded; see {again.root}")
    print(f"{run.root}: judged again as {again.root.name}, every trial came out as recorded")
    return ExitCode.OK


def _schemas(arguments: argparse.Namespace) -> int:
    from akarena import paths, schemas

    folder = paths.root() / "schemas"
    if not arguments.check:
        schemas.write(folder)
        return ExitCode.OK
    stale = schemas.drift(folder)
    for line in stale:
        print(line)
    if stale:
        raise ClaimError(f"{len(stale)} schemas are not fresh; run `akarena schemas`")
    print("the schemas are fresh")
    return ExitCode.OK


def _build(arguments: argparse.Namespace) -> int:
    from akarena.images import command

    return command.run(arguments)
