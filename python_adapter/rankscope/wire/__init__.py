"""What crosses the link between an agent and the hub: frames, proof of the secret, messages, order."""
