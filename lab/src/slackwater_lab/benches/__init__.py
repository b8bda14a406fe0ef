"""What `slackwater bench` measures."""
