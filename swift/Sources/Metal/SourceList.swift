/// A library that a build plugin made with the stand-in for Apple's `metal` (src/cli/metal_tools.ts): a list of
/// sources. Each line has the path of one, and the options by which it is compiled, with tabs between.
struct SourceList {
    private static let firstLine = "Orchard: sources of a Metal library\n"

    /// The texts of the files, with their macros.
    let sources: [String]
    let options = MTLCompileOptions()

    /// Returns nil if the file is not such a list.
    init?(_ file: URL) throws {
        guard let data = try? Data(contentsOf: file) else { return nil }
        try self.init(data)
    }

    init?(_ data: some Sequence<UInt8> & ContiguousBytes) throws {
        guard data.starts(with: Self.firstLine.utf8) else { return nil }
        let lines = String(decoding: Array(data), as: UTF8.self).split(separator: "\n").dropFirst()
        sources = try lines.map { line in
            let words = line.split(separator: "\t").map(String.init)
            let definitions = Self.values("-D", words).map { definition -> String in
                let parts = definition.split(separator: "=", maxSplits: 1)
                return "#define \(parts[0]) \(parts.count > 1 ? parts[1] : "1")\n"
            }
            let folders = Self.values("-I", words).map { URL(fileURLWithPath: $0, isDirectory: true) }
            return try definitions.joined() + MetalFile.text(of: URL(fileURLWithPath: words[0]), including: folders)
        }
        if let name = lines.lazy.flatMap({ Self.values("-std=", $0.split(separator: "\t").map(String.init)) }).first {
            options.languageVersion = try Self.version(name)
        }
    }

    private static func values(_ option: String, _ words: [String]) -> [String] {
        words.dropFirst().filter { $0.hasPrefix(option) }.map { String($0.dropFirst(option.count)) }
    }

    /// Reads a version such as `metal3.1` or `macos-metal2.4`.
    private static func version(_ name: String) throws -> MTLLanguageVersion {
        let numbers = name.drop { !$0.isNumber }.split(separator: ".").compactMap { UInt($0) }
        guard numbers.count == 2, let version = MTLLanguageVersion(rawValue: numbers[0] << 16 | numbers[1]) else {
            throw MTLLibraryError(.unsupported, "makeLibrary: -std=\(name) is not a version of Metal's language.")
        }
        return version
    }
}
