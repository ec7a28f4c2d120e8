"""The pure core: events, projections, recovery and `decide`. No input or output, no clock, no asyncio."""
