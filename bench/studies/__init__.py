"""The published studies of S3 servers, repeated: what bench/study.py is made of."""
