"""What the tests stand on: the server as a process, a raw HTTP client, a signer, the server's own tables."""
