"""Names of the GenAI conventions of OpenTelemetry, as their own repository has them (v0.1.0), and the few of ours.

The conventions are in development: whatever they rename is changed here alone.
"""

from __future__ import annotations

AGENT = "agent-tui"

CHAT = "chat"
INVOKE_AGENT = "invoke_agent"
EXECUTE_TOOL = "execute_tool"

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
AGENT_NAME = "gen_ai.agent.name"
AGENT_VERSION = "gen_ai.agent.version"
CONVERSATION = "gen_ai.conversation.id"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
FINISH_REASONS = "gen_ai.response.finish_reasons"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_write.input_tokens"
MODALITY = "gen_ai.token.modality"
TOOL_NAME = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
TOOL_CALL_ID = "gen_ai.tool.call.id"
ERROR_TYPE = "error.type"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
EXIT_CODE = "process.exit.code"

INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ARGUMENTS = "gen_ai.tool.call.arguments"
RESULT = "gen_ai.tool.call.result"
"""With these four, contents leave the machine: they are set only if the settings say so."""

AGENT_DURATION = "gen_ai.invoke_agent.duration"
AGENT_INFERENCE_CALLS = "gen_ai.invoke_agent.inference_calls"
AGENT_TOOL_CALLS = "gen_ai.invoke_agent.tool_calls"
TOOL_DURATION = "gen_ai.execute_tool.duration"
INFERENCE_DURATION = "gen_ai.client.inference.duration"
INFERENCE_INPUT_TOKENS = "gen_ai.client.inference.usage.input_tokens"
INFERENCE_OUTPUT_TOKENS = "gen_ai.client.inference.usage.output_tokens"

VERDICT = "agent_tui.recovery.verdict"
LEVEL = "agent_tui.recovery.level"
RULE = "agent_tui.recovery.rule"
DETECTOR = "agent_tui.recovery.detector"
OUTCOME = "agent_tui.run.outcome"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "mistral": "mistral_ai",
    "moonshot": "moonshot_ai",
    "vertex_ai": "gcp.vertex_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}
"""Providers that the conventions name otherwise than litellm does."""


def provider_and_model(name: str) -> tuple[str, str]:
    """The provider and the model in the conventions' words, of a model as litellm spells it. A model without a
    provider is called in OpenAI's protocol.
    """
    provider, _, model = name.partition("/")
    if not model:
        return "openai", name
    return _PROVIDERS.get(provider, provider), model
