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
# What a kernel in QEMU needs, and what is used on its Bluetooth and sound.
# shellcheck disable=SC2034
emulator_packages=(
    qemu-system-x86 busybox-static kmod python3 python3-venv
    bluez dbus rfkill alsa-utils libcap2-bin systemd udev gpsd gpsd-clients dosfstools mtools
)
bumble="bumble==0.0.236"
# An object store for the tests (moto's server, without the parts for other services), and what reads it back.
store=(moto==5.2.5 flask==3.1.3 flask-cors==6.0.5 boto3==1.44.5 duckdb==2.0.0)
# What deploy/lake works with, in a place of its own; Spark only where it is asked for.
lake=(duckdb==2.0.0 boto3==1.44.5)
spark=(pyspark==4.1.4)
# Other people's decoders, to compare ours with.
decoders=(bthome-ble==3.25.0 ruuvitag-sensor==4.1.0 ibeacon-ble==1.2.0)
# Deque's axe-core 4.12.1 (MPL-2.0) as a package; nothing else of it is used.
axe="axe-playwright-python==0.1.8"

say() { printf '== %s\n' "$*"; }

fail() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

# Is a package there, under its own name or as one that another provides (libasound2 and a few others were
# renamed on newer Debians)? No pipe into grep -q: that ends the writer early, and pipefail calls it an error.
has_package() {
    local provided
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" != installed ] || return 0
    provided=$(dpkg-query -W -f '${db:Status-Status}, ${Provides}\n' | sed -n 's/^installed, //p' |
        tr ',' '\n' | sed 's/^ *//; s/[ :(].*//' | sort -u)
    [[ $'\n'$provided$'\n' == *$'\n'"$1"$'\n'* ]]
}

# Installs what is missing of the packages named; asks for no rights when nothing is.
install_packages() {
    local missing=() package
    for package in "$@"; do has_package "$package" || missing+=("$package"); done
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "these packages are needed: ${missing[*]}"
    local root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "run as root once, or install: ${missing[*]}"
        root=(sudo)
    fi
    say "installing ${missing[*]} (a minute or two)"
    "${root[@]}" apt-get update -qq
    # By env, behind sudo: sudo keeps no variables.
    "${root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        "${missing[@]}" >/dev/null
}

# A Python with Bumble, beside the build.
install_bumble() {
    .build/tools/bin/python3 -c 'import bumble' 2>/dev/null && return 0
    say "installing $bumble into .build/tools (half a minute)"
    mkdir -p .build
    # Debian's own interpreter, with python3-venv: one of another kind may be out of other users' reach.
    /usr/bin/python3 -m venv --clear .build/tools
    .build/tools/bin/python3 -m pip install -q "$bumble"
}

# The object store of the tests, into the same place.
install_store() {
    .build/tools/bin/python3 -c 'import moto.server, flask_cors, boto3, duckdb' 2>/dev/null && return 0
    say "installing ${store[*]} into .build/tools (a minute)"
    .build/tools/bin/python3 -m pip install -q "${store[@]}"
}

# Debian's InfluxDB, unpacked only: its package would start a service.
install_influx() {
    local folder=$PWD/.build/tools/influx
    [ ! -x "$folder/usr/bin/influxd" ] || return 0
    say "fetching influxdb into .build/tools"
    mkdir -p "$folder"
    (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root influxdb && dpkg -x ./influxdb_*.deb . &&
        rm ./influxdb_*.deb) || say "there is no influxdb to fetch: the tests with it are left out"
}

# What looks for barriers on the page, into the same place.
install_axe() {
    compgen -G '.build/tools/lib/python3*/site-packages/axe_playwright_python/axe.min.js' >/dev/null && return 0
    say "installing $axe into .build/tools"
    .build/tools/bin/python3 -m pip install -q --no-deps "$axe"
}

# The decoders that the tests compare ours with, into the same place.
install_decoders() {
    .build/tools/bin/python3 -c 'import bthome_ble, ruuvitag_sensor.decoder, ibeacon_ble' 2>/dev/null && return 0
    say "installing ${decoders[*]} into .build/tools (half a minute)"
    .build/tools/bin/python3 -m pip install -q "${decoders[@]}"
}

# The lake's Python packages, with Spark if `--spark` is said.
install_lake() {
    local python=.build/lake/bin/python3 names=("${lake[@]}")
    [ "${1:-}" != --spark ] || names+=("${spark[@]}")
    "$python" -c "import duckdb, boto3${1:+, pyspark}" 2>/dev/null && return 0
    say "installing ${names[*]} into .build/lake (a minute; Spark is 450 MB)" >&2
    [ -x "$python" ] || { mkdir -p .build && /usr/bin/python3 -m venv --clear .build/lake; }
    "$python" -m pip install -q "${names[@]}" ||
        fail "could not install ${names[*]} from PyPI: it is needed once, with a network"
}

require_swift() {
    command -v swift >/dev/null ||
        fail "swift is not on the PATH: apt-get install swiftlang (Debian 13), or swift.org/install"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
