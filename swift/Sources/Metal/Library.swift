public enum MTLLanguageVersion: UInt, Sendable {
    case version1_0 = 65536
    case version1_1 = 65537
    case version1_2 = 65538
    case version2_0 = 131072
    case version2_1 = 131073
    case version2_2 = 131074
    case version2_3 = 131075
    case version2_4 = 131076
    case version3_0 = 196608
    case version3_1 = 196609
    case version3_2 = 196610
    case version4_0 = 262144
    case version4_1 = 262145
}

public enum MTLLibraryType: Int, Sendable {
    case executable = 0
    case dynamic = 1
}

public enum MTLLibraryOptimizationLevel: Int, Sendable {
    case `default` = 0
    case size = 1
}

public enum MTLCompileSymbolVisibility: Int, Sendable {
    case `default` = 0
    case hidden = 1
}

public enum MTLMathMode: Int, Sendable {
    case safe = 0
    case relaxed = 1
    case fast = 2
}

public enum MTLMathFloatingPointFunctions: Int, Sendable {
    case fast = 0
    case precise = 1
}

public class MTLCompileOptions: NSObject, NSCopying {
    public var preprocessorMacros: [String: NSObject]?
    public var languageVersion = MTLLanguageVersion.version3_2
    public var libraryType = MTLLibraryType.executable
    public var installName: String?
    public var libraries: [any MTLDynamicLibrary]?
    public var preserveInvariance = false
    public var optimizationLevel = MTLLibraryOptimizationLevel.default
    public var compileSymbolVisibility = MTLCompileSymbolVisibility.default
    public var allowReferencingUndefinedSymbols = false
    public var maxTotalThreadsPerThreadgroup = 0
    public var enableLogging = false
    public var mathMode = MTLMathMode.fast
    public var mathFloatingPointFunctions = MTLMathFloatingPointFunctions.fast

    /// The older setting for both math mode and functions: fast math with fast functions, or safe math with precise
    /// functions.
    public var fastMathEnabled: Bool {
        get { mathMode == .fast }
        set {
            mathMode = newValue ? .fast : .safe
            mathFloatingPointFunctions = newValue ? .fast : .precise
        }
    }

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLCompileOptions()
        copy.preprocessorMacros = preprocessorMacros
        copy.languageVersion = languageVersion
        copy.libraryType = libraryType
        copy.installName = installName
        copy.libraries = libraries
        copy.preserveInvariance = preserveInvariance
        copy.optimizationLevel = optimizationLevel
        copy.compileSymbolVisibility = compileSymbolVisibility
        copy.allowReferencingUndefinedSymbols = allowReferencingUndefinedSymbols
        copy.maxTotalThreadsPerThreadgroup = maxTotalThreadsPerThreadgroup
        copy.enableLogging = enableLogging
        copy.mathMode = mathMode
        copy.mathFloatingPointFunctions = mathFloatingPointFunctions
        return copy
    }
}

public protocol MTLLibrary: NSObjectProtocol, Sendable {
    var label: String? { get set }
    var device: any MTLDevice { get }
    var functionNames: [String] { get }
    var type: MTLLibraryType { get }
    var installName: String? { get }
    func makeFunction(name functionName: String) -> (any MTLFunction)?
    func makeFunction(name: String, constantValues: MTLFunctionConstantValues) throws -> any MTLFunction
    @preconcurrency
    func makeFunction(
        name: String, constantValues: MTLFunctionConstantValues,
        completionHandler: @escaping @Sendable ((any MTLFunction)?, (any Error)?) -> Void)
    func makeFunction(descriptor: MTLFunctionDescriptor) throws -> any MTLFunction
    @preconcurrency
    func makeFunction(
        descriptor: MTLFunctionDescriptor,
        completionHandler: @escaping @Sendable ((any MTLFunction)?, (any Error)?) -> Void)
}

extension MTLLibrary {
    public func makeFunction(
        name: String, constantValues: MTLFunctionConstantValues
    ) async throws -> any MTLFunction {
        try await withCheckedThrowingContinuation { continuation in
            makeFunction(name: name, constantValues: constantValues) { continuation.resume(with: outcome($0, $1)) }
        }
    }

    public func makeFunction(descriptor: MTLFunctionDescriptor) async throws -> any MTLFunction {
        try await withCheckedThrowingContinuation { continuation in
            makeFunction(descriptor: descriptor) { continuation.resume(with: outcome($0, $1)) }
        }
    }
}
