# Makes a Debian 13 root to build in. Sourced by deploy/package and parts/arm64-tests, not run.
# shellcheck shell=bash disable=SC2016

# in_root ROOT [--net] COMMAND…: runs it there; with --net without a network. Its mounts end with it.
in_root() {
    local root=$1 spaces=(--mount --pid --fork --kill-child)
    shift
    if [ "$1" = --net ]; then spaces+=(--net); shift; fi
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare "${spaces[@]}" sh -ec 'mount -t proc proc "$1/proc"
        mount -t tmpfs tmpfs "$1/dev/shm"
        mount -t devpts -o newinstance,ptmxmode=666 devpts "$1/dev/pts"
        exec env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            LANG=C.UTF-8 TERM=dumb DEBIAN_FRONTEND=noninteractive ${TZ:+TZ="$TZ"} chroot "$@"' sh "$root" "$@"
}

# make_root ROOT ARCH: makes a root of this machine's architecture that can also have packages of ARCH.
make_root() {
    [ ! -e "$1/build-root" ] || return 0
    install_packages mmdebstrap
    say "making a Debian 13 root in $1 (a minute)"
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    local architectures
    architectures=$(dpkg --print-architecture)
    [ "$2" = "$architectures" ] || architectures+=,$2
    # Without manual pages: some packages have different ones for two architectures, and could not both be installed.
    mmdebstrap --quiet --mode=root --variant=buildd --architectures="$architectures" --include=debhelper,lintian \
        --aptopt='APT::Install-Recommends "false"' --dpkgopt='path-exclude=/usr/share/man/*' trixie "$1"
    touch "$1/build-root"
}

# install_build_dependencies ROOT ARCH: installs the build dependencies of /build/waypost/debian/control.
install_build_dependencies() {
    local cross=() compiler=
    if [ "$2" != "$(dpkg --print-architecture)" ]; then
        cross=(--host-architecture "$2" --build-profiles cross)
        compiler=crossbuild-essential-$2
    fi
    cp -L /etc/resolv.conf "$1/etc/"
    say "installing what the build needs (some minutes the first time)"
    in_root "$1" sh -ec 'cd /build/waypost
        exec >/var/log/build-dep
        compiler=$1
        shift
        apt-get -qq update
        if [ -n "$compiler" ]; then apt-get -qq -y install "$compiler"; fi
        apt-get -qq -y build-dep "$@" .' sh "$compiler" "${cross[@]}" ||
        { tail -n 20 "$1/var/log/build-dep"; fail "the build's packages cannot be installed"; }
    if [ ${#cross[@]} -gt 0 ] && [ ! -e "$1/opt/swift-$2/swift" ]; then unpack_swift "$1" "$2"; fi
}

# Unpacks the other architecture's Swift libraries, to link with and to run on: its packages and this machine's conflict.
unpack_swift() {
    in_root "$1" sh -ec 'cd /var/cache/apt/archives
        arch=$1
        rm -rf "/opt/swift-$arch"
        mkdir -p "/opt/swift-$arch.part"
        unpack() {
            package=$1
            shift
            apt-get -qq -o APT::Sandbox::User=root download "$package:$arch"
            dpkg-deb --fsys-tarfile "$package"_*_"$arch".deb | tar -x -C "/opt/swift-$arch.part" --strip-components=5 "$@"
            rm "$package"_*_"$arch".deb
        }
        lib=./usr/libexec/swift/lib
        unpack swiftlang "$lib/swift_static" "$lib/swift" "$lib/clang"
        unpack libswiftlang "$lib/swift"
        mv "/opt/swift-$arch.part" "/opt/swift-$arch"' sh "$2"
}

# Prints one digest of a folder's content; follows links.
content_sum() {
    (cd "$1" && find -L . -name .git -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum) | sha256sum |
        cut -d ' ' -f 1
}

# fetch_sources FOLDER: fetches the Swift packages with the versions and digests of deploy/debian/sources into it.
fetch_sources() {
    local url version sum folder
    while read -r url version sum; do
        folder=$1/$(basename "$url")
        grep -qF "\"$url\", exact: \"$version\"" Package.swift || fail "Package.swift names another version of $url than deploy/debian/sources: $version"
        if [ -d "$folder" ] && [ "$(content_sum "$folder")" = "$sum" ]; then continue; fi
        say "fetching $url $version"
        rm -rf "$folder"
        git -c advice.detachedHead=false clone -q --depth 1 --branch "$version" "$url" "$folder" 2>/dev/null ||
            fail "$url has no version $version that can be fetched"
        rm -rf "$folder/.git"
        [ "$(content_sum "$folder")" = "$sum" ] ||
            fail "$url $version holds other files than deploy/debian/sources says: $(content_sum "$folder")"
    done < <(grep -v '^#' deploy/debian/sources)
}

# copy_tree FOLDER: copies tracked and new files into it.
copy_tree() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    git -c safe.directory='*' ls-files -z --cached --others --exclude-standard |
        xargs -0 -I{} sh -c 'if test -e "$1"; then printf "%s\0" "$1"; fi' sh {} |
        tar --null -T - -cf - | tar -C "$1" --no-same-owner -xf -
}

# weigh ROOT ARCH: prints what apt would install for /build/out on a Debian 13 of priority "important", and its size.
weigh() {
    in_root "$1" sh -ec '
        deb=$(echo /build/out/waypost_*.deb)
        apt="apt-get -s -o Dir::State::status=/dev/null -o APT::Architecture=$1 -o APT::Architectures=$1"
        base="?or(?priority(required),?priority(important),?essential)"
        brings() { $apt install "$base" "$@" | sed -n "s/^Inst \([^ ]*\) (\([^ ]*\).*/\1 \2/p" | sort; }
        brings --no-install-recommends >/tmp/base
        # Installed-Size is in KiB.
        size() { while read -r name version; do
            if [ "$name" = waypost ]; then dpkg-deb -f "$deb" Installed-Size
            else apt-cache show "$name:$ARCH=$version" "$name:all=$version" 2>/dev/null | sed -n "s/^Installed-Size: //p" | head -n 1
            fi; done |
            awk "{ kB += \$1 } END { printf \"%d packages, %.1f MB installed\", NR, kB * 1.024e-3 }"; }
        ARCH=$1
        for package in /build/out/waypost_*.deb /build/out/waypost-receiver_*.deb; do
            printf "%s: %.1f MB, %.1f MB installed\n" "$(basename "$package")" "$(stat -c %s "$package" | awk "{print \$1 / 1e6}")" \
                "$(dpkg-deb -f "$package" Installed-Size | awk "{print \$1 * 1.024e-3}")"
        done
        brings --no-install-recommends "$deb" >/tmp/more
        echo "waypost and what it depends on: $(comm -13 /tmp/base /tmp/more | size) (goal: 40 MB)"
        brings -o APT::Install-Recommends=true >/tmp/base
        brings -o APT::Install-Recommends=true "$deb" >/tmp/more
        echo "with what it recommends:        $(comm -13 /tmp/base /tmp/more | size)"' sh "$2"
}
