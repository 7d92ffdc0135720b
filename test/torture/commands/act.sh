#!/bin/sh
# A command of the torture: act.sh VERB STEP ITEM SECONDS [FILE]
# VERB auto: what stands before the first "-" of ITEM, else ok. LEDGER, MARKS and SCAN come by the environment.
# Every run is in the ledger before it does anything; its end is when it came to one by itself.
set -u
verb=$1 step=$2 item=$3 seconds=$4 file=${5:-}
if [ "$verb" = auto ]; then
  case $item in
    *-*) verb=${item%%-*} ;;
    *) verb=ok ;;
  esac
fi
note() {
  read -r now _ </proc/uptime
  printf '%s %s %s %s %s %s %s\n' "$1" "$now" "$$" "$PWD" "$SCAN" "$step" "$item" >>"$LEDGER"
}
say() { printf '{"url":"http://127.0.0.1/%s/%s/%s","host":"%s"}\n' "$SCAN" "$step" "$1" "$1"; }
finish() {
  note end
  exit "$1"
}

note start
case $verb in
  fail) sleep "$seconds"; finish 3 ;;
  partial) say "$item"; sleep "$seconds"; finish 3 ;;
  flaky)
    sleep "$seconds"
    if [ ! -e "$MARKS/$SCAN-$step-$item" ]; then
      : >"$MARKS/$SCAN-$step-$item"
      finish 3
    fi
    say "$item" ;;
  gate)
    sleep "$seconds"
    [ -e "$MARKS/gate-$SCAN" ] || finish 4
    say "$item" ;;
  wait)
    # A worker that dies takes this with it; nobody waits for ever.
    for _ in $(seq 1200); do
      [ -e "$MARKS/gate-$SCAN" ] && break
      sleep 0.5
    done
    sleep "$seconds"
    say "$item" ;;
  secret) sleep "$seconds"; say "$(printf '%s\n' "$TOKEN" | sha256sum | cut -c 1-16)" ;;
  hang) say "$item"; sleep 3600 ;;
  poison) sleep "$seconds"; printf 'neither a row nor a record\n' ;;
  list)
    sleep "$seconds"
    while IFS= read -r line || [ -n "$line" ]; do say "$line"; done <"$file" ;;
  digest)
    sleep "$seconds"
    if [ -d "$file" ]; then lines=$(cat "$file"/*/*); else lines=$(cat "$file"); fi
    say "$(printf '%s\n' "$lines" | LC_ALL=C sort | sha256sum | cut -c 1-16)" ;;
  *) sleep "$seconds"; say "$item" ;;
esac
finish 0
