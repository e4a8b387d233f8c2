#!/usr/bin/env bash
# Tests of shared ledgers need a PostgreSQL server. Installs it where that is possible, and says so where it is not: the
# tests then skip, which with CI=true is a failure.
set -euo pipefail

if compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null; then exit 0; fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # A server of the whole machine is not wanted: tests start their own.
  mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  apt-get update -qq && apt-get install -y -qq postgresql && exit 0
fi
echo "PostgreSQL is missing and can't be installed from here: tests of shared ledgers will be skipped." >&2
