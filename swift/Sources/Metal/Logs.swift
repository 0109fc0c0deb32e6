public enum MTLLogLevel: Int, Sendable {
    case undefined = 0
    case debug = 1
    case info = 2
    case notice = 3
    case error = 4
    case fault = 5
}

public class MTLLogStateDescriptor: NSObject, NSCopying {
    public var level = MTLLogLevel.undefined
    public var bufferSize = 0

    public func copy(with zone: NSZone? = nil) -> Any {
        let copy = MTLLogStateDescriptor()
        copy.level = level
        copy.bufferSize = bufferSize
        return copy
    }
}

public protocol MTLLogState: NSObjectProtocol, Sendable {
    @preconcurrency
    func addLogHandler(_ block: @escaping @Sendable (String?, String?, MTLLogLevel, String) -> Void)
}

public enum MTLFunctionLogType: UInt, Sendable {
    case validation = 0
}

/// The position in a kernel's source that produced a log entry.
public protocol MTLFunctionLogDebugLocation: NSObjectProtocol {
    var functionName: String? { get }
    var url: URL? { get }
    var line: Int { get }
    var column: Int { get }
}

/// An entry of a command buffer's log. This device writes none: the checker reports faults.
public protocol MTLFunctionLog: NSObjectProtocol {
    var type: MTLFunctionLogType { get }
    var encoderLabel: String? { get }
    var function: (any MTLFunction)? { get }
    var debugLocation: (any MTLFunctionLogDebugLocation)? { get }
}

public protocol MTLLogContainer: NSObjectProtocol, Sequence where Element == any MTLFunctionLog {}
