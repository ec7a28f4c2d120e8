// agent-tui: recovery for OpenCode. Written by `agent-tui hooks install opencode`; `agent-tui hooks uninstall opencode`
// removes it. Each event goes to the command below. Where that fails, OpenCode goes on as if this file were not here.
import { spawn } from "node:child_process"
import type { Plugin } from "@opencode-ai/plugin"

const COMMAND = ""
const PATIENCE = 10_000 // milliseconds for an answer

type Answer = { note?: string; refuse?: string }

function ask(event: object): Promise<Answer> {
  return new Promise((done) => {
    const child = spawn("/bin/sh", ["-c", COMMAND], { stdio: ["pipe", "pipe", "ignore"] })
    const timer = setTimeout(() => child.kill(), PATIENCE)
    let text = ""
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (piece: string) => (text += piece))
    child.stdin.on("error", () => {})
    child.on("error", () => done({}))
    child.on("close", () => {
      clearTimeout(timer)
      try {
        done(JSON.parse(text))
      } catch {
        done({})
      }
    })
    child.stdin.end(JSON.stringify(event))
  })
}

type Tell = (name: string, session: string, fields?: object) => Promise<Answer>

// Tells of a session under the one at the top: a sub-agent has one of its own below it.
function teller(directory: string, parentOf: (session: string) => Promise<string>): Tell {
  const roots = new Map<string, Promise<string>>()

  function rootOf(session: string): Promise<string> {
    const known = roots.get(session) ?? parentOf(session).then((parent) => (parent ? rootOf(parent) : session))
    roots.set(session, known)
    return known
  }

  return async (name, session, fields = {}) => {
    const root = await rootOf(session)
    const lane = root === session ? "" : session
    return ask({ hook_event_name: name, session_id: root, agent_id: lane, cwd: directory, ...fields })
  }
}

const server: Plugin = async ({ client, directory }) => {
  const begun = Date.now()
  const failed = new Map<string, Promise<Answer>>() // by call, for an error is told twice: by its event and in the request
  const said = new Map<string, string>()

  const tell = teller(directory, async (session) => {
    const found = await client.session.get({ path: { id: session } }).catch(() => undefined)
    return found?.data?.parentID ?? ""
  })

  type Failed = { sessionID: string; callID: string; tool: string; state: { input: object; error: string } }

  function fails(part: Failed): Promise<Answer> {
    const { callID, tool, state } = part
    const fields = { tool_name: tool, tool_input: state.input, tool_use_id: callID, error: state.error }
    const answer = failed.get(callID) ?? tell("tool.execute.error", part.sessionID, fields)
    failed.set(callID, answer)
    return answer
  }

  return {
    "chat.message": async ({ sessionID }, { parts }) => {
      const prompt = parts.map((part) => (part.type === "text" && !part.synthetic ? part.text : "")).join("\n")
      await tell("chat.message", sessionID, { prompt: prompt.trim() })
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      const fields = { tool_name: tool, tool_input: args, tool_use_id: callID }
      const { refuse } = await tell("tool.execute.before", sessionID, fields)
      if (refuse) throw new Error(refuse)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, result) => {
      const fields = { tool_name: tool, tool_input: args, tool_use_id: callID }
      const ended = { tool_output: result.output, tool_metadata: result.metadata }
      const { note } = await tell("tool.execute.after", sessionID, { ...fields, ...ended })
      if (note) result.output += `\n\n${note}`
    },
    // An error has no event of its own before the model reads it: the note is put behind it in each request.
    "experimental.chat.messages.transform": async (_, { messages }) => {
      for (const part of messages.flatMap((message) => message.parts)) {
        if (part.type !== "tool" || part.state.status !== "error" || part.state.time.end < begun) continue
        const { note } = await fails({ ...part, state: part.state })
        if (note) part.state = { ...part.state, error: `${part.state.error}\n\n${note}` }
      }
    },
    "experimental.text.complete": async ({ sessionID }, { text }) => {
      said.set(sessionID, text)
    },
    event: async ({ event }) => {
      switch (event.type) {
        case "message.part.updated": {
          const { part } = event.properties
          if (part.type === "tool" && part.state.status === "error") await fails({ ...part, state: part.state })
          break
        }
        case "session.idle": {
          const { sessionID } = event.properties
          await tell("session.idle", sessionID, { answer: said.get(sessionID) ?? "" })
          said.delete(sessionID)
          break
        }
        case "session.error": {
          const { sessionID, error } = event.properties
          if (sessionID && error) await tell("session.error", sessionID, { error: error.data.message ?? error.name })
        }
      }
    },
  }
}

// OpenCode 2, as far as its documents go. Whatever is missing there is left out, and nothing of ours is thrown but a refusal.
async function setup(context: any): Promise<void> {
  const tell = teller(context.location?.directory ?? "", async (session) => {
    const found = await context.session?.get?.({ sessionID: session }).catch(() => undefined)
    return found?.parentID ?? ""
  })

  const called = (event: any) => ({
    tool_name: event.tool,
    tool_input: event.input,
    tool_use_id: event.callID ?? event.id ?? event.source?.id ?? "",
  })

  await context.session?.hook?.("prompt", async (event: any) => {
    await tell("chat.message", event.sessionID, { prompt: event.prompt?.text ?? "" })
  })
  await context.tool?.hook?.("execute.before", async (event: any) => {
    const { refuse } = await tell("tool.execute.before", event.sessionID, called(event))
    if (refuse) throw new Error(refuse)
  })
  await context.tool?.hook?.("execute.after", async (event: any) => {
    if (event.status === "error") {
      const error = String(event.error?.message ?? event.error ?? "")
      const { note } = await tell("tool.execute.error", event.sessionID, { ...called(event), error })
      if (note) event.error = new Error(`${error}\n\n${note}`)
      return
    }
    const content = event.result?.content ?? ""
    const parts = Array.isArray(content) ? content : [{ type: "text", text: String(content) }]
    const text = parts.map((part: any) => part.text ?? "").join("\n")
    const ended = { tool_output: text, tool_metadata: event.result?.metadata ?? {} }
    const { note } = await tell("tool.execute.after", event.sessionID, { ...called(event), ...ended })
    if (!note) return
    const added = Array.isArray(content) ? [...content, { type: "text", text: note }] : `${content}\n\n${note}`
    event.result = { ...event.result, content: added }
  })
}

// Version 1 calls `server`, version 2 calls `setup`.
export default { id: "agent-tui", server, setup }
