extension SoftwareDevice {
    func makeLibrary(source: String, options: MTLCompileOptions?) throws -> any MTLLibrary {
        try SoftwareLibrary(source: source, options: options ?? MTLCompileOptions(), on: self)
    }

    func makeLibrary(
        source: String, options: MTLCompileOptions?, completionHandler: @escaping MTLNewLibraryCompletionHandler
    ) {
        nonisolated(unsafe) let chosen = options?.copy() as? MTLCompileOptions ?? MTLCompileOptions()
        compilations.async {
            do {
                let library = try SoftwareLibrary(source: source, options: chosen, on: self)
                completionHandler(library, library.warnings.map { MTLLibraryError(.compileWarning, $0) })
            } catch {
                completionHandler(nil, error)
            }
        }
    }

    /// If the program's folder has no .metal file, those in the resources of its package's targets are used: Xcode
    /// compiles them into the program.
    func makeDefaultLibrary() -> (any MTLLibrary)? {
        if let library = try? makeDefaultLibrary(bundle: .main) { return library }
        let folder = Bundle.main.bundleURL
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        let bundles = names.filter { $0.hasSuffix(".resources") }.sorted()
        let files = bundles.flatMap { metalFiles(in: folder.appendingPathComponent($0)) }
        return files.isEmpty ? nil : try? makeLibrary(files: files)
    }

    /// Linux has no compiler that builds a `default.metallib` from a program's .metal files. The package manager puts
    /// the files themselves into the bundle, and each is compiled here separately.
    func makeDefaultLibrary(bundle: Bundle) throws -> any MTLLibrary {
        let files = metalFiles(in: bundle.resourceURL ?? bundle.bundleURL)
        guard !files.isEmpty else {
            throw MTLLibraryError(.fileNotFound, "No .metal file lies in the bundle at \(bundle.bundlePath).")
        }
        return try makeLibrary(files: files)
    }

    func makeLibrary(URL url: URL) throws -> any MTLLibrary { try makeLibrary(filepath: url.path) }

    /// A .metallib is built from .metal files: from the one with its name next to it, or for `default.metallib` from
    /// all files next to it.
    func makeLibrary(filepath: String) throws -> any MTLLibrary {
        let url = URL(fileURLWithPath: filepath), folder = url.deletingLastPathComponent()
        let sameName = url.deletingPathExtension().appendingPathExtension("metal")
        var files = FileManager.default.fileExists(atPath: sameName.path) ? [sameName] : []
        if files.isEmpty && url.lastPathComponent == "default.metallib" { files = metalFiles(in: folder) }
        if url.pathExtension == "metallib" && !files.isEmpty {
            note("\(filepath): compiled \(files.map(\.lastPathComponent).joined(separator: ", ")) beside it instead")
            return try makeLibrary(files: files)
        }
        guard FileManager.default.fileExists(atPath: filepath) else {
            throw MTLLibraryError(.fileNotFound, "library not found: no file at \(filepath).")
        }
        throw compiledLibraryRefused
    }

    private func makeLibrary(files: [URL]) throws -> any MTLLibrary {
        try SoftwareLibrary(sources: files.map(MetalFile.text), options: MTLCompileOptions(), on: self)
    }

    private func metalFiles(in folder: URL) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".metal") }.sorted().map { folder.appendingPathComponent($0) }
    }

    func makeLibrary(data: DispatchData) throws -> any MTLLibrary { throw compiledLibraryRefused }

    func makeDynamicLibrary(library: any MTLLibrary) throws -> any MTLDynamicLibrary {
        try SoftwareDynamicLibrary(library: library)
    }

    func makeDynamicLibrary(url: URL) throws -> any MTLDynamicLibrary { try SoftwareDynamicLibrary(url: url) }

    func makeBinaryArchive(descriptor: MTLBinaryArchiveDescriptor) throws -> any MTLBinaryArchive {
        try SoftwareBinaryArchive(url: descriptor.url)
    }

    private var compiledLibraryRefused: MTLLibraryError {
        MTLLibraryError(
            .unsupported,
            "A .metallib holds code for Apple's GPUs, which \(name) cannot run; use "
                + "makeLibrary(source:options:), or put the .metal file of the same name beside it.")
    }
}
