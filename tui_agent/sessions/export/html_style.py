"""The look of the HTML export: one style sheet for light and dark, wide and narrow, screen and paper.

Its digest is in the page's security policy, so nothing may be put in here at run time.
"""

from __future__ import annotations

STYLE = """
:root {
  --ground: #f6f5f1; --paper: #ffffff; --ink: #23262d; --soft: #667085; --line: #e2e0d8; --code: #f3f2ec;
  --accent: #4355b9; --operator: #eef0fb; --ok: #1f7a4d; --warn: #a15c07; --error: #b42318; --blocked: #7a3fa0;
  --note: #0f6b75; --pivot: #8a5a00; --okbg: #e8f5ee; --warnbg: #fdf3e1; --errorbg: #fdeceb; --notebg: #e6f4f5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14161b; --paper: #1b1e25; --ink: #dfe2e8; --soft: #8e96a6; --line: #2c313b; --code: #15181e;
    --accent: #93a4ff; --operator: #222741; --ok: #63c792; --warn: #e8b45c; --error: #ff8b80; --blocked: #c79bee;
    --note: #6cc7d1; --pivot: #e8c05c; --okbg: #17291f; --warnbg: #2b2415; --errorbg: #331c1b; --notebg: #15292c;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 15px/1.55 system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
}
header, main, footer { max-width: 1280px; margin: 0 auto; padding: 0 28px; }
header { padding-top: 36px; }
h1 {
  font-size: 27px; line-height: 1.25; margin: 4px 0 12px; letter-spacing: -0.01em; overflow-wrap: anywhere;
}
h2 {
  font-size: 13px; letter-spacing: 0.08em; text-transform: uppercase; color: var(--soft); margin: 0 0 10px;
}
code, pre, time { font-family: "Fira Code", "JetBrains Mono", ui-monospace, Menlo, Consolas, monospace; }
.kicker { color: var(--soft); margin: 0; font-size: 13px; }
.chips { display: flex; flex-wrap: wrap; gap: 8px; margin: 0 0 20px; }
.chip {
  background: var(--paper); border: 1px solid var(--line); border-radius: 99px; padding: 2px 12px;
  font-size: 13px; overflow-wrap: anywhere;
}
.chip i { color: var(--soft); font-style: normal; }
.tiles {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(110px, 1fr)); gap: 10px; margin: 0 0 18px;
}
.tile { background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 12px 16px; }
.tile { display: flex; flex-direction: column-reverse; }
.tile dt { color: var(--soft); font-size: 12.5px; }
.tile dd { margin: 0; font-size: 24px; font-weight: 650; font-variant-numeric: tabular-nums; }
.tile.ok dd { color: var(--ok); }
.tile.warn dd { color: var(--warn); }
.tile.error dd { color: var(--error); }
.curve, .timeline {
  background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 16px 18px;
}
.curve { margin-bottom: 26px; overflow-x: auto; }
svg { width: 100%; min-width: 640px; height: auto; display: block; }
svg .grid { stroke: var(--line); }
svg .threshold { stroke: var(--soft); stroke-dasharray: 3 5; opacity: 0.7; }
svg .run { stroke: var(--soft); stroke-dasharray: 1 3; }
svg .axis { fill: var(--soft); font: 11px system-ui, sans-serif; } svg .end { text-anchor: end; }
svg .area { fill: var(--accent); opacity: 0.1; }
svg .line { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
svg .dot { fill: var(--accent); }
svg .mark { stroke: var(--paper); stroke-width: 1.5; fill: var(--soft); }
svg .mark.guide { fill: var(--warn); }
svg .mark.pivot { fill: var(--pivot); }
svg .mark.escalate { fill: var(--blocked); }
svg .mark.degrade, svg .mark.stop { fill: var(--error); }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) 350px; gap: 28px; align-items: start; }
.timeline { position: sticky; top: 16px; max-height: calc(100vh - 32px); overflow: auto; font-size: 13px; }
.timeline ol { list-style: none; margin: 0; padding: 0; }
.timeline li {
  padding: 6px 0 6px 12px; border-left: 3px solid var(--line); overflow-wrap: anywhere; line-height: 1.4;
}
.timeline li + li { margin-top: 2px; }
.timeline time, .timeline i { color: var(--soft); font-size: 11px; font-style: normal; margin-right: 8px; }
.timeline i:not(:empty)::before { content: "it. "; }
.timeline small { color: var(--soft); } .timeline small::before { content: " "; }
.timeline a { color: inherit; text-decoration: none; display: block; }
.timeline a:hover { text-decoration: underline; }
.timeline b { font-weight: 620; }
.timeline .t-guide { border-color: var(--warn); } .timeline .t-guide b { color: var(--warn); }
.timeline .t-pivot { border-color: var(--pivot); } .timeline .t-pivot b { color: var(--pivot); }
.timeline .t-escalate, .timeline .t-escalation { border-color: var(--blocked); }
.timeline .t-escalate b, .timeline .t-escalation b { color: var(--blocked); }
.timeline .t-error, .timeline .t-fault, .timeline .t-degrade, .timeline .t-stop {
  border-color: var(--error);
}
.timeline .t-error b, .timeline .t-fault b, .timeline .t-degrade b, .timeline .t-stop b {
  color: var(--error);
}
.timeline .t-outcome { border-color: var(--accent); } .timeline .t-run { border-color: var(--accent); }
.run { margin: 0 0 44px; }
.run > h2 { padding-top: 8px; }
.badge { border-radius: 99px; padding: 1px 10px; letter-spacing: 0; text-transform: none; font-size: 12.5px; }
.badge.ok { background: var(--okbg); color: var(--ok); }
.badge.warn { background: var(--warnbg); color: var(--warn); }
.badge.error { background: var(--errorbg); color: var(--error); }
.iteration {
  margin: 22px 0 10px; color: var(--soft); font-size: 12px; display: flex; align-items: center; gap: 10px;
}
.iteration::after { content: ""; flex: 1; border-top: 1px solid var(--line); }
.bubble {
  background: var(--paper); border: 1px solid var(--line); border-radius: 12px; padding: 10px 16px; margin: 8px 0;
}
.bubble.operator { background: var(--operator); border-color: transparent; }
.bubble p, .outcome p, .escalation p, .reasoning p {
  margin: 2px 0 0; white-space: pre-wrap; overflow-wrap: anywhere;
}
.bubble.operator p { max-height: 340px; overflow: auto; }
.who { color: var(--soft); font-size: 12px; }
.bubble.model .who { color: var(--accent); }
details { margin: 6px 0; border-radius: 10px; }
summary { cursor: pointer; list-style: none; } summary::-webkit-details-marker { display: none; }
summary:focus-visible, a:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.call { background: var(--paper); border: 1px solid var(--line); border-left-width: 3px; padding: 0 14px; }
.call summary {
  display: flex; flex-wrap: wrap; align-items: baseline; gap: 4px 9px; padding: 7px 0; font-size: 13.5px;
}
.call summary code { font-weight: 600; }
.call summary span {
  color: var(--soft); flex: 1; min-width: 0; white-space: nowrap; overflow: hidden; text-overflow: ellipsis;
  font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 12.5px;
}
.call summary small { color: var(--soft); white-space: nowrap; }
.call summary em {
  flex-basis: 100%; font-style: normal; color: var(--error); font-size: 12.5px; overflow-wrap: anywhere;
}
.call.ok { border-left-color: var(--ok); } .call.ok summary b { color: var(--ok); }
.call.error { border-left-color: var(--error); } .call.error summary b { color: var(--error); }
.call.warn { border-left-color: var(--warn); } .call.warn summary b { color: var(--warn); }
.call.blocked { border-left-color: var(--blocked); } .call.blocked summary b { color: var(--blocked); }
pre {
  background: var(--code); border: 1px solid var(--line); border-radius: 8px; padding: 10px 12px; margin: 8px 0;
  font-size: 12.5px; line-height: 1.5; white-space: pre-wrap; overflow-wrap: anywhere;
  max-height: 520px; overflow: auto;
}
.diff ins { color: var(--ok); text-decoration: none; }
.diff del { color: var(--error); text-decoration: none; }
.verdict {
  border-left: 3px solid var(--warn); background: var(--warnbg); border-radius: 0 10px 10px 0; padding: 7px 14px;
}
.verdict { margin: 6px 0; font-size: 13.5px; overflow-wrap: anywhere; }
.verdict b { color: var(--warn); margin-right: 6px; } .verdict small { color: var(--soft); margin-left: 8px; }
.verdict p { margin: 2px 0 0; color: var(--soft); font-size: 12.5px; }
.verdict.escalate, .escalation { border-left-color: var(--blocked); }
.verdict.escalate b { color: var(--blocked); }
.verdict.degrade, .verdict.stop { border-left-color: var(--error); background: var(--errorbg); }
.verdict.degrade b, .verdict.stop b { color: var(--error); }
.note {
  background: var(--notebg); border-left: 3px solid var(--note); border-radius: 0 10px 10px 0; padding: 6px 14px;
}
.note summary { color: var(--note); font-size: 13px; } .note summary::after { content: " …"; }
.reasoning { padding: 2px 14px; color: var(--soft); font-size: 13.5px; }
.reasoning summary::before, .note summary::before { content: "▸ "; }
.reasoning[open] summary::before, .note[open] summary::before { content: "▾ "; }
.fault, .escalation {
  border-left: 3px solid var(--error); background: var(--errorbg); padding: 8px 14px; margin: 6px 0;
}
.fault, .escalation { border-radius: 0 10px 10px 0; font-size: 13.5px; overflow-wrap: anywhere; }
.escalation { background: var(--warnbg); }
.fault small { display: block; color: var(--soft); }
.notice {
  color: var(--soft); font-size: 13px; margin: 8px 0; padding-left: 14px; border-left: 3px solid var(--line);
}
.notice.warning { border-color: var(--blocked); color: var(--blocked); }
.notice.error { border-color: var(--error); }
.outcome {
  border: 1px solid var(--line); background: var(--paper); border-radius: 12px; padding: 12px 16px; margin: 18px 0;
}
.outcome small { display: block; color: var(--soft); } .outcome.ok b { color: var(--ok); }
.outcome.warn b { color: var(--warn); } .outcome.error b { color: var(--error); }
:target { box-shadow: 0 0 0 2px var(--accent); }
footer { color: var(--soft); font-size: 12.5px; padding-top: 10px; padding-bottom: 40px; }
@media (max-width: 900px) {
  .columns { grid-template-columns: minmax(0, 1fr); } .timeline { position: static; max-height: none; }
  header, main, footer { padding-left: 14px; padding-right: 14px; }
}
@media print { .timeline { position: static; max-height: none; } pre { max-height: none; } }
"""
