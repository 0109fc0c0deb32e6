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

public protocol MTLLogContainer: NSObjectProtocol {}
