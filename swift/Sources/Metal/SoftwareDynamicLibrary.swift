import MetalRuntime

/// The source of a library and the options with which it is compiled.
struct LibraryRecipe: Codable, Equatable {
    let source: String
    let installName: String
    let macros: [String: String]
    let languageVersion: UInt
    let mathMode: Int
    let mathFunctions: Int
    /// The install names of the libraries that it calls.
    let dependencies: [String]

    init(
        _ source: String, _ installName: String, _ options: MTLCompileOptions, _ libraries: [SoftwareDynamicLibrary]
    ) {
        self.source = source
        self.installName = installName
        macros = Dictionary(uniqueKeysWithValues: options.macroTexts.map { ($0.name, $0.value) })
        languageVersion = options.languageVersion.rawValue
        mathMode = options.mathMode.rawValue
        mathFunctions = options.mathFloatingPointFunctions.rawValue
        dependencies = libraries.map(\.installName)
    }

    /// Definitions of its macros, followed by the source, for inclusion in a text that is compiled without these
    /// macros.
    var text: String {
        let definitions = macros.sorted { $0.key < $1.key }
        return definitions.map { "#define \($0.key) \($0.value)\n" }.joined() + source
    }
}

/// A library whose functions other libraries call. It is kept as source; see `LinkedSource`.
final class SoftwareDynamicLibrary: NSObject, MTLDynamicLibrary, @unchecked Sendable {
    private static let magic = "Metal software dynamic library 1"
    private let recipe: LibraryRecipe
    private let dependencies: [SoftwareDynamicLibrary]
    var label: String?

    var device: any MTLDevice { SoftwareDevice.shared }
    var installName: String { recipe.installName }
    override var description: String { "<SoftwareDynamicLibrary> label = \(label ?? "<none>"), \(installName)" }

    init(library: any MTLLibrary) throws {
        guard let library = library as? SoftwareLibrary else {
            throw MTLDynamicLibraryError(
                .unsupported, "makeDynamicLibrary: the library belongs to another device; make it with this one.")
        }
        guard let recipe = library.recipe else {
            throw MTLDynamicLibraryError(
                .unsupported,
                "makeDynamicLibrary: the library is of type .executable; compile it with libraryType .dynamic and an "
                    + "installName.")
        }
        try Self.takeInjectedFault()
        self.recipe = recipe
        dependencies = library.libraries
    }

    /// Reads a library that `serialize(to:)` wrote. Libraries that it calls are read from their install names.
    convenience init(url: URL) throws { try self.init(url: url, callers: []) }

    private init(url: URL, callers: [String]) throws {
        try Self.takeInjectedFault()
        recipe = try Self.read(url)
        let chain = callers + [url.standardizedFileURL.path]
        dependencies = try recipe.dependencies.map { try Self.dependency($0, of: url, chain) }
        let options = MTLCompileOptions()
        options.languageVersion = MTLLanguageVersion(rawValue: recipe.languageVersion) ?? options.languageVersion
        do {
            _ = try LibraryPart(source: recipe.text, options: options, libraries: dependencies, on: .shared)
        } catch {
            throw MTLDynamicLibraryError(.compilationFailure, error.localizedDescription)
        }
    }

    func serialize(to url: URL) throws {
        do {
            let content = try JSONEncoder().encode(recipe)
            let digest = Fingerprint(bytes: content).description
            try (Data("\(Self.magic)\n\(digest)\n".utf8) + content).write(to: url, options: .atomic)
        } catch {
            throw MTLDynamicLibraryError(
                .invalidFile,
                "serialize: the dynamic library could not be written to \(url.path): \(error.localizedDescription)")
        }
    }

    /// Casts libraries to this device's type. Throws if a library belongs to another device.
    static func known(_ libraries: [any MTLDynamicLibrary]) throws -> [SoftwareDynamicLibrary] {
        try libraries.map { library in
            guard let known = library as? SoftwareDynamicLibrary else {
                throw MTLLibraryError(
                    .unsupported, "The dynamic library \(library.installName) belongs to another device.")
            }
            return known
        }
    }

    /// Links the text of a caller with the texts of the libraries, and of the libraries that these call.
    static func link(_ source: String, _ libraries: [SoftwareDynamicLibrary]) -> String {
        guard !libraries.isEmpty else { return source }
        var linked = LinkedSource(source), waiting = libraries, done: Set<ObjectIdentifier> = []
        while !waiting.isEmpty {
            let library = waiting.removeFirst()
            guard done.insert(ObjectIdentifier(library)).inserted else { continue }
            linked.append(library.recipe.text, file: library.installName)
            waiting += library.dependencies
        }
        return linked.text
    }

    private static func read(_ url: URL) throws -> LibraryRecipe {
        guard let data = try? Data(contentsOf: url) else {
            throw MTLDynamicLibraryError(
                .invalidFile, "makeDynamicLibrary: no dynamic library can be read at \(url.path).")
        }
        let parts = data.split(separator: UInt8(ascii: "\n"), maxSplits: 2, omittingEmptySubsequences: false)
        guard parts.count == 3, parts[0].elementsEqual(magic.utf8),
            parts[1].elementsEqual(Fingerprint(bytes: parts[2]).description.utf8),
            let recipe = try? JSONDecoder().decode(LibraryRecipe.self, from: Data(parts[2]))
        else {
            throw MTLDynamicLibraryError(
                .invalidFile,
                "makeDynamicLibrary: the file at \(url.path) is not a dynamic library of this device, or is damaged; "
                    + "serialize it again.")
        }
        return recipe
    }

    private static func dependency(
        _ installName: String, of url: URL, _ callers: [String]
    ) throws -> SoftwareDynamicLibrary {
        let roots = ["@loader_path": url.deletingLastPathComponent(), "@executable_path": Bundle.main.bundleURL]
        let root = roots.first { installName.hasPrefix($0.key + "/") }
        let file = root.map { $0.value.appendingPathComponent(String(installName.dropFirst($0.key.count + 1))) }
        let path = file ?? URL(fileURLWithPath: installName)
        guard FileManager.default.fileExists(atPath: path.path) else {
            throw MTLDynamicLibraryError(
                .unresolvedInstallName,
                "makeDynamicLibrary: \(url.path) calls \(installName), which was not found at \(path.path).")
        }
        guard !callers.contains(path.standardizedFileURL.path) else {
            throw MTLDynamicLibraryError(
                .dependencyLoadFailure, "makeDynamicLibrary: \(url.path) calls \(installName), which calls it.")
        }
        do {
            return try SoftwareDynamicLibrary(url: path, callers: callers)
        } catch {
            throw MTLDynamicLibraryError(
                .dependencyLoadFailure,
                "makeDynamicLibrary: \(url.path) calls \(installName), which failed: \(error.localizedDescription)")
        }
    }

    private static func takeInjectedFault() throws {
        guard !takeFault("dynamic-library") else {
            throw MTLDynamicLibraryError(.compilationFailure, "Injected failure: the dynamic library was not made.")
        }
    }
}
