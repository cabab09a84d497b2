"""How much of each study is done."""

import dataclasses

MIB, GIB = 1 << 20, 1 << 30


@dataclasses.dataclass(frozen=True)
class Scale:
    """Sizes in bytes, times in seconds."""

    # Study A.
    bursts: tuple[int, ...]
    one_at_a_time: int
    parts_bytes: int
    parts_at_once: tuple[int, ...]
    head_clients: tuple[int, ...]
    head_seconds: float
    repeat_a: int
    # Study D.
    stream_bytes: int
    # Study B. Without `b_bytes` an object has two parts for each thread. A gateway sends some
    # 100 MiB/s in GETs: their seconds are for several ranges of each thread.
    gateways: tuple[int, ...]
    b_bytes: int | None
    b_get_bytes: int
    b_part_bytes: int
    put_threads: tuple[int, ...]
    get_threads: tuple[int, ...]
    b_seconds: float
    b_get_seconds: float
    repeat_b: int
    # Study C. Varnish keeps nothing that was written less than two seconds ago: its warm-up is
    # longer.
    tiny_seconds: float
    warm_up_seconds: float
    cache_warm_up_seconds: float
    repeat_c: int
    read_objects: int
    # Keys of PUTs. In a short step each is new.
    put_objects: int
    # New keys of a step whose bytes count. A step whose rate counts puts more, up to
    # `device_objects`, until `device_seconds` are over.
    new_objects: int
    device_objects: int
    device_seconds: float
    names: tuple[int, int]
    image_bytes: int
    # Steps that would take a time end after so many requests instead.
    requests: int | None = None

    def timing(self, seconds: float, warm_up: float) -> list:
        """Options of `slipway bench` for how long a step is."""
        if self.requests:
            return ["--count", self.requests, "-d", "60s"]
        return ["-d", f"{seconds * 1000:.0f}ms", "--warm-up", f"{warm_up * 1000:.0f}ms"]

    def preset_timing(self, seconds: float) -> list:
        """The same for presets, which end after a time only."""
        # Long enough for an answer on a busy machine.
        seconds = 0.5 if self.requests else seconds
        return ["-d", f"{seconds * 1000:.0f}ms", "--warm-up", f"{self.warm_up_seconds * 1000:.0f}ms"]


SMALL = Scale(
    bursts=(100, 150, 200, 250, 300, 350),
    one_at_a_time=300,
    parts_bytes=GIB // 2,
    parts_at_once=(1, 4, 8),
    head_clients=(1, 5, 10, 15, 20),
    head_seconds=0.5,
    repeat_a=1,
    stream_bytes=64 * MIB,
    gateways=(1, 2, 3, 5),
    b_bytes=None,
    b_get_bytes=256 * MIB,
    b_part_bytes=5 * MIB,
    put_threads=(2, 32),
    get_threads=(1, 16),
    b_seconds=0.5,
    b_get_seconds=3,
    repeat_b=1,
    tiny_seconds=0.5,
    warm_up_seconds=0.2,
    cache_warm_up_seconds=3,
    repeat_c=1,
    read_objects=1000,
    put_objects=20_000,
    new_objects=5000,
    # ext4 has an inode for each 16 KiB.
    device_objects=200_000,
    device_seconds=5,
    names=(2000, 20_000),
    image_bytes=4 * GIB,
)

FULL = Scale(
    bursts=SMALL.bursts,
    one_at_a_time=1000,
    parts_bytes=10 * GIB,
    parts_at_once=(1, 10, 20, 30, 40, 50, 60, 70, 80, 90, 100),
    head_clients=SMALL.head_clients,
    head_seconds=10,
    repeat_a=5,
    # Of 12 readers, as much as may be in memory; its files had 30 GiB each.
    stream_bytes=GIB,
    gateways=(1, 2, 3, 4, 5),
    b_bytes=10 * GIB,
    # 10 GiB would be read from memory as well, and take each of these gateways, which has a
    # tenth of a processor, minutes to write.
    b_get_bytes=GIB,
    b_part_bytes=64 * MIB,
    put_threads=(2, 4, 8, 16, 32),
    get_threads=(1, 2, 4, 8, 16),
    b_seconds=10,
    b_get_seconds=40,
    repeat_b=3,
    tiny_seconds=300,
    warm_up_seconds=1,
    cache_warm_up_seconds=5,
    repeat_c=3,
    read_objects=1000,
    put_objects=20_000,
    new_objects=20_000,
    device_objects=400_000,
    device_seconds=10,
    names=(100_000, 1_000_000),
    image_bytes=8 * GIB,
)

# For the test of all this: it says nothing.
TINY = dataclasses.replace(
    SMALL,
    bursts=(4, 6),
    one_at_a_time=2,
    # Ends by count: within a fixed time a busy machine may answer nothing.
    requests=100,
    parts_bytes=128 * MIB,
    parts_at_once=(1, 2),
    head_clients=(1, 2),
    # The least that `--scale` can give is 3 MiB.
    stream_bytes=4 * MIB,
    gateways=(1, 2),
    b_get_bytes=MIB,
    put_threads=(1,),
    get_threads=(1,),
    read_objects=64,
    put_objects=100,
    new_objects=100,
    device_objects=100,
    device_seconds=1,
    names=(10, 100),
    image_bytes=GIB // 2,
)

SCALES = {"small": SMALL, "full": FULL, "tiny": TINY}


def changed(scale: Scale, seconds: float | None, repeat: int | None) -> Scale:
    """The same with other times and repeats, for who has less time than the studies had."""
    if seconds is not None:
        gets = scale.b_get_seconds * seconds / scale.b_seconds
        scale = dataclasses.replace(scale, head_seconds=seconds, tiny_seconds=seconds)
        scale = dataclasses.replace(scale, b_seconds=seconds, b_get_seconds=gets)
    if repeat is not None:
        scale = dataclasses.replace(scale, repeat_a=repeat, repeat_b=repeat, repeat_c=repeat)
    return scale
