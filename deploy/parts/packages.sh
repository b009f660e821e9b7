# Debian packages: what each script needs, and how it gets there. Sourced by common.sh, not run.
# shellcheck shell=bash disable=SC2034  # the lists are used by the scripts

# Programs of others that were unpacked beside the build come after the installed ones.
servers=$(readlink -m "${BASH_SOURCE[0]%/*}/../..")/.build/servers
export PATH=$PATH:/usr/sbin:/sbin:$servers/bin

# To build; for the demo beside that; for the tests.
build_packages=(
    g++ pkg-config libbluetooth-dev libgps-dev libasound2-dev libspeexdsp-dev libsqlite3-dev
    libcurl4-openssl-dev libssl-dev libopus-dev libogg-dev libflac-dev libvo-aacenc-dev zlib1g-dev libzstd-dev
    libtomlplusplus-dev libmicrohttpd-dev libqrencode-dev scdoc
)
# gcc and libasound2-dev: the demo's microphone is a plug-in for ALSA, Tests/FieldFaults/soundfaults.c.
demo_packages=(curl espeak-ng gcc git libasound2-dev libc6-dev opus-tools python3 python3-venv)
tool_packages=(
    opus-tools flac ffmpeg python3 python3-venv openssl curl mandoc gpsbabel python3-prometheus-client e2fsprogs git
    dbus-daemon tzdata minisign spin nodejs php-cli php-sqlite3
)
# Programs whose packages start services. They are unpacked into .build/servers, not installed.
demo_servers=(gpsd)
test_servers=(gpsd gpsdctl gpsfake nginx caddy mosquitto mosquitto_passwd mosquitto_pub mosquitto_sub)
# The package of each; with ! it is unpacked without what it depends on (gpsfake does not need GTK).
declare -A package_of=(
    [gpsd]=gpsd [gpsdctl]=gpsd [gpsfake]="gpsd-clients! python3-gps" [nginx]=nginx [caddy]=caddy [influxd]=influxdb
    [mosquitto]=mosquitto [mosquitto_passwd]=mosquitto [mosquitto_pub]=mosquitto-clients [mosquitto_sub]=mosquitto-clients
)
# Packages for a kernel in QEMU, and for tests of its Bluetooth and sound.
emulator_packages=(
    qemu-system-x86 busybox-static kmod python3 python3-venv
    bluez dbus rfkill alsa-utils libcap2-bin systemd udev gpsd gpsd-clients dosfstools mtools
)

# True if a package is installed, under its own name or as one that another provides (libasound2 and a few others
# were renamed on newer Debians). No pipe into grep -q: that ends the writer early, and pipefail calls it an error.
has_package() {
    local provided
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" != installed ] || return 0
    provided=$(dpkg-query -W -f '${db:Status-Status}, ${Provides}\n' | sed -n 's/^installed, //p' |
        tr ',' '\n' | sed 's/^ *//; s/[ :(].*//' | sort -u)
    [[ $'\n'$provided$'\n' == *$'\n'"$1"$'\n'* ]]
}

# Sets `missing` to those of the packages that are not installed.
find_missing() {
    local package
    missing=()
    for package in $(printf '%s\n' "$@" | sort -u); do has_package "$package" || missing+=("$package"); done
}

# Sets `absent` to those of the programs that are neither installed nor unpacked.
find_absent() {
    local program
    absent=()
    for program in "$@"; do [ -n "$(type -P "$program")" ] || absent+=("$program"); done
}

# Prints the packages of programs, one per line.
packages_of() {
    local program
    # shellcheck disable=SC2086  # several of one program
    for program in "$@"; do printf '%s\n' ${package_of[$program]}; done | sort -u
}

# As root: installs packages. Nothing is removed, and no service is started.
# A policy-rc.d forbids that while this shell runs; later, should it be killed, the file removes itself.
install_as_root='
policy=/usr/sbin/policy-rc.d
started() { cut -d " " -f 22 /proc/$1/stat 2>/dev/null; }
if [ ! -e $policy ] && [ ! -L $policy ]; then
    trap "rm -f $policy" EXIT
    trap "exit 1" HUP INT TERM
    printf "%s\n" "#!/bin/sh" "[ \"\$(cut -d \" \" -f 22 /proc/$$/stat 2>/dev/null)\" != $(started $$) ] || exit 101" \
        "rm -f $policy" >$policy
    chmod 755 $policy
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq && apt-get install -y -qq --no-install-recommends --no-remove "$@" >/dev/null'

# Installs those of the packages that are missing; needs no rights if none is.
install_packages() {
    local missing root=()
    find_missing "$@"
    [ ${#missing[@]} -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "these packages are needed: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || fail "sudo is missing; run as root: apt-get install --no-install-recommends ${missing[*]}"
        root=(sudo)
    fi
    say "installing ${missing[*]} (a minute or two)"
    "${root[@]}" sh -c "$install_as_root" sh "${missing[@]}" ||
        fail "apt-get could not install ${missing[*]}; its reason is above"
}

# apt-get with package lists and archives of its own: asking and fetching need no rights, and change nothing.
own_apt() {
    local folder=$servers/apt
    mkdir -p "$folder/lists/partial" "$folder/archives/partial"
    apt-get -qq -o APT::Sandbox::User=root -o Dir::State::Lists="$folder/lists" -o Dir::Cache="$folder" "$@"
}

# Prints `FILE SIZE` of each archive that own_apt with these words would fetch.
planned() { own_apt --print-uris "$@" | sed -nE "s/^'[^']*' ([^ ]+) ([0-9]+)( .*)?$/\1 \2/p"; }

# The same for the programs' packages and what these depend on.
planned_servers() {
    local packages alone
    mapfile -t packages < <(packages_of "$@")
    mapfile -t alone < <(printf '%s\n' "${packages[@]}" | sed -n 's/!$//p')
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -v '!$')
    planned install -y --no-install-recommends "${packages[@]}"
    [ ${#alone[@]} -eq 0 ] || planned download "${alone[@]}"
}

# Unpacks those of the programs that are absent into .build/servers/root, and writes a script for each into
# .build/servers/bin that runs it with its own libraries.
unpack_servers() {
    local absent names program path
    find_absent "$@"
    [ ${#absent[@]} -gt 0 ] || return 0
    say "unpacking ${absent[*]} into .build/servers"
    # Its hooks may need root; the lists count.
    [ -d "$servers/apt/lists" ] || own_apt update || true
    # name_version_arch.deb; an architecture is named only if it is another one.
    mapfile -t names < <(planned_servers "${absent[@]}" |
        sed -E "s/ .*//; s/_[^_]*_(all|$(dpkg --print-architecture))\.deb$//; s/_[^_]*_(.*)\.deb$/:\1/" | sort -u)
    [ ${#names[@]} -gt 0 ] || fail "apt-get does not know the packages of ${absent[*]}; is there a network?"
    mkdir -p "$servers/root" "$servers/bin" "$servers/archives"
    (cd "$servers/archives" && own_apt download "${names[@]}") || fail "cannot fetch ${names[*]}; is there a network?"
    for path in "$servers"/archives/*.deb; do dpkg-deb -x "$path" "$servers/root"; done
    rm -rf "$servers/archives" "$servers/apt"
    # The Python module of gpsfake looks for its library beside itself.
    mkdir -p "$servers/root/usr/lib/python3/dist-packages"
    for path in "$servers"/root/usr/lib/*-linux-gnu*/libgpsdpacket.so.*.*; do
        [ ! -e "$path" ] || cp "$path" "$servers/root/usr/lib/python3/dist-packages/"
    done
    for program in "${absent[@]}"; do
        # One of the two folders may be missing.
        path=$(cd "$servers/root" && find usr/sbin usr/bin -name "$program" 2>/dev/null | head -n 1) || true
        [ -n "$path" ] || fail "the packages of $program came without it"
        cat >"$servers/bin/$program" <<SCRIPT
#!/bin/sh
servers=\$(cd "\$(dirname "\$0")/.." && pwd)
for folder in "\$servers"/root/usr/lib/*-linux-gnu* "\$servers"/root/lib/*-linux-gnu*; do
    LD_LIBRARY_PATH=\$folder\${LD_LIBRARY_PATH:+:\$LD_LIBRARY_PATH}
done
export LD_LIBRARY_PATH PYTHONPATH="\$servers/root/usr/lib/python3/dist-packages"
export PATH="\$PATH:/usr/sbin:\$servers/bin"
exec "\$servers/root/$path" "\$@"
SCRIPT
        chmod 755 "$servers/bin/$program"
    done
}

# provide PACKAGE… -- PROGRAM…: says what is missing and how large it is, asks, and installs or unpacks it; with yes=yes
# it does not ask.
provide() {
    local packages=() missing absent answer size kept
    while [ "$1" != -- ]; do packages+=("$1"); shift; done
    shift
    find_missing "${packages[@]}"
    find_absent "$@"
    [ $((${#missing[@]} + ${#absent[@]})) -gt 0 ] || return 0
    command -v apt-get >/dev/null || fail "this needs Debian's apt-get, or these packages: ${missing[*]} ${absent[*]}"
    if [ "$yes" != yes ] && { [ ! -t 0 ] || [ ! -t 1 ]; }; then
        fail "missing: ${missing[*]} ${absent[*]}; to install them without a question, add --yes"
    fi
    say "asking apt-get what is missing"
    # Its hooks may need root; the lists count.
    own_apt update >/dev/null 2>&1 || true
    kept=$([ ${#missing[@]} -eq 0 ] || planned install -y --no-install-recommends --no-remove "${missing[@]}") ||
        fail "apt-get cannot install ${missing[*]} (it may not remove a package); its reason is above"
    size=$({ printf '%s\n' "$kept"; [ ${#absent[@]} -eq 0 ] || planned_servers "${absent[@]}"; } | sort -u |
        awk '{ kB += $2 / 1e3 } END { printf "%d packages, %.0f MB", NR, kB / 1e3 + 0.5 }')
    [ ${#missing[@]} -eq 0 ] || printf 'To install:  %s\n' "${missing[*]}" | fold -sw 78
    [ ${#absent[@]} -eq 0 ] || printf 'To unpack:   %s (into .build/servers, not installed)\n' "${absent[*]}"
    echo "Download:    $size, with what these depend on"
    echo "Nothing is removed and no service is started."
    if [ "$yes" != yes ]; then
        read -rp "Continue? [Y/n] " answer
        [[ $answer =~ ^([yY].*)?$ ]] || fail "stopped; nothing was installed"
    fi
    install_packages "${missing[@]}"
    unpack_servers "${absent[@]}"
}
