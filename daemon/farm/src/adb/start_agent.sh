# Starts the agent, detached from this shell and its cable, unless it runs. Fed to a phone's shell, after lines that set:
#   root     layerlab's folder on the phone
#   folder   the agent's own: its journals, log and process id
#   program, socket, token
#   owner    what tells agents that were started with this token
#   device   a file that the agent shall play, or nothing
#   anew     yes: kill the agent first
#   seconds  how long it may take until it listens
#   "$@"     NAME=VALUE: where the agent finds runtimes
# Prints running or started, and then a line for each processor that cannot be used, with the reason. Exit status: 0 it listens; 3 it refuses what it was given; 20 it died; 21 it does not listen.
set -u
umask 077
cd "$folder" || exit 20

# Sets $pid. A process id is one of ours only as long as that process is an agent.
alive() { # FILE
    pid=
    read -r pid 2>/dev/null <"$1"
    [ -n "$pid" ] || return 1
    case $(tr '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline") in
    *layerlab-agent*) return 0 ;;
    *) return 1 ;;
    esac
}

gone() { # FILE: kills the agent that FILE names, and waits until it is gone
    turns=0
    while alive "$1"; do
        kill -KILL "$pid" 2>/dev/null
        turns=$((turns + 1))
        [ "$turns" -lt 200 ] || exit 21
        sleep 0.02
    done
}

# Two agents on one phone would disturb each other's measurements.
for other in "$root"/*/agent.pid; do
    [ "$other" = "$folder/agent.pid" ] || gone "$other"
done
if [ "$anew" = yes ]; then gone agent.pid; fi
# One that another host of the same lab has started takes no other token. Its journals live on.
owned=
read -r owned 2>/dev/null <agent.owner
if alive agent.pid && [ "$owned" = "$owner" ] && grep -q listening agent.out 2>/dev/null; then
    echo running
    grep '^left out: ' agent.out
    exit 0
fi
gone agent.pid

[ ! -f agent.log ] || mv -f agent.log agent.log.1
: >agent.out
set -- "$@" "$program" serve --listen "abstract:$socket" --state "$folder"
[ -z "$device" ] || set -- "$@" --device "$device"
echo "$owner" >agent.owner
LAYERLAB_AGENT_TOKEN=$token LAYERLAB_AGENT_LOG=info setsid env "$@" </dev/null >>agent.out 2>agent.log &
child=$!
echo "$child" >agent.pid

turns=0
while ! grep -q listening agent.out; do
    if ! kill -0 "$child" 2>/dev/null; then
        wait "$child"
        status=$?
        tail -n 1 agent.log >&2
        [ "$status" -ne 3 ] || exit 3
        exit 20
    fi
    turns=$((turns + 1))
    if [ "$turns" -ge $((seconds * 50)) ]; then
        tail -n 1 agent.log >&2
        exit 21
    fi
    sleep 0.02
done
echo started
grep '^left out: ' agent.out
exit 0
