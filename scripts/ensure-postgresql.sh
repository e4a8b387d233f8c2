#!/usr/bin/env bash
# Tests of shared ledgers need a PostgreSQL server, and one test of keys SoftHSM and OpenSC. Installs them where that is
# possible, and says so where it is not: the tests then skip, which with CI=true is a failure.
set -euo pipefail

if compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null && command -v pkcs11-tool softhsm2-util >/dev/null; then
  exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  # A server of the whole machine is not wanted: tests start their own.
  mkdir -p /etc/postgresql-common && echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
  apt-get update -qq && apt-get install -y -qq postgresql softhsm2 opensc && exit 0
fi
echo "PostgreSQL, SoftHSM or OpenSC is missing and can't be installed from here: tests of shared ledgers and keys will be skipped." >&2
