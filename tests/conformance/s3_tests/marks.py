"""A pytest plugin that has the report say what ceph/s3-tests marks a test with."""


def pytest_collection_modifyitems(items):
    for item in items:
        marks = sorted({mark.name for mark in item.iter_markers()})
        item.user_properties.append(("marks", " ".join(marks)))
