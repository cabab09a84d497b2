"""How answers are compared with recorded ones (`cargo xtask conformance recorded`)."""

import pytest
from conformance.recorded import grades

RECORDED = {
    "step": {
        "Owner": {"ID": "<id>"},
        "Parts": [{"Size": 1}, {"Size": 2}],
        "ServerSideEncryption": "AES256",
        "Error": {"Code": "NoSuchKey"},
    }
}


def without(document: dict, name: str) -> dict:
    return {key: value for key, value in document.items() if key != name}


def grade(step: dict, test: str = "test_x", unfinished: bool = False) -> str:
    found = grades.differences(test, RECORDED, {"step": step}, unfinished)
    return grades.worst(grades.grade_of(difference) for difference in found)


STEP = RECORDED["step"]


@pytest.mark.parametrize(
    "answered, expected",
    [
        (STEP, "strict"),
        (without(STEP, "ServerSideEncryption"), "aws"),
        (STEP | {"ServerSideEncryption": "aws:kms"}, "none"),
        (STEP | {"Error": {"Code": "NoSuchKey", "Resource": "/b/k"}}, "core"),
        (STEP | {"Owner": {"ID": "<id>", "DisplayName": "x"}}, "core"),
        (STEP | {"Resource": "x"}, "superset"),
        (STEP | {"Parts": [{"Size": 1}, {"Size": 2, "ETag": "x"}]}, "superset"),
        (STEP | {"Parts": [{"Size": 1}]}, "none"),
        (STEP | {"Parts": [{"Size": 1}, {"Size": 3}]}, "none"),
        (STEP | {"Error": {"Code": "NoSuchBucket"}}, "none"),
        (without(STEP, "Owner"), "none"),
        (STEP | {"Owner": None}, "none"),
        (without(STEP, "ServerSideEncryption") | {"Resource": "x"}, "superset"),
    ],
)
def test_grades(answered, expected):
    assert grade(answered) == expected


def test_what_was_not_recorded_says_nothing():
    assert grades.differences("test_x", RECORDED, {"other": {"Code": "x"}}, False) == []


def test_a_body_that_was_not_read():
    recorded, answered = {"get": {"Body": "data"}}, {"get": {"Body": ""}}
    assert grades.differences("test_x", recorded, answered, True) == []
    assert len(grades.differences("test_x", recorded, answered, False)) == 1


def test_what_s3_does_not_repeat():
    recorded, answered = {"list-buckets": {"Buckets": ["a"]}}, {"list-buckets": {"Buckets": []}}
    assert grades.differences("test_delete_bucket_with_content", recorded, answered, False) == []
    assert len(grades.differences("test_x", recorded, answered, False)) == 1


def test_a_line_for_people():
    (difference,) = grades.differences("test_x", RECORDED, {"step": without(STEP, "Owner")}, False)
    line = grades.describe(difference, {"step": "GetObject"})
    assert line == "GetObject | step.Owner | AWS {'ID': '<id>'} | got 'MISSING'"
