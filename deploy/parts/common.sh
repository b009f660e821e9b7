# Shared by the scripts of deploy/: messages, packages, tools. Sourced, not run.
# shellcheck shell=bash

# Debian packages to build, and those that the tests and the demo use beside them.
# shellcheck disable=SC2034  # used by the scripts that source this
build_packages=(
    g++ pkg-config libbluetooth-dev libgps-dev libasound2-dev libspeexdsp-dev libsqlite3-dev
    libcurl4-openssl-dev libssl-dev libopus-dev libogg-dev libflac-dev libvo-aacenc-dev zlib1g-dev libzstd-dev
    libtomlplusplus-dev libmicrohttpd-dev scdoc
)
# shellcheck disable=SC2034
tool_packages=(
    gpsd gpsd-clients gpsd-tools espeak-ng opus-tools flac ffmpeg pulseaudio pulseaudio-utils libasound2-plugins
    python3 python3-venv nginx-light caddy openssl curl mandoc gpsbabel python3-prometheus-client e2fsprogs git
)
# Packages for a kernel in QEMU, and for tests of its Bluetooth and sound.
# shellcheck disable=SC2034
emulator_packages=(
    qemu-system-x86 busybox-static kmod python3 python3-venv
    bluez dbus rfkill alsa-utils libcap2-bin systemd udev gpsd gpsd-clients dosfstools mtools
)
bumble="bumble==0.0.236"
# An object store for the tests (moto's server, without the parts for other services), and what reads it back.
store=(moto==5.2.5 flask==3.1.3 flask-cors==6.0.5 boto3==1.44.5 duckdb==2.0.0)
# What asks the server's read API in its tests.
reading=(schemathesis==4.32.5 pandas==3.1.1 requests==2.34.2)
# Python packages of deploy/lake, in their own environment; Spark only if it is needed.
lake=(duckdb==2.0.0 boto3==1.44.5)
spark=(pyspark==4.1.4)
# Other implementations of the decoders, to compare ours with.
decoders=(bthome-ble==3.25.0 ruuvitag-sensor==4.1.0 ibeacon-ble==1.2.0)
# Deque's axe-core 4.12.1 (MPL-2.0) as a package; nothing else of it is used.
axe="axe-playwright-python==0.1.8"

say() { printf '== %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# True if a package is installed, under its own name or as one that another provides (libasound2 and a few others
# were renamed on newer Debians). No pipe into grep -q: that ends the writer early, and pipefail calls it an error.
has_package() {
    local provided
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" != installed ] || return 0
    provided=$(dpkg-query -W -f '${db:Status-Status}, ${Provides}\n' | sed -n 's/^installed, //p' |
        tr ',' '\n' | sed 's/^ *//; s/[ :(].*//' | sort -u)
    [[ $'\n'$provided$'\n' == *$'\n'"$1"$'\n'* ]]
}

# Installs those of the packages that are missing; needs no rights if none is.
install_packages() {
    local missing=() package
    for package in "$@"; do has_package "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "these packages are needed: ${missing[*]}"
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "sudo is missing; run as root once, or install: ${missing[*]}"
        root=(sudo)
    fi
    say "installing ${missing[*]} (a minute or two)"
    "${root[@]}" apt-get update -qq
    # With env, behind sudo, because sudo drops variables.
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
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

# Installs the object store of the tests into the same place.
install_store() {
    .build/tools/bin/python3 -c 'import moto.server, flask_cors, boto3, duckdb' 2>/dev/null && return 0
    say "installing ${store[*]} into .build/tools (a minute)"
    .build/tools/bin/python3 -m pip install -q "${store[@]}"
}

# Installs what the tests of the read API use into the same place.
install_reading() {
    .build/tools/bin/python3 -c 'import schemathesis, pandas, requests' 2>/dev/null && return 0
    say "installing ${reading[*]} into .build/tools (a minute)"
    .build/tools/bin/python3 -m pip install -q "${reading[@]}" || say "not installable here; their tests are skipped"
}

# Unpacks Debian's InfluxDB without installing it, because its package would start a service.
install_influx() {
    local folder=$PWD/.build/tools/influx
    [ ! -x "$folder/usr/bin/influxd" ] || return 0
    say "fetching influxdb into .build/tools"
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root influxdb && dpkg -x ./influxdb_*.deb . &&
        rm ./influxdb_*.deb) || say "influxdb cannot be fetched; its tests are skipped"
}

# Installs the accessibility checker for the page into the same place.
install_axe() {
    compgen -G '.build/tools/lib/python3*/site-packages/axe_playwright_python/axe.min.js' >/dev/null && return 0
    say "installing $axe into .build/tools"
    .build/tools/bin/python3 -m pip install -q --no-deps "$axe"
}

# Installs the decoders that the tests compare ours with into the same place.
install_decoders() {
    .build/tools/bin/python3 -c 'import bthome_ble, ruuvitag_sensor.decoder, ibeacon_ble' 2>/dev/null && return 0
    say "installing ${decoders[*]} into .build/tools (half a minute)"
    .build/tools/bin/python3 -m pip install -q "${decoders[@]}"
}

# Installs the lake's Python packages, with Spark if `--spark` is given.
install_lake() {
    local python=.build/lake/bin/python3 names=("${lake[@]}")
    [ "${1:-}" != --spark ] || names+=("${spark[@]}")
    "$python" -c "import duckdb, boto3${1:+, pyspark}" 2>/dev/null && return 0
    say "installing ${names[*]} into .build/lake (a minute; Spark is 450 MB)" >&2
    [ -x "$python" ] || { mkdir -p .build && /usr/bin/python3 -m venv --clear .build/lake; }
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
