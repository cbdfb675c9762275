# Sourced. again COMMAND...: what talks to a registry is tried four times, with longer and longer waits.
again() {
  local wait
  for wait in 5 20 60; do
    "$@" && return
    echo "$* failed; once more in $wait s" >&2
    sleep "$wait"
  done
  "$@"
}
