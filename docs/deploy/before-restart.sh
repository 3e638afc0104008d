#!/bin/sh
# Runs a command; when it is told to end (TERM), takes one look and keeps a bundle before it passes that on.
#
#   torchrun --nproc-per-node 8 --no-python before-restart.sh python train.py     around each worker
#   exec before-restart.sh vllm serve MODEL                                       around a server
#   GDBEXT_PIDS= exec before-restart.sh srun python train.py                      the job on this node, whatever its pids
#
# GDBEXT_INTO      folder of the bundles (/var/tmp/gdbext)
# GDBEXT_DEADLINE  seconds that a look may take (20): less than whoever ends us waits before it kills
# GDBEXT_PIDS      pids of the job (the command's; empty: the one job on this host)
#
# Of several workers on a host only the first (LOCAL_RANK 0) looks, at all of them; the others wait for it.

set -u
into=${GDBEXT_INTO:-/var/tmp/gdbext}
seconds=${GDBEXT_DEADLINE:-20}
looked=$into/.looked.$PPID.${TORCHELASTIC_RESTART_COUNT:-0}

before_the_end() {
    trap '' TERM INT
    if [ "${LOCAL_RANK:-0}" = 0 ]; then
        # shellcheck disable=SC2086 # several pids are several words
        gdbext watch --before-kill ${GDBEXT_PIDS-$child} --deadline "$seconds" --into "$into" --quiet >&2 || :
        mkdir -p "$into" && : >"$looked"
    else
        left=$((seconds * 5))
        while [ ! -e "$looked" ] && [ $left -gt 0 ] && kill -0 "$child" 2>/dev/null; do
            sleep 0.2
            left=$((left - 1))
        done
    fi
    kill -TERM "$child" 2>/dev/null
}

exec 3<&0 # a command in the background would lose it
"$@" <&3 3<&- &
child=$!
exec 3<&-
trap before_the_end TERM INT
wait "$child"
status=$?
while kill -0 "$child" 2>/dev/null; do # a signal has ended the wait, not the command
    wait "$child"
    status=$?
done
[ "${LOCAL_RANK:-0}" != 0 ] || find "$into" -maxdepth 1 -name '.looked.*' -mmin +60 -delete 2>/dev/null
exit "$status"
