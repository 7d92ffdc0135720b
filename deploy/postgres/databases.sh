#!/bin/sh
# Runs once, when the data folder is made: a role and a database of its own for Sonar and for Temporal. Passwords
# travel as psql variables, so no quote in them can end a statement.
set -eu

psql --username "$POSTGRES_USER" --dbname postgres --no-psqlrc --quiet --set ON_ERROR_STOP=1 \
  --set sonar_password="$SONAR_DATABASE_PASSWORD" \
  --set temporal_password="$TEMPORAL_DATABASE_PASSWORD" <<'SQL'
create role sonar login createrole password :'sonar_password';
create database sonar owner sonar;
create role temporal login password :'temporal_password';
create database temporal owner temporal;
create database temporal_visibility owner temporal;
SQL
