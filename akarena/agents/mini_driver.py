#!/usr/bin/env python3
"""Starts mini-swe-agent inside its sandbox, and prints what it does as one JSON object a line.

It runs with the interpreter that mini-swe-agent is installed for, and reads the prompt on standard input. Limits of
steps and dollars are off: time and budgets are set outside. It holds no secret.

Usage: mini_driver.py --version, or mini_driver.py MODEL [EFFORT or ""] [KEY=VALUE ...], where the keys are those of
mini-swe-agent's configuration, such as ``model.model_kwargs.temperature=0.6``.
"""

import importlib.metadata
import json
import logging
import os
import sys
from typing import Any

COMMAND_SECONDS = 600
"""One command may take so long; a call of ``check`` can wait for its turn at the device."""
_QUIET = {
    "MSWEA_SILENT_STARTUP": "1",
    "MSWEA_COST_TRACKING": "ignore_errors",
    # Its prices come with it; it would ask the network for newer ones.
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "HF_HUB_OFFLINE": "1",
}
_TEXT_CHARACTERS = 20_000
_WIRE = ("role", "name", "tool_calls", "tool_call_id", "refusal", "reasoning", "reasoning_content")
"""What a message of a conversation is made of besides its content; the libraries add notes of their own."""
_GATEWAY = "akarena gateway:"


class HopelessError(Exception):
    """The gateway does not pass a request; the same one again would end the same."""


class Stream:
    """The events, on what was standard output; from now on that is standard error, where libraries may print."""

    def __init__(self) -> None:
        self._file = os.fdopen(os.dup(1), "w", encoding="ascii")
        # The commands of the agent do not get it.
        os.set_inheritable(self._file.fileno(), False)
        os.dup2(2, 1)

    def tell(self, kind: str, **fields: Any) -> None:
        """Write one event; long texts are cut."""
        cut = {name: value[:_TEXT_CHARACTERS] if isinstance(value, str) else value for name, value in fields.items()}
        print(json.dumps({"type": kind, **cut}), file=self._file, flush=True)


class Shell:
    """Runs the commands as mini-swe-agent's own environment does, and tells of each one.

    Args:
        inner: That environment.
        stream: Gets the events.
        submitted: Exception by which the environment says that the work is done.
    """

    def __init__(self, inner: Any, stream: Stream, submitted: type[Exception]) -> None:
        self.config = inner.config
        self.get_template_vars = inner.get_template_vars
        self.serialize = inner.serialize
        self._inner = inner
        self._stream = stream
        self._submitted = submitted
        self._number = 0

    def execute(self, action: dict[str, Any], cwd: str = "") -> Any:
        """Run one command. It gets a number, since some servers give every call the same id."""
        self._number += 1
        self._stream.tell("call", id=self._number, tool="bash", command=action.get("command"))
        try:
            output = self._inner.execute(action, cwd)
        except self._submitted:
            self._stream.tell("output", id=self._number, code=0, text="the work is handed in")
            raise
        text = "\n".join(part for part in (output["exception_info"], output["output"]) if part)
        self._stream.tell("output", id=self._number, code=output["returncode"], text=text)
        return output


def tell_message(stream: Stream, message: dict[str, Any]) -> None:
    """Tell of a message that is added to the conversation, but for results of commands, which were told of."""
    extra = message.get("extra") or {}
    if message.get("role") == "assistant":
        _tell_words(stream, message)
    elif extra.get("interrupt_type") == "FormatError":
        # The answer that it complains of is not part of the conversation.
        response = extra.get("response")
        choices = (response.get("choices") if isinstance(response, dict) else None) or [{}]
        answer = choices[0].get("message") or {}
        _tell_words(stream, answer)
        stream.tell("format_error", calls=json.dumps(answer.get("tool_calls") or []), text=str(message.get("content")))


def _tell_words(stream: Stream, message: dict[str, Any]) -> None:
    for kind, value in (("reasoning", message.get("reasoning_content")), ("message", message.get("content"))):
        if value:
            stream.tell(kind, text=value if isinstance(value, str) else json.dumps(value))


def prepared(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages as they are sent: what the API names, and nothing that is null."""
    return [
        {"content": message.get("content"), **{name: message[name] for name in _WIRE if message.get(name) is not None}}
        for message in messages
    ]


def make_model(settings: dict[str, Any]) -> Any:
    """Make the model; a request that the gateway refuses is not repeated."""
    import litellm
    from minisweagent.models.litellm_model import LitellmModel

    litellm.suppress_debug_info = True
    litellm.telemetry = False
    model = LitellmModel(**settings)
    ask = model._query

    def asked(messages: list[dict[str, Any]], **further: Any) -> Any:
        try:
            return ask(messages, **further)
        except Exception as error:
            if _GATEWAY in str(error) and getattr(error, "status_code", 500) < 500:
                raise HopelessError(str(error)) from None
            raise

    model._query = asked
    model._prepare_messages_for_api = prepared
    model.abort_exceptions = [*model.abort_exceptions, HopelessError]
    return model


def configuration(model: str, effort: str, specs: list[str]) -> dict[str, Any]:
    """Return mini-swe-agent's own configuration for its command line, with our settings, then the user's."""
    from minisweagent.config import builtin_config_dir, get_config_from_spec
    from minisweagent.utils.serialize import recursive_merge

    ours = {
        "agent": {"step_limit": 0, "cost_limit": 0, "wall_time_limit_seconds": 0},
        "environment": {"timeout": COMMAND_SECONDS},
        "model": {
            # The first part names the API and is not sent.
            "model_name": f"openai/{model}",
            "model_kwargs": {
                "api_base": os.environ["OPENAI_BASE_URL"],
                "api_key": os.environ["OPENAI_API_KEY"],
                # mini-swe-agent repeats what failed.
                "max_retries": 0,
                # Not as a parameter, which is dropped where the library does not know the model for one that reasons.
                **({"extra_body": {"reasoning_effort": effort}} if effort else {}),
            },
        },
    }
    chosen = [get_config_from_spec(spec) for spec in specs]
    merged: dict[str, Any] = recursive_merge(get_config_from_spec(builtin_config_dir / "mini.yaml"), ours, *chosen)
    return merged


def work(stream: Stream, model: str, effort: str, specs: list[str]) -> int:
    """Run the agent on the prompt to its end."""
    from minisweagent.agents.default import DefaultAgent
    from minisweagent.environments.local import LocalEnvironment
    from minisweagent.exceptions import Submitted

    settings = configuration(model, effort, specs)
    shell = Shell(LocalEnvironment(**settings["environment"]), stream, Submitted)
    agent = DefaultAgent(make_model(settings["model"]), shell, **settings["agent"])
    add = agent.add_messages

    def added(*messages: dict[str, Any]) -> Any:
        for message in messages:
            tell_message(stream, message)
        return add(*messages)

    agent.add_messages = added
    for name in _QUIET:
        # They were read; the commands of the agent need not see them.
        os.environ.pop(name, None)
    result = agent.run(sys.stdin.buffer.read().decode("utf-8", "replace"))
    status = str(result.get("exit_status") or "unknown")
    stream.tell("result", status=status, text=str(result.get("submission") or ""), calls=agent.n_calls)
    return 0 if status == "Submitted" else 1


def main(arguments: list[str]) -> int:
    """Run one command line; the exit code is 0 where the agent handed its work in."""
    if arguments == ["--version"]:
        print(f"mini-swe-agent {importlib.metadata.version('mini-swe-agent')}")
        return 0
    model, effort, *specs = arguments
    os.environ.update(_QUIET)
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    stream = Stream()
    try:
        return work(stream, model, effort, specs)
    except Exception as error:
        stream.tell("result", status=type(error).__name__, text="", error=str(error) or type(error).__name__)
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
