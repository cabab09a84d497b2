"""What the tests stand on: the server as a process, a raw HTTP client, a signer, and readers of the server's tables."""
