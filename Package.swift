// swift-tools-version: 6.0
import PackageDescription

/// Upcoming features that Swift 6.0.3 (Debian 13) and newer toolchains know or ignore.
let strict: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
]

/// Disables the implicit import of Swift's regular expressions: a file that used one of their text
/// functions would link 1.4 MB into the program.
let withoutRegex = SwiftSetting.unsafeFlags([
    "-Xfrontend", "-disable-implicit-string-processing-module-import",
])

/// For code that runs per command, reload or batch, never per record: optimised for size.
let small = SwiftSetting.unsafeFlags(["-Osize"], .when(configuration: .release))

/// A C library: a module map and a shim header under Sources/C, and its Debian package.
func system(_ name: String, _ pkgConfig: String? = nil, debian: String? = nil) -> Target {
    .systemLibrary(
        name: name,
        path: "Sources/C/\(name)",
        pkgConfig: pkgConfig,
        providers: debian.map { [.apt([$0])] }
    )
}

func module(
    _ name: String,
    _ dependencies: [Target.Dependency],
    path: String? = nil,
    exclude: [String] = ["README.md"],
    small isSmall: Bool = false
) -> Target {
    .target(
        name: name,
        dependencies: dependencies,
        path: "Sources/\(path ?? name)",
        exclude: exclude,
        swiftSettings: strict + [withoutRegex] + (isSmall ? [small] : [])
    )
}

func tests(
    _ name: String,
    _ dependencies: [Target.Dependency],
    support: [Target.Dependency] = ["Support"]
) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: dependencies + support,
        path: "Tests/\(name)Tests",
        swiftSettings: strict
    )
}

/// The parts of the server, for tests that use most of them.
let server: [Target.Dependency] = [
    "ServerBase", "ServerWeb", "ServerArchive", "ServerIndex", "ServerExports", "ServerPages",
    "ServerWiring",
]

/// The targets of Tests/Fuzz: functions that parse bytes from outside, each with its corpus.
///
/// Ordinary tests by default; with WAYPOST_FUZZ set (deploy/fuzz), one program under libFuzzer.
let fuzzing: [Target] = {
    let gateway: [Target.Dependency] = [
        "Beacons", "Location", "AudioFiles", "AudioTags", "Upload", "HTTP", "MQTT", "Remote",
        "Minisign", "Setup", "Status", "Intake", "Field", "Daemon", "Queue", "Records", "Proxy",
        "Listen", "Audio", "Schedule", "StatusBoard", "Configuration", "Host", "JSON", "Support",
        "SourceSupport", "FuzzSupport",
    ]
    let receiver: [Target.Dependency] = server + ["Host", "SQLite", "Support", "FuzzSupport"]
    let support = Target.target(
        name: "FuzzSupport",
        path: "Tests/Fuzz/Support",
        swiftSettings: strict
    )
    guard Context.environment["WAYPOST_FUZZ"] != nil else {
        return [
            support,
            .testTarget(
                name: "FuzzTests",
                dependencies: gateway,
                path: "Tests/Fuzz",
                exclude: ["corpus", "Driver", "Receiver", "Support"],
                swiftSettings: strict
            ),
            .testTarget(
                name: "ReceiverFuzzTests",
                dependencies: receiver,
                path: "Tests/Fuzz/Receiver",
                swiftSettings: strict
            ),
        ]
    }
    return [
        support,
        .executableTarget(
            name: "waypost-fuzz",
            dependencies: gateway + server + ["SQLite"],
            path: "Tests/Fuzz",
            exclude: [
                "corpus", "Support", "CorpusTests.swift", "Receiver/ReceiverCorpusTests.swift",
            ],
            swiftSettings: strict
        ),
    ]
}()

/// The rooms whose tests are built, of WAYPOST_ROOMS="Queue Upload"; empty: all.
let rooms = Context.environment["WAYPOST_ROOMS"]?.split(separator: " ").map(String.init) ?? []

/// The benchmarks: built only with WAYPOST_ROOMS=Bench, for no test of the programs needs them.
let benchmarks: [Target] = [
    .executableTarget(
        name: "waypost-bench",
        dependencies: [
            "Host", "JSON", "StatusBoard", "Configuration", "SQLite", "Queue", "Records", "Audio",
            "Beacons",
            "Upload", "HTTP", "Daemon", "CLinux",
            "CBaseline",
            .product(name: "ArgumentParser", package: "swift-argument-parser"),
        ],
        path: "Tests/Bench",
        exclude: [
            "air", "all", "beside.json", "boards", "card.py", "drain", "figures", "figures.json",
            "gateway.py",
            "idle", "ingest", "instructions", "mqtt", "mqtt.json", "page", "peers", "writes",
            "rendering.py",
            "rows.py", "wire",
            "test_figures.py", "Tests",
        ],
        swiftSettings: strict
    ),
    .testTarget(
        name: "BenchTests",
        dependencies: ["waypost", "waypost-bench", "waypost-receiver", "Support"],
        path: "Tests/Bench/Tests",
        swiftSettings: strict
    ),
]

/// Returns a package dependency; from a local folder if WAYPOST_SOURCES is set (deploy/package).
///
/// `deploy/debian/sources` names the same version with its checksum.
func fetched(_ url: String, exact version: Version) -> Package.Dependency {
    let name = url.split(separator: "/").last ?? ""
    guard let folder = Context.environment["WAYPOST_SOURCES"] else {
        return .package(url: url, exact: version)
    }
    return .package(path: "\(folder)/\(name)")
}

let package = Package(
    name: "waypost",
    products: [
        .executable(name: "waypost", targets: ["waypost"]),
        .executable(name: "waypost-receiver", targets: ["waypost-receiver"]),
    ],
    dependencies: [
        fetched("https://github.com/apple/swift-argument-parser", exact: "1.8.2")
    ],
    targets: [
        system("CLinux"),
        // Only its headers are used: no function of the library is called.
        system("CBlueZ", debian: "libbluetooth-dev"),
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
        system("CCrypto", "libcrypto", debian: "libssl-dev"),
        system("CMicrohttpd", "libmicrohttpd", debian: "libmicrohttpd-dev"),
        system("CQRencode", "libqrencode", debian: "libqrencode-dev"),
        system("CSystemd"),

        .target(
            name: "CTOML",
            path: "Sources/C/CTOML",
            linkerSettings: [.linkedLibrary("tomlplusplus")]
        ),

        // Linked as an archive, so that one of its functions can be replaced: see aac.c.
        .target(
            name: "CAAC",
            path: "Sources/C/CAAC",
            linkerSettings: [
                .unsafeFlags(["-Xlinker", "--wrap=voAACEnc_pow2_xy"]),
                .linkedLibrary(":libvo-aacenc.a"),
            ]
        ),

        .target(name: "CBaseline", dependencies: ["CSQLite", "CAAC"], path: "Sources/C/CBaseline"),

        module("Host", ["CLinux"]),
        module("JSON", ["Host"]),
        module("StatusBoard", ["Host"], path: "Status/Board", exclude: [], small: true),
        module("Configuration", ["Host", "CTOML"], small: true),
        module("Schedule", ["Host", "Configuration"], small: true),
        module("SQLite", ["CSQLite"]),
        module("Records", ["Host", "JSON"]),
        module(
            "Queue",
            [
                "Host", "StatusBoard", "Configuration", "SQLite", "Records", "CLinux",
                "CZlib",
            ]
        ),
        module(
            "Beacons",
            ["Host", "StatusBoard", "Configuration", "Records", "CBlueZ", "CLinux", "CCrypto"],
            path: "Adapters/Beacons"
        ),
        module(
            "Location",
            ["Host", "StatusBoard", "Configuration", "Records", "CGPSD"],
            path: "Adapters/Location",
            small: true
        ),
        module(
            "Proxy",
            [
                "Host", "StatusBoard", "Configuration", "Records", "CLinux", "CCrypto", "CSystemd",
            ],
            small: true
        ),
        module(
            "Audio",
            [
                "Host", "StatusBoard", "Configuration", "Records", "AudioFiles", "CALSA",
                "COpus", "CFLAC", "CAAC", "CSpeexDSP", "CLinux",
            ],
            path: "Adapters/Audio"
        ),
        module("AudioFiles", ["Host", "COgg"]),
        module("AudioTags", ["Host"], small: true),
        module(
            "HTTP",
            ["Host", "JSON", "CLinux", "CCurl", "CCrypto", "CZlib", "CZstd"],
            small: true
        ),
        module("MQTT", ["Host", "Configuration", "HTTP"], small: true),
        module(
            "Live",
            ["Host", "JSON", "StatusBoard", "Configuration", "Records", "HTTP", "MQTT"],
            small: true
        ),
        module(
            "Upload",
            [
                "Host", "JSON", "StatusBoard", "Configuration", "SQLite", "Queue", "Records",
                "AudioFiles", "HTTP", "CCurl",
            ],
            small: true
        ),
        module("Minisign", ["Host", "CCrypto"], small: true),
        module(
            "Remote",
            ["Host", "JSON", "Configuration", "Queue", "Records", "Minisign"],
            small: true
        ),
        // The whole configuration of a device and its files.
        module(
            "Setup",
            [
                "Host", "Configuration", "Queue", "Records", "Beacons",
                "Location", "Audio", "Proxy", "Upload", "HTTP", "MQTT", "Live", "Schedule",
                "Remote", "CLinux",
            ],
            small: true
        ),
        module(
            "Status",
            [
                "Host", "JSON", "StatusBoard", "Configuration", "Queue", "Records", "Audio",
                "Proxy", "Upload", "Schedule", "Remote", "Setup", "CLinux",
            ],
            exclude: ["README.md", "Board"],
            small: true
        ),
        module(
            "Intake",
            [
                "Host", "JSON", "Queue", "Records", "HTTP", "MQTT",
                "Setup", "Status", "CLinux",
            ],
            small: true
        ),
        module(
            "Listen",
            [
                "Host", "JSON", "StatusBoard", "Records", "Audio", "AudioFiles",
                "Setup", "Status", "Intake", "CLinux",
            ],
            small: true
        ),
        module(
            "Field",
            [
                "Host", "JSON", "StatusBoard", "Configuration", "Queue", "Records", "Beacons",
                "Location", "Audio", "Proxy", "Upload", "HTTP", "MQTT", "AudioFiles", "AudioTags",
                "Schedule", "Setup", "Status", "COpus", "CLinux",
            ],
            small: true
        ),
        module(
            "Daemon",
            [
                "Host", "JSON", "StatusBoard", "Configuration", "Queue", "Records", "Beacons",
                "Location", "Audio", "Proxy", "Upload", "HTTP", "MQTT", "Live", "Schedule",
                "Remote", "Setup", "Status", "Intake", "Listen", "CLinux",
            ],
            small: true
        ),
        // The server: each target uses only those before it.
        module(
            "ServerBase",
            ["Host", "JSON", "SQLite", "CLinux", "CCrypto"],
            path: "Server/Base",
            exclude: []
        ),
        module(
            "ServerWeb",
            ["ServerBase", "Host", "SQLite", "HTTP", "CMicrohttpd", "CCrypto"],
            path: "Server/Web",
            exclude: []
        ),
        module(
            "ServerArchive",
            [
                "ServerBase", "ServerWeb", "Host", "JSON", "Configuration", "SQLite", "HTTP",
                "CLinux", "CZlib", "CZstd",
            ],
            path: "Server/Archive",
            exclude: []
        ),
        module(
            "ServerConformance",
            ["HTTP", "Host"],
            path: "Server/Conformance",
            exclude: []
        ),
        module(
            "ServerIndex",
            ["ServerBase", "ServerWeb", "ServerArchive", "Host", "SQLite", "CLinux"],
            path: "Server/Index",
            exclude: []
        ),
        module(
            "ServerExports",
            [
                "ServerBase", "ServerWeb", "ServerArchive", "ServerIndex", "Host", "JSON", "SQLite",
                "HTTP", "AudioTags", "CLinux",
            ],
            path: "Server/Exports",
            exclude: []
        ),
        module(
            "ServerPages",
            [
                "ServerBase", "ServerWeb", "ServerArchive", "ServerIndex", "Host", "JSON", "SQLite",
                "CQRencode",
            ],
            path: "Server/Pages",
            exclude: ["Assets"]
        ),
        module(
            "ServerWiring",
            [
                "ServerBase", "ServerWeb", "ServerArchive", "ServerIndex", "ServerExports",
                "ServerPages", "Host",
            ],
            path: "Server/Wiring",
            exclude: []
        ),
        .executableTarget(
            name: "waypost",
            dependencies: [
                "Host", "JSON", "StatusBoard", "Configuration", "Queue", "Records", "Beacons",
                "Audio", "AudioTags", "Schedule", "Upload", "Setup", "Status", "Intake", "Listen",
                "Field", "Remote",
                "Daemon", "CLinux",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            exclude: ["README.md"],
            swiftSettings: strict + [small]
        ),
        .executableTarget(
            name: "waypost-receiver",
            dependencies: [
                "ServerBase", "ServerWeb", "ServerArchive", "ServerIndex", "ServerExports",
                "ServerPages", "ServerWiring", "ServerConformance", "HTTP", "Host", "JSON",
                "Configuration", "AudioTags", "Minisign",
                .product(name: "ArgumentParser", package: "swift-argument-parser"),
            ],
            swiftSettings: strict
        ),
        .target(
            name: "Support",
            dependencies: ["Host", "CLinux"],
            path: "Tests/Support",
            swiftSettings: strict
        ),

        .target(
            name: "SourceSupport",
            dependencies: ["Records", "Host", "Support"],
            path: "Tests/SourceSupport",
            swiftSettings: strict
        ),
        .target(
            name: "QueueSupport",
            dependencies: ["Queue", "Records", "Host", "Support"],
            path: "Tests/QueueSupport",
            swiftSettings: strict
        ),

        // The base of the simulated world: for tests, never for the daemon.
        .target(name: "CSimulatedDisk", dependencies: ["CSQLite"], path: "Tests/Simulation/CDisk"),
        .target(
            name: "SimulatedDisk",
            dependencies: ["CSimulatedDisk"],
            path: "Tests/Simulation/Disk",
            swiftSettings: strict
        ),
        .target(
            name: "Simulation",
            dependencies: [
                "SimulatedDisk", "Live", "Configuration", "Upload", "HTTP", "Queue", "Records",
                "Remote", "SQLite", "Host", "StatusBoard",
            ],
            path: "Tests/Simulation/World",
            swiftSettings: strict
        ),
        .executableTarget(
            name: "waypost-simulate",
            dependencies: ["Simulation"],
            path: "Tests/Simulation/Command",
            swiftSettings: strict
        ),

        tests(
            "Simulation",
            ["Simulation", "SimulatedDisk", "QueueSupport", "Queue", "Records", "Host"]
        ),
        tests("SimulatedDisk", ["SimulatedDisk", "CSQLite"], support: []),
        tests("Host", ["Host", "JSON"]),
        tests("StatusBoard", ["StatusBoard", "Host"], support: []),
        tests("Schedule", ["Schedule", "Configuration", "Host"]),
        tests(
            "Queue",
            [
                "QueueSupport", "Queue", "Records", "SQLite", "Host", "JSON", "StatusBoard",
                "CSQLite",
            ]
        ),
        tests(
            "Beacons",
            [
                "Beacons", "SourceSupport", "Configuration", "Queue", "Records", "Host",
                "StatusBoard", "CBlueZ",
                "CLinux",
            ]
        ),
        tests("Listen", ["Listen", "Records", "Host", "StatusBoard"]),
        tests("Proxy", ["Proxy", "Records", "Host", "StatusBoard", "CLinux", "CSystemd"]),
        tests(
            "Location",
            [
                "Location", "SourceSupport", "Configuration", "Queue", "Records", "Host",
                "StatusBoard", "CLinux",
            ]
        ),
        tests(
            "Audio",
            [
                "Audio", "SourceSupport", "Configuration", "QueueSupport", "Queue", "Records",
                "Upload", "Host",
                "JSON",
                "StatusBoard", "AudioFiles", "COpus",
            ]
        ),
        tests("AudioFiles", ["AudioFiles", "COgg"], support: []),
        tests("AudioTags", ["AudioTags", "AudioFiles", "Host"]),
        tests(
            "Upload",
            [
                "Upload", "HTTP", "Configuration", "QueueSupport", "Queue", "Records", "Host",
                "JSON",
                "StatusBoard", "CZlib", "CZstd", "CLinux",
            ]
        ),
        tests("MQTT", ["MQTT", "HTTP", "Host"]),
        tests("Minisign", ["Minisign", "Host"]),
        tests(
            "Remote",
            ["Remote", "QueueSupport", "Queue", "Records", "Host", "SQLite", "Minisign"]
        ),
        tests(
            "Live",
            [
                "Live", "MQTT", "Configuration", "Records", "JSON", "Host", "StatusBoard",
                "Beacons", "SourceSupport",
            ]
        ),
        tests(
            "Gateway",
            [
                "Setup", "Status", "Intake", "Field", "Daemon", "Configuration", "Upload",
                "HTTP", "MQTT", "Live", "QueueSupport", "Queue", "Records", "Beacons", "Location",
                "Audio", "AudioTags", "Remote", "Host", "JSON", "Schedule", "StatusBoard", "CLinux",
            ]
        ),
        .target(
            name: "ReceiverSupport",
            dependencies: ["Support", "CZlib", "CZstd"],
            path: "Tests/ReceiverSupport",
            swiftSettings: strict
        ),
        tests(
            "Receiver",
            server + ["waypost-receiver", "ReceiverSupport", "Host"]
        ),
        tests("ServerPages", server + ["waypost-receiver", "ReceiverSupport", "Host"]),
        tests("ServerExports", server + ["waypost-receiver", "ReceiverSupport", "Host"]),
        // Tests the gateway's uploader against the real receiver.
        tests(
            "Delivery",
            [
                "waypost-receiver", "ServerArchive", "ServerBase", "ServerWeb", "ReceiverSupport",
                "Intake",
                "Setup", "Daemon", "Configuration",
                "Upload", "HTTP", "QueueSupport", "Queue", "Records", "Host", "StatusBoard",
            ]
        ),
        tests(
            "System",
            [
                "waypost", "waypost-receiver", "Host", "Daemon", "QueueSupport", "Queue", "Records",
            ]
        ),
    ] + fuzzing + (rooms.contains("Bench") ? benchmarks : []),
    swiftLanguageModes: [.v6]
)

// Only these rooms' tests and what they need, for a short build.
if !rooms.isEmpty {
    var open = rooms.map { "\($0)Tests" }
    var needed: Set<String> = []
    while let name = open.popLast() {
        guard needed.insert(name).inserted else { continue }
        for dependency in package.targets.first(where: { $0.name == name })?.dependencies ?? [] {
            if case .byNameItem(let next, _) = dependency { open.append(next) }
        }
    }
    package.targets.removeAll { !needed.contains($0.name) }
    package.products = []
}
