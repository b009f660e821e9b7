// swift-tools-version: 6.0
import PackageDescription

/// Checks that both Swift 6.0.3 (Debian 13) and newer toolchains know or ignore.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// A C library: a module map and a shim header under Sources/C, and the Debian package it comes in.
func system(_ name: String, _ pkgConfig: String? = nil, debian: String? = nil) -> Target {
    .systemLibrary(
        name: name,
        path: "Sources/C/\(name)",
        pkgConfig: pkgConfig,
        providers: debian.map { [.apt([$0])] }
    )
}

func module(_ name: String, _ dependencies: [Target.Dependency], path: String? = nil) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "Sources/\(path ?? name)",
        swiftSettings: strict
    )
}

func tests(_ name: String, _ dependencies: [Target.Dependency]) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: dependencies,
        path: "Tests/\(name)Tests",
        swiftSettings: strict
    )
}

let package = Package(
    name: "waypost",
    products: [
        .executable(name: "waypost", targets: ["waypost"]),
        .executable(name: "waypost-receiver", targets: ["waypost-receiver"]),
        .executable(name: "waypost-bench", targets: ["waypost-bench"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.5.0"),
        .package(url: "https://github.com/swhitty/FlyingFox", from: "0.22.0"),
    ],
    targets: [
        system("CLinux"),
        system("CBlueZ", "bluez", debian: "libbluetooth-dev"),
        system("CGPSD", "libgps", debian: "libgps-dev"),
        system("CALSA", "alsa", debian: "libasound2-dev"),
        system("CSQLite", "sqlite3", debian: "libsqlite3-dev"),
        system("CCurl", "libcurl", debian: "libcurl4-openssl-dev"),
        system("CSpeexDSP", "speexdsp", debian: "libspeexdsp-dev"),
        system("COpus", "opus", debian: "libopus-dev"),
        system("COgg", "ogg", debian: "libogg-dev"),
        system("CFLAC", "flac", debian: "libflac-dev"),
        system("CZlib", "zlib", debian: "zlib1g-dev"),
        system("CZstd", "libzstd", debian: "libzstd-dev"),

        .target(
            name: "CTOML",
            path: "Sources/C/CTOML",
            linkerSettings: [.linkedLibrary("tomlplusplus")]
        ),

        // An archive, so that one of its functions can be replaced: see aac.c.
        .target(
            name: "CAAC",
            path: "Sources/C/CAAC",
            linkerSettings: [
                .unsafeFlags(["-Xlinker", "--wrap=voAACEnc_pow2_xy"]),
                .linkedLibrary(":libvo-aacenc.a"),
            ]
        ),

        .target(name: "CBaseline", dependencies: ["CSQLite"], path: "Sources/C/CBaseline"),

        module("Host", ["CLinux"]),
        module("Board", ["Host"]),
        module("Store", ["Host", "Board", "CSQLite", "CLinux"]),
        module(
            "Beacons",
            ["Host", "Board", "Store", "CBlueZ", "CLinux"],
            path: "Adapters/Beacons"
        ),
        module("Location", ["Host", "Board", "Store", "CGPSD"], path: "Adapters/Location"),
        module(
            "Audio",
            [
                "Host", "Board", "Store", "Containers", "CALSA", "COpus", "CFLAC", "CAAC",
                "CSpeexDSP",
                "CLinux",
            ],
            path: "Adapters/Audio"
        ),
        module("Containers", ["COgg"]),
        module("Upload", ["Host", "Board", "Store", "Containers", "CCurl", "CZlib", "CZstd"]),
        module(
            "Gateway",
            ["Host", "Board", "Store", "Beacons", "Location", "Audio", "Upload", "CLinux", "CTOML"]
        ),
        .executableTarget(
            name: "waypost",
            dependencies: [
                "Host", "Board", "Store", "Beacons", "Upload", "Gateway", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "waypost-receiver",
            dependencies: [
                "Store", "CZlib", "CZstd",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
                .product(name: "FlyingFox", package: "FlyingFox"),
                .product(name: "FlyingSocks", package: "FlyingFox"),
            ],
            swiftSettings: strict
        ),
        .executableTarget(
            name: "waypost-bench",
            dependencies: [
                "Host", "Board", "Store", "Beacons", "Upload", "Gateway", "CLinux", "CBaseline",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),

        tests("Host", ["Host"]),
        tests("Store", ["Store", "Host", "Board", "CSQLite"]),
        tests("Beacons", ["Beacons", "Store", "Host", "Board", "CBlueZ", "CLinux"]),
        tests("Location", ["Location", "Store", "Host", "Board", "CLinux"]),
        tests("Audio", ["Audio", "Store", "Upload", "Host", "Board", "Containers", "COpus"]),
        tests("Containers", ["Containers", "COpus", "COgg"]),
        tests("Upload", ["Upload", "Store", "Host", "Board", "CZlib", "CZstd", "CLinux"]),
        tests("Gateway", ["Gateway", "Upload", "Store", "Beacons", "Host", "Board", "CLinux"]),
        tests(
            "Receiver",
            ["waypost-receiver", "Upload", "Store", "Host", "Board", "CZlib", "CZstd"]
        ),
        tests(
            "System",
            ["waypost", "waypost-bench", "waypost-receiver", "Host", "Gateway", "Store"]
        ),
    ],
    swiftLanguageModes: [.v6]
)
