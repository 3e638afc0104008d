#!/bin/sh
# For slurm.conf: Epilog= or UnkillableStepProgram=. What of a job still runs on this node when it should have ended is
# looked at, and a bundle is kept. Slurm goes on after GDBEXT_DEADLINE seconds (30), and is never told of a failure: a
# node is not drained because of a look.

set -u
into=${GDBEXT_INTO:-/var/tmp/gdbext}
job=${SLURM_JOB_ID:-}
[ -n "$job" ] || exit 0
pids=$(scontrol listpids "$job" 2>/dev/null | awk 'NR > 1 && $1 ~ /^[0-9]+$/ { print $1 }' | head -n 64)
[ -n "$pids" ] || exit 0
# shellcheck disable=SC2086 # several pids are several words
gdbext watch --before-kill $pids --deadline "${GDBEXT_DEADLINE:-30}" --into "$into" --quiet 2>&1 |
    logger -t gdbext-epilog
exit 0
