// For each error: its domain, its codes, and the structure that Swift imports from Apple's enumeration.

public let MTLLibraryErrorDomain = "MTLLibraryErrorDomain"
public let MTLCommandBufferErrorDomain = "MTLCommandBufferErrorDomain"
public let MTLBinaryArchiveDomain = "MTLBinaryArchiveDomain"
public let MTLCaptureErrorDomain = "MTLCaptureErrorDomain"
public let MTLDynamicLibraryDomain = "MTLDynamicLibraryDomain"
public let MTLLogStateErrorDomain = "MTLLogStateErrorDomain"
public let MTLCommandBufferEncoderInfoErrorKey = "MTLCommandBufferEncoderInfoErrorKey"

public struct MTLLibraryError: _BridgedStoredNSError, Sendable {
    public enum Code: UInt, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLLibraryError

        case unsupported = 1
        case `internal` = 2
        case compileFailure = 3
        case compileWarning = 4
        case functionNotFound = 5
        case fileNotFound = 6
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLLibraryErrorDomain }
    public static var unsupported: Code { .unsupported }
    public static var `internal`: Code { .internal }
    public static var compileFailure: Code { .compileFailure }
    public static var compileWarning: Code { .compileWarning }
    public static var functionNotFound: Code { .functionNotFound }
    public static var fileNotFound: Code { .fileNotFound }
}

public struct MTLCommandBufferError: _BridgedStoredNSError, Sendable {
    public enum Code: UInt, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLCommandBufferError

        case none = 0
        case `internal` = 1
        case timeout = 2
        case pageFault = 3
        case accessRevoked = 4
        case notPermitted = 7
        case outOfMemory = 8
        case invalidResource = 9
        case memoryless = 10
        case deviceRemoved = 11
        case stackOverflow = 12
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLCommandBufferErrorDomain }
    public static var none: Code { .none }
    public static var `internal`: Code { .internal }
    public static var timeout: Code { .timeout }
    public static var pageFault: Code { .pageFault }
    public static var accessRevoked: Code { .accessRevoked }
    public static var blacklisted: Code { .accessRevoked }
    public static var notPermitted: Code { .notPermitted }
    public static var outOfMemory: Code { .outOfMemory }
    public static var invalidResource: Code { .invalidResource }
    public static var memoryless: Code { .memoryless }
    public static var deviceRemoved: Code { .deviceRemoved }
    public static var stackOverflow: Code { .stackOverflow }
}

public struct MTLBinaryArchiveError: _BridgedStoredNSError, Sendable {
    public enum Code: UInt, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLBinaryArchiveError

        case none = 0
        case invalidFile = 1
        case unexpectedElement = 2
        case compilationFailure = 3
        case internalError = 4
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLBinaryArchiveDomain }
    public static var none: Code { .none }
    public static var invalidFile: Code { .invalidFile }
    public static var unexpectedElement: Code { .unexpectedElement }
    public static var compilationFailure: Code { .compilationFailure }
    public static var internalError: Code { .internalError }
}

public struct MTLCaptureError: _BridgedStoredNSError, Sendable {
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLCaptureError

        case notSupported = 1
        case alreadyCapturing = 2
        case invalidDescriptor = 3
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLCaptureErrorDomain }
    public static var notSupported: Code { .notSupported }
    public static var alreadyCapturing: Code { .alreadyCapturing }
    public static var invalidDescriptor: Code { .invalidDescriptor }
}

public struct MTLDynamicLibraryError: _BridgedStoredNSError, Sendable {
    public enum Code: UInt, _ErrorCodeProtocol, Sendable {
        public typealias _ErrorType = MTLDynamicLibraryError

        case none = 0
        case invalidFile = 1
        case compilationFailure = 2
        case unresolvedInstallName = 3
        case dependencyLoadFailure = 4
        case unsupported = 5
    }

    public let _nsError: NSError

    public init(_nsError: NSError) { self._nsError = _nsError }

    public static var _nsErrorDomain: String { MTLDynamicLibraryDomain }
    public static var none: Code { .none }
    public static var invalidFile: Code { .invalidFile }
    public static var compilationFailure: Code { .compilationFailure }
    public static var unresolvedInstallName: Code { .unresolvedInstallName }
    public static var dependencyLoadFailure: Code { .dependencyLoadFailure }
    public static var unsupported: Code { .unsupported }
}

/// The only error enumeration here that Apple does not import as an error structure.
public enum MTLLogStateError: UInt, Sendable {
    case invalidSize = 1
    case invalid = 2
}
