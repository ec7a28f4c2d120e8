"""The forms in which models write calls, thoughts and the ends of their turns: data, each with its source.

A server that knows its model's form takes it out of the text; what is here is for those that do not. `written_calls`
reads the calls, `spoken` the thoughts, and `models.tagged_reasoning` the thoughts while they stream.
"""

from __future__ import annotations

from typing import NamedTuple


class CallForm(NamedTuple):
    """One way to begin a call. `begins` is a regular expression, tried outside of code: what follows the mark is in
    it, so that a text about the mark is none.
    """

    models: str
    begins: str
    source: str
    in_line: bool = False
    """True if it also begins a call in the middle of a line: tokens that no prose holds."""


_NAME = r"[A-Za-z_][\w.-]{0,150}"
_JSON = r"\s*(?:```\w*\s*)?[\[{]"
TAGS = (
    r"(?:read|write|edit|create|delete|view)_file|write_to_file|replace_in_file|insert_content|apply_diff|search_and_replace"
    r"|execute_command|bash|glob|grep|list_(?:dir|files)|search_files|list_code_definition_names|web_fetch|use_mcp_tool"
    r"|ask_followup_question|attempt_completion|new_task|switch_mode"
)
"""Names of tools that stand in tags of their own: those of Cline's and Roo Code's prompts, and this program's."""
_BAR = r"[|｜]"
_GAP = r"[▁_ ]"

CALL_FORMS = (
    CallForm(
        "Qwen, Hermes, GLM, ERNIE, Hunyuan, InternLM, Jamba, xLAM, Nemotron",
        rf"<(?:longcat_|seed:)?(?:tool_?calls?|toolcall|function_calls?)>(?={_JSON}|\s*<[\w:｜]|\s*\[?{_NAME}\s*"
        rf"(?:<|\(|\[|\{{|$))|<tools>(?={_JSON})|{_NAME}\s*(?=<arg_key>[^<\n]{{1,200}}</arg_key>\s*<arg_value>)",
        "vLLM's parsers hermes, glm4_moe, jamba, xlam, hunyuan, longcat, seed_oss and olmo3",
    ),
    CallForm(
        "Qwen3-Coder, Step, Seed-OSS, Llama on Groq",
        rf"<function(?:=[\"']?(?={_NAME})|\s+name=[\"']?(?={_NAME}[\"']?\s*>\s*(?:<param|\{{)))",
        "vLLM's parser qwen3_coder; `failed_generation` of Groq's errors",
    ),
    CallForm(
        "Claude, DeepSeek V3.2, MiniMax M2, Step 3",
        r"<(?:[|｜]DSML[|｜]|antml:|minimax:|steptml:)?(?:function_calls|tool_calls?|invoke(?=\s+name=|>\s*<tool_name>))\b"
        r"(?=[^<>\n]{0,200}>\s*(?:<|$))",
        "SGLang's detectors deepseekv32, minimax_m2 and step3",
    ),
    CallForm(
        "models that know Cline's or Roo Code's prompts",
        rf"<(?:{TAGS})>(?=\s*(?:<[a-z]\w{{0,60}}>|\{{)|[^<\n]{{1,2000}}</(?:{TAGS})>\s*\Z)",
        "the prompts of Cline and Roo Code",
    ),
    CallForm(
        "Kimi K2",
        rf"<\|tool_calls_section_begin\|>(?=\s*<\|tool_call_begin\|>)|<\|tool_call_begin\|>(?=\s*{_NAME})"
        rf"|(?<![\w.|>]){_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>(?=\s*\{{)",
        "vLLM's parser kimi_k2",
        in_line=True,
    ),
    CallForm(
        "DeepSeek V3, R1, V3.1",
        rf"<{_BAR}tool{_GAP}calls?{_GAP}begin{_BAR}>(?=\s*(?:<{_BAR}|{_NAME}))"
        rf"|(?<![\w.|｜>])(?:function\s*<{_BAR}tool{_GAP}sep{_BAR}>(?=\s*{_NAME})"
        rf"|{_NAME}\s*<{_BAR}tool{_GAP}sep{_BAR}>(?={_JSON}))",
        "vLLM's parsers deepseek_v3 and deepseek_v31",
        in_line=True,
    ),
    CallForm(
        "Mistral",
        rf"\[TOOL_CALLS?\](?=\s*\[?\s*\{{|\s*{_NAME}\s*(?:\[ARGS\]|\[CALL_ID\]|\{{))"
        rf"|(?<![\w.\]]){_NAME}(?:\[CALL_ID\]\w+)?\[ARGS\](?=\s*\{{)",
        "vLLM's parser mistral; mistral-common's tokenizers 3 to 13",
        in_line=True,
    ),
    CallForm(
        "gpt-oss (Harmony)",
        rf"(?:<\|start\|>)?(?:assistant)?(?:<\|channel\|>)?"
        r"(?:(?:(?<=assistant)|\b)(?:commentary|analysis)\s+to=|assistant\s+to=)"
        rf"(?:functions\.)?(?={_NAME}[^\n{{]{{0,80}}\n?\s*\{{)",
        "OpenAI's description of the Harmony format; without its tokens as servers that drop them send it",
        in_line=True,
    ),
    CallForm(
        "Llama 3, Granite, Phi, LFM2, Apertus, Command, InternLM, Llama 4",
        rf"<\|(?:python_tag|tool_?calls?|tool_call_start|tools_prefix|START_ACTION|action_start|python_start)\|>"
        rf"(?=(?:\s*<\|plugin\|>)?(?:{_JSON}|\s*\[?\s*{_NAME}\s*[({{.]))",
        "vLLM's parsers llama3_json, granite, phi4_mini_json, llama4_pythonic; SGLang's lfm2 and internlm",
        in_line=True,
    ),
    CallForm(
        "Gemma",
        rf"(?:<start_function_call>|<\|tool_call>)(?=\s*call:)|\bcall:(?={_NAME}[({{])",
        "vLLM's parsers functiongemma and gemma4",
    ),
    CallForm(
        "Gemma 3, Gemini",
        rf"```tool_code[ \t]*\n(?=\s*(?:print\s*\(|\[)?\s*{_NAME}\s*\()",
        "Google's description of function calling with Gemma",
    ),
    CallForm(
        "models that follow a prompt's example",
        r"```[ \t]*tool_?calls?[ \t]*\n",
        "the text protocol of this program and of others like it",
    ),
    CallForm(
        "Command R, ReAct",
        rf"Action:\s*(?=```(?:json)?\s*\[|{_NAME}[ \t]*\n+[ \t]*Action[ _]Input:)",
        "Cohere's chat template; LangChain's ReAct prompt",
    ),
)

SPACES = r"(?:[|｜]DSML[|｜]|antml:|minimax:|steptml:|seed:|longcat_)?"
"""The text before the name of an element."""

THOUGHTS = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<thoughts>", "</thoughts>"),
    ("<reasoning>", "</reasoning>"),
    ("<seed:think>", "</seed:think>"),
    ("<mm:think>", "</mm:think>"),
    ("<longcat_think>", "</longcat_think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("<|begin_of_thought|>", "<|end_of_thought|>"),
    ("<|inner_prefix|>", "<|inner_suffix|>"),
    ("<|channel>thought\n", "<channel|>"),
    ("<unused94>thought\n", "<unused95>"),
    ("<|think|>", "<|/think|>"),
)
"""How thoughts begin and end: DeepSeek, Qwen, GLM, MiniMax, Hunyuan; EXAONE; Seed; LongCat; Magistral; Kimi-VL;
Command; OpenThinker; Apertus; Gemma; MedGemma; Solar."""

SENTENCES = ("Here is my thought process:", "Here is my response:")
"""Granite 3.2's words before its thoughts and before its answer: only both together mean that."""

ANSWERS = (
    ("<answer>", "</answer>"),
    ("<response>", "</response>"),
    ("<|START_RESPONSE|>", "<|END_RESPONSE|>"),
    ("<|begin_of_solution|>", "<|end_of_solution|>"),
)
"""Tags of some models around the answer that follows their thoughts: Hunyuan, Granite 3.3, Command,
OpenThinker.
"""

TURN_ENDS = (
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|eot|>",
    "<|eom|>",
    "<|end_of_text|>",
    "<|endoftext|>",
    "<|end|>",
    "<|return|>",
    "<|call|>",
    "<|im_sep|>",
    "<|user|>",
    "<|observation|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|END_RESPONSE|>",
    "<|END_ACTION|>",
    "<|end_of_role|>",
    "<|tool_calls_section_end|>",
    "<|end_of_solution|>",
    "<|endofprompt|>",
    "<|message_end|>",
    "<|turn_end|>",
    "<end_of_turn>",
    "<turn|>",
    "<eos>",
    "</s>",
    "<｜end▁of▁sentence｜>",
    "<|end▁of▁sentence|>",
    "<｜tool▁calls▁end｜>",
    "<seed:eos>",
    "[e~[",
    "[EOS]",
    "[/INST]",
)
"""Tokens behind which a turn is over, by the chat templates of these models."""

TURN_BEGINS = (
    "<|im_start|>assistant",
    "<|start|>assistant",
    "<|start_header_id|>assistant<|end_header_id|>",
    "<|start_of_role|>assistant<|end_of_role|>",
    "<start_of_turn>model",
    "<|turn>model",
    "<|assistant|>",
    "<｜Assistant｜>",
    "<|CHATBOT_TOKEN|>",
    "<seed:bos>assistant",
    "]~b]ai",
)
"""Tokens with which the reply itself begins if a server leaves them in."""
