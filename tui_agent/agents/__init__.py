"""What is known of other agents, a file each: their hook events, fields, failures and answers, and where they keep them."""
