#!/bin/sh
# Makes a Citus cluster of PostgreSQL servers, which may be repeated. CITUS_COORDINATOR and the words of CITUS_WORKERS are host or host:port.
# The variables of libpq name the rest: PGUSER, PGPASSWORD, PGDATABASE. The password has letters and digits only.
set -eu

host() { echo "${1%%:*}"; }
port() { case $1 in *:*) echo "${1##*:}" ;; *) echo 5432 ;; esac; }
on() { at=$1 && shift && psql -X -q -A -t -v ON_ERROR_STOP=1 -h "$(host "$at")" -p "$(port "$at")" "$@"; }
sql() { on "$1" -c "$2"; }

# Writes the password by which a node reaches the others into its PGPASSFILE. PGPASSWORD would not do: the image's entry point takes it
# away from a server whose database it has just made.
write_password() {
  on "$1" <<EOF
create temporary table password (line text);
copy password from stdin;
*:*:*:$PGUSER:$PGPASSWORD
\.
copy password to program 'umask 077 && cat > "\${PGPASSFILE:-/dev/null}"';
EOF
}

for node in $CITUS_COORDINATOR $CITUS_WORKERS; do
  tries=0
  until pg_isready -q -t 3 -h "$(host "$node")" -p "$(port "$node")"; do
    tries=$((tries + 1))
    [ "$tries" -lt 150 ] || { echo "$node does not answer." >&2; exit 1; }
    sleep 2
  done
  write_password "$node"
  sql "$node" "set client_min_messages = warning; create extension if not exists citus"
done

sql "$CITUS_COORDINATOR" "select citus_set_coordinator_host('$(host "$CITUS_COORDINATOR")', $(port "$CITUS_COORDINATOR"))" >/dev/null
for node in $CITUS_WORKERS; do
  sql "$CITUS_COORDINATOR" "select citus_add_node('$(host "$node")', $(port "$node"))" >/dev/null
done
sql "$CITUS_COORDINATOR" "select nodename || ':' || nodeport from pg_dist_node where isactive order by nodeid"
