# Sourced by what the lab runs in each of two guests: a world of two ranks in each, joined through the first guest's
# address. All runs are made in the same order on both guests.
export WORLD_SIZE=4 MASTER_ADDR=${LAB_ADDRESSES%% *} TUTTI_SECRET=lab TUTTI_TIMEOUT=${TUTTI_TIMEOUT:-120}
port=29500
first_rank=$((LAB_GUEST * 2))

# together PROGRAM [ARGUMENT...]: this guest's two ranks. The status is that of the one that failed, if one did.
together() {
  local status=0 other
  port=$((port + 1))
  echo "${1##*/} ${*:2}"
  RANK=$first_rank LOCAL_RANK=0 MASTER_PORT=$port "$@" &
  other=$!
  RANK=$((first_rank + 1)) LOCAL_RANK=1 MASTER_PORT=$port "$@" || status=$?
  wait $other || status=$?
  return $status
}

fail() { echo "guest $LAB_GUEST: $*"; exit 1; }

# meet: goes on when both guests have come here.
meetings=0
meet() {
  meetings=$((meetings + 1))
  touch "$LAB_OUT/met.$meetings.$LAB_GUEST"
  until [ -e "$LAB_OUT/met.$meetings.0" ] && [ -e "$LAB_OUT/met.$meetings.1" ]; do sleep 0.1; done
}

# sent RAIL: how many packets its device has sent.
sent() { cat "/sys/class/infiniband/rxe$1/ports/1/hw_counters/sent_pkts"; }
