#!/bin/sh
# Makes the bucket that Sonar keeps its files in. May be repeated.
set -eu

mc --quiet alias set sonar http://minio:9000 "$MINIO_ROOT_USER" "$MINIO_ROOT_PASSWORD"
mc --quiet mb --ignore-existing "sonar/$SONAR_S3_BUCKET"
