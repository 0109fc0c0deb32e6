import MetalRuntime

/// A compiled source text: a library made from a source, or one file of a default library.
final class LibraryPart: @unchecked Sendable {
    let device: SoftwareDevice
    let handle: OpaquePointer
    /// Identifies the source and the options: the key of its functions in a binary archive.
    let fingerprint: Fingerprint
    /// The compiler's warnings, which only the completion handler of `makeLibrary` receives.
    let warnings: String?
    let functionNames: [String]
    private let source: String
    private let otherFiles: String
    private let options: MTLCompileOptions
    private let libraries: [SoftwareDynamicLibrary]

    /// `otherFiles` are those of the same library, as `LibraryPart.others` gives them.
    init(
        source callers: String, otherFiles: String = "", options: MTLCompileOptions,
        libraries: [SoftwareDynamicLibrary], on device: SoftwareDevice
    ) throws {
        self.device = device
        self.source = callers
        self.otherFiles = otherFiles
        self.options = options.copy() as! MTLCompileOptions
        self.libraries = libraries
        let source = SoftwareDynamicLibrary.link(callers, libraries) + otherFiles
        let macros = options.macroTexts
        var message: UnsafeMutablePointer<CChar>?
        let library = withMacros(macros) { list in
            var settings = mrt_compile_options(
                language_version: UInt32(options.languageVersion.rawValue),
                math_mode: UInt32(options.mathMode.rawValue),
                math_functions: UInt32(options.mathFloatingPointFunctions.rawValue), macros: list.baseAddress,
                macro_count: list.count, max_threads: UInt32(clamping: options.maxTotalThreadsPerThreadgroup))
            return mrt_library_create(source, &settings, &message)
        }
        let text = takeMessage(message)
        guard let library else { throw MTLLibraryError(.compileFailure, text ?? "The compiler gave no message.") }
        handle = library
        warnings = text
        functionNames = (0..<mrt_library_function_count(library)).map {
            String(cString: mrt_library_function_name(library, $0))
        }
        fingerprint = Fingerprint(
            [
                source,
                "\(options.languageVersion.rawValue) \(options.mathMode.rawValue) "
                    + "\(options.mathFloatingPointFunctions.rawValue)",
                "\(options.maxTotalThreadsPerThreadgroup)",
            ] + macros.flatMap { [$0.name, $0.value] })
    }

    deinit { mrt_library_release(handle) }

    /// Returns the part with the functions of `preloaded`, which come before those of the libraries that it names.
    func linked(to preloaded: [SoftwareDynamicLibrary]) throws -> LibraryPart {
        preloaded.isEmpty
            ? self
            : try LibraryPart(
                source: source, otherFiles: otherFiles, options: options, libraries: preloaded + libraries, on: device)
    }

    /// Returns the other files of a library, each after a line that marks it (MetalRuntime/rewrite/linking.h). With the
    /// mark for the first file, the runtime compares all definitions.
    static func others(_ sources: [String], than index: Int) -> String {
        let mark = index == 0 ? "#pragma orchard library" : "#pragma orchard link"
        return sources.indices.filter { $0 != index }.map { "\n\(mark)\n" + sources[$0] }.joined()
    }
}

extension MTLCompileOptions {
    /// Macros as text, sorted by name, so that equal options have equal fingerprints.
    var macroTexts: [(name: String, value: String)] {
        (preprocessorMacros ?? [:]).sorted { $0.key < $1.key }.map { name, value in
            (name, (value as? NSNumber)?.stringValue ?? value.description)
        }
    }
}

private func withMacros<Result>(
    _ macros: [(name: String, value: String)], _ body: (UnsafeBufferPointer<mrt_macro>) -> Result
) -> Result {
    let texts = macros.map { (strdup($0.name), strdup($0.value)) }
    defer {
        texts.forEach {
            free($0.0); free($0.1)
        }
    }
    return texts.map { mrt_macro(name: $0.0, value: $0.1) }.withUnsafeBufferPointer(body)
}
