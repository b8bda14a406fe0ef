"""What the engine learns of its streams: delays, rates, leads, productivity, results."""
