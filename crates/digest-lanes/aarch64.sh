#!/bin/sh
# Tests this crate on aarch64, emulated, where rustup has no such target: with Debian's rustc and standard library, its cross
# compiler for C, and QEMU. They are unpacked into a directory of their own; nothing is installed. The rest comes from where apt
# and cargo get things anyway.
#
# usage: aarch64.sh [DIRECTORY [SUITE [MIRROR]]]     SUITE must have a rustc that is new enough
set -eu
cd "$(dirname "$0")"
work=$(realpath -m "${1:-../../target/aarch64}")
suite=${2:-sid}
mirror=${3:-$(apt-cache policy gcc-aarch64-linux-gnu | awk '$2 ~ "://" { print $2; exit }')}
root=$work/root # programs of this machine's release
rust=$work/rust # rustc, and the libraries that it needs
mkdir -p "$root" "$rust" "$work/own/partial" "$work/new/partial" "$work/lists/partial"
: >"$work/status"
echo "deb $mirror $suite main" >"$work/sources.list"

fetch() { # DIRECTORY WHAT...
    into=$1
    shift
    apt-get -qq -y -o Debug::NoLocking=1 -o Dir::Cache::archives="$work/$into" --download-only "$@"
}
other="-o Dir::Etc::sourcelist=$work/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists=$work/lists
    -o Dir::State::status=$work/status -o APT::Architectures::=amd64 -o APT::Architectures::=arm64"

if [ ! -e "$work/done" ]; then
    fetch own install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user-static
    # shellcheck disable=SC2086 # several words
    {
        fetch new $other update
        fetch new $other --no-install-recommends install libstd-rust-dev:amd64
        (cd "$work/new" && apt-get -qq $other download rustc:amd64 libstd-rust-dev:arm64)
    }
    find "$work/own" -name '*.deb' -exec dpkg -x {} "$root" \;
    find "$work/new" -name '*.deb' -exec dpkg -x {} "$rust" \;
    touch "$work/done"
fi

cat >"$work/rustc" <<END
#!/bin/sh
exec $rust/usr/lib64/ld-linux-x86-64.so.2 --library-path $rust/usr/lib/x86_64-linux-gnu $rust/usr/bin/rustc --sysroot $rust/usr "\$@"
END
chmod +x "$work/rustc"
export PATH="$root/usr/bin:$PATH" LD_LIBRARY_PATH="$root/usr/lib/x86_64-linux-gnu"
export RUSTC="$work/rustc" CARGO_TARGET_DIR="$work/target"
export CC_aarch64_unknown_linux_gnu=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER=qemu-aarch64-static
# Static: the cross compiler's script for the C library names files where they would be installed.
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUSTFLAGS="-C target-feature=+crt-static -A linker-messages"
exec cargo test --target aarch64-unknown-linux-gnu --lib --tests
