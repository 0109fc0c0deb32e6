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
        let bundles = names.filter { $0.hasSuffix(".resources") }.sorted().map { folder.appendingPathComponent($0) }
        let files = bundles.flatMap { metalFiles(in: $0) }
        if files.isEmpty { return bundles.lazy.compactMap { try? self.builtLibrary(in: $0) }.first }
        return try? makeLibrary(files: files)
    }

    /// Returns the library that a build plugin made, if there is one.
    private func builtLibrary(in folder: URL) throws -> (any MTLLibrary)? {
        try SourceList(folder.appendingPathComponent("default.metallib")).map(makeLibrary(list:))
    }

    private func makeLibrary(list: SourceList) throws -> any MTLLibrary {
        try SoftwareLibrary(sources: list.sources, options: list.options, on: self)
    }

    /// Linux has no compiler that builds a `default.metallib` from a program's .metal files. The package manager puts
    /// the files themselves into the bundle, and they are compiled and linked here.
    func makeDefaultLibrary(bundle: Bundle) throws -> any MTLLibrary {
        let folder = bundle.resourceURL ?? bundle.bundleURL, files = metalFiles(in: folder)
        if files.isEmpty, let library = try builtLibrary(in: folder) { return library }
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
        if let list = try SourceList(url) { return try makeLibrary(list: list) }
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
        try SoftwareLibrary(sources: files.map { try MetalFile.text(of: $0) }, options: MTLCompileOptions(), on: self)
    }

    private func metalFiles(in folder: URL) -> [URL] {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.filter { $0.hasSuffix(".metal") }.sorted().map { folder.appendingPathComponent($0) }
    }

    func makeLibrary(data: DispatchData) throws -> any MTLLibrary {
        guard let list = try SourceList(Data(data)) else { throw compiledLibraryRefused }
        return try makeLibrary(list: list)
    }

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
