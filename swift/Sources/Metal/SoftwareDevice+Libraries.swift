extension SoftwareDevice {
    func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary {
        try SoftwareLibrary(source: source, options: options ?? MTLCompileOptions())
    }

    func makeLibrary(
        source: String, options: MTLCompileOptions?, completionHandler: @escaping MTLNewLibraryCompletionHandler
    ) {
        nonisolated(unsafe) let chosen = options?.copy() as? MTLCompileOptions ?? MTLCompileOptions()
        compilations.async {
            do {
                let library = try SoftwareLibrary(source: source, options: chosen)
                completionHandler(library, library.warnings.map { MTLLibraryError(.compileWarning, $0) })
            } catch {
                completionHandler(nil, error)
            }
        }
    }

    func makeDefaultLibrary() -> (any MTLLibrary)? { try? makeDefaultLibrary(bundle: .main) }

    /// Linux has no compiler that makes a `default.metallib` of a program's .metal files; the package manager puts the
    /// files themselves into the bundle, and they are compiled here.
    func makeDefaultLibrary(bundle: Bundle) throws -> any MTLLibrary {
        let files = (bundle.urls(forResourcesWithExtension: "metal", subdirectory: nil) ?? [])
            .map { $0 as URL }.sorted { $0.path < $1.path }
        guard !files.isEmpty else {
            throw MTLLibraryError(.fileNotFound, "No .metal file lies in the bundle at \(bundle.bundlePath).")
        }
        let parts = try files.map {
            "#line 1 \"\($0.lastPathComponent)\"\n" + (try String(contentsOf: $0, encoding: .utf8))
        }
        return try makeLibrary(source: parts.joined(separator: "\n"), options: nil)
    }

    func makeLibrary(URL url: URL) throws -> any MTLLibrary { try makeLibrary(filepath: url.path) }

    func makeLibrary(filepath: String) throws -> any MTLLibrary {
        guard FileManager.default.fileExists(atPath: filepath) else {
            throw MTLLibraryError(.fileNotFound, "library not found: no file at \(filepath).")
        }
        throw compiledLibraryRefused
    }

    func makeLibrary(data: DispatchData) throws -> any MTLLibrary { throw compiledLibraryRefused }

    func makeDynamicLibrary(library: any MTLLibrary) throws -> any MTLDynamicLibrary { throw dynamicLibraryRefused }

    func makeDynamicLibrary(url: URL) throws -> any MTLDynamicLibrary { throw dynamicLibraryRefused }

    func makeBinaryArchive(descriptor: MTLBinaryArchiveDescriptor) throws -> any MTLBinaryArchive {
        try SoftwareBinaryArchive(url: descriptor.url)
    }

    private var compiledLibraryRefused: MTLLibraryError {
        MTLLibraryError(
            .unsupported,
            "A .metallib holds code for Apple's GPUs, which \(name) cannot run; use makeLibrary(source:options:).")
    }

    private var dynamicLibraryRefused: MTLDynamicLibraryError {
        MTLDynamicLibraryError(.unsupported, "\(name) has no dynamic libraries: supportsDynamicLibraries is false.")
    }
}
