"""What a running session is made of: opened with model, tools, sandbox and journal; rewound, forked, replayed."""
