// swift-tools-version:5.9
import Foundation
import PackageDescription

// The npm package contains only the sources.
let hasTests = FileManager.default.fileExists(atPath: Context.packageDirectory + "/Tests")

// On Linux, a target named `Metal` replaces Apple's framework. It must never exist on Apple systems, where it would
// hide the real one.
#if os(Linux)
let softwareDevice: [Target] = [
    .target(
        name: "MetalRuntime",
        exclude: ["metal", "apple"],
        cxxSettings: [.headerSearchPath("."), .unsafeFlags(["-O2", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])],
        linkerSettings: [.linkedLibrary("dl"), .linkedLibrary("pthread")]
    ),
    .target(name: "CGlibcCompat"),
    .target(name: "Metal", dependencies: ["MetalRuntime", "CGlibcCompat", "OrchardDarwin"]),
    .target(name: "OrchardDarwin"), .target(name: "OrchardCommonCrypto"),
    .target(name: "simd", dependencies: ["OrchardDarwin"]),
    .target(name: "QuartzCore", dependencies: ["OrchardDarwin"]),
    .target(name: "Orchardos", dependencies: ["CGlibcCompat", "OrchardDarwin"]),
    .target(name: "OSLog", dependencies: ["Orchardos"]),
    .target(name: "MetalKit", dependencies: ["CoreGraphics", "Metal", "simd"]),
    .target(name: "Accelerate", dependencies: ["CGlibcCompat", "OrchardDarwin", "simd"]),
    .target(name: "CoreGraphics", dependencies: ["OrchardCoreFoundation"]), .target(name: "OrchardCoreFoundation"),
    .target(name: "ImageIO", dependencies: ["CoreGraphics"]), .target(name: "UniformTypeIdentifiers"),
    .target(name: "OrchardSwiftUI", dependencies: ["CoreGraphics"]),
    .target(name: "IOSurface", dependencies: ["Metal", "OrchardCoreFoundation"]),
    .target(name: "CoreVideo", dependencies: ["CoreGraphics", "Metal", "OrchardCoreFoundation"]),
    .target(name: "IOKit", dependencies: ["OrchardCoreFoundation", "OrchardDarwin"]),
    .target(name: "MetalPerformanceShaders", dependencies: ["Metal"]),
    .target(name: "MetalPerformanceShadersGraph", dependencies: ["MetalPerformanceShaders"]),
]
// Apple's modules that programs import besides Metal, to the extent that compute programs use them.
let companions = [
    "OrchardDarwin", "OrchardCommonCrypto", "OrchardCoreFoundation", "OrchardSwiftUI", "Orchardos", "simd",
    "QuartzCore", "OSLog", "MetalKit", "MetalPerformanceShaders", "MetalPerformanceShadersGraph", "Accelerate",
    "CoreGraphics", "CoreVideo", "ImageIO", "IOKit", "IOSurface", "UniformTypeIdentifiers",
]
let softwareTests: [Target] = [
    .target(name: "CTestSupport", path: "Tests/CTestSupport"),
    .testTarget(name: "MetalRuntimeTests", dependencies: ["MetalRuntime", "CGlibcCompat", "CTestSupport"]),
    .testTarget(
        name: "MetalTests",
        dependencies: ["Metal", "MetalRuntime", "CTestSupport"] + companions.map { .init(stringLiteral: $0) }),
]
let metalDependency: [Target.Dependency] = ["Metal", "MetalRuntime"]
let metalProducts: [Product] = [
    .library(
        name: "Metal", type: .static,
        targets: ["Metal"] + companions)
]
#else
let softwareDevice: [Target] = []
let softwareTests: [Target] = []
let metalDependency: [Target.Dependency] = []
let metalProducts: [Product] = []
#endif

let tests: [Target] =
    [.testTarget(name: "OrchardMetalTests", dependencies: ["OrchardMetal"] + metalDependency)] + softwareTests

let package = Package(
    name: "Orchard",
    platforms: [.macOS(.v14)],
    products: [.library(name: "OrchardMetal", type: .dynamic, targets: ["OrchardMetal"])] + metalProducts,
    targets: [
        .target(name: "COrchard"),
        .target(
            name: "OrchardMetal",
            dependencies: ["COrchard"] + metalDependency,
            // Without CoreGraphics, MTLCreateSystemDefaultDevice returns no device to a command-line program such as
            // Bun.
            linkerSettings: [.linkedFramework("CoreGraphics", .when(platforms: [.macOS]))]
        ),
    ] + softwareDevice + (hasTests ? tests : []),
    cxxLanguageStandard: .cxx17
)
