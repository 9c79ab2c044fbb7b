"""``cursor``: the Cursor CLI, through a tunnel that nobody can look into."""

from __future__ import annotations

import os

from akarena.agents.stream import Event, Work, items, mapping, text_of
from akarena.agents.vendor import CliAgent
from akarena.records.run import AgentConfiguration

_KEY = "CURSOR_API_KEY"


class CursorAgent(CliAgent):
    """Cursor's agent without a terminal. Its key has to be in the sandbox: use one that can be revoked."""

    name = "cursor"
    summary = "Cursor (--model; needs CURSOR_API_KEY, which goes into the sandbox)"
    program = "cursor"
    service = "cursor"
    executable = "cursor-agent"
    install = "install the Cursor CLI, which is in no registry, from its vendor"
    final_events = ("result",)
    prompt_on_stdin = False
    # What it sends can't be counted in its tunnel, its model's name says the effort, and its hosts are fixed.
    takes = frozenset(("model", "arguments"))

    def argv(self, configuration: AgentConfiguration) -> tuple[str, ...]:
        """Return the command; the format is always named, since its default changed."""
        model = ("--model", configuration.model) if configuration.model else ()
        return ("-p", "--force", "--output-format", "stream-json", *model, *configuration.arguments, "$AKARENA_PROMPT")

    def environment(self, configuration: AgentConfiguration) -> dict[str, str]:
        """Return the key itself: the gateway can't add it inside TLS."""
        return {_KEY: os.environ.get(_KEY, "")}

    def parser(self) -> CursorParser:
        """Return a parser of one stream."""
        return CursorParser()


class CursorParser:
    """Reads ``--output-format stream-json``, which tells neither tokens nor cost."""

    def __init__(self) -> None:
        self.work = Work()

    def read(self, event: Event) -> None:
        """Take the next event."""
        work = self.work
        match event.get("type"):
            case "system" | "user":
                pass
            case "assistant":
                content = mapping(event.get("message")).get("content")
                work.say("".join(text_of(part.get("text")) for part in items(content)))
            case "tool_call":
                self._call(event)
            case "result":
                work.complete = True
                failed = bool(event.get("is_error")) or event.get("subtype") != "success"
                work.error = (
                    (text_of(event.get("result")) or text_of(event.get("subtype")) or "error") if failed else ""
                )
            case _:
                work.other(event)

    def _call(self, event: Event) -> None:
        key, holder = event.get("call_id"), mapping(event.get("tool_call"))
        # The description puts the one key beside `call_id`, some versions put it below `tool_call`.
        name = next((name for name in (*holder, *event) if name.endswith("ToolCall")), "")
        call = mapping(holder.get(name, event.get(name)))
        self.work.call(key, name.removesuffix("ToolCall"), call.get("args"))
        if event.get("subtype") == "completed":
            self.work.result(key, call.get("result"))
