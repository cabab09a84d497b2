"""LocalStack's S3 tests, whose answers were recorded from Amazon S3, against any server.

`plugin` is a pytest plugin; `cargo xtask conformance recorded PATH` runs it in a checkout of
localstack/localstack. The checkout stays as it is: its own `conftest.py` files are not loaded, `fixtures`
supplies what its tests ask for, and each test takes the branch that it takes against AWS. At the end of a
test, `grades` compares what the server answered with the recording.

The server is named by the environment:

| variable | meaning |
|---|---|
| `RECORDED_ENDPOINT` | `http://127.0.0.1:PORT`, a throw-away server: what a test leaves is removed |
| `RECORDED_ACCESS_KEY`, `RECORDED_SECRET_KEY` | the keys of somebody who may do everything |
| `RECORDED_ACCOUNT` | the account id of the server, 12 digits; optional |
| `RECORDED_DOMAIN` | a domain below which buckets are hosts; the runner resolves it by itself; optional |
| `RECORDED_REPORT` | where to write one JSON object for each test; optional |
"""
