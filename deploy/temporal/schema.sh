#!/bin/sh
# Brings Temporal's two databases to the schema of this image's version. May be repeated: versions that are there
# already are skipped. Server, user, password and plugin come from the tool's own SQL_… variables.
set -eu

versions=/etc/temporal/schema/postgresql/v12

SQL_DATABASE=temporal temporal-sql-tool setup-schema -v 0.0
SQL_DATABASE=temporal temporal-sql-tool update-schema -d "$versions/temporal/versioned"
SQL_DATABASE=temporal_visibility temporal-sql-tool setup-schema -v 0.0
SQL_DATABASE=temporal_visibility temporal-sql-tool update-schema -d "$versions/visibility/versioned"
