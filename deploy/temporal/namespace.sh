#!/bin/sh
# Waits until Temporal serves, then gives it the namespace, retention and search attributes of temporal-dev.yaml.
# May be repeated. Usage: namespace.sh temporal-dev.yaml
set -eu

description=$1
value() { awk -v key="$1:" '$1 == key { print $2; exit }' "$description"; }
search_attributes() {
  awk '/^[^ #]/ { inside = ($1 == "searchAttributes:"); next } inside && $1 !~ /^#/ && NF == 2 { sub(":$", "", $1); print $1, $2 }' \
    "$description"
}

tries=0
until temporal operator cluster health >/dev/null 2>&1; do
  tries=$((tries + 1))
  if [ "$tries" -ge 90 ]; then
    echo "Temporal at $TEMPORAL_ADDRESS does not serve after 3 minutes; see the log of the service temporal" >&2
    exit 1
  fi
  sleep 2
done

namespace=$(value namespace)
retention=$(value retention)
if temporal operator namespace describe --namespace "$namespace" >/dev/null 2>&1; then
  temporal operator namespace update --namespace "$namespace" --retention "$retention"
else
  temporal operator namespace create --namespace "$namespace" --retention "$retention"
fi

# A new namespace reaches the server's caches after some seconds; until then it cannot be listed.
tries=0
until known=$(temporal operator search-attribute list --namespace "$namespace" 2>&1); do
  tries=$((tries + 1))
  if [ "$tries" -ge 30 ]; then
    echo "the search attributes of namespace $namespace cannot be listed: $known" >&2
    exit 1
  fi
  sleep 2
done
search_attributes | while read -r name type; do
  if echo "$known" | grep -qw "$name"; then continue; fi
  temporal operator search-attribute create --namespace "$namespace" --name "$name" --type "$type"
done
