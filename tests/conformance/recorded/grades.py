"""Compares answers with recordings.

The grades of a test, each of which forgives more than the one before:

| grade | the answer has all that was recorded, and beyond that |
|---|---|
| `strict` | nothing |
| `aws` | may lack `ServerSideEncryption: AES256` |
| `core` | may also have `Error.Resource` and `Owner.DisplayName`, which S3 has stopped sending |
| `superset` | may have any other field that S3 does not send |
| `none` | anything may be missing or different |
"""

from collections.abc import Iterator

GRADES = ("strict", "aws", "core", "superset", "none")

# Stands where one of the sides has nothing.
MISSING = "MISSING"

# What S3 itself does not answer twice, by test, step and place: (name contains, step, place begins
# with).
_WRONG_PARTS = "complete-multipart-wrong-parts-checksum"
NOT_REPEATABLE = [
    # The recording shows the other buckets of the account.
    ("test_delete_bucket_with_content", "list-buckets", ".Buckets"),
    # Of several wrong parts S3 names any.
    ("test_complete_multipart_parts_checksum", _WRONG_PARTS, ".Error.PartNumber"),
    ("test_complete_multipart_parts_checksum", _WRONG_PARTS, ".Error.ETag"),
]

# A difference: the step of the test, the place in its answer, what was recorded, what was answered.
Difference = tuple[str, str, object, object]


def leaves(recorded: object, answered: object, place: str = "") -> Iterator[tuple[str, object, object]]:
    """Each leaf that differs: place, recorded, answered."""
    if isinstance(recorded, dict) and isinstance(answered, dict):
        for name in sorted(set(recorded) | set(answered), key=str):
            inner = f"{place}.{name}"
            if name not in answered:
                yield inner, recorded[name], MISSING
            elif name not in recorded:
                yield inner, MISSING, answered[name]
            else:
                yield from leaves(recorded[name], answered[name], inner)
    elif isinstance(recorded, list) and isinstance(answered, list) and len(recorded) == len(answered):
        for index, (one, other) in enumerate(zip(recorded, answered, strict=True)):
            yield from leaves(one, other, f"{place}[{index}]")
    elif recorded != answered:
        yield place, recorded, answered


def differences(test: str, recorded: dict, answered: dict, unfinished: bool) -> list[Difference]:
    """All differences in the steps that were recorded and reached. What the recording lacks says nothing.
    `unfinished`: the test ended with an exception, so that bodies may not have been read."""

    def counts(step: str, place: str, answer: object) -> bool:
        if unfinished and place.endswith(".Body") and answer == "":
            return False
        return not any(t in test and s == step and place.startswith(p) for t, s, p in NOT_REPEATABLE)

    return [
        (step, place, before, now)
        for step in answered
        if step in recorded
        for place, before, now in leaves(recorded[step], answered[step])
        if counts(step, place, now)
    ]


def grade_of(difference: Difference) -> str:
    """The best grade that a test with this difference can have."""
    _, place, recorded, answered = difference
    name = place.rsplit(".", 1)[-1]
    if recorded == "AES256" and answered == MISSING:
        return "aws" if name in ("ServerSideEncryption", "x-amz-server-side-encryption") else "none"
    if recorded != MISSING:
        return "none"
    return "core" if place.endswith((".Error.Resource", "Owner.DisplayName")) else "superset"


def worst(grades: Iterator[str]) -> str:
    """The grade of a test whose differences have these."""
    return max(grades, key=GRADES.index, default="strict")


def describe(difference: Difference, operations: dict[str, str]) -> str:
    """A line for people."""
    step, place, recorded, answered = difference
    cut = [text if len(text) < 160 else f"{text[:157]}..." for text in (repr(recorded), repr(answered))]
    return f"{operations.get(step, '?')} | {step}{place} | AWS {cut[0]} | got {cut[1]}"
