// The module `os` has only loggers here, which write to standard error, and the unfair lock.
@_exported import Foundation

/// The severity of a message. Messages of `debug` and `info` are not kept by default, and are not written here.
public struct OSLogType: Equatable, RawRepresentable, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let `default` = OSLogType(rawValue: 0)
    public static let info = OSLogType(rawValue: 1)
    public static let debug = OSLogType(rawValue: 2)
    public static let error = OSLogType(rawValue: 16)
    public static let fault = OSLogType(rawValue: 17)
}

/// Private values are written too, since the messages stay with the person who runs the program.
public struct OSLogPrivacy: Sendable {
    public static let `public` = OSLogPrivacy()
    public static let `private` = OSLogPrivacy()
    public static let sensitive = OSLogPrivacy()
    public static let auto = OSLogPrivacy()
}

public struct OSLogMessage: ExpressibleByStringInterpolation {
    let text: String

    public struct Interpolation: StringInterpolationProtocol {
        var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        public mutating func appendLiteral(_ literal: String) { text += literal }

        public mutating func appendInterpolation<Value>(
            _ value: @autoclosure () -> Value, privacy: OSLogPrivacy = .auto
        ) {
            text += "\(value())"
        }
    }

    public init(stringLiteral value: String) { text = value }
    public init(stringInterpolation: Interpolation) { text = stringInterpolation.text }
}

public struct Logger: Sendable {
    private let name: String

    public init() { name = ProcessInfo.processInfo.processName }
    public init(subsystem: String, category: String) { name = "\(subsystem):\(category)" }
    public init(_ log: OSLog) { name = log.name }

    public func log(_ message: OSLogMessage) { log(level: .default, message) }
    public func trace(_ message: OSLogMessage) { log(level: .debug, message) }
    public func debug(_ message: OSLogMessage) { log(level: .debug, message) }
    public func info(_ message: OSLogMessage) { log(level: .info, message) }
    public func notice(_ message: OSLogMessage) { log(level: .default, message) }
    public func warning(_ message: OSLogMessage) { log(level: .error, message) }
    public func error(_ message: OSLogMessage) { log(level: .error, message) }
    public func critical(_ message: OSLogMessage) { log(level: .fault, message) }
    public func fault(_ message: OSLogMessage) { log(level: .fault, message) }

    public func log(level: OSLogType, _ message: OSLogMessage) { write(level, message.text, name) }
}

public class OSLog: @unchecked Sendable {
    let name: String

    public init(subsystem: String, category: String) { name = "\(subsystem):\(category)" }

    public static let `default` = OSLog(subsystem: ProcessInfo.processInfo.processName, category: "default")
    public static let disabled = OSLog(subsystem: "", category: "")
}

/// The older function: Foundation's format replaces `%d`, `%{public}@` and the like.
public func os_log(
    _ message: StaticString, log: OSLog = .default, type: OSLogType = .default, _ arguments: any CVarArg...
) {
    guard log !== OSLog.disabled else { return }
    let format = "\(message)".replacingOccurrences(of: "%\\{[a-z, ]*\\}", with: "%", options: .regularExpression)
    write(type, String(format: format, arguments: arguments), log.name)
}

public func os_log(_ type: OSLogType = .default, log: OSLog = .default, _ message: OSLogMessage) {
    guard log !== OSLog.disabled else { return }
    write(type, message.text, log.name)
}

private func write(_ type: OSLogType, _ text: String, _ name: String) {
    guard type != .debug && type != .info else { return }
    FileHandle.standardError.write(Data("[\(name)] \(text)\n".utf8))
}

/// A lock around a value.
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
    private final class Box: @unchecked Sendable {
        let lock = NSLock()
        var state: State

        init(_ state: State) { self.state = state }
    }

    private let box: Box

    public init(initialState: State) { box = Box(initialState) }
    public init(uncheckedState: State) { box = Box(uncheckedState) }

    public func withLock<Result>(_ body: (inout State) throws -> Result) rethrows -> Result {
        try box.lock.withLock { try body(&box.state) }
    }
}
