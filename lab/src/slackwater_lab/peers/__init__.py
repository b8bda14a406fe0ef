"""Other engines on the same rows as Slackwater: `slackwater bench peers`."""
