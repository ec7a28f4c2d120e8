"""Parts of a running session: opened with model, tools, sandbox and journal; rewound, forked, replayed."""
