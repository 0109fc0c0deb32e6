import Foundation
import XCTest

/// A public declaration of a module, as listed in the compiler's symbol graph.
struct PublicSymbol {
    let kind: String
    let path: [String]
    let declaration: String
    var owner: String { path.count == 1 ? "-" : path.dropLast().joined(separator: ".") }
}

/// The folder of the Swift package, in which the tests run. The path of this file at compile time may be in another
/// clone.
let packageFolder = URL(fileURLWithPath: FileManager.default.currentDirectoryPath)

/// Reads the public declarations of modules, with the toolchain that built these tests.
enum PublicSymbols {
    static let metal: Result<[PublicSymbol], any Error> = Result { try extract("Metal") }
    /// Darwin's names, which `Metal` re-exports.
    static let darwin: Result<[PublicSymbol], any Error> = Result { try extract("OrchardDarwin") }

    private static func extract(_ module: String) throws -> [PublicSymbol] {
        let build = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
        let sources = packageFolder.appendingPathComponent("Sources")
        let output = FileManager.default.temporaryDirectory.appendingPathComponent("symbols-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: output, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: output) }
        let process = Process()
        process.executableURL = try tool("swift-symbolgraph-extract")
        process.arguments =
            [
                "-module-name", module, "-I", build.appendingPathComponent("Modules").path,
                "-I", sources.appendingPathComponent("MetalRuntime/include").path,
                "-I", sources.appendingPathComponent("CGlibcCompat/include").path,
                "-target", "x86_64-pc-linux-gnu", "-minimum-access-level", "public", "-skip-synthesized-members",
                "-output-dir", output.path,
            ] + (ProcessInfo.processInfo.environment["SDKROOT"].map { ["-sdk", $0] } ?? [])
        try process.run()
        process.waitUntilExit()
        let graph = try Data(contentsOf: output.appendingPathComponent("\(module).symbols.json"))
        return try JSONDecoder().decode(Graph.self, from: graph).symbols.map {
            PublicSymbol(
                kind: $0.kind.identifier, path: $0.pathComponents,
                declaration: $0.declarationFragments.map(\.spelling).joined())
        }
    }

    /// Looks in PATH, to which the caller of the tests has added the toolchain.
    private static func tool(_ name: String) throws -> URL {
        let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "").split(separator: ":")
        let candidates = folders.map { URL(fileURLWithPath: String($0)).appendingPathComponent(name) }
        guard let found = candidates.first(where: { FileManager.default.isExecutableFile(atPath: $0.path) }) else {
            throw CocoaError(
                .fileNoSuchFile,
                userInfo: [
                    NSLocalizedDescriptionKey:
                        "\(name) is not on PATH; add the bin folder of the Swift toolchain to it."
                ])
        }
        return found
    }

    private struct Graph: Decodable {
        struct Symbol: Decodable {
            struct Kind: Decodable { let identifier: String }
            struct Fragment: Decodable { let spelling: String }
            let kind: Kind
            let pathComponents: [String]
            let declarationFragments: [Fragment]
        }
        let symbols: [Symbol]
    }
}

/// The tables of facts in Tests/Facts.
enum Facts {
    static func rows(_ name: String) throws -> [[String]] {
        let folder = packageFolder.appendingPathComponent("Tests/Facts")
        return try String(contentsOf: folder.appendingPathComponent(name), encoding: .utf8)
            .split(separator: "\n").filter { !$0.hasPrefix("#") }
            .map { $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init) }
    }
}

/// Returns a declaration without the parts that do not distinguish it: attributes, `any`, spaces, generic arguments
/// (which the facts leave out for pointers and ranges), defaults, and whether a property is stored.
func normalized(_ declaration: String) -> String {
    var text = declaration
    for attribute in ["@discardableResult", "@preconcurrency", "@NSCopying", "override ", "any "] {
        text = text.replacingOccurrences(of: attribute, with: "")
    }
    text = text.trimmingCharacters(in: .whitespacesAndNewlines)
    if text.hasPrefix("let ") { text = "var \(text.dropFirst(4)) { get }" }
    if text.range(of: "^(static )?var ", options: .regularExpression) != nil, !text.contains("{") {
        text += " { get set }"
    }
    for pattern in [" = (\\[\\]|nil)", "<[^<>]*>", "\\s+"] {
        while let range = text.range(of: pattern, options: .regularExpression) { text.removeSubrange(range) }
    }
    return text.replacingOccurrences(of: "\\((MTL\\w+)\\)\\?", with: "$1?", options: .regularExpression)
}
