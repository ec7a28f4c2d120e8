"""Scripted model servers of every make, over loopback HTTP: the same reply, in the words that each really uses."""

from tests.servers.anthropic import Anthropic
from tests.servers.azure import Azure
from tests.servers.chat import DeepSeek, LlamaCpp, LmStudio, Mistral, OpenAIChat, Vllm
from tests.servers.gemini import Gemini
from tests.servers.make import Make, ModelServer, Said
from tests.servers.ollama import Ollama
from tests.servers.openrouter import OpenRouter
from tests.servers.responses import OpenAIResponses

MAKES: tuple[Make, ...] = (
    Anthropic(),
    OpenAIChat(),
    OpenAIResponses(),
    Gemini(),
    Mistral(),
    DeepSeek(),
    Ollama(),
    LlamaCpp(),
    Vllm(),
    LmStudio(),
    OpenRouter(),
    Azure(),
)

__all__ = ["MAKES", "Make", "ModelServer", "Said"]
