import COrchard
import Foundation
import Metal

/// The inputs of a library's compilation.
struct LibraryRequest {
    var name: String?
    var source: String
    var headers: [(name: String, text: String)] = []
    var macros: [(name: String, text: String)] = []
    var languageVersion: UInt32 = 0
    var mathMode: UInt32 = 0
    var mathFunctions: UInt32 = 0
    var label: String?
}

/// A compiled library, shared by all handles with equal sources and options.
final class Library: HandleObject, @unchecked Sendable {
    override class var kind: HandleKind { .library }
    override var context: Context { owner }

    let library: any MTLLibrary
    let archive: PipelineArchive?
    let owner: Context
    let pipelines = PipelineCache()

    init(_ library: any MTLLibrary, archive: PipelineArchive?, owner: Context) {
        self.library = library
        self.archive = archive
        self.owner = owner
    }

    private let constantsLock = NSLock()
    private var knownConstants: [String: [MTLFunctionConstant]] = [:]

    /// The constants of a function, by index, against which specialization is checked. Nil if there is no such
    /// function.
    func constants(of name: String) -> [MTLFunctionConstant]? {
        constantsLock.withLock {
            if let known = knownConstants[name] { return known }
            guard let function = library.makeFunction(name: name) else { return nil }
            let constants = function.functionConstantsDictionary.values.sorted { $0.index < $1.index }
            knownConstants[name] = constants
            return constants
        }
    }

    var allConstants: [MTLFunctionConstant] { library.functionNames.flatMap { constants(of: $0) ?? [] } }

    var functionsJSON: String {
        JSON.text(
            library.functionNames.sorted().map { name -> [String: Any] in
                let constants = (constants(of: name) ?? []).map { constant -> [String: Any] in
                    [
                        "name": constant.name, "index": constant.index, "type": constant.type.rawValue,
                        "required": constant.required,
                    ]
                }
                return ["name": name, "constants": constants]
            })
    }
}

/// Libraries by content, while they are in use. Only one thread compiles at a time.
final class LibraryCache: @unchecked Sendable {
    private struct Weak { weak var library: Library? }

    private let device: any MTLDevice
    private let cacheFolder: String?
    private let lock = NSLock()
    private var known: [String: Weak] = [:]

    init(device: any MTLDevice, cacheFolder: String?) {
        self.device = device
        self.cacheFolder = cacheFolder
    }

    func library(_ request: LibraryRequest, for context: Context) throws -> Library {
        let source = try IncludeResolver.resolve(name: request.name, source: request.source, headers: request.headers)
        let options = try compileOptions(request)
        let key = identity(source, request)
        return try lock.withLock {
            if let library = known[key]?.library {
                try context.locked { context.statistics.values.library_hits += 1 }
                return library
            }
            let library = try compile(source, options, key, request, context)
            known = known.filter { $0.value.library != nil }
            known[key] = Weak(library: library)
            return library
        }
    }

    private func compile(
        _ source: String, _ options: MTLCompileOptions, _ key: String, _ request: LibraryRequest, _ context: Context
    ) throws -> Library {
        if context.faults.take(.library) != nil {
            throw OrchardError(ORCHARD_COMPILE_FAILED, "Injected failure of the compiler.")
        }
        let compiled: any MTLLibrary
        do {
            compiled = try device.makeLibrary(source: source, options: options)
        } catch {
            throw OrchardError(ORCHARD_COMPILE_FAILED, (error as NSError).localizedDescription)
        }
        if let label = request.label { compiled.label = label }
        try context.locked { context.statistics.values.libraries_compiled += 1 }
        let archive =
            PipelineArchive.isSupported(on: device)
            ? cacheFolder.map { PipelineArchive(device: device, folder: $0, identity: key) } : nil
        return Library(compiled, archive: archive, owner: context)
    }

    private func compileOptions(_ request: LibraryRequest) throws -> MTLCompileOptions {
        let options = MTLCompileOptions()
        let version = request.languageVersion == 0 ? LanguageVersions.baseline : request.languageVersion
        guard LanguageVersions.isKnown(version), let languageVersion = MTLLanguageVersion(rawValue: UInt(version))
        else {
            throw OrchardError(
                ORCHARD_UNSUPPORTED,
                "Language version \(LanguageVersions.text(version)) is not known here; the newest is "
                    + "\(LanguageVersions.text(LanguageVersions.newest))."
            )
        }
        guard let mode = MathMode(rawValue: request.mathMode), request.mathFunctions <= ORCHARD_FUNCTIONS_FAST else {
            throw OrchardError.invalid(
                "Expected the math mode to be 0, 1 or 2 and the math functions to be 0 or 1, got \(request.mathMode) "
                    + "and \(request.mathFunctions)."
            )
        }
        options.languageVersion = languageVersion
        mode.apply(to: options, fastFunctions: request.mathFunctions == ORCHARD_FUNCTIONS_FAST)
        options.preprocessorMacros = Dictionary(
            request.macros.map { ($0.name, NSString(string: $0.text)) }, uniquingKeysWith: { $1 })
        return options
    }

    private func identity(_ source: String, _ request: LibraryRequest) -> String {
        var hash = StableHash()
        for part in [source, device.name, ProcessInfo.processInfo.operatingSystemVersionString] { hash.add(part) }
        for macro in request.macros { hash.add(macro.name); hash.add(macro.text) }
        for number in [request.languageVersion, request.mathMode, request.mathFunctions] { hash.add(String(number)) }
        return hash.text
    }
}

/// The language versions that a system's compiler accepts, as `major << 16 | minor`. Apple's enumeration does not say,
/// since it accepts any raw value.
private enum LanguageVersions {
    static let baseline: UInt32 = 3 << 16 | 1
    private static let latestMinor: [UInt32: UInt32] = [1: 2, 2: 4, 3: 2, 4: 1]

    static var newest: UInt32 {
        if #available(macOS 27, *), MTLLanguageVersion(rawValue: 4 << 16 | 1) != nil { return 4 << 16 | 1 }
        if #available(macOS 26, *), MTLLanguageVersion(rawValue: 4 << 16) != nil { return 4 << 16 }
        if #available(macOS 15, *) { return 3 << 16 | 2 }
        return baseline
    }

    /// macOS never had version 1.0.
    static func isKnown(_ version: UInt32) -> Bool {
        guard let latest = latestMinor[version >> 16] else { return false }
        return version & 0xffff <= latest && version > 1 << 16 && version <= newest
    }

    static func text(_ version: UInt32) -> String { "\(version >> 16).\(version & 0xffff)" }
}

/// The three math modes. macOS 14 has only two of them; there, relaxed is the same as fast.
private enum MathMode: UInt32 {
    case safe, relaxed, fast

    func apply(to options: MTLCompileOptions, fastFunctions: Bool) {
        if #available(macOS 15, *) {
            options.mathMode = MTLMathMode(rawValue: Int(rawValue)) ?? .safe
            options.mathFloatingPointFunctions = fastFunctions ? .fast : .precise
        } else {
            options.fastMathEnabled = self != .safe
        }
    }
}

/// FNV-1a in two lanes. Unlike Swift's hashes, it gives the same result in every process.
struct StableHash {
    private var first: UInt64 = 0xcbf2_9ce4_8422_2325
    private var second: UInt64 = 0x8422_2325_cbf2_9ce4

    mutating func add(_ text: String) {
        for byte in text.utf8 { add(byte) }
        add(0xff)
    }

    private mutating func add(_ byte: UInt8) {
        first = (first ^ UInt64(byte)) &* 0x100_0000_01b3
        second = (second ^ UInt64(byte)) &* 0x100_0000_01b3 &+ 1
    }

    var text: String {
        [first, second].map { String(repeating: "0", count: 16 - String($0, radix: 16).count) + String($0, radix: 16) }
            .joined()
    }
}
