"""Eight clients at once on the same keys, through one gateway or two that share nothing but the tree.

Each has a thread and a connection of its own for the whole test, and has signed its request when a round
begins, so that the requests of a round do meet. Random operations, and what they may have seen:
test_model.py.
"""

import hashlib
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from support import expect
from support.actors import Client, New, Racer, listed
from support.bucket import Bucket
from support.history import State, Step, explain
from support.server import assert_nothing_staged

ROUNDS, CLIENTS = int(os.environ.get("SLIPWAY_RACE_ROUNDS", "200")), 8
# Each client's increments of a counter.
INCREMENTS = ROUNDS // 4


class Crew:
    """Clients, spread over the gateways of one bucket."""

    def __init__(self, gateways: list[Bucket]) -> None:
        self.gateways = gateways
        self.pool = ThreadPoolExecutor(CLIENTS)
        self.racers = [Racer(self.gateway(number).server.address) for number in range(CLIENTS)]

    def gateway(self, number: int) -> Bucket:
        return self.gateways[number % len(self.gateways)]

    def race(self, work) -> list:
        """`work(number, gateway, connection)` by all at once; what each returned."""
        barrier = Barrier(CLIENTS)

        def one(number: int):
            self.racers[number].begin = barrier
            return work(number, self.gateway(number), self.racers[number])

        return list(self.pool.map(one, range(CLIENTS)))

    def close(self) -> None:
        self.pool.shutdown()
        for racer in self.racers:
            racer.close()


@pytest.fixture(params=[1, 2], ids=["one gateway", "two gateways"])
def crew(request, make_server) -> Iterator[Crew]:
    yield from crew_on(make_server, request.param)


@pytest.fixture
def crew_on_two(make_server) -> Iterator[Crew]:
    yield from crew_on(make_server, 2)


def crew_on(make_server, count: int) -> Iterator[Crew]:
    # Flushes would only make them wait for each other, and for the disk.
    servers = [make_server("--durability", "none") for _ in range(count)]
    Bucket(servers[0], "race").create()
    crew = Crew([Bucket(server, "race") for server in servers])
    yield crew
    crew.close()
    assert_nothing_staged(crew.gateways[0].tree)


class TestConditions:
    @pytest.mark.parametrize("key", ["key{}", "dir{}/deep/key"])
    def test_if_none_match_has_one_winner(self, crew_on_two, key):
        crew = crew_on_two
        for number in range(ROUNDS):
            name = key.format(number)

            def put(writer, gateway, connection, name=name):
                body = f"writer {writer}".encode()
                return gateway.raw.put(
                    gateway.path(name), body, headers={"if-none-match": "*"}, connection=connection
                )

            statuses = self.one_winner(crew.race(put), crew, name)
            assert statuses <= {200, 409, 412}

    def test_if_match_has_one_winner(self, crew):
        etag = crew.gateways[0].put("key", b"start").etag
        for _ in range(ROUNDS // 4):

            def put(writer, gateway, connection, etag=etag):
                body = f"writer {writer} of those who saw {etag}".encode()
                return gateway.raw.put(
                    gateway.path("key"), body, headers={"if-match": etag}, connection=connection
                )

            responses = crew.race(put)
            assert self.one_winner(responses, crew, "key") <= {200, 409, 412}
            etag = next(r.etag for r in responses if r.status == 200)

    def test_complete_if_none_match_has_one_winner(self, crew):
        for number in range(ROUNDS // 20):
            name = f"key{number}"
            uploads = []
            for writer in range(CLIENTS):
                upload_id = crew.gateways[0].create_upload(name)
                uploads.append(
                    (
                        upload_id,
                        crew.gateways[0].put_part(name, upload_id, 1, f"writer {writer}".encode()).etag,
                    )
                )

            def complete(writer, gateway, connection, name=name, uploads=uploads):
                upload_id, etag = uploads[writer]
                return gateway.complete(
                    name, upload_id, [(1, etag)], headers={"if-none-match": "*"}, connection=connection
                )

            statuses = self.one_winner(crew.race(complete), crew, name)
            assert statuses <= {200, 409, 412}

    def one_winner(self, responses, crew: Crew, key: str) -> set[int]:
        winners = [n for n, response in enumerate(responses) if response.status == 200]
        assert len(winners) == 1, responses
        for gateway in crew.gateways:
            assert gateway.read(key).startswith(f"writer {winners[0]}".encode())
        for response in responses:
            if response.status != 200:
                assert response.code in ("PreconditionFailed", "ConditionalRequestConflict"), response
        return {response.status for response in responses}

    def test_if_match_loses_no_increment(self, crew_on_two):
        crew, key = crew_on_two, "counter"
        crew.gateways[0].put(key, b"0")

        def count(number, gateway, connection):
            refused = done = 0
            while done < INCREMENTS:
                got = expect.ok(gateway.raw.get(gateway.path(key), connection=connection))
                response = gateway.raw.put(
                    gateway.path(key),
                    b"%d" % (int(got.body) + 1),
                    headers={"if-match": got.etag},
                    connection=connection,
                )
                if response.status == 200:
                    done += 1
                else:
                    expect.error(response, "PreconditionFailed", Condition="If-Match")
                    refused += 1
            return refused

        assert sum(crew.race(count)) > 0, "they met"
        for gateway in crew.gateways:
            assert gateway.read(key) == b"%d" % (CLIENTS * INCREMENTS)


class TestWrites:
    def test_unconditional_writes_are_never_mixed(self, crew):
        """Whoever was last: bytes, ETag, length and metadata are of one write."""
        bodies = [bytes([65 + n]) * (1000 + 40_000 * n) for n in range(CLIENTS)]
        for _ in range(ROUNDS // 20):

            def put(writer, gateway, connection):
                headers = {"x-amz-meta-writer": str(writer)}
                expect.ok(
                    gateway.raw.put(
                        gateway.path("key"), bodies[writer], headers=headers, connection=connection
                    )
                )
                return expect.ok(gateway.raw.get(gateway.path("key"), connection=connection))

            for got in crew.race(put):
                body = bodies[int(got.headers["x-amz-meta-writer"])]
                assert got.body == body
                assert got.etag.strip('"') == hashlib.md5(body).hexdigest()

    def test_files_and_directories_that_appear_and_vanish(self, crew):
        """`a`, `a/b` and deletes of both, all at once: each is answered, and what is left is whole."""

        def work(writer, gateway, connection):
            key = ("a", "a/b", "a/b/c", "a//d")[writer % 4]
            for _ in range(10):
                expect.ok(gateway.raw.put(gateway.path(key), key.encode(), connection=connection))
                got = gateway.raw.get(gateway.path(key), connection=connection)
                assert (got.status, got.body) == (200, key.encode()) or got.code == "NoSuchKey", got
                expect.ok(gateway.raw.delete(gateway.path(key), connection=connection), 204)
            return True

        for _ in range(3):
            assert all(crew.race(work))
        assert crew.gateways[0].is_untouched()

    def test_puts_deletes_and_listings(self, crew_on_two):
        """Without pauses, half of them writing: what all have seen of each key has an order."""
        gateways, keys = crew_on_two.gateways, ["a", "a/b", "a/", "a/c"]
        clients = [Client(gateways) for _ in range(CLIENTS)]

        def work(number, _gateway, connection):
            client, gateway = clients[number], number % len(gateways)
            client.begin, connection.begin = connection.begin, None
            for turn in range(60):
                key = keys[(turn + number // 2) % len(keys)]
                match number % 4:
                    case 0:
                        # One body in the request's own memory, one that is written as it comes.
                        size = (100, 300_000)[turn % 8 == 7]
                        client.put(gateway, key, New(f"{number}-{turn}", b"%d %d " % (number, turn) * size))
                    case 1:
                        client.delete(gateway, key)
                    case 2:
                        client.list(gateway, prefix=("", "a", "a/")[turn % 3])
                    case 3:
                        client.get(gateway, key)

        crew_on_two.race(work)
        observer = Client(gateways)
        for gateway in range(len(gateways)):
            observer.list(gateway)
            for key in keys:
                observer.head(gateway, key)
                observer.get(gateway, key)
        histories: dict[str, list[Step]] = {key: [] for key in keys}
        for client in [*clients, observer]:
            for step in client.steps:
                histories[step.key].append(step)
            for listing in client.listings:
                assert set(listing.entries) <= set(keys)
                for key in keys:
                    if key.startswith(listing.prefix):
                        histories[key].append(listed(listing, key))
            client.close()
        for key, steps in histories.items():
            explain(key, State(), steps)

    def test_no_reader_misses_a_file_that_becomes_a_directory(self, crew):
        for number in range(ROUNDS // 4):
            key = f"file{number}"
            crew.gateways[0].put(key, b"whole")

            def work(number, gateway, connection, key=key):
                if number == 0:
                    path = gateway.path(f"{key}/below")
                    return expect.ok(gateway.raw.put(path, b"", connection=connection))
                for _ in range(5):
                    got = expect.ok(gateway.raw.get(gateway.path(key), connection=connection))
                    assert got.body == b"whole"
                return got

            crew.race(work)
