# Shared by the scripts of deploy/: messages, Python packages, tools. Sourced, not run.
# shellcheck shell=bash

# shellcheck source=deploy/parts/packages.sh
. "${BASH_SOURCE[0]%/*}/packages.sh"

bumble="bumble==0.0.236"
# An object store for the tests (moto's server, without the parts for other services), and what reads it back.
store=(moto==5.2.5 flask==3.1.3 flask-cors==6.0.5 boto3==1.44.5 duckdb==2.0.0 pyarrow==25.0.1)
# What asks the server's read API in its tests.
reading=(schemathesis==4.32.5 pandas==3.1.1 requests==2.34.2)
# Python packages of deploy/lake, in their own environment; Spark only if it is needed.
lake=(duckdb==2.0.0 boto3==1.44.5)
spark=(pyspark==4.1.4)
# Other implementations of the decoders, to compare ours with.
decoders=(bthome-ble==3.25.0 ruuvitag-sensor==4.1.0 ibeacon-ble==1.2.0)
# Home Assistant's client of the Bluetooth proxy.
proxying=(aioesphomeapi==46.23.0)
science=(guano==1.0.16 soundfile==0.14.0 mutagen==1.48.1 frictionless==5.21.0)
# Deque's axe-core 4.12.1 (MPL-2.0) as a package; nothing else of it is used.
axe="axe-playwright-python==0.1.8"

say() { printf '== %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Installs a Python with Bumble beside the build.
install_bumble() {
    .build/tools/bin/python3 -c 'import bumble' 2>/dev/null && return 0
    say "installing $bumble into .build/tools (half a minute)"
    mkdir -p .build
    # Debian's own interpreter, because other users may not be able to read another one.
    /usr/bin/python3 -m venv --clear .build/tools
    .build/tools/bin/python3 -m pip install -q "$bumble"
}

# install_modules IMPORTS PACKAGE…: installs Python packages into the same place, unless these modules are there.
install_modules() {
    .build/tools/bin/python3 -c "import $1" 2>/dev/null && return 0
    shift
    say "installing $* into .build/tools (up to a minute)"
    .build/tools/bin/python3 -m pip install -q "$@"
}

# The object store of the tests; what asks the read API in them; the decoders that they compare ours with.
install_store() { install_modules 'moto.server, flask_cors, boto3, duckdb, pyarrow' "${store[@]}"; }
install_reading() {
    install_modules 'schemathesis, pandas, requests' "${reading[@]}" || say "not installable here; their tests are skipped"
}
install_proxying() {
    install_modules 'aioesphomeapi' "${proxying[@]}" || say "not installable here; its test is skipped"
}
install_science() {
    install_modules 'guano, soundfile, mutagen, frictionless' "${science[@]}" || say "not installable here; its tests are skipped"
}
install_decoders() { install_modules 'bthome_ble, ruuvitag_sensor.decoder, ibeacon_ble' "${decoders[@]}"; }

# Installs the accessibility checker for the page into the same place.
install_axe() {
    compgen -G '.build/tools/lib/python3*/site-packages/axe_playwright_python/axe.min.js' >/dev/null && return 0
    say "installing $axe into .build/tools"
    .build/tools/bin/python3 -m pip install -q --no-deps "$axe"
}

# Installs the lake's Python packages into the folder $1, with Spark if `--spark` follows.
install_lake() {
    local folder=$1 python=$1/bin/python3 names=("${lake[@]}")
    shift
    [ "${1:-}" != --spark ] || names+=("${spark[@]}")
    "$python" -c "import duckdb, boto3${1:+, pyspark}" 2>/dev/null && return 0
    say "installing ${names[*]} into $folder (a minute; Spark is 450 MB)" >&2
    [ -x "$python" ] || { mkdir -p "$folder" && /usr/bin/python3 -m venv --clear "$folder"; }
    "$python" -m pip install -q "${names[@]}" ||
        fail "cannot install ${names[*]} from PyPI; run this once with a network"
}

require_swift() {
    command -v swift >/dev/null ||
        fail "swift is not on the PATH; run: apt-get install swiftlang (Debian 13), or see swift.org/install"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
