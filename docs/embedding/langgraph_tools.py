"""LangGraph: a wrapper of the calls of a `ToolNode`, and a note in front of the model's node."""

from collections.abc import Callable
from pathlib import Path

from guard import Guard
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import ToolCallRequest


def run(model: BaseChatModel, task: str, tools: list[BaseTool], journal: Path) -> str:
    """The model's answer, or why the run ended without one."""
    guard = Guard(task, [tool.name for tool in tools], journal)
    asked = model.bind_tools(tools)

    def watched(request: ToolCallRequest, execute: Callable[[ToolCallRequest], ToolMessage]) -> ToolMessage:
        call = request.tool_call
        name, arguments = call["name"], call["args"]
        if refusal := guard.refusal(name, arguments):
            return ToolMessage(refusal, name=name, tool_call_id=call["id"], status="error")
        result = execute(request)
        if result.status == "error":
            guard.failed(name, arguments, result.text)
        else:
            guard.succeeded(name, arguments, result.text)
        return result

    def think(state: MessagesState) -> dict:
        note = [HumanMessage(guard.note)] if guard.note else []
        return {"messages": [asked.invoke(state["messages"] + note)]}

    def after_model(state: MessagesState) -> str:
        last = state["messages"][-1]
        if last.tool_calls:
            return "tools"
        guard.answered(last.text)
        return END

    graph = StateGraph(MessagesState)
    graph.add_node("model", think)
    graph.add_node("tools", ToolNode(tools, handle_tool_errors=True, wrap_tool_call=watched))
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", after_model, ["tools", END])
    graph.add_conditional_edges("tools", lambda _: "model" if guard.step_ended() else END, ["model", END])
    return graph.compile().invoke({"messages": [HumanMessage(task)]})["messages"][-1].text
