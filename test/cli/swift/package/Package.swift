// swift-tools-version:5.9
import PackageDescription

let package = Package(
    name: "Saxpy",
    platforms: [.macOS(.v13)],
    products: [.library(name: "Kernels", targets: ["Kernels"]), .executable(name: "saxpy", targets: ["Tool"])],
    targets: [
        .target(name: "Shared"),
        .target(
            name: "Kernels", dependencies: ["Shared"],
            resources: [.process("Shaders"), .copy("weights.txt")]),
        .executableTarget(name: "Tool", dependencies: ["Kernels"]),
        .testTarget(name: "KernelsTests", dependencies: ["Kernels"]),
    ]
)
