"""Calls of one tool as models of many families write them into their text, for tests of what is read and what is not.

`CALLS` holds a template each: NAME and the arguments `{"command": …}` stand in it for the tool and its call.
"""

from __future__ import annotations

import json

DSML = "\uff5cDSML\uff5c"
CLAUDE = "ant" + "ml:"


def invoked(space: str, around: str, more: str = "") -> str:
    """The elements of Claude and of those that write like it."""
    inside = f'<{space}parameter name="command"{more}>COMMAND</{space}parameter>'
    return f'<{around}>\n<{space}invoke name="NAME">\n{inside}\n</{space}invoke>\n</{around}>'


_OBJECT = '{"name": "NAME", "arguments": {"command": "COMMAND"}}'
_PARAMETERS = '{"name": "NAME", "parameters": {"command": "COMMAND"}}'
_ARGUMENTS = '{"command": "COMMAND"}'

CALLS: dict[str, str] = {
    "Harmony": "<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>"
    + _ARGUMENTS
    + "<|call|>",
    "Harmony behind thoughts": "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant<|channel|>commentary "
    "to=functions.NAME <|constrain|>json<|message|>" + _ARGUMENTS + "<|call|>",
    "Harmony, the recipient in the role": "<|start|>assistant to=functions.NAME<|channel|>commentary "
    "<|constrain|>json<|message|>" + _ARGUMENTS + "<|call|>",
    "Harmony, called from the thoughts' channel": "<|channel|>analysis<|message|>I look.<|end|><|start|>assistant"
    "<|channel|>analysis to=functions.NAME code<|message|>\n" + _ARGUMENTS + "<|call|>",
    "Harmony without its tokens": "analysisI look.assistantcommentary to=functions.NAME json" + _ARGUMENTS,
    "Harmony, the call alone, without its tokens": "commentary to=functions.NAME json" + _ARGUMENTS,
    "DeepSeek V3.2": invoked(DSML, f"{DSML}function_calls", ' string="true"'),
    "DeepSeek V4": invoked(DSML, f"{DSML}tool_calls", ' string="true"'),
    "DeepSeek V3": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME\n```json\n"
    + _ARGUMENTS
    + "\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "DeepSeek V3.1": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>"
    + _ARGUMENTS
    + "<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
    "Kimi": "<|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>"
    + _ARGUMENTS
    + "<|tool_call_end|><|tool_calls_section_end|>",
    "Kimi without the section": "<|tool_call_begin|>functions.NAME:3<|tool_call_argument_begin|>"
    + _ARGUMENTS
    + "<|tool_call_end|>",
    "Kimi without its opening": "NAME:0<|tool_call_argument_begin|>"
    + _ARGUMENTS
    + "<|tool_calls_section_end|>",
    "Qwen2.5, with what it copied from the schema": "<tool_call>\n"
    '{"name": "NAME", "arguments": {"command": "COMMAND"}, "additionalProperties": false}\n</tool_call>',
    "DeepSeek V3 without its opening": "function<｜tool▁sep｜>NAME\n```json\n"
    + _ARGUMENTS
    + "\n```<｜tool▁call▁end｜>",
    "DeepSeek V3.1 without its opening": "NAME<｜tool▁sep｜>" + _ARGUMENTS + "<｜tool▁call▁end｜>",
    "Mistral without its opening": "NAME[ARGS]" + _ARGUMENTS,
    "GLM without its opening": "NAME\n<arg_key>command</arg_key>\n<arg_value>COMMAND</arg_value>\n</tool_call>",
    "GLM 4.5": "<tool_call>NAME\n<arg_key>command</arg_key>\n<arg_value>COMMAND</arg_value>\n</tool_call>",
    "GLM 4.7": "<tool_call>NAME<arg_key>command</arg_key><arg_value>COMMAND</arg_value></tool_call>",
    "LongCat": "<longcat_tool_call>NAME\n<longcat_arg_key>command</longcat_arg_key>\n"
    "<longcat_arg_value>COMMAND</longcat_arg_value>\n</longcat_tool_call>",
    "Qwen and Hermes": f"<tool_call>\n{_OBJECT}\n</tool_call>",
    "Qwen2.5-Coder": f"<tools>\n{_OBJECT}\n</tools>",
    "Qwen3-Coder": "<tool_call>\n"
    "<function=NAME>\n<parameter=command>\nCOMMAND\n</parameter>\n</function>\n</tool_call>",
    "Qwen3-Coder without its wrapper": "<function=NAME>\n<parameter=command>\nCOMMAND\n</parameter>\n</function>",
    "Seed-OSS": "<seed:tool_call>\n"
    "<function=NAME>\n<parameter=command>COMMAND</parameter>\n</function>\n</seed:tool_call>",
    "MiniMax": invoked("", "minimax:tool_call"),
    "Claude": invoked("", "function_calls"),
    "Claude with its namespace": invoked(CLAUDE, f"{CLAUDE}function_calls"),
    "tags of the tool and of its arguments": "<NAME>\n<command>COMMAND</command>\n</NAME>",
    "JSON in a tag of the tool": "<NAME>" + _ARGUMENTS + "</NAME>",
    "Claude 2": "<function_calls>\n<invoke>\n<tool_name>NAME</tool_name>\n<parameters>\n"
    "<command>COMMAND</command>\n</parameters>\n</in"
    "voke>\n</function_calls>",
    "Mistral": f"[TOOL_CALLS] [{_OBJECT}]",
    "Mistral, the name outside": "[TOOL_CALLS]NAME" + _ARGUMENTS,
    "Devstral": "[TOOL_CALLS]NAME[ARGS]" + _ARGUMENTS,
    "Magistral": "[TOOL_CALLS]NAME[CALL_ID]a1b2c3d4e[ARGS]" + _ARGUMENTS + "</s>",
    "Gemma 3": '```tool_code\nprint(default_api.NAME(command="COMMAND"))\n```',
    "Gemma 3, a list": '```tool_code\n[NAME(command="COMMAND")]\n```',
    "FunctionGemma": "<start_function_call>call:NAME{command:<escape>COMMAND<escape>}<end_function_call>",
    "Gemma 4": '<|tool_call>call:NAME{command:<|"|>COMMAND<|"|>}<tool_call|>',
    "Gemma 4 behind thoughts": "<|channel>thought\nI look.\n<channel|>"
    '<|tool_call>call:NAME{command:<|"|>COMMAND<|"|>}<tool_call|>',
    "Gemma 4 without its tokens": 'call:NAME{command:"COMMAND"}',
    "Llama 3": f"<|python_tag|>{_PARAMETERS}<|eom_id|>",
    "Llama 3, a method": '<|python_tag|>NAME.call(command="COMMAND")<|eom_id|>',
    "Llama 3, JSON alone": f"{_PARAMETERS}<|eot_id|>",
    "Llama 4": '<|python_start|>[NAME(command="COMMAND")]<|python_end|>',
    "Llama 4 without its tokens": '[NAME(command="COMMAND")]',
    "Llama on Groq": "<function=NAME>" + _ARGUMENTS + "</function>",
    "Llama on Groq, an equals sign": "<function=NAME=" + _ARGUMENTS + "</function>",
    "Llama on Groq, no bracket": "<function=NAME" + _ARGUMENTS + "></function>",
    "Llama on Groq, in parentheses": "<function=NAME(" + _ARGUMENTS + ")</function>",
    "Phi": f"<|tool_call|>[{_OBJECT}]<|/tool_call|>",
    "Granite": f"<|tool_call|>[{_OBJECT}]",
    "LFM2": '<|tool_call_start|>[NAME(command="COMMAND")]<|tool_call_end|><|im_end|>',
    "Command": '<|START_ACTION|>[\n{"tool_call_id": "0", "tool_name": "NAME", "parameters": '
    + _ARGUMENTS
    + "}\n]<|END_ACTION|>",
    "Command R": 'Action: ```json\n[{"tool_name": "NAME", "parameters": ' + _ARGUMENTS + "}]\n```",
    "ReAct": "Action: NAME\nAction Input: " + _ARGUMENTS,
    "Olmo": '<function_calls>\nNAME(command="COMMAND")\n</function_calls>',
    "Apertus": '<|tools_prefix|>[{"NAME": ' + _ARGUMENTS + "}]<|tools_suffix|>",
    "InternLM": f"<|action_start|><|plugin|>\n{_PARAMETERS}<|action_end|>",
    "Nemotron": f"<TOOLCALL>[{_OBJECT}]</TOOLCALL>",
    "Jamba": f"<tool_calls>[\n{_OBJECT}\n]</tool_calls>",
    "JSON": _OBJECT,
    "JSON in a fence": f"```json\n{_OBJECT}\n```",
    "JSON, the arguments beside the name": '```json\n{"name": "NAME", "command": "COMMAND"}\n```',
    "JSON, the tool under another key": '{"tool": "NAME", "command": "COMMAND"}',
    "JSON under the tool's name": '{"NAME": ' + _ARGUMENTS + "}",
    "JSON of an agent's action": '{"action": "NAME", "action_input": ' + _ARGUMENTS + "}",
    "JSON of Anthropic's API": '{"type": "tool_use", "id": "a", "name": "NAME", "input": ' + _ARGUMENTS + "}",
    "JSON of parallel uses": '{"tool_uses": [{"recipient_name": "functions.NAME", "parameters": '
    + _ARGUMENTS
    + "}]}",
    "marks within a fence": f"```xml\n<tool_call>\n{_OBJECT}\n</tool_call>\n```",
}

SEPARATE = frozenset(
    {
        "Harmony without its tokens",
        "Llama 3",
        "Llama 3, JSON alone",
        "Llama 3, a method",
        "DeepSeek V3.1",
        "Magistral",
        "LFM2",
        "Gemma 3",
        "Gemma 3, a list",
        "Gemma 4 behind thoughts",
        "Llama 4 without its tokens",
        "Command R",
        "marks within a fence",
    }
)
"""Forms that end a reply, or are code, so that two of them do not stand in a row."""


def written(form: str, value: str, name: str = "bash", key: str = "command") -> str:
    """The call of `name` in one of the forms, with this value of its only argument."""
    call = CALLS[form].replace("NAME", name).replace("command", key)
    return call.replace('"COMMAND"', json.dumps(value)).replace("COMMAND", value)
