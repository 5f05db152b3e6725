#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the assignment's image: the kit into a virtual environment, and what confines programs.
set -euo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
kit=$root/source/kit
export DEBIAN_FRONTEND=noninteractive

fits() { "$1" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2> /dev/null; }

apt-get -qq update
apt-get -qq install -y --no-install-recommends ca-certificates python3 python3-venv bubblewrap
python=python3
if ! fits $python; then
  python=python3.11   # Ubuntu 22.04 has it beside its own
  apt-get -qq install -y --no-install-recommends python3.11 python3.11-venv || true
fi
if ! fits $python; then
  echo "setup.sh: this image has no Python 3.11 or newer; choose Ubuntu 24.04 or newer as the base image" >&2
  exit 1
fi

$python -m venv "$root/venv"
"$root/venv/bin/python" -m pip install --quiet --disable-pip-version-check -e "$kit"
# Where programs run as a user of their own, and nothing else hides it, this does.
chmod -R go= "$kit/grader" "$kit"/labs/[0-9][0-9]/hidden
