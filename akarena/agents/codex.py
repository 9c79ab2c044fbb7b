"""``codex``: the Codex CLI, through the gateway to OpenAI's Responses API."""

from __future__ import annotations

import json

from akarena.agents.stream import Event, Work, count, mapping, text_of
from akarena.agents.vendor import CliAgent
from akarena.prompt import WORKSPACE
from akarena.records.run import AgentConfiguration
from akarena.records.trial import StepKind, Tokens

_PROVIDER = "model_providers.akarena"


class CodexAgent(CliAgent):
    """Codex without a terminal."""

    name = "codex"
    summary = "Codex (--model, --effort; needs OPENAI_API_KEY)"
    program = "codex"
    service = "openai"
    executable = "codex"
    install = "npm install -g @openai/codex"
    final_events = ("turn.completed", "turn.failed")

    def argv(self, configuration: AgentConfiguration) -> tuple[str, ...]:
        """Return the command; the prompt comes on standard input."""
        settings = {
            "model_provider": '"akarena"',
            f"{_PROVIDER}.name": '"akarena"',
            f"{_PROVIDER}.base_url": '"$OPENAI_BASE_URL"',
            f"{_PROVIDER}.env_key": '"OPENAI_API_KEY"',
            f"{_PROVIDER}.wire_api": '"responses"',
            # It is offered in every request otherwise, which the gateway then refuses.
            "web_search": '"disabled"',
            "features.memories": "false",
            "check_for_update_on_startup": "false",
            # A login shell reads /etc/profile, which may set another PATH.
            "allow_login_shell": "false",
        }
        if configuration.effort:
            settings["model_reasoning_effort"] = json.dumps(configuration.effort)
        flags = f"exec --json --dangerously-bypass-approvals-and-sandbox --skip-git-repo-check --cd {WORKSPACE}"
        return (
            *flags.split(),
            *(("--model", configuration.model) if configuration.model else ()),
            *(part for name, value in settings.items() for part in ("-c", f"{name}={value}")),
            *configuration.arguments,
            "-",
        )

    def environment(self, configuration: AgentConfiguration) -> dict[str, str]:
        """Return nothing: its settings are arguments, and its folder is in the fresh home."""
        return {}

    def parser(self) -> CodexParser:
        """Return a parser of one stream."""
        return CodexParser()


class CodexParser:
    """Reads ``codex exec --json``."""

    def __init__(self) -> None:
        self.work = Work()
        self._done: set[str] = set()

    def read(self, event: Event) -> None:
        """Take the next event."""
        work = self.work
        match event.get("type"):
            case "thread.started" | "turn.started":
                pass
            case "item.started" | "item.updated" | "item.completed" as kind:
                self._item(mapping(event.get("item")), completed=kind == "item.completed")
            case "turn.completed":
                work.complete, work.error = True, ""
                # The counts are those of the whole thread so far: the last ones replace earlier ones.
                work.tokens = _tokens(mapping(event.get("usage"))) or work.tokens
            case "turn.failed":
                work.complete = True
                work.error = text_of(mapping(event.get("error")).get("message")) or "the turn failed"
            case "error":
                # It also tells of a connection that it tries again, so it decides nothing.
                work.say(f"error: {text_of(event.get('message'))}")
            case _:
                work.other(event)

    def _item(self, item: Event, *, completed: bool) -> None:
        work, key = self.work, text_of(item.get("id"))
        match item.get("type"):
            case "agent_message" | "reasoning" | "error" as kind:
                if completed and key not in self._done:
                    self._done.add(key)
                    text = text_of(item.get("text") or item.get("message"))
                    work.say(text, StepKind.REASONING if kind == "reasoning" else StepKind.MESSAGE)
            case "command_execution":
                work.call(key, "command", item.get("command"))
                if completed:
                    code, output = item.get("exit_code"), text_of(item.get("aggregated_output"))
                    work.result(key, output if code in (0, None) else f"exit code {text_of(code)}\n{output}")
            case "file_change":
                work.call(key, "file_change", item.get("changes"))
                if completed:
                    work.result(key, item.get("status"))
            case "mcp_tool_call":
                work.call(key, item.get("tool"), item.get("arguments"))
                if completed:
                    work.result(key, item.get("error") or item.get("result") or item.get("status"))
            case "web_search":
                work.call(key, "web_search", item.get("query"))
            case "todo_list":
                work.call(key, "todo_list", "list")
                if completed:
                    work.result(key, item.get("items"))
            case _:
                if completed and key not in self._done:
                    self._done.add(key)
                    work.other({"type": f"item {text_of(item.get('type'))}", "item": item})


def _tokens(usage: Event) -> Tokens | None:
    """Take the cached tokens out of those of the prompt, in which they are counted too."""
    if "output_tokens" not in usage:
        return None
    cached = count(usage.get("cached_input_tokens"))
    return Tokens(
        input=max(0, count(usage.get("input_tokens")) - cached),
        output=count(usage.get("output_tokens")),
        cache_read=cached,
        cache_write=0,
        reasoning=count(usage.get("reasoning_output_tokens")),
    )
