// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Saxpy",
    platforms: [.macOS(.v13)],
    products: [.library(name: "Kernels", targets: ["Kernels"]), .executable(name: "saxpy", targets: ["Tool"])],
    targets: [
        .target(name: "Shared"), .target(name: "Points"),
        .plugin(name: "Notes", capability: .buildTool()),
        .target(
            name: "Kernels", dependencies: ["Shared", "Points"],
            resources: [.process("Shaders"), .copy("weights.txt")], plugins: ["Notes"]),
        .executableTarget(name: "Tool", dependencies: ["Kernels", "Shared"]),
        .testTarget(name: "KernelsTests", dependencies: ["Kernels", "Points"]),
    ]
)
