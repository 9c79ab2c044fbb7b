"""``claude``: Claude Code, through the gateway to Anthropic's Messages API."""

from __future__ import annotations

from akarena.agents.stream import Event, Work, count, dollars, items, mapping, text_of
from akarena.agents.vendor import CliAgent
from akarena.records.run import AgentConfiguration
from akarena.records.trial import AgentEnd, StepKind, Tokens

_ENDS = {
    "error_max_budget_usd": AgentEnd.OUT_OF_BUDGET,
    "error_max_turns": AgentEnd.OUT_OF_BUDGET,
}
_STATUS = {
    401: AgentEnd.REFUSED,
    403: AgentEnd.REFUSED,
    429: AgentEnd.RATE_LIMITED,
    529: AgentEnd.RATE_LIMITED,
}
_QUIET = ("system", "rate_limit_event")
"""Events that tell of the session, not of the work."""


class ClaudeAgent(CliAgent):
    """Claude Code without a terminal."""

    name = "claude"
    summary = "Claude Code (--model, --effort; needs ANTHROPIC_API_KEY)"
    program = "claude"
    service = "anthropic"
    executable = "claude"
    install = "npm install -g @anthropic-ai/claude-code"
    final_events = ("result",)

    def argv(self, configuration: AgentConfiguration) -> tuple[str, ...]:
        """Return the command; the prompt comes on standard input."""
        flags = "-p --verbose --output-format stream-json --permission-mode bypassPermissions --strict-mcp-config"
        return (
            *flags.split(),
            *(("--model", configuration.model) if configuration.model else ()),
            *(("--effort", configuration.effort) if configuration.effort else ()),
            *configuration.arguments,
        )

    def environment(self, configuration: AgentConfiguration) -> dict[str, str]:
        """Return the switches that keep it to its task, and name its model for side tasks too."""
        switches = {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        if configuration.model:
            # The gateway lets only the stated model pass.
            small = ("ANTHROPIC_SMALL_FAST_MODEL", "ANTHROPIC_DEFAULT_HAIKU_MODEL")
            switches |= dict.fromkeys(small, configuration.model)
        return switches

    def parser(self) -> ClaudeParser:
        """Return a parser of one stream."""
        return ClaudeParser()


class ClaudeParser:
    """Reads ``--output-format stream-json``."""

    def __init__(self) -> None:
        self.work = Work()
        self._seen: set[tuple[str, str]] = set()

    def read(self, event: Event) -> None:
        """Take the next event."""
        match event.get("type"):
            case "assistant" | "user" as who:
                message = mapping(event.get("message"))
                for block in items(message.get("content")):
                    self._block(event, text_of(message.get("id") or event.get("uuid")), block, who == "assistant")
            case "result":
                self._result(event)
            case kind if kind not in _QUIET:
                self.work.other(event)

    def _block(self, event: Event, message: str, block: Event, by_assistant: bool) -> None:
        match block.get("type"):
            case "tool_use":
                self.work.call(block.get("id"), block.get("name"), block.get("input"))
            case "tool_result":
                self.work.result(block.get("tool_use_id"), _content(block.get("content")))
            case "text" | "thinking" as kind if by_assistant:
                text = text_of(block.get(kind))
                # An event that comes twice repeats its text under the same message.
                if (message, text) not in self._seen:
                    self._seen.add((message, text))
                    self.work.say(text, StepKind.MESSAGE if kind == "text" else StepKind.REASONING)
            case kind if by_assistant and kind != "redacted_thinking":
                self.work.other({"type": f"block {text_of(kind)}", "block": block})

    def _result(self, event: Event) -> None:
        work, subtype = self.work, text_of(event.get("subtype"))
        work.complete = True
        work.cost = dollars(event.get("total_cost_usd"))
        work.tokens = _tokens(event)
        failed = bool(event.get("is_error")) or subtype.startswith("error")
        work.error = (text_of(event.get("result") or event.get("errors")) or subtype or "error") if failed else ""
        work.end = _ENDS.get(subtype) or _STATUS.get(count(event.get("api_error_status")))


def _content(content: object) -> object:
    """Give the result of a tool as text, where it is made of texts."""
    texts = [text_of(block.get("text")) for block in items(content) if block.get("type") == "text"]
    return "\n".join(texts) if texts else content


def _tokens(event: Event) -> Tokens | None:
    """Add up the models of the session; an old version tells of one only."""
    models = [mapping(usage) for usage in mapping(event.get("modelUsage")).values()]
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    if not models:
        models = [mapping(event.get("usage"))]
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    if not any(names[1] in usage for usage in models):
        return None
    given, answered, read, written = (sum(count(usage.get(name)) for usage in models) for name in names)
    return Tokens(input=given, output=answered, cache_read=read, cache_write=written, reasoning=0)
