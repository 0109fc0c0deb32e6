// Loggers, which write to standard error.
@_exported import Foundation
@_exported import OrchardDarwin

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

    public enum Mask: Sendable { case hash, none }
    public static func `private`(mask: Mask) -> OSLogPrivacy { .private }
    public static func sensitive(mask: Mask) -> OSLogPrivacy { .sensitive }
    public static func auto(mask: Mask) -> OSLogPrivacy { .auto }
}

/// The number of digits after the decimal point: `\(time, format: .fixed(precision: 2))`.
public struct OSLogFloatFormatting: Sendable {
    let conversion: String

    public static let fixed = OSLogFloatFormatting(conversion: "%f")
    public static func fixed(precision: Int) -> OSLogFloatFormatting { .init(conversion: "%.\(precision)f") }
    public static let exponential = OSLogFloatFormatting(conversion: "%e")
    public static let hybrid = OSLogFloatFormatting(conversion: "%g")
}

public struct OSLogIntegerFormatting: Sendable {
    let radix: Int, prefix: String

    public static let decimal = OSLogIntegerFormatting(radix: 10, prefix: "")
    public static let hex = OSLogIntegerFormatting(radix: 16, prefix: "")
    public static let octal = OSLogIntegerFormatting(radix: 8, prefix: "")
    public static func hex(includePrefix: Bool) -> OSLogIntegerFormatting {
        .init(radix: 16, prefix: includePrefix ? "0x" : "")
    }
}

/// The minimum number of columns of a value.
public struct OSLogStringAlignment: Sendable {
    let columns: Int, isRight: Bool

    public static let none = OSLogStringAlignment(columns: 0, isRight: true)
    public static func right(columns: Int) -> OSLogStringAlignment { .init(columns: columns, isRight: true) }
    public static func left(columns: Int) -> OSLogStringAlignment { .init(columns: columns, isRight: false) }

    func pad(_ text: String) -> String {
        let space = String(repeating: " ", count: max(0, columns - text.count))
        return isRight ? space + text : text + space
    }
}

public struct OSLogMessage: ExpressibleByStringInterpolation, CustomStringConvertible {
    let text: String
    public var description: String { text }

    public struct Interpolation: StringInterpolationProtocol {
        var text = ""

        public init(literalCapacity: Int, interpolationCount: Int) { text.reserveCapacity(literalCapacity) }

        public mutating func appendLiteral(_ literal: String) { text += literal }

        public mutating func appendInterpolation<Value>(
            _ value: @autoclosure () -> Value, align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
        ) {
            text += align.pad("\(value())")
        }

        public mutating func appendInterpolation<Value: BinaryFloatingPoint>(
            _ value: @autoclosure () -> Value, format: OSLogFloatFormatting, align: OSLogStringAlignment = .none,
            privacy: OSLogPrivacy = .auto
        ) {
            text += align.pad(String(format: format.conversion, Double(value())))
        }

        public mutating func appendInterpolation<Value: BinaryInteger>(
            _ value: @autoclosure () -> Value, format: OSLogIntegerFormatting, align: OSLogStringAlignment = .none,
            privacy: OSLogPrivacy = .auto
        ) {
            text += align.pad(format.prefix + String(value(), radix: format.radix))
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
    public convenience init(subsystem: String, category: Category) {
        self.init(subsystem: subsystem, category: category.name)
    }

    public struct Category: Sendable {
        let name: String

        public static let pointsOfInterest = Category(name: "PointsOfInterest")
        public static let dynamicTracing = Category(name: "DynamicTracing")
    }

    /// Only messages of these types are written.
    public func isEnabled(type: OSLogType) -> Bool { self !== OSLog.disabled && type != .debug && type != .info }

    public static let `default` = OSLog(subsystem: ProcessInfo.processInfo.processName, category: "default")
    public static let disabled = OSLog(subsystem: "", category: "")
}

/// The older function: Foundation's format replaces `%d`, `%{public}@` and the like.
public func os_log(
    _ message: StaticString, dso: UnsafeRawPointer? = nil, log: OSLog = .default, type: OSLogType = .default,
    _ arguments: any CVarArg...
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
