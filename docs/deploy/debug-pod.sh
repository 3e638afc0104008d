#!/bin/sh
# Looks at a running pod from an ephemeral container: nothing is restarted, and the pod needs no preparation.
#
#   debug-pod.sh NAMESPACE POD CONTAINER IMAGE [gdbext's words, else: diagnose]
#
# IMAGE is built of the Containerfile here. The profile gives the container SYS_PTRACE; --target puts it into the PID
# namespace of CONTAINER.

set -eu
[ $# -ge 4 ] || { echo "usage: $0 NAMESPACE POD CONTAINER IMAGE [WORDS...]" >&2; exit 2; }
namespace=$1 pod=$2 container=$3 image=$4
shift 4
[ $# -gt 0 ] || set -- diagnose
exec kubectl debug -i -n "$namespace" "$pod" --image="$image" --target="$container" --profile=general -- gdbext "$@"
